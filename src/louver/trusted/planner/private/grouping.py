"""Questions that aggregate: shapes with partial results, and their local processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from louver.names import quoted
from louver.trusted.planner.private import finish, marks
from louver.trusted.planner.private.aggregates import (
    Partials,
    has_aggregate,
    is_aggregate,
    merged,
)
from louver.trusted.planner.private.items import Sorted, whole_number
from louver.trusted.planner.private.names import Scope
from louver.trusted.planner.private.question import MERGED, Alternative, Condition
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.private.schema import Schema
from louver.trusted.planner.sql.trees import local_text
from louver.wire.questions import Order, Partial, Protocol, Shape


@dataclass(frozen=True, slots=True)
class Public:
    """The part of a shape that comes from FROM and WHERE."""

    schema: Schema
    source: str
    where: str
    equal: tuple[str, ...]
    interval: str

    def types(self, expressions: Sequence[str], groups: int = 0) -> list[str]:
        """DuckDB's types of expressions over the tables; the first ones are grouped by."""
        if not expressions:
            return []
        sql = f"SELECT {', '.join(expressions)} FROM {self.source}"
        if groups:
            sql += " GROUP BY " + ", ".join(str(i + 1) for i in range(groups))
        return [type_ for _, type_ in self.schema.describe(sql)]


@dataclass(frozen=True, slots=True)
class Way:
    """The protocols that a condition permits: for whole records, for sums, for a search."""

    condition: Condition
    records: Protocol
    sums: Protocol | None
    search: Protocol | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A planned answer without its clauses."""

    shape: Shape
    alternatives: tuple[Alternative, ...]
    finish: str
    condition: Condition


def answer(
    select: exp.Select,
    scope: Scope,
    items: list[exp.Expr],
    groups: list[exp.Expr],
    orders: list[Sorted],
    public: Public,
    way: Way,
    described: Sequence[tuple[str, str]],
) -> Answer:
    """The answer of a statement that aggregates."""
    for group in groups:
        if has_aggregate(group):
            raise refuse("GROUP BY over an aggregate", "Group by expressions of columns")
    limit = whole_number(select.args.get("limit"), "LIMIT")
    offset = whole_number(select.args.get("offset"), "OFFSET")
    having = select.args.get("having")
    wanted = (
        None if having is None else scope.resolved(having.this, aliases=scope.aliases, first=True)
    )
    parts = _Parts(public, groups, items, orders, wanted, limit, offset, described)
    local = parts.local(counted=False)
    if way.sums is not None and local.partials.additive:
        local = parts.local(counted=True)
        protocol = way.sums
    else:
        protocol = way.records
    texts = tuple(local_text(group) for group in groups)
    shape = Shape(
        protocol=protocol,
        source=public.source,
        where=public.where,
        equal=public.equal,
        interval=public.interval,
        groups=texts,
        partials=tuple(local.partials.results),
    )
    types = public.types([*texts, *(_call(p) for p in shape.partials)], len(texts))
    text = finish.grouped(local.items, local.partials, texts, types, local.tail)
    alternatives: tuple[Alternative, ...] = ()
    if way.search is not None and not texts:
        alternatives = _search(shape, local, types)
    return Answer(shape, alternatives, text, way.condition)


@dataclass(slots=True)
class _LocalPart:
    partials: Partials
    items: list[str]
    tail: finish.Tail


@dataclass(frozen=True, slots=True)
class _Parts:
    public: Public
    groups: list[exp.Expr]
    items: list[exp.Expr]
    orders: list[Sorted]
    having: exp.Expr | None
    limit: int | None
    offset: int | None
    described: Sequence[tuple[str, str]]

    def local(self, *, counted: bool) -> _LocalPart:
        """The partial results, and the expressions over them."""
        partials = Partials(self.public.schema, self.public.source, counted)
        keys = {local_text(group): f"g{i}" for i, group in enumerate(self.groups)}

        def local_sql(node: exp.Expr) -> str:
            return local_text(_local(node, keys, partials))

        items = [
            f"CAST({local_sql(item)} AS {type_}) AS {quoted(name)}"
            for item, (name, type_) in zip(self.items, self.described, strict=True)
        ]
        orders = ", ".join(local_sql(order.node) + order.suffix for order in self.orders)
        having = f"({local_sql(self.having)})" if self.having is not None else ""
        if not partials.results or (counted and self.groups):
            position = partials.add("count")
            if counted and self.groups:
                # Sums are opened for every group; a group without matching rows is omitted.
                having = f"{merged(position)} > 0" + (f" AND {having}" if having else "")
        return _LocalPart(partials, items, finish.Tail(having, orders, self.limit, self.offset))


def _local(node: exp.Expr, keys: dict[str, str], partials: Partials) -> exp.Expr:
    """An expression of the select list over groups and partial results."""
    key = keys.get(local_text(node.unnest()))
    if key is not None:
        return exp.column(key, table=MERGED)
    if is_aggregate(node):
        return partials.local(node)
    if isinstance(node, exp.Column):
        raise refuse(
            f"{local_text(node)} is neither grouped by nor aggregated",
            f"Add it to GROUP BY, or use MIN({local_text(node)})",
        )
    node = node.copy()
    for child in list(node.iter_expressions()):
        child.replace(_local(child, keys, partials))
    return node


def _call(partial: Partial) -> str:
    text = f"{partial.function}({', '.join(partial.arguments)})"
    if partial.function == "count" and not partial.arguments:
        text = "count(*)"
    return f"{text} FILTER (WHERE {partial.filter})" if partial.filter else text


def _search(shape: Shape, local: _LocalPart, types: Sequence[str]) -> tuple[Alternative, ...]:
    """One MAX, MIN, ARG_MAX or ARG_MIN as the first row in an order (section 5.2.2)."""
    first, *rest = shape.partials
    if first.function not in ("min", "max") or len(rest) > 1:
        return ()
    wanted = [first.arguments[0]]
    if rest:
        if rest[0].function != f"arg_{first.function}" or local.partials.keys.get(1) != 0:
            return ()
        wanted.append(rest[0].arguments[0])
    conditions = [shape.where] if shape.where else []
    conditions.append(f"{marks.bracketed(wanted[0])} IS NOT NULL")
    conditions += [f"({first.filter})"] if first.filter else []
    rows = Shape(
        protocol=Protocol.SEARCH,
        source=shape.source,
        where=" AND ".join(conditions),
        equal=shape.equal,
        interval=shape.interval,
        columns=tuple(wanted),
        orders=(Order(wanted[0], first.function == "max"),),
        limit=1,
    )
    columns = range(len(wanted))
    return (
        Alternative(rows, finish.searched(local.items, local.partials, types, columns, local.tail)),
    )
