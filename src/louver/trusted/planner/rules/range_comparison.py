"""A = u, A < u on the index of a lake's files (BF-EDS, section 4.3).

before  WHERE A < 5        after  only files whose range of A meets [lowest, 5)
Leaks: level access: which files hold a value in the range; equal and overlapping ranges show.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import ranges
from louver.trusted.planner.operators.comparisons import FLIPPED, SIGNS
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    sign = SIGNS[type(node)]
    left, right = operand(node.this), operand(node.expression)
    if sign == "<>" or (isinstance(left, EncodedColumn) and isinstance(right, EncodedColumn)):
        return None
    if isinstance(left, EncodedColumn):
        return ranges.bounded(left, node.expression, sign, scope)
    return ranges.bounded(right, node.this, FLIPPED[sign], scope)


RULE = Rule("range_comparison", tuple(SIGNS), rewrite)
