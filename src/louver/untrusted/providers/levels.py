"""Tables of records over ever larger runs of keys: the structure of the paper's figure 5."""

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
from louver.untrusted.providers.working import Limits, Work, listed
from louver.wire import keycode, records
from louver.wire.questions import Field, Level
from louver.wire.records import Encoded
from louver.wire.units import Words

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
    """Make `louver_keyed`: partial aggregates of each key and group, or its first rows.

    Rows of a key are in the order in which records hold them.
    """
    if base.shape.columns:
        query = queries.ranked(base, base.keys, base.shape.limit)
        work.run(f"CREATE TEMP TABLE louver_keyed AS {query} ORDER BY rank")
        return
    by = [*base.keys, *queries.plain_groups(base)]
    query = f"SELECT {listed([*by, *queries.states(base)])} FROM ({base.sql})"
    grouping = f" GROUP BY {listed([str(at + 1) for at in range(len(by))])}" if by else ""
    order = queries.group_order(base.groups)
    work.run(f"CREATE TEMP TABLE louver_keyed AS SELECT * FROM ({query}{grouping}){order}")


def values(
    work: Work, base: Base, source: str, order: str, more: str = ""
) -> tuple[pa.Table, tuple[Field, ...]]:
    """What records hold of the rows of a table, and how; `more` are columns before them."""
    if base.shape.columns:
        chosen = [name for name in base.types if name[0] in "co"] + ["position"]
    else:
        chosen = [*base.groups, *queries.results(base)]
    query = f"SELECT {listed(([more] if more else []) + chosen)} FROM {source}{order}"
    types = list(work.types(query).values())
    table = work.table(query)
    if not more:
        return table, records.layout(table, types)
    return table, records.layout(table.drop_columns([more]), types[1:])


def build(
    work: Work,
    base: Base,
    limits: Limits,
    told: Callable[[str, float], None],
    nodes: npt.NDArray[Any],
    marks: Words,
    prefixes: Prefixes | None,
) -> Levels:
    """All levels over `louver_keyed`.

    Args:
        work: where the table is.
        base: the shape.
        limits: what they may take.
        told: hears of the progress.
        nodes: of each row of `louver_keyed`: its key's rank, or its point with `prefixes`.
        marks: fingerprints of the distinct keys, ascending.
        prefixes: given if nodes are prefixes.

    Raises:
        errors.Error: `provider.large`.
    """
    given = pa.table({"row": np.arange(len(nodes)), "node": nodes.astype(np.int64)})
    work.keep("louver_nodes", given)
    work.run(
        "CREATE TEMP TABLE louver_level AS SELECT n.node, l.* FROM louver_keyed l "
        "JOIN louver_nodes n ON l.rowid = n.row"
    )
    count = len(marks) if prefixes is None else prefixes.above + 1
    total = max(1, (count - 1).bit_length() + 1) if prefixes is None else count
    fields: tuple[Field, ...] = ()
    found: list[Level] = []
    arrays: Sections = {}
    left = limits.table_bytes
    for number in range(total):
        told("levels", 0.3 + 0.6 * number / total)
        if number:
            _rise(work, base)
        table, widest = values(work, base, "louver_level", _order(base), "node")
        fields = fields or widest
        encoded = _level(table, fields, number, marks, prefixes, left)
        check_width(encoded.level, limits)
        left -= encoded.records.nbytes
        found.append(encoded.level)
        arrays |= sections(number, encoded)
        if prefixes is not None:
            arrays[f"points.{number}"] = encoded.points
    return Levels(fields, tuple(found), arrays)


def sections(number: int, encoded: Encoded) -> Sections:
    """The arrays of one level: its records and their tags."""
    data = encoded.records.reshape(-1)
    tags = np.frombuffer(native.record_tags(number, data, encoded.level.width), np.uint8)
    return {f"records.{number}": data, f"tags.{number}": tags}


def check_width(level: Level, limits: Limits) -> None:
    """Refuse records that are too wide for a reply."""
    if level.width > limits.reply_bytes:
        raise errors.make("provider.large", bytes=level.width, most=limits.reply_bytes)


def _level(
    table: pa.Table,
    fields: tuple[Field, ...],
    number: int,
    marks: Words,
    prefixes: Prefixes | None,
    left: int,
) -> Encoded:
    nodes = table["node"].to_numpy().astype(np.uint64)
    if prefixes is None:
        of_node = _common(marks, number)
        row_marks = of_node[nodes]
        bits = keycode.bits_of(len(of_node))
    else:
        # Within a prefix that leaves out bits of the bounded part only, all equal parts agree.
        distinct, first = np.unique(prefixes.points >> np.uint64(number), return_index=True)
        row_marks = marks[first][np.searchsorted(distinct, nodes)]
        bits = max(1, prefixes.bits - number)
    rest = table.drop_columns(["node"])
    return records.encode(rest, fields, nodes, row_marks, bits=bits, most_bytes=left)


def _common(marks: Words, number: int) -> Words:
    """The fingerprint that all keys of a node share, or 0."""
    if len(marks) == 0:
        return marks
    starts = np.arange(0, len(marks), 1 << number)
    least, most = np.minimum.reduceat(marks, starts), np.maximum.reduceat(marks, starts)
    return np.where(least == most, least, np.uint64(0))


def _rise(work: Work, base: Base) -> None:
    """Two nodes of a level become one of the next."""
    if base.shape.columns:
        query = (
            "SELECT node >> 1 AS node, * EXCLUDE (node) FROM louver_level QUALIFY row_number() "
            f"OVER (PARTITION BY node >> 1 ORDER BY {queries.row_order(base.shape)}) "
            f"<= {base.shape.limit}"
        )
    else:
        chosen = ["node >> 1 AS above", *base.groups, *queries.merged(base)]
        by = listed([str(at + 1) for at in range(1 + len(base.groups))])
        query = (
            f"SELECT above AS node, * EXCLUDE (above) FROM "
            f"(SELECT {listed(chosen)} FROM louver_level GROUP BY {by})"
        )
    work.run(f"CREATE TEMP TABLE louver_above AS {query}")
    work.run("DROP TABLE louver_level")
    work.run("ALTER TABLE louver_above RENAME TO louver_level")


def _order(base: Base) -> str:
    if base.shape.columns:
        return f" ORDER BY node, {queries.row_order(base.shape)}"
    groups = [f"{name} ASC NULLS FIRST" for name in base.groups]
    return f" ORDER BY {listed(['node', *groups])}"
