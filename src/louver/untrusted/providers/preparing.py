"""Prepare a shape: the tables that shares are evaluated on, for each protocol (paper, section 5.2).

The result depends on the shape and the data only, byte for byte: neither the number of threads nor
the machine changes it, so that a digest shows whether two providers hold the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver.untrusted.providers import dyadic_tables, native, queries, summing
from louver.untrusted.providers.expressions import Checked, refused
from louver.untrusted.providers.keys import Keys, key_columns, keys
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.sandbox import Limits, Work, listed
from louver.wire import keycode, question_codec, records, row_codec
from louver.wire.questions import Field, KeyCodes, Level, Prepared, Protocol, SumColumn

#: The widest domain of the one-way-function scheme, and of Paillier's.
MANY_PARTY_BITS = 24
PAILLIER_BITS = 24

Told = Callable[[str, float], None]
Sections = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a preparation: all of `Prepared` but its names, and arrays by name.

    Sections: `points` (distinct keys, uint64), `points.N` of level N unless they are 0, 1, ...;
    `records.N`, `tags.N` (bytes); `starts`, `groups` (uint32) and `values` (int64) of sums;
    `codes` (uint64, row by row) of a search.
    """

    codes: KeyCodes
    fields: tuple[Field, ...]
    levels: tuple[Level, ...]
    points: int
    sections: Sections
    groups: bytes = b""
    group_count: int = 0
    sums: tuple[SumColumn, ...] = ()
    index_bits: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One preparation in progress."""

    work: Work
    base: Base
    limits: Limits
    progress: Told = field(default=lambda _stage, _done: None)


def prepare(
    work: Work, checked: Checked, limits: Limits, version: bytes, progress: Told | None = None
) -> tuple[Prepared, Sections]:
    """The tables of a shape, and their description for clients.

    Args:
        work: a connection to the data.
        checked: the shape.
        limits: its limits.
        version: the data set's.
        progress: receives the current stage, and its share from 0 to 1.

    Raises:
        errors.Error: `provider.refused`, `provider.wide`, `provider.large`.
    """
    hears = progress or (lambda _stage, _done: None)
    hears("reading", 0.0)
    _check(checked)
    job = Job(work, queries.base(work, checked, limits), limits, hears)
    result = _PROTOCOLS[checked.shape.protocol](job)
    hears("digest", 0.9)
    prepared = Prepared(
        version=version,
        shape_id=question_codec.shape_id(checked.shape),
        digest=bytes(32),
        codes=result.codes,
        fields=result.fields,
        levels=result.levels,
        points=result.points,
        groups=result.groups,
        group_count=result.group_count,
        sums=result.sums,
        index_bits=result.index_bits,
    )
    return replace(prepared, digest=digest(prepared, result.sections)), result.sections


def digest(prepared: Prepared, sections: Sections) -> bytes:
    """32 bytes: the digest of the description, then of each section by name."""
    buffers: list[Any] = [question_codec.encode(replace(prepared, digest=bytes(32)))]
    for name in sorted(sections):
        buffers += [name.encode(), np.ascontiguousarray(sections[name]).reshape(-1).view(np.uint8)]
    return native.digest(buffers)


def _check(checked: Checked) -> None:
    shape = checked.shape
    bounded = shape.protocol in (Protocol.NODES, Protocol.DYADIC)
    if bounded and not shape.interval:
        raise refused("its protocol is for intervals, and it does not have one")
    if shape.interval and shape.protocol in (Protocol.SELECT, Protocol.BUCKETS):
        raise refused("its protocol is not for intervals")


def _select(job: Job) -> Made:
    """One record for each key: single-value conditions."""
    return _table(job, buckets=False)


def _buckets(job: Job) -> Made:
    """One record for each bucket of keys, for three providers or more."""
    return _table(job, buckets=True)


def _table(job: Job, buckets: bool) -> Made:
    dyadic_tables.keyed(job.work, job.base)
    job.progress("grouping", 0.4)
    table = job.work.table(f"SELECT {listed(key_columns(job.base))} FROM louver_keyed")
    most = MANY_PARTY_BITS if buckets else keycode.MAX_BITS
    coded = keys(job.work, job.base, table, most=most, buckets=buckets)
    values, fields = dyadic_tables.values(job.work, job.base, "louver_keyed", "")
    order = np.lexsort((coded.marks, coded.points))
    job.progress("records", 0.6)
    encoded = records.encode(
        values.take(pa.array(order)),
        fields,
        coded.points[order],
        coded.marks[order] if coded.codes.hashed else None,
        bits=coded.codes.bits,
        most_bytes=job.limits.table_bytes,
    )
    dyadic_tables.check_width(encoded.level, job.limits)
    sections = {"points.0": encoded.points, **dyadic_tables.sections(0, encoded)}
    return Made(coded.codes, fields, (encoded.level,), len(encoded.points), sections)


def _nodes(job: Job) -> Made:
    """Records of all aligned ranges of 2**level keys (paper, figure 5)."""
    coded = _keyed(job, keycode.MAX_BITS)
    points, ranks = np.unique(coded.points, return_inverse=True)
    marks = np.zeros(len(points), np.uint64)
    marks[ranks] = coded.marks
    levels = dyadic_tables.build(
        job.work, job.base, job.limits, job.progress, ranks, marks, None, marked=coded.codes.hashed
    )
    sections = {"points": points, **levels.sections}
    return Made(coded.codes, levels.fields, levels.levels, len(points), sections)


def _dyadic(job: Job) -> Made:
    """Records of all prefixes of keys, by the number of omitted bits."""
    coded = _keyed(job, MANY_PARTY_BITS)
    points, where = np.unique(coded.points, return_inverse=True)
    marks = np.zeros(len(points), np.uint64)
    marks[where] = coded.marks
    below = 0 if coded.codes.interval is None else coded.codes.interval.bits
    shape = dyadic_tables.Prefixes(points, coded.codes.bits, below)
    levels = dyadic_tables.build(
        job.work, job.base, job.limits, job.progress, coded.points, marks, shape,
        marked=coded.codes.hashed,
    )  # fmt: skip
    return Made(coded.codes, levels.fields, levels.levels, len(points), levels.sections)


def _keyed(job: Job, most: int) -> Keys:
    dyadic_tables.keyed(job.work, job.base)
    job.progress("grouping", 0.2)
    table = job.work.table(f"SELECT {listed(key_columns(job.base))} FROM louver_keyed")
    return keys(job.work, job.base, table, most=most)


def _sum(job: Job) -> Made:
    """Integers to be summed over the keys that match."""
    return _summed(job, keycode.MAX_BITS, spare=True)


def _paillier(job: Job) -> Made:
    return _summed(job, PAILLIER_BITS, spare=False)


def _summed(job: Job, most: int, spare: bool) -> Made:
    dyadic_tables.keyed(job.work, job.base)
    job.progress("grouping", 0.4)
    sums = summing.sums(job.work, job.base, job.limits)
    coded = keys(job.work, job.base, sums.keys, most=most, spare=spare)
    if coded.codes.hashed and not spare:
        # There is no record whose fingerprint would show that another key was matched.
        raise keycode.too_wide(keycode.MAX_BITS, most)
    job.progress("sums", 0.7)
    points, sections = summing.arranged(sums, coded.points)
    return Made(
        coded.codes,
        sums.fields,
        sums.levels,
        points,
        sections,
        groups=sums.groups,
        group_count=sums.group_count,
        sums=sums.columns,
    )


def _search(job: Job) -> Made:
    """All rows in search order, with their codes (paper, 5.2.2 and 5.2.3, disjoint)."""
    rows = _sorted_rows(job.work, job.base)
    count = rows.values.num_rows
    index_bits = keycode.bits_of(count)
    most = keycode.MAX_BITS - index_bits
    coded = keys(job.work, job.base, rows.keys, most=most, spare=True)
    job.progress("records", 0.5)
    encoded = records.encode(
        rows.values,
        rows.fields,
        np.arange(count, dtype=np.uint64),
        None,
        bits=index_bits,
        most_bytes=job.limits.table_bytes,
    )
    dyadic_tables.check_width(encoded.level, job.limits)
    sections = {"codes": coded.points, **dyadic_tables.sections(0, encoded)}
    return Made(coded.codes, rows.fields, (encoded.level,), count, sections, index_bits=index_bits)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows in their order: columns of the condition, contents of records, and their form."""

    keys: pa.Table
    values: pa.Table
    fields: tuple[Field, ...]


