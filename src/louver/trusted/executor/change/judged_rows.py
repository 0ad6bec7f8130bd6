"""INSERT … VALUES of parameters that comes again in a language of which Louver does not know by
itself what constants become: the engine has run the text once, and values of Python's that are of
the columns' own types are then stored as they are. With any other value the engine runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from sqlglot.tokens import TokenType

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import constant_rows, statement_parts
from louver.trusted.executor.change.column_kinds import Kind, kind_of
from louver.trusted.executor.context import Context
from louver.trusted.executor.raw_rows import raw
from louver.trusted.vault.catalog import Table

#: An index of columns as they are, of all rows.
_OF_COLUMNS = re.compile(r'.* USING \w+ \((?:(?:"(?:[^"]|"")*"|\w+)(?: DESC| ASC)?(?:, |\)$))+')


@dataclass(frozen=True, slots=True)
class Form:
    """An INSERT that the engine has run, without the values of its parameters."""

    form: constant_rows.Form
    kinds: tuple[Kind, ...]

    def rows(self, parameter_rows: Sequence[Sequence[object]]) -> pa.Table | None:
        """The new rows; None where only the engine tells."""
        for column, kind in zip(self.form.columns, self.kinds, strict=True):
            for value in constant_rows.values_of(column.items, parameter_rows):
                if value is not None and not kind.takes(value):
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
            elif not kind.takes(value):
                return None
            values.append(raw(value, column.type))
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
    kinds = list[Kind]()
    for column in form.columns:
        kind = own.get(column.name)
        if kind is None:
            return None
        is_text = kind.type is str and column.name in readable
        if not all(is_simple(item, is_text=is_text) for item in column.items):
            return None
        if not all(takes_constant(kind, item) for item in column.items):
            return None
        kinds.append(kind)
    return Form(form, tuple(kinds))


def takes_constant(kind: Kind, item: constant_rows.Item) -> bool:
    """Whether a column takes an item as it is, unless a parameter says what it is."""
    return isinstance(item, int) or item[0] is None or kind.takes(item[0])


def kinds_of(context: Context, table: Table) -> dict[str, Kind]:
    """By their names the columns that take values of one of Python's types as they are."""
    # As they are declared: the catalog does not know the length of a text.
    kinds = {c.name: kind_of(c.type) for c in context.local.schema.columns(*table.key)}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def indexes_expressions(context: Context, table: Table) -> bool:
    """Whether an index of the table computes something of each row, which may fail."""
    return any(
        _OF_COLUMNS.fullmatch(index.sql) is None
        for index in context.local.schema.indexes()
        if (fold(index.schema), fold(index.table)) == tuple(map(fold, table.key))
    )


def is_simple(item: constant_rows.Item, *, is_text: bool = False) -> bool:
    """Whether an item is a parameter, NULL, a number or a truth value, or a text where it is known
    what is within quotes: else the engine alone knows.
    """
    if isinstance(item, int) or item[0] is None or isinstance(item[0], int | Decimal):
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
