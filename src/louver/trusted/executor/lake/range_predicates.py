"""Conditions of a plan as ranges of mapped values (spec/eds.md, mapping).

A range may be too wide, never too narrow: what is not understood is the whole domain. Ranges of one
column that stand in an AND meet in one range, so that one token asks for both ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa

from louver import errors
from louver.trusted.executor.constant_encoding import Evaluate
from louver.trusted.planner.ir import Code, Node, Sql
from louver.trusted.planner.operators.codes import fill
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.exact_values import Exact, exact, in_domain
from louver.trusted.vault.index_keys import map_bounds, map_values
from louver.trusted.vault.scheme import scheme_of
from louver.trusted.vault.types import code_domain

TOP = (1 << 64) - 1
_INTEGERS = {
    "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(),
}  # fmt: skip
MOST_SPANS = 16
"""So many ranges of one column in an OR; where there are more, neighbours are joined."""


@dataclass(frozen=True, slots=True)
class Span:
    """Values of a column from ``low`` to ``high``, both inclusive and mapped to 64 bits."""

    column: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Every:
    """All parts must hold; without parts, always."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """One part must hold; without parts, never."""

    parts: tuple[Condition, ...] = ()


Condition = Span | Every | Some
ALWAYS, NEVER = Every(), Some()


def condition(
    nodes: Sequence[Node], table: Table, literals: Sequence[str], evaluate: Evaluate
) -> Condition:
    """The conjunction of a plan's conditions on one table, with the statement's numbers."""
    columns = {column.id: column for column in table.columns}

    def read(node: Node) -> Condition:
        match node:
            case Code(onion=name, column=number, sign=sign, text=text) if _is_range(name):
                try:
                    results = evaluate(fill(text, list(literals)))
                except errors.Error:
                    # Whether that is an error is DuckDB's to say, on the rows.
                    return ALWAYS
                return _span(columns[number], sign, results)
            case Sql(_, (child,)):
                return read(child)
            case Sql(text, children) if children and _word(text):
                conditions = [read(child) for child in children]
                return every(conditions) if _word(text) == "AND" else some(conditions)
        raise errors.make("internal", detail="a condition that is not a range")

    return every([read(node) for node in nodes])


def _is_range(representation: str) -> bool:
    return "RANGE" in scheme_of(representation).answers


def _word(text: str) -> str:
    """Whether a node joins its children by AND or by OR alone."""
    words = {word for word in text.replace("(", " ").replace(")", " ").split() if word[0] != "⟦"}
    return words.pop() if words in ({"AND"}, {"OR"}) else ""


def every(parts: Sequence[Condition]) -> Condition:
    """All of these; ranges of one column are met."""
    met: dict[int, Span] = {}
    rest: list[Condition] = []
    flat = [p for part in parts for p in (part.parts if isinstance(part, Every) else (part,))]
    for part in flat:
        if part == NEVER:
            return NEVER
        if not isinstance(part, Span):
            rest.append(part)
            continue
        held = met.get(part.column)
        low, high = (
            max(part.low, held.low if held else 0),
            min(part.high, held.high if held else TOP),
        )
        if low > high:
            return NEVER
        met[part.column] = Span(part.column, low, high)
    ranges = [*(s for s in met.values() if (s.low, s.high) != (0, TOP)), *dict.fromkeys(rest)]
    return ranges[0] if len(ranges) == 1 else Every(tuple(ranges))


def some(parts: Sequence[Condition]) -> Condition:
    """One of these; ranges of one column that touch are joined, the nearest where too many."""
    by_column: dict[int, list[Span]] = {}
    rest: list[Condition] = []
    flat = [p for part in parts for p in (part.parts if isinstance(part, Some) else (part,))]
    for part in flat:
        if part == ALWAYS:
            return ALWAYS
        if isinstance(part, Span):
            by_column.setdefault(part.column, []).append(part)
        else:
            rest.append(part)
    joined = [span for spans in by_column.values() for span in _joined(spans)]
    if any((span.low, span.high) == (0, TOP) for span in joined):
        return ALWAYS
    results = [*joined, *dict.fromkeys(rest)]
    return results[0] if len(results) == 1 else Some(tuple(results))


def _joined(spans: Sequence[Span]) -> list[Span]:
    entries: list[Span] = []
    for span in sorted(spans, key=lambda other: (other.low, other.high)):
        if entries and span.low <= entries[-1].high + 1:
            entries[-1] = Span(span.column, entries[-1].low, max(entries[-1].high, span.high))
        else:
            entries.append(span)
    while len(entries) > MOST_SPANS:
        gaps = [after.low - before.high for before, after in pairwise(entries)]
        position = gaps.index(min(gaps))
        entries[position : position + 2] = [
            Span(entries[position].column, entries[position].low, entries[position + 1].high)
        ]
    return entries


def of_values(
    column: Column, values: pa.Array | pa.ChunkedArray, *, merged: bool = False
) -> Condition:
    """The ranges of one value each that some of these values of the column's type fall into; where
    they are merged, one range that holds them all.
    """
    mapped = pa.chunked_array([map_values(values, column.type)]).drop_null().unique()
    points = np.sort(mapped.to_numpy().astype(np.uint64))
    if merged and len(points):
        return _between(column.id, int(points[0]), int(points[-1]))
    if len(points) > MOST_SPANS:
        # The widest gaps part the ranges.
        cuts = np.sort(np.argsort(np.diff(points))[-(MOST_SPANS - 1) :])
        lows, highs = points[np.r_[0, cuts + 1]], points[np.r_[cuts, len(points) - 1]]
    else:
        lows = highs = points
    pairs = zip(lows.tolist(), highs.tolist(), strict=True)
    return some([Span(column.id, low, high) for low, high in pairs])


def _span(column: Column, sign: str, values: pa.Array) -> Condition:
    """The range of values that stand so to a constant; nothing does to NULL."""
    domain = code_domain(column.type) or ""
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    if not storage[0].is_valid:
        return NEVER
    value = exact(values, domain)
    if value is None or _is_infinite(storage):
        # Infinite moments are other numbers in other types.
        return ALWAYS
    if sign == "prefix":
        return _prefix(column, value)
    low: Exact = value
    high: Exact = value
    if isinstance(value, Fraction):
        low = Fraction(math.floor(value) + 1 if sign == ">" else math.ceil(value))
        high = Fraction(math.ceil(value) - 1 if sign == "<" else math.floor(value))
        if sign == "=":
            low, high = high, low
    return _between(
        column.id,
        0 if sign in ("<", "<=") else _mapped(column, domain, low, _lowest),
        TOP if sign in (">", ">=") else _mapped(column, domain, high, _highest),
    )


def _is_infinite(storage: pa.Array) -> bool:
    kind = storage.type
    if pa.types.is_date32(kind):
        return abs(int(storage.view(pa.int32())[0].as_py())) >= (1 << 31) - 1
    if pa.types.is_timestamp(kind):
        return abs(int(storage.view(pa.int64())[0].as_py())) >= (1 << 63) - 1
    return False


def _between(column: int, low: int, high: int) -> Condition:
    return Span(column, low, high) if low <= high else NEVER


def _prefix(column: Column, value: Exact) -> Condition:
    if not isinstance(value, str) or column.type != "VARCHAR":
        return ALWAYS
    low = _mapped(column, "text", value, _lowest)
    spare = 8 * max(8 - len(value.encode()), 0)
    return Span(column.id, low, low | (1 << spare) - 1)


def _lowest(value: Exact) -> int:
    """The least mapped value that is not below a number that the column's type cannot hold."""
    return TOP if isinstance(value, Fraction) and value > 0 else 0


