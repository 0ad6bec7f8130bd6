"""What the thesis' chapter 6 says in words or tables. Its curves have no numbers in the text.

Measured there on an Apple M1 Pro with 32 GB, C++, DuckDB-Iceberg with a patch that skips reading
Parquet; split-block filters of 16,384 bits under AES unless said otherwise. Seconds.
"""

from __future__ import annotations

#: Table 6.3: files, plain DuckDB-Iceberg, BF-EDS.
TABLE_6_3 = {10_000: (0.0352, 0.0489), 100_000: (0.335, 0.477), 1_000_000: (3.33, 4.63)}
#: Table 6.4: TPC-H Q6 (a modified one that counts and reads no data), by scale factor.
TABLE_6_4 = {
    1: (0.473, 0.550),
    2: (0.949, 1.076),
    4: (1.882, 2.174),
    8: (3.788, 4.307),
    16: (7.577, 8.716),
}
#: Figure 6.23: overhead at small ranges and at 2^63.
OVERHEAD_SMALL, OVERHEAD_ALL = 1.40, 1.10
#: Section 6.6.2: from 2^14 to 2^15 bits a query takes so many times as long.
DOUBLED_BITS = 1.17
#: Figure 6.20: KB of a manifest of 1,000 entries without filters, and with those of 2,048 bits.
MANIFEST_KB = {0: 9, 2_048: 470}
#: Section 6.6.3: what ten times the batch size saves, from 100 and from 1,000 entries.
BATCH_SAVES = {1_000: 0.23, 10_000: 0.032}
#: Figure 6.26 and 6.27: times faster than ORE (64-bit domain; 32-bit domain).
ORE_QUERY, ORE_CIPHERTEXT_AES, ORE_CIPHERTEXT_XOR, ORE_CIPHERTEXT_AES_32 = 1.8, 135, 117, 67
#: Figure 6.28: a manifest of 1,000 entries, 65,536 bits: BF-EDS and ORE. Text 30x, caption 39x.
MANIFEST_S = (0.060, 1.83)
#: Table 6.1: for strings of m letters, the bases that keep the order.
TABLE_6_1 = {
    4: (26, 64), 5: (26, 64), 6: (26, 64), 7: (26, 64), 8: (26, 64), 9: (26, 64),
    10: (26, 60), 11: (26, 42), 12: (26, 30),
}  # fmt: skip
#: Table 6.2: distinct strings of the Reddit data set, mean length.
TABLE_6_2 = {"comments": (6_886_549, 123), "authors": (633_105, 10)}
#: Figure 6.16: accuracy at every delta from 0 to 8.
ACCURACY = 1.0
