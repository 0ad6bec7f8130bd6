"""A = u, A < u, A = B on codes (CryptDB: equality, order and join; Relational Cloud, section 5).

before  WHERE A = 5        after  WHERE A_eq = $1          $1 the code of 5
before  WHERE A < 5        after  WHERE A_ord <= $1        $1 the code of the largest value below 5
before  ON T.A = U.B       after  ON T.A_eq = U.B_eq       both under the key of their join group
Leaks: opens the layer that the comparison reads: level equality for = and <>, order for the rest.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.comparisons import FLIPPED, SIGNS
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    sign = SIGNS[type(node)]
    left, right = operand(node.this), operand(node.expression)
    if isinstance(left, EncodedColumn) and isinstance(right, EncodedColumn):
        return codes.columns(left, right, sign, scope)
    if isinstance(left, EncodedColumn):
        value, other = left, node.expression
    elif isinstance(right, EncodedColumn):
        value, other, sign = right, node.this, FLIPPED[sign]
    else:
        return None
    if sign in ("=", "<>"):
        return codes.equals_constant(value, other, sign, scope)
    return codes.ordered_constant(value, other, sign, scope)


RULE = Rule("code_comparison", tuple(SIGNS), rewrite)
