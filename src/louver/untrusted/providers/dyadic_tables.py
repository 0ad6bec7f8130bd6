"""Dyadic tables: records over ever larger ranges of keys, the structure of the paper's figure 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from louver import errors
from louver.untrusted.providers import native, queries
from louver.untrusted.providers.queries import Base
from louver.untrusted.providers.sandbox import Limits, Work, listed
from louver.wire import keycode, records, row_codec
from louver.wire.ordinals import Words
from louver.wire.questions import Field, Level, Slot
from louver.wire.records import Encoded
from louver.wire.row_codec import Bytes

Sections = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Levels:
    """All levels, the finest first."""

    fields: tuple[Field, ...]
    levels: tuple[Level, ...]
    sections: Sections


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Nodes are prefixes of points, not ranks: distinct points, their bits, levels above 0."""

    points: Words
    bits: int
    above: int


def keyed(work: Work, base: Base) -> None:
    """Create `louver_keyed`: partial aggregates of each key and group, or its first rows.

    Rows of a key are in the order in which records contain them.
    """
    if base.shape.columns:
        query = queries.ranked(base, base.keys, base.shape.limit)
        order = queries.row_order(base.shape)
        work.run(f"CREATE TEMP TABLE louver_keyed AS {query} ORDER BY {order}")
        return
    by = [*base.keys, *queries.plain_groups(base)]
    query = f"SELECT {listed([*by, *queries.states(base)])} FROM ({base.sql})"
    grouping = f" GROUP BY {listed([str(at + 1) for at in range(len(by))])}" if by else ""
    order = queries.group_order(base.groups)
    work.run(f"CREATE TEMP TABLE louver_keyed AS SELECT * FROM ({query}{grouping}){order}")


def values(
    work: Work, base: Base, source: str, order: str, more: str = ""
) -> tuple[pa.Table, tuple[Field, ...]]:
    """The contents of records for the rows of a table; `more` are columns before them."""
    if base.shape.columns:
        chosen = [name for name in base.types if name[0] in "co"] + ["position"]
    else:
        chosen = [*base.groups, *queries.results(base)]
    query = f"SELECT {listed(([more] if more else []) + chosen)} FROM {source}{order}"
    types = list(work.types(query).values())
    table = work.table(query)
    if not more:
        return table, row_codec.fields_of(table, types)
    return table, row_codec.fields_of(table.drop_columns([more]), types[1:])


def build(
    work: Work,
    base: Base,
    limits: Limits,
    progress: Callable[[str, float], None],
    nodes: npt.NDArray[Any],
    marks: Words,
    prefixes: Prefixes | None,
    *,
    marked: bool,
) -> Levels:
    """Build all levels over `louver_keyed`.

    Args:
        work: the connection with the table.
        base: the shape.
        limits: their limits.
        progress: receives the progress.
        nodes: for each row of `louver_keyed`: its key's rank, or its point with `prefixes`.
        marks: fingerprints of the distinct keys, ascending.
        prefixes: given if nodes are prefixes.
        marked: whether records contain fingerprints.

    Raises:
        errors.Error: `provider.large`.
    """
    levels = _Building(limits, marks, prefixes, marked)
    make = _best_rows if base.shape.columns else _aggregates
    make(work, base, levels, nodes.astype(np.int64), progress)
    return Levels(levels.fields, tuple(levels.built), levels.arrays)


class _Building:
    """Levels in construction."""

    def __init__(
        self, limits: Limits, marks: Words, prefixes: Prefixes | None, marked: bool
    ) -> None:
        self._limits = limits
        self._marks = marks
        self._prefixes = prefixes
        self._marked = marked
        self._left = limits.table_bytes
        self.fields: tuple[Field, ...] = ()
        self.built: list[Level] = []
        self.arrays: Sections = {}

    @property
    def total(self) -> int:
        """The number of levels: up to one node of everything, or of a whole equal part."""
        if self._prefixes is not None:
            return self._prefixes.above + 1
        return max(1, (len(self._marks) - 1).bit_length() + 1)

    def add(self, rows: Bytes, slots: tuple[Slot, ...], nodes: npt.NDArray[np.int64]) -> None:
        """Add the next level, of rows that are ordered by their nodes."""
        number = len(self.built)
        points = nodes.astype(np.uint64)
        if self._prefixes is None:
            of_node = _common(self._marks, number)
            row_marks = of_node[nodes]
            bits = keycode.bits_of(len(of_node))
        else:
            # A prefix that omits only bits of the bounded part has a single equal part.
            shorter = self._prefixes.points >> np.uint64(number)
            distinct, first = np.unique(shorter, return_index=True)
            row_marks = self._marks[first][np.searchsorted(distinct, points)]
            bits = max(1, self._prefixes.bits - number)
        encoded = records.pack(
            rows, slots, points, row_marks if self._marked else None,
            bits=bits, most_bytes=self._left,
        )  # fmt: skip
        check_width(encoded.level, self._limits)
        self._left -= encoded.records.nbytes
        self.built.append(encoded.level)
        self.arrays |= sections(number, encoded)
        if self._prefixes is not None:
            self.arrays[f"points.{number}"] = encoded.points

    def bytes_of(self, table: pa.Table) -> tuple[Bytes, tuple[Slot, ...]]:
        """Rows as bytes, and their form; `provider.large` if they are too many."""
        slots = row_codec.layout(table, self.fields)
        size = table.num_rows * row_codec.row_width(slots)
        if size > self._left:
            raise errors.make("provider.large", bytes=size, most=self._limits.table_bytes)
        return row_codec.matrix(table, self.fields, slots), slots


