"""The text and the tables of a statement that a server may run as it is (`passed`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from louver.trusted.executor.local.postgres import node_tree, passed
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
    """What a statement changes: by which verb, the table, the columns that it sets, and whether it
    names no other table but in subqueries.
    """

    verb: str
    table: tuple[str, str]
    columns: Sequence[SetColumn]
    is_alone: bool


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
        changed = _changed(statements, judged, whole, names)
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
    names: dict[int, tuple[str, str]],
) -> Changed | None:  # fmt: skip
    if len(whole.written) != 1 or whole.locks:
        return None
    (target,) = whole.written
    listed = ["{" + ",".join(map(str, items)) + "}" for items in ([target], judged.sets)]
    rows = statements.binder.fetchall(_COLUMNS, listed)
    if len(rows) != len(judged.sets) or target not in names:
        return None
    if not passed.are_stored({int(type_) for _, type_, *_ in rows}):
        return None
    columns = [SetColumn(name, longest, not required) for name, _, longest, required in rows]
    return Changed(judged.verb, names[target], columns, judged.relations == 1)
