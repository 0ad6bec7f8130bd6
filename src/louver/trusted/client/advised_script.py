"""The script by which a database becomes what was advised: complete, for users without a policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from louver.names import is_home, quoted
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import printed
from louver.trusted.executor.local.duckdb_statements import reserved_words
from louver.trusted.planner.advisor.what_if import (
    Change,
    Computed,
    Grouped,
    Place,
    Raised,
    Searchable,
)
from louver.trusted.vault.catalog import Catalog, Table

_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(slots=True)
class Script:
    """``statements`` are complete without any policy: ceilings first, which change in place, then
    one transaction that creates tables again; ``last`` drop the former tables, once the new ones
    were looked at; ``notes`` say what the script leaves out.
    """

    statements: list[str]
    last: list[str]
    notes: list[str]


def of(context: Context, catalog: Catalog, changes: Sequence[Change]) -> Script:
    """Statements that apply some changes; ``catalog`` has the columns as they are then."""
    notes = _referenced(context, changes)
    anew: dict[int, list[str]] = {}
    raised: list[str] = []
    for change in changes:
        match change:
            case Computed(member):
                anew.setdefault(member[0], []).append(defined(context, catalog, change))
            case Grouped(places):
                for position in places:
                    anew.setdefault(position[0], [])
            case Searchable(member):
                anew.setdefault(member[0], [])
    tables = [table for table in context.catalog.tables.values() if table.id in anew]
    tables = [table for table in tables if table.label not in notes]
    for table in context.catalog.tables.values():
        for column in table.columns:
            # A copy may reveal no more than its source, so ceilings rise first.
            level = catalog.column(table.id, column.id)[1].ceiling
            if level != column.ceiling:
                raised.append(raising(catalog, (table.id, column.id), level))
    statements, last = list[str](), list[str]()
    for table in tables:
        fresh, drop = _again(context, catalog, table, anew[table.id])
        statements += fresh
        last.append(drop)
    # DuckDB renames no table whose columns changed in the same transaction.
    again = ["BEGIN", *statements, "COMMIT"] if statements else []
    return Script([*raised, *again], last, list(notes.values()))


def _again(
    context: Context, catalog: Catalog, table: Table, further: Sequence[str]
) -> tuple[list[str], str]:
    """Statements that create a table again beside itself, and the one that drops the former."""
    later = next(other for other in catalog.tables.values() if other.id == table.id)
    own = replace(later, columns=[c for c in later.columns if table.column(c.name)])
    beside = printed.beside(context, table)
    position = (table.schema, table.name)
    indexes = [
        index.name
        for index in context.local.schema.indexes()
        if (index.schema, index.table) == position
    ]
    schema = "" if is_home(table.schema) else f"{name_of(table.schema)}."
    listed = ", ".join(name_of(c.name) for c in table.columns if not c.expression)
    label, former = f"{schema}{name_of(table.name)}", name_of(f"{table.name}_before")
    statements = [
        # DuckDB renames no table that has an index.
        *(f"DROP INDEX {schema}{name_of(name)}" for name in indexes),
        f"ALTER TABLE {label} RENAME TO {former}",
        printed.create_table(context, own, *further),
        f"INSERT INTO {label} ({listed}) SELECT {listed} FROM {schema}{former}",
        *beside,
    ]
    return statements, f"DROP TABLE {schema}{former}"


def _referenced(context: Context, changes: Sequence[Change]) -> dict[str, str]:
    """Tables that should be created again and that others refer to, which DuckDB does not rename,
    with a sentence on each.
    """
    ids = {
        position[0]
        for change in changes
        if not isinstance(change, Raised)
        for position in places_of(change)
    }
    children: dict[tuple[str, str], set[str]] = {}
    for reference in context.local.schema.references():
        children.setdefault((reference.schema, reference.parent), set()).add(reference.table)
    notes = {}
    for parent, referring in children.items():
        table = context.catalog.table(*parent)
        if table is not None and table.id in ids:
            names = ", ".join(sorted(referring))
            notes[table.label] = (
                f"{table.label} is not part of the script: {names} refers to it, and DuckDB does"
                " not rename such a table. Create both in a new database under the policy below."
            )
    return notes


def places_of(change: Change) -> list[Place]:
    """The columns that a change is about."""
    return sorted(change.places) if isinstance(change, Grouped) else [change.member]


def raising(catalog: Catalog, member: Place, level: str) -> str:
    """The statement that raises the ceiling of a column."""
    table, column = catalog.column(*member)
    return f"ALTER TABLE {table.label} ALTER COLUMN {name_of(column.name)} MAY REVEAL {level}"


def defined(context: Context, catalog: Catalog, change: Computed) -> str:
    """The definition of a generated column."""
    enc = printed.clause(catalog.column(*change.member)[1], catalog, context.backend)
    return f"{name_of(change.name)} {change.type} {enc} GENERATED ALWAYS AS ({change.written})"


def name_of(name: str) -> str:
    """A name as SQL, quoted where that is needed."""
    return name if _NAME.fullmatch(name) and name not in reserved_words() else quoted(name)