def _highest(value: Exact) -> int:
    return 0 if isinstance(value, Fraction) and value < 0 else TOP


def _mapped(column: Column, domain: str, value: Exact, outside: Callable[[Exact], int]) -> int:
    """A constant's place in the 64-bit domain; where the type cannot hold it, the end of the
    domain that lies on its side.
    """
    array = in_domain(value, domain)
    narrow = _INTEGERS.get(column.type)
    if array is not None and narrow is not None:
        try:
            array = array.cast(narrow)
        except pa.ArrowInvalid:
            # No value of the type is so large, or so small.
            array = None
    if array is None:
        return outside(value)
    number = map_values(array, column.type)[0].as_py()
    return outside(value) if number is None else int(number)


def may_hold(part: Condition, columns: Mapping[int, Column], rows: pa.Table) -> bool:
    """Whether opened rows of a file, taken by their smallest and largest values, can meet a
    condition; columns that were not read count as if they could.
    """
    if isinstance(part, Every):
        return all(may_hold(other, columns, rows) for other in part.parts)
    if isinstance(part, Some):
        return any(may_hold(other, columns, rows) for other in part.parts)
    column = columns.get(part.column)
    if column is None:
        return True
    low, high, _ = map_bounds(rows.column(column.name), column.type)
    return low is not None and high is not None and low <= part.high and part.low <= high
