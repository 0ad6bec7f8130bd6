"""Which parts of a statement are secret: placeholders, and PRIVATE(…)."""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.lexer import PARAMETER_PREFIX


def is_parameter(node: exp.Expr) -> bool:
    """Whether a node is a placeholder, which the lexer made an identifier."""
    return (
        isinstance(node, exp.Column) and not node.table and node.name.startswith(PARAMETER_PREFIX)
    )


def place(node: exp.Expr) -> int:
    """The place of a placeholder among the statement's parameters."""
    return int(node.name.removeprefix(PARAMETER_PREFIX))


def is_private(node: exp.Expr) -> bool:
    """Whether a node is PRIVATE(…)."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "private"


def has_secret(node: exp.Expr | None) -> bool:
    """Whether a secret stands anywhere in an expression."""
    return node is not None and any(is_parameter(n) or is_private(n) for n in node.walk())


def has_column(node: exp.Expr) -> bool:
    """Whether a column of a table stands anywhere in an expression."""
    return any(isinstance(n, exp.Column) and not is_parameter(n) for n in node.walk())
