"""GROUP BY A: all of A under one key without row numbers, so that equal values are equal bytes.

before  GROUP BY A   after  GROUP BY sdb_key_update(A_e, S_e, κ_AG, n)   key <m_G, 0>
Leaks: level plaintext. Common-key ciphertexts give all ratios v_i/v_j.
"""

from __future__ import annotations

from dataclasses import replace

from louver.trusted.planner.ir import Factor, Key, Node, SharedExpr
from louver.trusted.planner.operators import algebra
from louver.trusted.planner.sql.scope import Scope


def target(value: SharedExpr) -> Key:
    """The common key of a grouped value: one per set of columns, so that it is met again."""
    columns = ",".join(f"{table}.{column}" for table, column in sorted(value.columns))
    return Key("common_target", ("group:" + columns,))


def tag(value: SharedExpr, scope: Scope) -> Node:
    """The value under its common key."""
    scope.leak("sdb.group", value)
    return algebra.brought(value, target(value))


def grouped(value: SharedExpr, scope: Scope) -> SharedExpr:
    """The grouping key as a column of the answer."""
    return under(value, tag(value, scope), target(value))


def under(value: SharedExpr, node: Node, key: Key) -> SharedExpr:
    """The value under a key without row ids."""
    return replace(value, node=node, key=key, factor=Factor(), slots=frozenset(), single=False)
