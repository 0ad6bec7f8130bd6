"""A LIKE pattern, as a filter; the local engine tests the rows that pass.

On the tokens of a text (spec/text.md):
before  WHERE A LIKE '%word%'   after  WHERE text_match(A_text, row_id, $1)
Leaks: level equality: which rows hold a word or piece that was asked for.
On the index of a lake's files, as the range of all texts that begin so:
before  WHERE A LIKE 'abc%'   after  only files whose range of A meets ['abc', 'abd')
Leaks: level access, as comparison.
On order codes, as the same range, of which the codes know the first eight bytes:
before  WHERE A LIKE 'abc%'   after  WHERE A_ord >= $1 AND A_ord <= $2
Leaks: level order, as comparison.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.ir import Code, Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.rule import Rule, Value
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate
from louver.trusted.vault.scheme import representation

LEAST = 3
"""Fewer characters in a row than a pattern's pieces have make no token."""
_SURROGATES, _LAST_CHARACTER = (0xD800, 0xE000), 0x10FFFF


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


def prefix_ordered(
    node: exp.Expr, scope: Scope, value: EncodedColumn, pattern: exp.Literal
) -> Predicate | None:
    stem, *_ = _pieces(pattern) or [""]
    end = _successor(stem)
    if not stem or not end:
        return None
    sides = [
        codes.ordered_constant(value, exp.Literal.string(text), sign, scope)
        for text, sign in ((stem, ">="), (end, "<"))
    ]
    low, high = sides
    if low is None or high is None:
        return None
    return Predicate(Sql("(⟦0⟧ AND ⟦1⟧)", (low.node, high.node)), True, exact=False)


def _successor(stem: str) -> str:
    """The least text, by its bytes, after all texts that begin with a stem; empty without one."""
    while stem:
        following = ord(stem[-1]) + 1
        if following == _SURROGATES[0]:
            following = _SURROGATES[1]
        if following <= _LAST_CHARACTER:
            return stem[:-1] + chr(following)
        stem = stem[:-1]
    return ""


def _pieces(pattern: exp.Literal) -> list[str]:
    """What is between the wildcards of a pattern; nothing where it is not one, or escapes them."""
    if not pattern.is_string or "\\" in pattern.name:
        return []
    return str(pattern.name).replace("_", "%").split("%")


RULES: tuple[Rule[Value], ...] = (
    Rule("pattern", (exp.Like,), tokens),
    Rule("range_prefix", (exp.Like,), prefix),
    Rule("order_prefix", (exp.Like,), prefix_ordered),
)
