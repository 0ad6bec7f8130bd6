"""A LIKE pattern on the tokens of a text (spec/text.md): a filter; the exact test is locally.

before  WHERE A LIKE '%word%'   after  WHERE text_match(A_text, row_id, $1)
Leaks: level equality: which rows hold a word or piece that was asked for.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Code
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn
from louver.trusted.vault.scheme import representation

LEAST = 3
"""Fewer characters in a row than a pattern's pieces have make no token."""


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value, pattern = operand(node.this), node.expression
    answer = value.answers("LIKE") if isinstance(value, EncodedColumn) else None
    if not isinstance(value, EncodedColumn) or answer is None:
        return None
    # NOT LIKE is the same node with a mark on it, and its filter would be no filter.
    if set(filter(node.args.get, node.args)) - {"this", "expression"}:
        return None
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return None
    pieces = pattern.name.replace("_", "%").split("%")
    if max(map(len, pieces), default=0) < LEAST or "\\" in pattern.name:
        return None
    text = codes.constant_text(pattern, scope)
    if text is None:
        return None
    type_ = representation(answer[0]).type(scope.declared(value))
    code = Code(answer[0], value.table, value.column, "like", text, type_)
    return codes.matched(value, code, "LIKE", scope)


RULE = Rule("pattern", (exp.Like,), rewrite)
