"""MIN(A), MAX(A), where the ceiling allows plaintext: all of A under a common key <1/ρ, 0>.

before  SELECT MAX(A)
after   SELECT arg_max(sdb_key_update(A_e, S_e, κ_AC, n), sdb_order(sdb_key_update(…), n))
On order codes: the sealed value and the number of the row with the least or greatest code.
The server sees ρ·A for one random positive ρ, and compares these as bytes.
Leaks: on codes level order. On shares level plaintext: order, ratios, and up to ρ the values.
"""

from __future__ import annotations

import secrets

from sqlglot import exp

from louver.trusted.planner.ir import PLAIN_KEY, Call, Key, Plain, SharedExpr
from louver.trusted.planner.operators import algebra, groups, masked
from louver.trusted.planner.operators.rule import Aggregate, AggregateRule, Operand
from louver.trusted.planner.sql.scope import RANDOM_BITS, Scope
from louver.trusted.planner.sql.values import EncodedColumn


def rewrite(node: exp.Expr, operand: Operand, scope: Scope) -> Aggregate | None:
    value = operand(node.this)
    name = "min" if isinstance(node, exp.Min) else "max"
    if node.args.get("expressions"):
        return None
    if isinstance(value, Plain):
        column_node = scope.operation(name, value.node)
        return (
            None if column_node is None else Aggregate((Plain(column_node, scope.type_of(node)),))
        )
    if isinstance(value, EncodedColumn):
        return masked.extreme(value, name, scope)
    if not isinstance(value, SharedExpr) or value.type != scope.type_of(node):
        return None
    if not algebra.stays_signed(value.low, value.high, scope, RANDOM_BITS):
        return None
    blind = secrets.randbits(RANDOM_BITS - 1) | 1
    ordered = Call("sdb_order", (algebra.brought(algebra.times(value, blind), PLAIN_KEY),))
    columns = ",".join(f"{table}.{column}" for table, column in sorted(value.columns))
    target = Key("common_target", ("extreme:" + columns,))
    picked = "of_least" if name == "min" else "of_greatest"
    entries = scope.operation(picked, algebra.brought(value, target), ordered)
    if entries is None:
        return None
    scope.leak("sdb.order", value)
    return Aggregate((groups.under(value, entries, target),))


RULE = AggregateRule("extremes", (exp.Min, exp.Max), rewrite)
