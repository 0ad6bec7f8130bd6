"""T1 × T2 (paper: Rule 12).

before  SELECT A, B FROM T1, T2
after   SELECT t0.row_id, t1.row_id, t0.A_e, t1.B_e FROM T1 t0, T2 t1
A row of the product carries the row numbers of both tables and its item key is
m·g^(r₁x₁ + r₂x₂); a column of one table simply has x = 0 for the other, so a projection costs the
server nothing. Where an expression mixes tables, the printer lifts each operand to the common key
with ``sdb_cartprod(A_e, S_e2, p, n)`` = A_e · S_e2^p.
Leaks: nothing for a projection; else as the expression.
"""

from __future__ import annotations

from collections.abc import Sequence

from louver.trusted.planner.sql.scope import Source


def row_numbers(sources: Sequence[Source], slots: set[int]) -> dict[int, str]:
    """The server's name of the row number of each table occurrence that an answer needs."""
    return {s.slot: f"{s.server_alias}.row_id" for s in sources if s.slot in slots}
