"""A new table: its columns as DuckDB describes them, in the catalog and on the server."""

from __future__ import annotations

from collections.abc import Mapping

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.policy_spelling import require_spelled
from louver.trusted.executor.schema import head, objects, tables
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.protection import Protection


def described(context: Context, schema: str, name: str) -> list[tuple[str, str]]:
    """The columns of a new table, if they are such as Louver stores; raises where the policy
    seems to mean this table or one of its columns, and misspells it.
    """
    columns = objects.described(context, schema, name)
    names = [column for column, _ in columns]
    if not names:
        raise errors.make("sql.unsupported", statement="A table without columns")
    head.refuse_reserved(*names)
    tables_known = [table.label for table in context.catalog.tables.values()]
    require_spelled(context.policy, tables.label_of(schema, name), names, tables_known)
    return columns


def stored(
    context: Context,
    catalog: Catalog,
    key: tuple[str, str],
    columns: tables.Described,
    protection: Mapping[str, Protection],
) -> Table:
    """A declared table in the catalog and on the server."""
    schema, backend = context.local.schema, context.backend
    table = tables.build(
        catalog, *key, columns, protection, schema, backend, counted=context.state.counts
    )
    catalog.add(table)
    context.storage.create(table)
    return table


def noticed(context: Context, table: Table) -> list[str]:
    """A notice, once per connection, where nothing of a new table is encrypted."""
    state = context.state
    if table.has_encrypted or state.warned_plain:
        return []
    state.warned_plain = True
    return [
        f"The server stores every value of {table.label} in plain text: no column is ENC. Write"
        " ENC after the type of a column, or SET default_encryption = 'sealed' before the table is"
        " created. Later tables of this connection are not reported."
    ]
