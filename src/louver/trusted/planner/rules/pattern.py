"""A LIKE pattern, as a filter; the local engine tests the rows that pass.

On the tokens of a text (spec/text.md):
before  WHERE A LIKE '%word%'   after  WHERE text_match(A_text, row_id, $1)
Leaks: level equality: which rows hold a word or piece that was asked for.
On the index of a lake's files, as the range of all texts that begin so:
before  WHERE A LIKE 'abc%'   after  only files whose range of A meets ['abc', 'abd')
Leaks: level access, as comparison.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Code
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate
from louver.trusted.vault.scheme import representation

LEAST = 3
"""Fewer characters in a row than a pattern's pieces have make no token."""


def tokens(
    node: exp.Expr, scope: Scope, value: EncodedColumn, pattern: exp.Literal
) -> Predicate | None:
    answer, pieces = value.answers("LIKE"), _pieces(pattern)
    if answer is None or max(map(len, pieces), default=0) < LEAST:
        return None
    text = codes.constant_text(pattern, scope)
    if text is None:
        return None
    type_ = representation(answer[0]).type(scope.declared(value))
    code = Code(answer[0], value.table, value.column, "like", text, type_)
    return codes.matched(value, code, "LIKE", scope)


def prefix(
    node: exp.Expr, scope: Scope, value: EncodedColumn, pattern: exp.Literal
) -> Predicate | None:
    stem, *_ = _pieces(pattern) or [""]
    return codes.in_range(value, exp.Literal.string(stem), "prefix", scope) if stem else None


def _pieces(pattern: exp.Literal) -> list[str]:
    """What is between the wildcards of a pattern; nothing where it is not one, or escapes them."""
    if not pattern.is_string or "\\" in pattern.name:
        return []
    return str(pattern.name).replace("_", "%").split("%")


RULES: tuple[Rule[Value], ...] = (
    Rule("pattern", (exp.Like,), tokens),
    Rule("range_prefix", (exp.Like,), prefix),
)
