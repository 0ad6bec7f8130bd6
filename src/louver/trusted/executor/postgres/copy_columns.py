"""Rows of COPY … FROM STDIN read by the compiled module, where the private PostgreSQL would take
each value as it is written and change nothing.

By default PostgreSQL reads them: what a table, a column, an option or a value must be for that not
to be needed is said here and in `copy_columns.rs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from louver._rust import postgres
from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres import values
from louver.trusted.executor.postgres.copy_rows import Format
from louver.trusted.vault.catalog import Table

#: Tables with nothing that decides on a row but keys, foreign keys and NOT NULL.
_IS_SIMPLE = """
SELECT c.relkind = 'r' AND NOT c.relispartition AND NOT c.relhasrules AND NOT c.relrowsecurity
 AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)
 AND NOT EXISTS (SELECT FROM pg_inherits AS i WHERE c.oid IN (i.inhparent, i.inhrelid))
 AND NOT EXISTS (SELECT FROM pg_constraint AS k
  WHERE k.conrelid = c.oid AND k.contype NOT IN ('p', 'u', 'f', 'n'))
 AND NOT EXISTS (SELECT FROM pg_index AS x WHERE x.indrelid = c.oid
  AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL OR x.indisexclusion
   OR x.indnullsnotdistinct OR NOT x.indimmediate))
 FROM pg_class AS c WHERE c.oid = $1::regclass
"""
_COLUMNS = """
SELECT a.attname::text, a.atttypid::bigint, a.atttypmod::bigint, format_type(a.atttypid, NULL),
 a.attnotnull, a.atthasdef OR a.attidentity <> '', a.attgenerated <> '',
 EXISTS (SELECT FROM pg_index AS x WHERE x.indrelid = a.attrelid AND a.attnum = ANY(x.indkey))
 FROM pg_attribute AS a
 WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
#: Values of an index's columns are together no longer, which PostgreSQL would refuse from 2,704 on.
_MOST_INDEXED_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a declared table."""

    name: str
    type: int
    modifier: int
    type_name: str
    required: bool
    #: whether it has a value where none is given
    fills: bool
    generated: bool
    indexed: bool


def read(
    context: Context, table: Table, form: Format, listed: Sequence[str], data: bytes, start: int
) -> pa.Table | None:
    """The rows of data, of which so many bytes go before the first row, with all columns of a
    table; None where PostgreSQL is to read it. ``listed`` are the names of columns as SQL.
    """
    if constraint_check.untagged(table, constraint_check.rules(context, table)):
        return None
    with context.local.rehearsal() as connection:
        if connection.fetchone(_IS_SIMPLE, [table.local_name]) != (True,):
            return None
        rows = connection.fetchall(_COLUMNS, [table.local_name])
    columns = {str(row[0]): _Column(*row) for row in rows}
    names = _given(columns, listed)
    if names is None or list(columns) != [column.name for column in table.columns]:
        return None
    given = [(columns[name].type, columns[name].modifier) for name in names]
    arrays = postgres.copied(data, start, form.name, given)
    if arrays is None:
        return None
    return _whole(columns, dict(zip(names, arrays, strict=True)))


def _given(columns: dict[str, _Column], listed: Sequence[str]) -> list[str] | None:
    """The columns that the data are of; None where PostgreSQL fills another, or refuses a name."""
    if any(column.generated for column in columns.values()):
        return None
    if not listed:
        return list(columns)
    names = [
        text[1:-1].replace('""', '"') if text.startswith('"') else fold(text) for text in listed
    ]
    if len(set(names)) != len(names) or not columns.keys() >= set(names):
        return None
    others = [column for name, column in columns.items() if name not in names]
    return None if any(column.fills or column.required for column in others) else names


def _whole(columns: dict[str, _Column], given: dict[str, pa.Array]) -> pa.Table | None:
    """Rows with all columns; None where they break a rule."""
    count = len(next(iter(given.values())))
    described, arrays, indexed_bytes = [], [], 0
    for name, column in columns.items():
        array = given.get(name)
        arrow = values.arrow_type(column.type, column.modifier, column.type_name)
        if array is None:
            array = pa.nulls(count, arrow)
        elif column.required and array.null_count:
            return None
        elif column.indexed and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
            indexed_bytes += pc.max(pc.binary_length(array)).as_py() or 0
        if array.type != arrow and isinstance(arrow, pa.BaseExtensionType):
            array = pa.ExtensionArray.from_storage(arrow, array)
        described.append((name, column.type, column.modifier, 0, 0))
        arrays.append(array)
    if indexed_bytes > _MOST_INDEXED_BYTES:
        return None
    return values.answer(described, arrays, [column.type_name for column in columns.values()])
