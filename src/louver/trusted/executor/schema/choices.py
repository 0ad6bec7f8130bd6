"""How many values a declaration admits: BOOLEAN, ENUM, CHECK (c IN …), a narrow CHECK range.

Only what is certain counts; 0 says that nothing is.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from louver.names import fold
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.types import decimal_scale, is_integer

MOST = 1 << 16
"""A range of more whole numbers is not a list."""


def of_type(type_: str) -> int:
    """Of a type: two of BOOLEAN, the words of an ENUM."""
    if type_ == "BOOLEAN":
        return 2
    if not type_.startswith("ENUM("):
        return 0
    return sum(token.token_type == TokenType.STRING for token in lexer.tokens(type_))


def of_check(check: str, column: str) -> int:
    """Of a CHECK on one column: IN and OR of equalities."""
    try:
        tree = trees.parse_one(check)
    except (SqlglotError, RecursionError):
        return 0
    results = _listed(tree, column)
    return len(results) if results is not None else 0


def _listed(node: exp.Expr, column: str) -> set[str] | None:
    """The values that a condition admits, as texts; None where it does not list them."""
    match node:
        case exp.Paren():
            return _listed(node.this, column)
        case exp.Or():
            left, right = _listed(node.this, column), _listed(node.expression, column)
            return None if left is None or right is None else left | right
        case exp.And():
            left, right = _listed(node.this, column), _listed(node.expression, column)
            both = [side for side in (left, right) if side is not None]
            return min(both, key=len, default=None)
        case exp.EQ() if _is(node.this, column) and not node.expression.find(exp.Column):
            return {local_text(node.expression.unnest())}
        case exp.In() if _is(node.this, column) and node.expressions:
            if any(part.find(exp.Column, exp.Query) for part in node.expressions):
                return None
            return {local_text(part.unnest()) for part in node.expressions}
    return None


def _is(node: exp.Expr, column: str) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Column) and fold(bare.name) == column


def of_bounds(bounds: tuple[int | None, int | None], type_: str) -> int:
    """Of an interval of whole numbers, decimals counted in their last digit."""
    low, high = bounds
    if low is None or high is None or not (is_integer(type_) or decimal_scale(type_)):
        return 0
    count = high - low + 1
    return count if 0 < count <= MOST else 0


def fewest(*counts: int) -> int:
    """The least of several counts of which 0 says nothing."""
    return min((count for count in counts if count), default=0)
