"""Which parts of a statement are secret: placeholders, and PRIVATE(…)."""

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
    """Whether a secret stands anywhere in an expression."""
    return node is not None and any(
        placeholders.is_placeholder(n) or is_private(n) for n in node.walk()
    )


def has_column(node: exp.Expr) -> bool:
    """Whether a column of a table stands anywhere in an expression."""
    return any(
        isinstance(n, exp.Column) and not placeholders.is_placeholder(n) for n in node.walk()
    )


def typed(plain: str, types: Sequence[str], *, texts: bool = True) -> str:
    """A text with a NULL of its type in the place of every placeholder; those of texts are left
    without a type if not ``texts``, since a bound text compares with anything, as a literal does.
    """

    def null(match: re.Match[str]) -> str:
        if int(match[1]) >= len(types):
            raise errors.make("sql.reserved", name=match[0])
        type_ = types[int(match[1])]
        return "NULL" if type_ == "VARCHAR" and not texts else f"CAST(NULL AS {type_})"

    return re.sub(rf"\b{PARAMETER_PREFIX}(\d+)\b", null, plain)


def bracketed(text: str) -> str:
    """An expression's SQL that may stand beside an operator."""
    return text if re.fullmatch(r'[\w."]+', text) else f"({text})"
