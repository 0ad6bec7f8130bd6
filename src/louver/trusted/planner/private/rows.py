"""Questions for single rows, the first ones in an order (TOPK in Splinter, section 5.2.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from louver.names import quoted
from louver.trusted.planner.private import finish, marks
from louver.trusted.planner.private.grouping import Answer, Public, Way
from louver.trusted.planner.private.items import Sorted, whole_number
from louver.trusted.planner.private.question import Alternative
from louver.trusted.planner.private.refusal import refuse
from louver.trusted.planner.sql.trees import local_text
from louver.wire.questions import Order, Shape

MOST_ROWS = 10_000
_NESTED = ("STRUCT(", "MAP(", "UNION(", "VARIANT", "GEOMETRY")


def answer(
    select: exp.Select,
    items: list[exp.Expr],
    orders: list[Sorted],
    public: Public,
    way: Way,
    described: Sequence[tuple[str, str]],
) -> Answer:
    """The answer of a statement that selects rows."""
    limit = whole_number(select.args.get("limit"), "LIMIT")
    offset = whole_number(select.args.get("offset"), "OFFSET")
    if limit is None:
        raise refuse(
            "rows without LIMIT, because their number would reveal the secret",
            "Add LIMIT 10 (and ORDER BY): as many rows are always sent, empty ones among them",
        )
    most = limit + (offset or 0)
    if most > MOST_ROWS:
        raise refuse(f"{most} rows at once", f"Ask for at most {MOST_ROWS} with LIMIT and OFFSET")
    columns: list[str] = []
    listed = []
    for item, (name, type_) in zip(items, described, strict=True):
        if type_.endswith("]") or type_.startswith(_NESTED):
            raise refuse(
                f"the column {name} of type {type_}", "Ask for its parts, or cast it to VARCHAR"
            )
        text = local_text(item)
        if not marks.has_column(item):
            listed.append(f"CAST({text} AS {type_}) AS {quoted(name)}")
            continue
        if text not in columns:
            columns.append(text)
        listed.append(f"r.c{columns.index(text)} AS {quoted(name)}")
    if not columns:
        columns.append("1")
    sorted_by = [order for order in orders if marks.has_column(order.node)]
    shape = Shape(
        protocol=way.records,
        source=public.source,
        where=public.where,
        equal=public.equal,
        interval=public.interval,
        columns=tuple(columns),
        orders=tuple(
            Order(local_text(order.node), order.descending, order.nulls_first)
            for order in sorted_by
        ),
        limit=max(most, 1),
    )
    types = public.types(columns)
    tail = finish.Tail(limit=limit, offset=offset)
    text = finish.rows(listed, types, [order.suffix for order in sorted_by], tail)
    alternatives: tuple[Alternative, ...] = ()
    if way.search is not None:
        alternatives = (Alternative(replace(shape, protocol=way.search), text),)
    return Answer(shape, alternatives, text, way.condition)
