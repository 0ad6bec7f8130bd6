"""A LIKE 'abc%' on the index of a lake's files: the range of all texts that begin so.

before  WHERE A LIKE 'abc%'   after  only files whose range of A meets ['abc', 'abd')
Leaks: as range_comparison: level access.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import ranges
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    # NOT LIKE and ESCAPE are marks on the same node.
    if set(filter(node.args.get, node.args)) - {"this", "expression"}:
        return None
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return None
    stem = pattern.name.replace("_", "%").partition("%")[0]
    if not stem or "\\" in pattern.name:
        return None
    return ranges.bounded(operand(node.this), exp.Literal.string(stem), "prefix", scope)


RULE = Rule("range_prefix", (exp.Like,), rewrite)
