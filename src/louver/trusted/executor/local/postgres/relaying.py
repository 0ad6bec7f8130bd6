"""The text and the tables of a statement that a server may run as it is (`passed`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from louver.trusted.executor.local.postgres import equalities, node_tree, passed, query_tree
from louver.trusted.executor.local.postgres.called import CALLED, OPERATORS, RELATIONS, Called

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres.statements import PostgresStatements

_COLUMNS = """
SELECT attname::text, atttypid::bigint, CASE WHEN atttypid = 1043 THEN atttypmod - 4 ELSE -1 END,
    attnotnull FROM pg_attribute WHERE attrelid = ANY($1::oid[]) AND attnum = ANY($2::int2[])
"""
MOST_ARGUMENTS = 100


@dataclass(frozen=True, slots=True)
class SetColumn:
    """A column that an UPDATE sets: how many characters it takes, or fewer than 0, and whether it
    takes NULL.
    """

    name: str
    longest: int
    takes_null: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement changes: by which verb, the table, the columns that it sets, whether it
    names no other table but in subqueries, and the columns of which it states the value.
    """

    verb: str
    table: tuple[str, str]
    columns: Sequence[SetColumn]
    is_alone: bool
    keyed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Passed:
    """A statement's text for a server that has the same tables, the types of its parameters, these
    tables, and what it changes.
    """

    text: str
    types: list[int]
    relations: frozenset[tuple[str, str]]
    changed: Changed | None


def passed_of(statements: PostgresStatements, sql: str) -> Passed | None:
    """What a server is sent; None where another server might do it otherwise."""
    types = statements.binder.raw.describe(sql)[0]
    if len(types) > MOST_ARGUMENTS:
        return None
    tree = statements.tree(sql)
    judged, whole = passed.judged(tree), node_tree.read(tree)
    if not judged.is_known or not whole.is_known or not passed.are_fixed(judged.types):
        return None
    relations = statements.looked_up(RELATIONS, whole.relations)
    if not all(kind == "r" for *_, kind, _ in relations):
        return None
    if not _are_fixed(statements, judged, whole):
        return None
    names = {int(oid): (schema, name) for oid, schema, name, *_ in relations}
    changed = None
    if judged.verb != "SELECT":
        changed = _changed(statements, judged, whole, names, tree)
        if changed is None:
            return None
    # As any session reads it.
    for setting in passed.SETTINGS:
        statements.binder.execute(f"SET LOCAL {setting}")
    body = statements.binder.fetchall(passed.BODY, [passed.NAME])[0][0]
    text = passed.query_of(str(body))
    # What is printed may name columns by their positions where the user's text does not.
    if not passed.judged(statements.tree(text, types)).is_known:
        return None
    return Passed(text, types, frozenset(names.values()), changed)


def _are_fixed(
    statements: PostgresStatements, judged: passed.Judged, whole: node_tree.Read
) -> bool:
    """Whether all functions are PostgreSQL's own and immutable, and none needs a collation."""
    operators = {oid for field, oid in judged.collated if field == ":opno"}
    collated = {oid for field, oid in judged.collated if field != ":opno"}
    collated |= {int(oid) for (oid,) in statements.looked_up(OPERATORS, operators)}
    own = {int(oid) for (oid,) in statements.looked_up(OPERATORS, whole.operators)}
    called = [Called(*row) for row in statements.looked_up(CALLED, whole.functions | own)]
    names = {function.oid: function.name for function in called}
    ordered = [int(type_) for (type_,) in statements.looked_up(passed.LEFT, judged.orders)]
    return (
        all(f.is_own and f.volatility == "i" and not f.body for f in called)
        and passed.compares_bytes([names.get(oid, "") for oid in collated])
        and not any(map(passed.is_collated, ordered))
    )


def _changed(
    statements: PostgresStatements, judged: passed.Judged, whole: node_tree.Read,
    names: dict[int, tuple[str, str]], tree: str,
) -> Changed | None:  # fmt: skip
    if len(whole.written) != 1 or whole.locks:
        return None
    (target,) = whole.written
    rows = _columns(statements, target, judged.sets)
    if len(rows) != len(judged.sets) or target not in names:
        return None
    if not passed.are_stored({int(type_) for _, type_, *_ in rows}):
        return None
    columns = [SetColumn(name, longest, not required) for name, _, longest, required in rows]
    keyed = _columns(statements, target, _equal(tree))
    is_alone = judged.relations == 1
    return Changed(
        judged.verb, names[target], columns, is_alone, frozenset(row[0] for row in keyed)
    )


def _columns(
    statements: PostgresStatements, table: int, numbers: Collection[int]
) -> list[tuple[Any, ...]]:
    listed = ["{" + ",".join(map(str, items)) + "}" for items in ([table], numbers)]
    return statements.binder.fetchall(_COLUMNS, listed)


def _equal(tree: str) -> set[int]:
    """The numbers of the changed table's columns whose values the condition states."""
    query = query_tree.parsed(tree)
    source = None if query is None else query.node(":jointree")
    whole = None if source is None else source.node(":quals")
    if query is None or whole is None:
        return set()
    is_joined = whole.label == "BOOLEXPR" and whole.word(":boolop") == "and"
    parts = (whole.nodes(":args") or []) if is_joined else [whole]
    results = set()
    for part in parts:
        sides = part.nodes(":args") or []
        if part.label != "OPEXPR" or part.number(":opno") not in equalities.EQUAL:
            continue
        for column, other in zip(sides, reversed(sides), strict=True):
            is_own = column.word(":varno") == query.word(":resultRelation")
            if column.label == "VAR" and is_own and _is_value(other):
                results.add(column.number(":varattno"))
    return results


def _is_value(node: query_tree.Node) -> bool:
    """Whether a node reads parameters and constants alone."""
    if node.label in ("PARAM", "CONST"):
        return True
    inner = node.node(":arg")
    items = [inner] if inner is not None else node.nodes(":args") or []
    return node.label in ("RELABELTYPE", "FUNCEXPR") and bool(items) and all(map(_is_value, items))
