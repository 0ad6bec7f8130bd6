"""The statement that computes the answer locally from the opened partial results."""

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
    items: Sequence[str],
    partials: Partials,
    groups: Sequence[str],
    types: Sequence[str],
    tail: Tail,
) -> str:
    """The answer from partial results of groups.

    ``items`` are named expressions over ``g<i>`` and ``p<i>`` of `MERGED`; ``types`` are those of
    the groups, then of the partial results, whatever the types in a record were.
    """
    columns = [f"g{i}" for i in range(len(groups))] + [
        f"p{i}" for i in range(len(partials.results))
    ]
    return _over(items, _typed(columns, columns, types), partials, len(groups), tail)


def searched(
    items: Sequence[str],
    partials: Partials,
    types: Sequence[str],
    columns: Sequence[int],
    tail: Tail,
) -> str:
    """The answer from the one row of a search: partial result i is ``c<columns[i]>``."""
    names = [f"p{i}" for i in range(len(partials.results))]
    given = [f"c{column}" for column in columns]
    return _over(items, _typed(given, names, types), partials, 0, tail)


def rows(items: Sequence[str], types: Sequence[str], orders: Sequence[str], tail: Tail) -> str:
    """The answer from single rows, the first of which are taken; ``types`` are those of ``c<i>``.

    ``items`` are over ``r.c<i>``; ``orders`` are the sort directions of ``o<i>``.
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


def _over(items: Sequence[str], typed: str, partials: Partials, groups: int, tail: Tail) -> str:
    keys = [f"t.g{i}" for i in range(groups)]
    merged = [f"{key} AS g{i}" for i, key in enumerate(keys)]
    merged += [f"{_merge(i, p, partials.keys)} AS p{i}" for i, p in enumerate(partials.results)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    inner = f"SELECT {', '.join(merged)} FROM ({typed}) AS t{by}"
    return f"SELECT {', '.join(items)} FROM ({inner}) AS {MERGED}{tail.text}"


def _merge(index: int, partial: Partial, keys: dict[int, int]) -> str:
    """Merge the partial results of all parts; the type does not change."""
    column = f"t.p{index}"
    if partial.function == "count":
        return f"CAST(coalesce(sum({column}), 0) AS BIGINT)"
    if partial.function in ("arg_min", "arg_max"):
        return f"{partial.function}({column}, t.p{keys[index]})"
    return f"{_MERGED[partial.function]}({column})"