def _sorted_rows(work: Work, base: Base) -> _Sorted:
    """Create `louver_sorted`: the rows of the shape in search order; ties by position.

    The largest value of an expression is the first row in its descending order.

    Raises:
        errors.Error: `provider.refused`.
    """
    if not base.shape.columns:
        raise refused("its protocol is for single rows")
    names = [name for name in base.types if name[0] in "co"] + ["position"]
    listed_keys = listed([*key_columns(base), *names])
    work.run(
        f"CREATE TEMP TABLE louver_sorted AS SELECT {listed_keys} FROM ({base.sql}) "
        f"ORDER BY {queries.row_order(base.shape)}"
    )
    query = f"SELECT {listed(names)} FROM louver_sorted"
    values = work.table(query)
    fields = row_codec.fields_of(values, list(work.types(query).values()))
    keys = work.table(f"SELECT {listed(base.keys or ['none'])} FROM louver_sorted")
    return _Sorted(keys, values, fields)


_PROTOCOLS: dict[Protocol, Callable[[Job], Made]] = {
    Protocol.SELECT: _select,
    Protocol.SUM: _sum,
    Protocol.NODES: _nodes,
    Protocol.SEARCH: _search,
    Protocol.BUCKETS: _buckets,
    Protocol.DYADIC: _dyadic,
    Protocol.PAILLIER: _paillier,
}
