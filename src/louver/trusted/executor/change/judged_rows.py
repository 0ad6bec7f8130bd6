"""INSERT … VALUES of parameters that comes again in a language of which Louver does not know by
itself what constants become: the engine has run the text once, and values of Python's that are of
the columns' own types are then stored as they are. With any other value the engine runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import pyarrow as pa

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import constant_rows, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.raw_rows import raw
from louver.trusted.planner.sql.postgres_types import whole_name
from louver.trusted.vault.catalog import Table

#: By the catalog's name of a type: values that a column takes as they are.
_KINDS: Mapping[str, type] = {
    "SMALLINT": int, "INTEGER": int, "BIGINT": int, "VARCHAR": str, "BOOLEAN": bool, "BLOB": bytes,
    "UUID": UUID, "DATE": date, "DOUBLE": float, "TIMESTAMP": datetime,
}  # fmt: skip
#: An index of columns as they are, of all rows.
_OF_COLUMNS = re.compile(r'.* USING \w+ \((?:(?:"(?:[^"]|"")*"|\w+)(?: DESC| ASC)?(?:, |\)$))+')


@dataclass(frozen=True, slots=True)
class Form:
    """An INSERT that the engine has run, without the values of its parameters."""

    form: constant_rows.Form
    kinds: tuple[type, ...]

    def rows(self, parameter_rows: Sequence[Sequence[object]]) -> pa.Table | None:
        """The new rows; None where only the engine tells."""
        for column, kind in zip(self.form.columns, self.kinds, strict=True):
            for value in constant_rows.values_of(column.items, parameter_rows):
                if value is not None and not is_plain(value, kind):
                    return None
        rows = self.form.rows(parameter_rows)
        # Whether keys of several rows are alike is the engine's to say: collations, NULLs.
        alone = rows is None or rows.num_rows < 2 or not self.form.keys
        return rows if alone else None

    def raw(self, parameters: Sequence[object]) -> list[object] | None:
        """The raw values of the new row; None of more rows, and where only the engine tells."""
        values = list[object]()
        for column, kind in zip(self.form.columns, self.kinds, strict=True):
            if len(column.items) != 1:
                return None
            (item,) = column.items
            value = parameters[item] if isinstance(item, int) else item[0]
            if value is None:
                if column.required:
                    return None
            elif not is_plain(value, kind):
                return None
            values.append(raw(value))
        return values


def form_of(
    context: Context,
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    rules: constraint_check.Rules,
) -> Form | None:
    """The form of an INSERT that the engine has just run; None where values are cast, computed or
    checked beyond their types.
    """
    if rules.foreign:
        return None
    form = constant_rows.form_of(words, parts, table, rules, context.local.arrow_field)
    return None if form is None else judged(context, table, form)


def judged(context: Context, table: Table, form: constant_rows.Form) -> Form | None:
    """The form of new rows whose values are stored as they are; None of others."""
    if indexes_expressions(context, table):
        return None
    if not all(map(is_simple, [item for column in form.columns for item in column.items])):
        return None
    own = kinds_of(context, table)
    kinds = [own.get(column.name) for column in form.columns]
    known = tuple(kind for kind in kinds if kind is not None)
    return Form(form, known) if len(known) == len(kinds) else None


def kinds_of(context: Context, table: Table) -> dict[str, type]:
    """By their names the columns that take values of one of Python's types as they are."""
    # As they are declared: the catalog does not know the length of a text.
    printed = {c.name: whole_name(c.type) for c in context.local.schema.columns(*table.key)}
    return {name: _KINDS[type_] for name, type_ in printed.items() if type_ in _KINDS}


def indexes_expressions(context: Context, table: Table) -> bool:
    """Whether an index of the table computes something of each row, which may fail."""
    return any(
        _OF_COLUMNS.fullmatch(index.sql) is None
        for index in context.local.schema.indexes()
        if (fold(index.schema), fold(index.table)) == tuple(map(fold, table.key))
    )


def is_simple(item: constant_rows.Item) -> bool:
    """Whether an item is a parameter, NULL, a whole number or a truth value: of literals in quotes
    the engine alone knows what is within them.
    """
    return isinstance(item, int) or item[0] is None or isinstance(item[0], int)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_plain(value: object, kind: type) -> bool:
    """Whether a value is stored as it is by a column of this kind."""
    if type(value) is not kind:
        return False
    if isinstance(value, str):
        return "\0" not in value and (value.isascii() or _is_unicode(value))
    return not isinstance(value, datetime) or value.tzinfo is None
