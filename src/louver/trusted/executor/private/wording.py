"""The public part of a private question in words: what each provider is sent of it."""

from __future__ import annotations

from louver.wire.questions import Partial, Shape


def sent(shape: Shape, parties: int, clauses: int) -> list[str]:
    """What each provider is sent of a question: its public part, with ? for what is private."""
    text = statement(shape)
    if clauses > 1:
        text += f"  -- {clauses} clauses"
    return [text] * parties


def statement(shape: Shape) -> str:
    """The public part of a question as SQL, with ? for what is private."""
    if shape.columns:
        selected = [*shape.columns]
    else:
        selected = [*shape.groups, *map(_partial, shape.partials)]
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
    if shape.orders:
        orders = [
            f"{o.expression}{' DESC' if o.descending else ''}"
            f"{' NULLS FIRST' if o.nulls_first else ''}"
            for o in shape.orders
        ]
        text += f" ORDER BY {', '.join(orders)}"
    return f"{text} LIMIT {shape.limit}" if shape.limit else text


def _partial(partial: Partial) -> str:
    text = f"{partial.function}({', '.join(partial.arguments) or '*'})"
    return f"{text} FILTER (WHERE {partial.filter})" if partial.filter else text
