"""The statement that makes the answer, at home, of the partial results that were opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louver.trusted.planner.private.aggregates import Partials
from louver.trusted.planner.private.question import MERGED, PARTIALS
from louver.wire.questions import Partial

_MERGED = {
    "min": "min", "max": "max", "product": "product", "bool_and": "bool_and",
    "bool_or": "bool_or", "bit_and": "bit_and", "bit_or": "bit_or", "bit_xor": "bit_xor",
    "sum": "sum",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tail:
    """What follows FROM in the answer: its conditions, its order, its limits, as SQL."""

    having: str = ""
    order: str = ""
    limit: int | None = None
    offset: int | None = None

    @property
    def text(self) -> str:
        parts = [f" WHERE {self.having}"] if self.having else []
        parts += [f" ORDER BY {self.order}"] if self.order else []
        parts += [f" LIMIT {self.limit}"] if self.limit is not None else []
        parts += [f" OFFSET {self.offset}"] if self.offset is not None else []
        return "".join(parts)


def grouped(
    items: Sequence[str], made: Partials, groups: Sequence[str], types: Sequence[str], tail: Tail
) -> str:
    """The answer from partial results of groups.

    ``items`` are expressions with their names over ``g<i>`` and ``p<i>`` of `MERGED`; ``types`` are
    those of the groups, then of the partial results: what the bytes of a record were does not
    matter.
    """
    columns = [f"g{i}" for i in range(len(groups))] + [f"p{i}" for i in range(len(made.found))]
    return _over(items, _typed(columns, columns, types), made, len(groups), tail)


def searched(
    items: Sequence[str], made: Partials, types: Sequence[str], columns: Sequence[int], tail: Tail
) -> str:
    """The same from the one row that a search finds: partial result i is ``c<columns[i]>``."""
    names = [f"p{i}" for i in range(len(made.found))]
    given = [f"c{column}" for column in columns]
    return _over(items, _typed(given, names, types), made, 0, tail)


def rows(items: Sequence[str], types: Sequence[str], orders: Sequence[str], tail: Tail) -> str:
    """The answer from single rows, of which the first are taken; ``types`` are those of ``c<i>``.

    ``items`` are over ``r.c<i>``, ``orders`` say how ``o<i>`` sorts.
    """
    columns = [f"c{i}" for i in range(len(types))]
    keys = [f"r.o{i}{suffix}" for i, suffix in enumerate(orders)]
    named = [f"CAST(t.{c} AS {type_}) AS {c}" for c, type_ in zip(columns, types, strict=True)]
    named += [f"t.o{i} AS o{i}" for i in range(len(orders))] + ["t.position AS position"]
    inner = f"SELECT {', '.join(named)} FROM {PARTIALS} AS t"
    order = ", ".join([*keys, "r.position"])
    tail = Tail("", order, tail.limit, tail.offset)
    return f"SELECT {', '.join(items)} FROM ({inner}) AS r{tail.text}"


def _typed(given: Sequence[str], names: Sequence[str], types: Sequence[str]) -> str:
    listed = ", ".join(
        f"CAST({column} AS {type_}) AS {name}"
        for column, name, type_ in zip(given, names, types, strict=True)
    )
    return f"SELECT {listed} FROM {PARTIALS}"


def _over(items: Sequence[str], typed: str, made: Partials, groups: int, tail: Tail) -> str:
    keys = [f"t.g{i}" for i in range(groups)]
    merged = [f"{key} AS g{i}" for i, key in enumerate(keys)]
    merged += [f"{_merge(i, p, made.keys)} AS p{i}" for i, p in enumerate(made.found)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    inner = f"SELECT {', '.join(merged)} FROM ({typed}) AS t{by}"
    return f"SELECT {', '.join(items)} FROM ({inner}) AS {MERGED}{tail.text}"


def _merge(place: int, partial: Partial, keys: dict[int, int]) -> str:
    """Partial results of parts made into that of the whole; its type does not change."""
    column = f"t.p{place}"
    if partial.function == "count":
        return f"CAST(coalesce(sum({column}), 0) AS BIGINT)"
    if partial.function in ("arg_min", "arg_max"):
        return f"{partial.function}({column}, t.p{keys[place]})"
    return f"{_MERGED[partial.function]}({column})"
