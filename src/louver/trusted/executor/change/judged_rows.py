"""INSERT … VALUES of parameters that comes again in a language of which Louver does not know by
itself what constants become: the engine has run the text once, and values of Python's that are of
the columns' own types are then stored as they are. With any other value the engine runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pyarrow as pa
from sqlglot.tokens import TokenType

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import constant_rows, flow, returned_columns, statement_parts
from louver.trusted.executor.change.column_kinds import Kind, kind_of
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Place
from louver.trusted.executor.raw_rows import raw
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

#: What PostgreSQL prints of a default that is a literal with its type.
_LITERAL = re.compile(r"'((?:[^'\\\\]|'')*)'::([a-z ]+)")
_TEXTS = frozenset("text,character varying,bpchar".split(","))
_LONG_TEXTS = frozenset("text,character varying".split(","))
_CAST_ALIKE = frozenset((
    "smallint", "integer", "bigint", "numeric", "double precision", "boolean", "date", "uuid",
    "bytea", "timestamp without time zone", "timestamp with time zone",
))  # fmt: skip
_SYNONYMS = {"varchar": "character varying", "int": "integer", "float": "double precision"}
_NUMBERS = frozenset(("smallint", "integer", "bigint", "numeric"))
#: An index of columns as they are, of all rows.
_OF_COLUMNS = re.compile(r'.* USING \w+ \((?:(?:"(?:[^"]|"")*"|\w+)(?: DESC| ASC)?(?:, |\)$))+')


@dataclass(frozen=True, slots=True)
class Form:
    """An INSERT that the engine has run, without the values of its parameters."""

    form: constant_rows.Form
    kinds: tuple[Kind, ...]
    returned: returned_columns.Returned | None = None
    #: the sequences that columns get numbers of
    draws: Mapping[str, Place] = field(default_factory=dict)

    def rows(self, parameter_rows: Sequence[Sequence[object]]) -> pa.Table | None:
        """The new rows; None where only the engine tells."""
        if self.draws:
            return None
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
        if self.draws:
            return None
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
    own, returned = kinds_of(context, table), None
    if parts.returning < parts.end:
        returned = returned_columns.of(context, words, table, own)
        if returned is None:
            return None
        parts = replace(parts, end=parts.returning)
    drawing = context.local.schema.draws(table.schema, table.name)
    drawn = dict[str, Place]()

    def default(name: str, text: str | None) -> constant_rows.Item | None:
        position, kind = drawing.get(fold(name)), own.get(name)
        if position is None:
            return (None,) if text is None else _default(kind, text)
        drawn[name] = position
        return (None,) if kind is not None and kind.type is int else None

    declared = {c.name: c.type for c in context.local.schema.columns(*table.key)}
    form = constant_rows.form_of(
        words, parts, table, rules, context.local.arrow_field, default,
        lambda name, type_: _is_own(declared.get(name, ""), type_),
    )  # fmt: skip
    if form is None or not is_readable(words, parts.source, parts.source_end):
        return None
    known = judged(context, table, form, own)
    if known is None or (drawn and not _draws_alone(context, words, parts, table, form)):
        return None
    return replace(known, returned=returned, draws=drawn)


def _is_own(declared: str, cast: str) -> bool:
    """Whether a cast is to a column's own type, but for its length or digits."""
    bare = re.sub(r"\(.*\)", "", declared)
    if bare in _LONG_TEXTS:
        return _SYNONYMS.get(cast, cast) in _LONG_TEXTS
    return bare in _CAST_ALIKE and _SYNONYMS.get(cast, cast) == bare


def _draws_alone(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table,
    form: constant_rows.Form,
) -> bool:  # fmt: skip
    """Whether one row is added, and what it draws shows nothing."""
    is_one = all(len(column.items) == 1 for column in form.columns)
    return is_one and not flow.of_insert(context, words, parts, table)


def _default(kind: Kind | None, text: str) -> constant_rows.Item | None:
    """What a default gives that PostgreSQL prints as a literal of its column's own type."""
    match = _LITERAL.fullmatch(text)
    if kind is None or match is None:
        item = constant_rows.item_of(lexer.tokens(text))
        return None if isinstance(item, int) else item
    if kind.type is str:
        return (match[1].replace("''", "'"),) if match[2] in _TEXTS else None
    return constant_rows.item_of(lexer.tokens(match[1])) if match[2] in _NUMBERS else None


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


@dataclass(slots=True)
class _Indexed:
    """The tables of which expressions are indexed, under what is declared."""

    declared: int | None = None
    tables: frozenset[tuple[str, str]] = frozenset()


def indexes_expressions(context: Context, table: Table) -> bool:
    """Whether an index of the table computes something of each row, which may fail."""
    known, declared = context.state.cache(_Indexed), constraint_check.declared(context)
    if known.declared != declared:
        known.declared = declared
        known.tables = frozenset(
            (fold(index.schema), fold(index.table))
            for index in context.local.schema.indexes()
            if _OF_COLUMNS.fullmatch(index.sql) is None
        )
    return (fold(table.key[0]), fold(table.key[1])) in known.tables


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
