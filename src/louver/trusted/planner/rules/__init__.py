"""The rewriter: this ordered table of operators is the design.

Each row is an operator for operands of certain kinds: secret shares (`SharedExpr`), columns of
which the server holds codes, masked sums or an index (`EncodedColumn`), plain values and
constants. A rule either says what the server computes for a node or passes, and the next row of
the same operator is tried. What no rule takes is done locally.

Products of tables need no rule (paper: Rule 12):
before  SELECT A, B FROM T1, T2
after   SELECT t0.row_id, t1.row_id, t0.A_e, t1.B_e FROM T1 t0, T2 t1
A row of the product carries the row numbers of both tables and its item key is
m·g^(r₁x₁ + r₂x₂); a column of one table simply has x = 0 for the other, so a projection costs the
server nothing. Where an expression mixes tables, the printer lifts each operand to the common key
with ``sdb_cartprod(A_e, S_e2, p, n)`` = A_e · S_e2^p.
Leaks: nothing for a projection; else as the expression.
"""

from __future__ import annotations

from louver.trusted.planner.operators.rule import Aggregate, Rule, Value, by_type
from louver.trusted.planner.rules import (
    aggregates,
    arithmetic,
    between,
    comparison,
    membership,
    nullness,
    pattern,
)

RULES: tuple[Rule[Value], ...] = (
    *arithmetic.RULES,
    *comparison.RULES,
    *between.RULES,
    *membership.RULES,
    *nullness.RULES,
    *pattern.RULES,
)
"""Rules for values and conditions of one row."""

AGGREGATES: tuple[Rule[Aggregate], ...] = aggregates.RULES
"""Rules for aggregates."""

BY_TYPE = by_type(RULES)
AGGREGATES_BY_TYPE = by_type(AGGREGATES)

__all__ = ["AGGREGATES", "AGGREGATES_BY_TYPE", "BY_TYPE", "RULES"]
