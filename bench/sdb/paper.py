"""The numbers of the SDB report, appendix 7.2, as printed there. Seconds, but for FIGURE_19.

The report ran Spark on 10 machines of 8 cores, with the client on one Core i5 of 2.4 GHz. Its
section 4.1 swaps the names of the range queries; here EC is `A < q` and EE is `A < B`.
"""

from __future__ import annotations

Rows = dict[str, tuple[float, ...]]

SIZES = (5_000, 200_000, 400_000, 600_000)
SELECTIVITIES = (0.0001, 0.01, 0.02, 0.03, 0.04, 0.05)

#: SELECT A, B from T WHERE A < p, 1 % selectivity, by size.
FIGURE_17: Rows = {
    "SDB server": (4.246, 46.934, 89.619, 132.614),
    "SDB client": (0.082, 2.107, 4.372, 6.366),
    "DBQ server": (0.230, 8.93, 17.860, 26.8),
    "DBQ client": (14.33, 510.92, 1003.931, 1483.658),
}
#: The same query on 200,000 rows, by selectivity.
FIGURE_18: Rows = {
    "server": (44.239, 44.327, 45.035, 45.502, 45.627, 45.714),
    "client": (0.071, 2.107, 4.048, 5.791, 7.789, 9.835),
}
#: The same query on 5,000 rows, by selectivity, in milliseconds.
FIGURE_19: Rows = {
    "parse": (1, 1, 1, 1, 2, 1),
    "analyse": (9, 10, 8, 10, 14, 12),
    "rewrite": (15, 14, 18, 14, 16, 15),
    "decrypt": (2, 56, 104, 159, 215, 253),
}
#: 200,000 rows: EC range, EE range, count.
FIGURE_20: Rows = {
    "server": (44.827, 44.867, 43.728),
    "client": (2.107, 1.786, 0.035),
    "plaintext": (0.250, 0.253, 0.254),
}
#: SELECT A, B from T WHERE A < B, 1 % selectivity, by size.
FIGURE_20A: Rows = {
    "server": (4.633, 44.867, 84.053, 134.601),
    "client": (0.14, 1.786, 3.414, 5.358),
}
#: SELECT A, B from T WHERE A < p, 1 % selectivity, by size.
FIGURE_20B: Rows = {
    "server": (4.164, 44.827, 85.247, 126.248),
    "client": (0.082, 2.107, 4.372, 6.366),
}
#: SELECT count(A) from T WHERE A < p, by size.
FIGURE_21: Rows = {
    "server": (4.45, 43.728, 82.991, 122.435),
    "client": (0.017, 0.035, 0.021, 0.021),
}
