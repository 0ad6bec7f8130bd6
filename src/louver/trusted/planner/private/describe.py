"""A description of a question: what no provider learns, and what every provider learns."""

from __future__ import annotations

from louver.trusted.planner.private.conditions import Split
from louver.wire.questions import Order, Partial, Shape


def private_lines(shape: Shape, split: Split) -> tuple[str, ...]:
    """What no provider learns; empty if nothing is private."""
    count = len(split.clauses)
    if not count:
        return ()
    lines = [f"what {text} is compared with" for text in shape.equal]
    if shape.interval:
        lines.append(f"between which ends {shape.interval} is looked for")
    if count > 1:
        lines.append(f"which of the {count} alternatives are the same, or match nothing")
    lines.append("which rows match, how many, and the answer")
    return tuple(lines)


def public_lines(shape: Shape, split: Split) -> tuple[str, ...]:
    """What every provider learns: the shape of the question."""
    count = len(split.clauses)
    lines = [f"FROM {shape.source}"]
    if shape.where:
        lines.append(f"WHERE {shape.where}")
    lines += [f"{text} = a secret" for text in shape.equal]
    if shape.interval:
        lines.append(f"{shape.interval} within a secret interval")
    if count > 1:
        lines.append(f"{count} alternatives of secrets")
    if shape.groups:
        lines.append(f"GROUP BY {', '.join(shape.groups)}")
    lines += [partial_text(partial) for partial in shape.partials]
    if shape.columns:
        lines.append(rows_text(shape))
    if not count:
        lines.append("nothing of this question is private: it holds no ? and no PRIVATE(…)")
    return tuple(lines)


def partial_text(partial: Partial) -> str:
    """A partial result as SQL."""
    text = f"{partial.function}({', '.join(partial.arguments) or '*'})"
    return f"{text} FILTER (WHERE {partial.filter})" if partial.filter else text


def rows_text(shape: Shape) -> str:
    """The rows sent, and their order."""
    orders = "".join(f" {_order(order)}," for order in shape.orders).rstrip(",")
    by = f" ORDER BY{orders}" if orders else ""
    return f"SELECT {', '.join(shape.columns)}{by} LIMIT {shape.limit}"


def _order(order: Order) -> str:
    way = " DESC" if order.descending else ""
    return f"{order.expression}{way}{' NULLS FIRST' if order.nulls_first else ''}"
