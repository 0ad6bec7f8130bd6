"""From declared columns to the catalog's table and the server's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from louver import errors
from louver.names import fold, is_home
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Schema
from louver.trusted.executor.schema import (
    constraints,
    head,
    join_groups,
    representations,
)
from louver.trusted.executor.schema.constraints import Known
from louver.trusted.executor.schema.representations import pseudonym
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.protection import FILES, PLAIN, Protection
from louver.trusted.vault.scheme import has_shares
from louver.trusted.vault.types import is_collated, is_everywhere

#: Types whose values do not go into Arrow and back.
_NOT_IN_ARROW = ("GEOMETRY", "VARIANT")
Described = Sequence[tuple[str, str]]
"""Names and types of columns, as DESCRIBE prints them."""

#: Names of a server table that plain columns cannot have.
_TAKEN = re.compile(rf"row_id|rowid|[{representations.letters()}]_[0-9a-f]{{12}}", re.IGNORECASE)


def build(
    catalog: Catalog,
    schema: str,
    name: str,
    columns: Described,
    protections: Mapping[str, Protection],
    source: Schema,
    backend: Backend,
    *,
    counted: bool,
) -> Table:
    """A table of the catalog for one with these columns, whose constraints ``source`` knows."""
    counted = counted or not backend.concurrent
    table = Table(schema, name, catalog.take_table_id(), counted=counted, runs_known=counted)
    declared = constraints.read(source, schema, name)
    require_uncollated(columns, declared)
    constraints.require_stable(label_of(schema, name), columns, declared)
    for column, type_ in columns:
        protection = protections.get(fold(column), PLAIN)
        known = declared.get(fold(column), Known())
        copy = make_column(catalog, column, type_, protection, known, backend)
        table.columns.append(copy)
    join_groups.assign(catalog, table, protections, declared)
    representations.pack(table, protections, backend)
    representations.tag(table, constraints.keys(source, schema, name), backend)
    settle_helpers(table)
    return table


def require_uncollated(columns: Described, declared: Mapping[str, Known]) -> None:
    """Refuse a generated column beside one with a collation: what stands for an expression would
    compare otherwise than the expression.
    """
    collated = any(is_collated(type_) for _, type_ in columns)
    if collated and any(known.expression for known in declared.values()):
        statement = "A generated column in a table with COLLATE on a column"
        raise errors.make("sql.unsupported", statement=statement)


def make_column(
    catalog: Catalog, name: str, type_: str, protection: Protection, known: Known, backend: Backend
) -> Column:
    """A column with pseudonyms of its own, of a type that Louver can keep."""
    if any(token.text in _NOT_IN_ARROW for token in lexer.tokens(type_)):
        statement = f"A column of type {type_} (keep its values as VARCHAR or JSON)"
        raise errors.make("sql.unsupported", statement=statement)
    if type_.removesuffix("[]") in spoken().names_objects:
        # A number that means another object in the next session.
        statement = f"A column of type {type_} (keep its values as text)"
        raise errors.make("sql.unsupported", statement=statement)
    column = Column(
        name,
        spoken().catalog_type(type_),
        catalog.take_column_id(),
        protection.encrypted,
        protection.scheme,
        protection.ceiling,
    )
    column.expression, column.unique = known.expression, known.unique
    column.choices, column.nullable = known.choices, known.nullable
    if is_collated(type_):
        # Values that count as one are several; and codes know no collation.
        column.choices = 0
        if protection.scheme == FILES or not (protection.encrypted or is_everywhere(type_)):
            raise head.refuse_collation(f"column {name}")
    if not protection.encrypted:
        column.stored = {"plain": plain_name(name)}
        return column
    representations.fit(column, protection, known, backend)
    return column


def plain_name(name: str) -> str:
    """The server's name of a plain column: its own, or a pseudonym where that is Louver's."""
    return pseudonym("p") if _TAKEN.fullmatch(name) else name


def settle_helpers(table: Table) -> list[str]:
    """Give the table its helper columns, or take them away; the names taken away."""
    needed = has_shares(table)
    if needed and not table.helper_one:
        table.helper_one, table.helper_random, table.helper_unit = (
            pseudonym("h") for _ in range(3)
        )
    if needed or not table.helper_one:
        return []
    gone = [table.helper_one, table.helper_random, table.helper_unit, *let_go_of_kept(table)]
    table.helper_one = table.helper_random = table.helper_unit = ""
    return gone


def let_go_of_kept(table: Table) -> list[str]:
    """Forget the products that the server keeps: some may be of a column that goes. They are
    computed anew when a query asks; their columns are returned, to be dropped.
    """
    gone = list(table.kept.values())
    table.kept = {}
    table.kept_complete = True
    return gone


def protect(
    context: Context,
    label: str,
    columns: Described,
    declared: Mapping[str, Declared],
    generated: frozenset[str] = frozenset(),
) -> dict[str, Protection]:
    """How every column of a new table is kept, by name in lower case.

    A generated column may be computed from an encrypted one, so beside encrypted columns it is
    encrypted too, under the lowest of their ceilings.
    """
    results = {
        fold(column): context.protection(label, column, type_, declared.get(fold(column)))
        for column, type_ in columns
    }
    ceilings = [protection.ceiling for protection in results.values() if protection.encrypted]
    for column in generated if ceilings else ():
        if not results[column].encrypted:
            results[column] = context.policy.derived(min(ceilings, key=LEVELS.index))
    return results


def label_of(schema: str, name: str) -> str:
    """A table's name for people and policies."""
    return name if is_home(schema) else f"{schema}.{name}"


def generated_columns(context: Context, schema: str, name: str) -> frozenset[str]:
    """The generated columns of a local table, in lower case."""
    return frozenset(context.local.schema.generated(schema, name))