def _best_rows(
    work: Work,
    base: Base,
    levels: _Building,
    nodes: npt.NDArray[np.int64],
    progress: Callable[[str, float], None],
) -> None:
    """Levels of first rows: `louver_keyed` is in the order of the rows, so that numbers suffice."""
    table, levels.fields = values(work, base, "louver_keyed", "")
    data, slots = levels.bytes_of(table)
    rows = np.argsort(nodes, kind="stable")
    nodes = nodes[rows]
    for number in range(levels.total):
        progress("levels", 0.3 + 0.6 * number / levels.total)
        if number:
            nodes = nodes >> 1
            order = np.lexsort((rows, nodes))
            rows, nodes = rows[order], nodes[order]
            starts = np.flatnonzero(np.concatenate(([True], nodes[1:] != nodes[:-1])))
            ranks = np.arange(len(nodes)) - np.repeat(
                starts, np.diff(np.append(starts, len(nodes)))
            )
            best = ranks < base.shape.limit
            rows, nodes = rows[best], nodes[best]
        levels.add(data[rows], slots, nodes)


def _aggregates(
    work: Work,
    base: Base,
    levels: _Building,
    nodes: npt.NDArray[np.int64],
    progress: Callable[[str, float], None],
) -> None:
    """Levels of partial aggregates, each merged from the one below."""
    work.keep("louver_nodes", pa.table({"row": np.arange(len(nodes)), "node": nodes}))
    work.run(
        "CREATE TEMP TABLE louver_level AS SELECT n.node, l.* FROM louver_keyed l "
        "JOIN louver_nodes n ON l.rowid = n.row"
    )
    order = queries.group_order(["node", *base.groups])
    for number in range(levels.total):
        progress("levels", 0.3 + 0.6 * number / levels.total)
        if number:
            _rise(work, base)
        table, fields = values(work, base, "louver_level", order, "node")
        levels.fields = levels.fields or fields
        rows, slots = levels.bytes_of(table.drop_columns(["node"]))
        levels.add(rows, slots, table["node"].to_numpy())


def sections(number: int, encoded: Encoded) -> Sections:
    """The arrays of one level: its records and their tags."""
    data = encoded.records.reshape(-1)
    tags = np.frombuffer(native.record_tags(number, data, encoded.level.stored), np.uint8)
    return {f"records.{number}": data, f"tags.{number}": tags}


def check_width(level: Level, limits: Limits) -> None:
    """Refuse records that are too wide for a reply."""
    if level.width > limits.reply_bytes:
        raise errors.make("provider.large", bytes=level.width, most=limits.reply_bytes)


def _common(marks: Words, number: int) -> Words:
    """The fingerprint that all keys of a node share, or 0."""
    if len(marks) == 0:
        return marks
    starts = np.arange(0, len(marks), 1 << number)
    least, most = np.minimum.reduceat(marks, starts), np.maximum.reduceat(marks, starts)
    return np.where(least == most, least, np.uint64(0))


def _rise(work: Work, base: Base) -> None:
    """Merge pairs of nodes of a level into nodes of the next."""
    chosen = ["node >> 1 AS above", *base.groups, *queries.merged(base)]
    by = listed([str(at + 1) for at in range(1 + len(base.groups))])
    work.run(
        "CREATE TEMP TABLE louver_above AS SELECT above AS node, * EXCLUDE (above) FROM "
        f"(SELECT {listed(chosen)} FROM louver_level GROUP BY {by})"
    )
    work.run("DROP TABLE louver_level")
    work.run("ALTER TABLE louver_above RENAME TO louver_level")
