"""Expressions that a generated column holds already (MONOMI's precomputed expressions).

before  CREATE TABLE T (…, YEAR BIGINT ENC GENERATED ALWAYS AS (year(DAY)))
        SELECT YEAR(T.DAY), COUNT(*) FROM T GROUP BY YEAR(T.DAY)
after   the server groups by the codes of the column YEAR
Two expressions are one if their trees are, without names of tables, brackets and case.
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from louver.names import fold, keyword
from louver.trusted.planner.sql import trees
from louver.trusted.planner.sql.dialect import Dialect, spoken

_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Week: "WEEK",
    exp.Day: "DAY",
}


def normal(node: exp.Expr) -> exp.Expr:
    """The tree by which expressions over one table are compared."""
    copy: exp.Expr = exp.Paren(this=node.copy())
    for part in list(copy.find_all(exp.Column)):
        part.replace(exp.column(fold(part.name)))
    for named in list(copy.find_all(*_PARTS)):
        named.replace(_extracted(_PARTS[type(named)], named.this))
    for call in list(copy.find_all(exp.Anonymous)):
        if fold(call.name) == "date_part" and len(call.expressions) == 2:
            call.replace(_extracted(keyword(call.expressions[0].name), call.expressions[1]))
    for results in list(copy.find_all(exp.Extract)):
        results.set("this", exp.Var(this=keyword(results.name)))
    for bracket in list(copy.find_all(exp.Paren)):
        if bracket is not copy:
            bracket.replace(bracket.this)
    return copy


def _extracted(name: str, value: exp.Expr) -> exp.Expr:
    return exp.Extract(this=exp.Var(this=name), expression=value.copy())


def parsed(expression: str) -> exp.Expr | None:
    """The same of a generated column's expression, as the local engine prints it."""
    return _parsed(spoken(), expression)


@cache
def _parsed(_: Dialect, expression: str) -> exp.Expr | None:
    try:
        tree = trees.parse_one(expression.replace("main.", ""))
    except (SqlglotError, RecursionError):
        return None
    return normal(tree)
