"""Comparisons of plain values for servers of another kind than the local engine: default deny.

What is written is AND, OR, NOT, IS NULL, the six comparisons, BETWEEN and IN, of operands of one
kind; a backend says which columns and constants are operands, and of what kind.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

Operand = Callable[[exp.Expr], tuple[str, str] | None]
"""The server's text of a column or constant and the kind of its values; None of anything else."""
_SIGNS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip


def rendered(node: exp.Expr, operand: Operand) -> str | None:
    """A condition as the server's text; None where it is of another form."""
    if isinstance(node, exp.Paren):
        return rendered(node.this, operand)
    if isinstance(node, exp.And | exp.Or):
        sides = [rendered(side, operand) for side in (node.this, node.expression)]
        word = "AND" if isinstance(node, exp.And) else "OR"
        return None if None in sides else f"({sides[0]} {word} {sides[1]})"
    if isinstance(node, exp.Not):
        inner = rendered(node.this, operand)
        return None if inner is None else f"(NOT {inner})"
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        known = operand(node.this)
        return None if known is None else f"({known[0]} IS NULL)"
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return rendered(exp.And(this=low, expression=high), operand)
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        texts = _alike([node.this, *node.expressions], operand)
        return None if texts is None else f"({texts[0]} IN ({', '.join(texts[1:])}))"
    sign = _SIGNS.get(type(node)) if isinstance(node, exp.Binary) else None
    texts = _alike([node.this, node.expression], operand) if sign else None
    return None if texts is None else f"({texts[0]} {sign} {texts[1]})"


def _alike(nodes: list[exp.Expr], operand: Operand) -> list[str] | None:
    """The operands of a comparison, if all are of one kind."""
    known = [part for part in map(operand, nodes) if part is not None]
    if len(known) < len(nodes) or len({kind for _, kind in known}) > 1:
        return None
    return [text for text, _ in known]
