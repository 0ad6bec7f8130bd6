"""Conditions on columns of a lake: which files can hold a row that meets them.

The server has an encrypted index of every file's smallest and largest value (spec/eds.md). A
condition becomes a range of values, the range a token; files that the token does not meet hold no
row that matters. What a token keeps is always too much, never too little, so home applies the
whole condition again.
"""

from __future__ import annotations

from sqlglot import exp

from louver.trusted.planner.operators import codes
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn, Predicate


def bounded(value: object, node: exp.Expr, sign: str, scope: Scope) -> Predicate | None:
    """``value sign constant`` as a range; None where the column has no index, or where DuckDB
    would compare the two in another type. ``sign`` is a comparison or ``prefix``.
    """
    answer = value.answers("RANGE") if isinstance(value, EncodedColumn) else None
    if not isinstance(value, EncodedColumn) or answer is None:
        return None
    code = codes.constant(value, node, answer[0], sign, scope)
    if code is None:
        return None
    codes.shown(value, answer, scope)
    return Predicate(code, True, exact=answer[1].exact)
