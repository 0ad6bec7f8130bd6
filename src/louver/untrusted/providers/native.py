"""A provider's evaluation of shares on its tables (spec/fss-tables.md). Done in Rust.

Buffers are anything with Python's buffer protocol: bytes, a memoryview, a mapped file, a numpy
array. Everything is checked before any work is done: inconsistent arguments and malformed shares
raise ValueError. The GIL is released, all cores are used, and neither time nor memory accesses
depend on what a share selects. A call with a `stop` ends with `louver._rust.server.Stopped` within
milliseconds after another thread has set it.

Every answer is a sum over points, so that answers of parts of a table add up to the whole's:
`select` and `sample` by XOR and addition as their docstrings say, `sum_columns` and `search` by
addition modulo 2**128.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from louver._rust import server as compiled

Buffer = bytes | memoryview | npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]

#: Bytes of a record's tag, of a sum, and of the parts that follow a record in an answer.
BLOCK = 16


def new_stop() -> compiled.Stop:
    """A flag that ends the evaluations that it is passed to."""
    from louver._rust import server

    return server.Stop()


def select(
    shares: Sequence[bytes],
    points: Words | None,
    count: int,
    records: Buffer,
    width: int,
    tags: Buffer,
    first: int = 0,
    stop: compiled.Stop | None = None,
) -> list[bytes]:
    """The record that each share selects, in one pass over the records (paper 5.2, Figure 4).

    Args:
        shares: point functions with tags ("tree" or "owf") over one domain.
        points: the records' points, distinct and rising; None for `first`, `first` + 1, ...
        count: how many records.
        records: `count` * `width` bytes.
        width: bytes of a record, a multiple of 16.
        tags: the records' tags as of `record_tags`, `count` * 16 bytes.
        first: the point of the first record where `points` is None.
        stop: lets another thread end it.

    Returns:
        For each share `width` + 16 bytes: the XOR of the records whose control bit is 1, and the
        XOR over all records of value times tag in GF(2**128). Answers of parts of a table are
        joined by XOR.
    """
    from louver._rust import server

    return server.fss_select(list(shares), points, count, records, width, tags, first, stop)


def sum_columns(
    shares: Sequence[bytes],
    points: Words,
    starts: Numbers | None,
    groups: Numbers | None,
    values: Integers | None,
    columns: int,
    group_count: int,
    stop: compiled.Stop | None = None,
) -> list[bytes]:
    """Sums of columns by group over the entries of the points that each share selects.

    Args:
        shares: intervals, comparisons or point functions with additive values.
        points: distinct and rising.
        starts: the entries of point i are those from starts[i] to starts[i + 1], so there is one
            more of them than of points; None if entry i is that of point i.
        groups: the group of each entry, below `group_count`; None if all are of group 0.
        values: entry by entry, `columns` integers each; None counts entries (`columns` is 1).
        columns: how many integers an entry has, at least 1.
        group_count: how many groups, at least 1.
        stop: lets another thread end it.

    Returns:
        For each share `group_count` * `columns` numbers of 16 bytes, little endian, modulo
        2**128: group by group, column by column. Answers of parts are joined by addition.
    """
    from louver._rust import server

    table = (points, starts, groups, values, columns, group_count)
    return server.fss_sum(list(shares), *table, stop)


def paillier_columns(
    shares: Sequence[bytes],
    points: Words,
    starts: Numbers | None,
    groups: Numbers | None,
    values: Integers | None,
    columns: int,
    group_count: int,
    stop: compiled.Stop | None = None,
) -> list[bytes]:
    """As `sum_columns`, for intervals of any number of providers (spec/fss-many.md, "paillier").

    Returns:
        For each share a reply of `sizes.paillier_sums` bytes. Those of parts of a table are joined
        by `paillier_join`.
    """
    from louver._rust import server

    table = (points, starts, groups, values, columns, group_count)
    return [server.paillier_sum(share, *table, stop) for share in shares]


def paillier_join(share: bytes, replies: Sequence[bytes]) -> bytes:
    """The reply over a table from those over its parts, all to one share."""
    from louver._rust import server

    return server.paillier_join(share, list(replies))


def search(
    shares: Sequence[bytes],
    codes: Words,
    code_bits: int,
    index_bits: int,
    prefix_bits: int,
    first: int = 0,
    stop: compiled.Stop | None = None,
) -> list[bytes]:
    """The number of rows counted by each share whose index has its prefix (paper 5.2.2, disjoint).

    Args:
        shares: point functions with additive values over `prefix_bits` + `code_bits` bits.
        codes: the rows' codes in the order of the rows, each below 2**`code_bits`.
        code_bits: bits of a code, 1 to 64 and together with `index_bits` at most 64.
        index_bits: bits of a row's index; there are at most 2**`index_bits` rows.
        prefix_bits: the number of leading index bits that the shares cover, 0 to `index_bits`.
        first: the index of the first row, if the rows are a part of the table.
        stop: lets another thread end it.

    Returns:
        For each share 16 bytes, little endian: the sum modulo 2**128 over rows i of the value at
        the point (i >> (index_bits - prefix_bits)) << code_bits | codes[i].
    """
    from louver._rust import server

    numbers = (code_bits, index_bits, prefix_bits, first)
    return server.fss_search(list(shares), codes, *numbers, stop)


def sample(
    shares: Sequence[bytes],
    codes: Words,
    code_bits: int,
    index_bits: int,
    prefix_bits: Sequence[int],
    records: Buffer,
    width: int,
    tags: Buffer,
    slots: int,
    seeds: Sequence[int],
    first: int = 0,
    stop: compiled.Stop | None = None,
) -> bytes:
    """The result tables of paper Appendix A: rows that any of the shares selects, by hash.

    Args:
        shares: point functions with additive values, all of one payload; share j is over
            `prefix_bits`[j] + `code_bits` bits. No two of them select the same row.
        codes: as for `search`.
        code_bits: as for `search`.
        index_bits: as for `search`.
        prefix_bits: of each share.
        records: the rows' records in their order, no two of them equal.
        width: bytes of a record, a multiple of 16.
        tags: the records' tags as of `record_tags`, 16 bytes each.
        slots: rows of each result table.
        seeds: one of 64 bits for each result table.
        first: as for `search`.
        stop: lets another thread end it.

    Returns:
        Table by table and slot by slot `width` + 32 bytes: the XOR of the records whose value is
        odd (a row's value is the sum over the shares, the payload is odd), then, little endian
        and modulo 2**128, the sum of the values (the payload times how many rows), and the sum of
        value times tag. The slot of a row follows from its tag and the seed (spec/fss-tables.md),
        so that a known record can be taken out of every table. Answers of parts are joined by XOR,
        addition and addition.
    """
    from louver._rust import server

    numbers = (code_bits, index_bits, list(prefix_bits))
    where = (records, width, tags)
    tables = (slots, list(seeds), first)
    return server.fss_sample(list(shares), codes, *numbers, *where, *tables, stop)


def record_tags(level: int, records: Buffer, width: int) -> bytes:
    """16 bytes for each record of `width` bytes: its tag at a level (spec/fss-tables.md)."""
    from louver._rust import server

    return server.fss_tags(level, records, width)


def hash_texts(salt: bytes, columns: Sequence[pa.Array]) -> tuple[bytes, bytes]:
    """The high and the low 64 bits (uint64, little endian) of a salted hash of each row.

    It is BLAKE3's key derivation (context "louver 2026-11 fss key hash v1") over the salt and each
    column's text, before each its length in bytes (uint64, little endian). The first 8 bytes of
    the digest are the high word, the next 8 the low one. Columns are arrays of text or bytes of
    one length without NULL, at least one of them.
    """
    from louver._rust import server

    return server.fss_hash(salt, list(columns))


def digest(buffers: Sequence[Buffer]) -> bytes:
    """32 bytes: BLAKE3 of the number of buffers, then of each one's length and its BLAKE3."""
    from louver._rust import server

    return server.fss_digest(list(buffers))


def share_header(share: bytes) -> dict[str, Any]:
    """A share's header: scheme, group, bits, party, parties, words, bytes."""
    from louver._rust import server

    return server.share_header(share)
