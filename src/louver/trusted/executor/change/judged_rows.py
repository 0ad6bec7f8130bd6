"""INSERT … VALUES of parameters that comes again in a language of which Louver does not know by
itself what constants become: the engine has run the text once, and values of Python's that are of
the columns' own types are then stored as they are. With any other value the engine runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import pyarrow as pa
from sqlglot.tokens import TokenType

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
    if form is None:
        return None
    # Of defaults it is not known how they are written.
    named = constant_rows.listed(words, parts, table) or ()
    readable = is_readable(words, parts.source, parts.source_end)
    return judged(context, table, form, named if readable else ())


def judged(
    context: Context, table: Table, form: constant_rows.Form, readable: Collection[str] = ()
) -> Form | None:
    """The form of new rows whose values are stored as they are; None of others. What is within
    quotes is known of ``readable`` columns.
    """
    if indexes_expressions(context, table):
        return None
    own = kinds_of(context, table)
    kinds = [own.get(column.name) for column in form.columns]
    for column in form.columns:
        is_text = own.get(column.name) is str and column.name in readable
        if not all(is_simple(item, is_text=is_text) for item in column.items):
            return None
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


def is_simple(item: constant_rows.Item, *, is_text: bool = False) -> bool:
    """Whether an item is a parameter, NULL, a whole number or a truth value, or a text where it is
    known what is within quotes: else the engine alone knows.
    """
    if isinstance(item, int) or item[0] is None or isinstance(item[0], int):
        return True
    return is_text and isinstance(item[0], str)


def is_readable(words: statement_parts.Words, first: int, last: int) -> bool:
    """Whether literals in quotes are what is between these, whatever a setting says."""
    for position in range(first, last):
        token = words.tokens[position]
        if token.token_type == TokenType.STRING:
            text = words.plain[token.start : token.end + 1]
            if "\\" in text or text != "'" + token.text.replace("'", "''") + "'":
                return False
    return True


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
