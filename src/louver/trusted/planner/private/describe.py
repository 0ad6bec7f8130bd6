"""A description of a question: what no provider learns, and what every provider learns."""

from __future__ import annotations

from louver.trusted.planner.private.conditions import Split
from louver.wire.questions import Partial, Shape


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


def statement(shape: Shape) -> str:
    """The public part of a question as SQL, with ? for what is private."""
    if shape.columns:
        selected = [*shape.columns]
    else:
        selected = [*shape.groups, *map(partial_text, shape.partials)]
    conditions = [f"{expression} = ?" for expression in shape.equal]
    if shape.interval:
        conditions.append(f"{shape.interval} BETWEEN ? AND ?")
    if shape.where:
        conditions.insert(0, shape.where)
    text = f"SELECT {', '.join(selected) or '1'} FROM {shape.source}"
    if conditions:
        text += f" WHERE {' AND '.join(conditions)}"
    if shape.groups:
        text += f" GROUP BY {', '.join(shape.groups)}"
    text += _ordered(shape)
    return f"{text} LIMIT {shape.limit}" if shape.limit else text


def statements(shape: Shape, parties: int, clauses: int) -> list[str]:
    """The public part of a question as each provider receives it."""
    text = statement(shape)
    if clauses > 1:
        text += f"  -- {clauses} clauses"
    return [text] * parties


def partial_text(partial: Partial) -> str:
    """A partial result as SQL."""
    text = f"{partial.function}({', '.join(partial.arguments) or '*'})"
    return f"{text} FILTER (WHERE {partial.filter})" if partial.filter else text


def rows_text(shape: Shape) -> str:
    """The rows sent, and their order."""
    return f"SELECT {', '.join(shape.columns)}{_ordered(shape)} LIMIT {shape.limit}"


def _ordered(shape: Shape) -> str:
    """The clause ORDER BY, if there is one."""
    orders = [
        f"{order.expression}{' DESC' if order.descending else ''}"
        f"{' NULLS FIRST' if order.nulls_first else ''}"
        for order in shape.orders
    ]
    return f" ORDER BY {', '.join(orders)}" if orders else ""
