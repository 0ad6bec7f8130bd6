"""HISTOGRAM(x, [bounds]): one count per bin, and DuckDB's map of them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.planner.private import marks
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.private.schema import Schema
from louver.trusted.planner.sql import trees

MOST_BINS = 128
_SAMPLES = ("0", "2000-01-01", "00:00:00", "true", "a")


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins of a histogram.

    ``conditions`` are public, one for each bin and one for values above the last bound; ``keys``
    are the bounds and the key of the last bin, as SQL of the map's type. If a bound is repeated,
    DuckDB does not show the last bin.
    """

    conditions: tuple[str, ...]
    keys: tuple[str, ...]
    type: str
    shows_rest: bool

    def map(self, counts: list[str]) -> str:
        """The map of the counts: NULL over no rows, and the last bin only if it is not empty."""
        values = [f"CAST({count} AS UBIGINT)" for count in counts]
        some = " + ".join(counts)
        inner, rest = values[:-1], values[-1]
        keys = f"CAST([{', '.join(self.keys[:-1])}] AS {self.type}[])"
        all_keys = f"CAST([{', '.join(self.keys)}] AS {self.type}[])"
        short = f"MAP({keys}, CAST([{', '.join(inner)}] AS UBIGINT[]))"
        long = f"MAP({all_keys}, [{', '.join(values)}])"
        if not self.shows_rest:
            return f"CASE WHEN {some} > 0 THEN {short} END"
        return f"CASE WHEN {some} = 0 THEN NULL WHEN {rest} > 0 THEN {long} ELSE {short} END"


def bins(schema: Schema, source: str, argument: str, bounds: str) -> Bins:
    """The bins of ``HISTOGRAM(argument, bounds)``; bounds are inclusive upper ends."""
    node = trees.parse_one(bounds)
    if not isinstance(node, exp.Array) or any(marks.has_column(item) for item in node.expressions):
        raise refuse("HISTOGRAM with bounds that are not a list of constants", "Write [10, 20, 30]")
    if len(node.expressions) > MOST_BINS:
        raise refuse(f"HISTOGRAM with {len(node.expressions)} bounds", f"Give at most {MOST_BINS}")
    if any(isinstance(item, exp.Null) for item in node.expressions):
        raise refuse("HISTOGRAM with a NULL among its bounds", "Leave it out")
    map_type = schema.describe(f"SELECT histogram({argument}, {bounds}) FROM {source}")[0][1]
    type_ = map_type.removeprefix("MAP(").removesuffix(", UBIGINT)")
    given = schema.value(
        f"SELECT list_transform(list_sort(list_distinct(CAST({bounds} AS {type_}[]))), "
        "lambda x: CAST(x AS VARCHAR))"
    )
    texts = [str(item) for item in given] if isinstance(given, list) else []
    ends = [_literal(text, type_) for text in texts]
    plain = marks.bracketed(argument)
    value = plain if _is_of(schema, source, argument, type_) else f"CAST({argument} AS {type_})"
    conditions = []
    for i, end in enumerate(ends):
        above = f"{value} > {ends[i - 1]} AND " if i else ""
        conditions.append(f"{above}{value} <= {end}")
    conditions.append(f"{value} > {ends[-1]}" if ends else f"{value} IS NOT NULL")
    shows_rest = len(ends) == len(node.expressions)
    return Bins(tuple(conditions), (*ends, _rest(schema, type_)), type_, shows_rest)


def _is_of(schema: Schema, source: str, argument: str, type_: str) -> bool:
    return schema.describe(f"SELECT {argument} FROM {source}")[0][1] == type_


def _rest(schema: Schema, type_: str) -> str:
    """DuckDB's key for values above the last bound, computed by DuckDB with no bounds."""
    samples = ", ".join(f"TRY_CAST('{sample}' AS {type_})" for sample in _SAMPLES)
    key = schema.value(
        f"SELECT CAST(map_keys(histogram(COALESCE({samples}), CAST([] AS {type_}[])))[1] "
        "AS VARCHAR)"
    )
    return _literal(str(key), type_)


def _literal(text: str, type_: str) -> str:
    quoted = "'" + text.replace("'", "''") + "'"
    return f"CAST({quoted} AS {type_})"
