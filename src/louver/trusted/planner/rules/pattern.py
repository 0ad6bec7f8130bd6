"""A LIKE pattern on the tokens of a text (spec/text.md): a filter; the exact test is at home.

before  WHERE A LIKE '%word%'   after  WHERE text_match(A_text, row_id, $1)
Leaks: level equality: which rows hold a word or piece that was asked for.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Code, Column
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Operand, Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import Coded, Predicate
from louver.trusted.vault.stored_types import BYTES

LEAST = 3
"""Fewer characters in a row than a pattern's pieces have make no token."""


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Value | None:
    value, pattern = operand(node.this), node.expression
    if not isinstance(value, Coded) or not value.has("text"):
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
    code = Code("text", value.table, value.column, "like", text, BYTES)
    number = Column(value.alias, "row_id")
    made = scope.operation("text_match", value.node("text"), number, code)
    if made is None:
        return None
    scope.leak_of("text.match", value)
    return Predicate(made, True, exact=False)


RULE = Rule("pattern", (exp.Like,), rewrite)
