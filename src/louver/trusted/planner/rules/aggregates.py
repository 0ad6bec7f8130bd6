"""COUNT, SUM, AVG, MIN and MAX.

COUNT on shares and on codes:
before  SELECT COUNT(A)            after  SELECT count(A_e)   count(A_eq)
before  SELECT COUNT(DISTINCT A)   after  SELECT count(DISTINCT sdb_key_update(A_e, S_e, κ_AG, n))
Of a masked column the sum of its flags.
Leaks: COUNT nothing; COUNT(DISTINCT) level plaintext, as grouping; on codes level equality.

SUM (paper: Rule 13) and AVG (paper: Rule 14), whose quotient is computed locally:
before  SELECT SUM(A)   after  SELECT sdb_sum(list(sdb_key_update(A_e, S_e, κ_A,SUM, n)), n)
                               key <m_SUM, 0>
before  SELECT AVG(A)   after  SELECT sdb_sum(list(…), n), count(A_e)
The result has a key without row numbers, so it is a share like any other: HAVING and outer
queries compute on it (what Rule 13 gives a row id of its own for).
Of a masked column (spec/sum.md): SELECT sum(A_low), sum(A_high), count(row_id),
row_set(list(row_id)), from which the client takes the masks of these rows away.
Leaks: level access for masked columns: which rows are added. For shares level plaintext:
common-key ciphertexts give all ratios v_i/v_j.

MIN and MAX where the ceiling allows plaintext: all of A under a common key <1/ρ, 0>.
before  SELECT MAX(A)
after   SELECT arg_max(sdb_key_update(A_e, S_e, κ_AC, n), sdb_order(sdb_key_update(…), n))
On order codes: the sealed value and the number of the row with the least or greatest code.
The server sees ρ·A for one random positive ρ, and compares these as bytes.
Leaks: on codes level order. On shares level plaintext: order, ratios, and up to ρ the values.
"""

from __future__ import annotations

import secrets

from sqlglot import exp

from louver.trusted.planner.ir import PLAIN_KEY, Call, Node, Plain, SharedExpr, Sql
from louver.trusted.planner.operators import algebra, encoded, shares
from louver.trusted.planner.operators.rule import Aggregate, Rule, Shown
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.scope import RANDOM_BITS, Scope
from louver.trusted.planner.sql.values import EncodedColumn
from louver.trusted.vault.types import decimal_scale, family, is_integer


def count_rows(node: exp.Expr, scope: Scope) -> Aggregate | None:
    return _of(Plain(Sql("count(*)"), "BIGINT"))


def count(node: exp.Expr, scope: Scope, value: SharedExpr | Plain) -> Aggregate | None:
    return _of(Plain(Sql("count(⟦0⟧)", (value.node,)), "BIGINT"))


def count_coded(node: exp.Expr, scope: Scope, value: EncodedColumn) -> Aggregate | None:
    return encoded.counted(value, scope)


def distinct(
    node: exp.Expr, scope: Scope, mark: exp.Distinct, value: SharedExpr | Plain
) -> Aggregate | None:
    entry = shares.tag(value, scope) if isinstance(value, SharedExpr) else value.node
    return _of(Plain(Sql("count(DISTINCT ⟦0⟧)", (entry,)), "BIGINT"))


def distinct_coded(
    node: exp.Expr, scope: Scope, mark: exp.Distinct, value: EncodedColumn
) -> Aggregate | None:
    return encoded.distinct(value, scope)


def sum_plain(node: exp.Expr, scope: Scope, value: Plain) -> Aggregate | None:
    total = scope.operation("sum", value.node) if _is_exact(value) else None
    return _plain(total, node, scope)


def sum_share(node: exp.Expr, scope: Scope, value: SharedExpr) -> Aggregate | None:
    return _of(shares.summed(value, scope.type_of(node), scope))


def sum_coded(node: exp.Expr, scope: Scope, value: EncodedColumn) -> Aggregate | None:
    type_ = scope.type_of(node)
    # Where the engine's sums have no bounds of their own, these are of the widest exact numbers.
    exact = type_ if family(type_) == "number" else encoded.sum_type(value)
    return _of(encoded.total(value, exact, scope))


def average_plain(node: exp.Expr, scope: Scope, value: Plain) -> Aggregate | None:
    total = scope.operation("avg", value.node) if _is_exact(value) else None
    return _plain(total, node, scope)


def average_share(node: exp.Expr, scope: Scope, value: SharedExpr) -> Aggregate | None:
    if family(value.type) != "number":
        return None
    type_ = "HUGEINT" if is_integer(value.type) else f"DECIMAL(38,{decimal_scale(value.type)})"
    total = shares.summed(value, type_, scope)
    if total is None:
        return None
    number = Plain(Sql("count(⟦0⟧)", (value.node,)), "BIGINT")
    return Aggregate((total, number), average=True)


def average_coded(node: exp.Expr, scope: Scope, value: EncodedColumn) -> Aggregate | None:
    return encoded.average(value, scope)


def extreme_plain(node: exp.Expr, scope: Scope, value: Plain) -> Aggregate | None:
    return _plain(scope.operation(_name(node), value.node), node, scope)


def extreme_coded(node: exp.Expr, scope: Scope, value: EncodedColumn) -> Aggregate | None:
    return encoded.extreme(value, _name(node), scope)


def extreme_share(node: exp.Expr, scope: Scope, value: SharedExpr) -> Aggregate | None:
    if value.type != scope.type_of(node):
        return None
    if not algebra.stays_signed(value.low, value.high, scope, RANDOM_BITS):
        return None
    blind = secrets.randbits(RANDOM_BITS - 1) | 1
    ordered = Call("sdb_order", (algebra.brought(algebra.times(value, blind), PLAIN_KEY),))
    target = algebra.common_target("extreme", value)
    picked = "of_least" if _name(node) == "min" else "of_greatest"
    entries = scope.operation(picked, algebra.brought(value, target), ordered)
    if entries is None:
        return None
    scope.leak("sdb.order", value)
    return _of(algebra.under(value, entries, target))


def _name(node: exp.Expr) -> str:
    return "min" if isinstance(node, exp.Min) else "max"


def _is_exact(value: Plain) -> bool:
    """Whether sums of these depend on no order of rows."""
    return family(value.type) == "number" or value.type in spoken().exact_types


def _plain(computed: Node | None, node: exp.Expr, scope: Scope) -> Aggregate | None:
    return _of(None if computed is None else Plain(computed, scope.type_of(node)))


def _of(value: Shown | None) -> Aggregate | None:
    return None if value is None else Aggregate((value,))


RULES: tuple[Rule[Aggregate], ...] = (
    Rule("count", (exp.Count,), count_rows),
    Rule("count", (exp.Count,), count),
    Rule("count", (exp.Count,), count_coded),
    Rule("count", (exp.Count,), distinct),
    Rule("count", (exp.Count,), distinct_coded),
    Rule("sum", (exp.Sum,), sum_plain),
    Rule("sum", (exp.Sum,), sum_share),
    Rule("sum", (exp.Sum,), sum_coded),
    Rule("average", (exp.Avg,), average_plain),
    Rule("average", (exp.Avg,), average_share),
    Rule("average", (exp.Avg,), average_coded),
    Rule("extremes", (exp.Min, exp.Max), extreme_plain),
    Rule("extremes", (exp.Min, exp.Max), extreme_coded),
    Rule("extremes", (exp.Min, exp.Max), extreme_share),
)
