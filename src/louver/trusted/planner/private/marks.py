"""The secret parts of a statement: placeholders and PRIVATE(…)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from louver import errors
from louver.names import fold
from louver.trusted.planner.sql import placeholders
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX


def is_private(node: exp.Expr) -> bool:
    """Whether a node is PRIVATE(…)."""
    # In quotes, the name is a node of its own; DuckDB calls the same function.
    return isinstance(node, exp.Anonymous) and fold(node.name) == "private"


def has_secret(node: exp.Expr | None) -> bool:
    """Whether an expression contains a secret."""
    return node is not None and any(
        placeholders.is_placeholder(n) or is_private(n) for n in node.walk()
    )


def has_column(node: exp.Expr) -> bool:
    """Whether an expression contains a column of a table."""
    return any(
        isinstance(n, exp.Column) and not placeholders.is_placeholder(n) for n in node.walk()
    )


def typed(plain: str, types: Sequence[str], *, texts: bool = True) -> str:
    """The text with a NULL of the right type for every placeholder. Unless ``texts``, those of
    strings have no type, since a bound string compares with any type, like a literal.
    """

    def null(match: re.Match[str]) -> str:
        if int(match[1]) >= len(types):
            raise errors.make("sql.reserved", name=match[0])
        type_ = types[int(match[1])]
        return "NULL" if type_ == "VARCHAR" and not texts else f"CAST(NULL AS {type_})"

    return re.sub(rf"\b{PARAMETER_PREFIX}(\d+)\b", null, plain)


def bracketed(text: str) -> str:
    """An expression's SQL in a form that may be an operand."""
    return text if re.fullmatch(r'[\w."]+', text) else f"({text})"
