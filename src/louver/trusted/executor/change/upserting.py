"""INSERT with a way out for conflicts, where the keys of the table have tags: only the rows that
have a key of a new row are read, and the user's statement runs locally over these.

The source is evaluated once, into a table of its own, from which the keys are taken and which then
stands in the statement. Constants stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot.tokens import TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import constraint_check, federation, key_rows, storage
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import (
    conflicts,
    constant_rows,
    constant_upserts,
    flow,
    literal_keys,
    read_off,
    sending,
    statement_parts,
)
from louver.trusted.executor.change.narrowing import NESTED
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import LocalConnection
from louver.trusted.executor.schema.representations import tag_of
from louver.trusted.executor.state import Verdict
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.values import ROWID
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact

_KEYS = "louver_keys"
_GIVEN = "louver_new_rows"
_SOURCE = "louver_source"
#: Of two of these DuckDB compares in the later one.
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_SOURCES = ("VALUES", "SELECT", "FROM", "(")
#: What queries begin with, or name tables by.
_QUERIES = {
    "select", "from", "with", "table", "values", "pivot", "unpivot", "describe", "show",
    "summarize",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Upsert:
    """A statement whose conflicts are looked up by tags. ``given`` are the columns that its source
    gives, by their declared names, with the types in which the statement sees them; ``constant``
    tells that the source is made of constants.
    """

    words: statement_parts.Words
    parts: statement_parts.Insert
    table: Table
    rules: constraint_check.Rules
    given: tuple[tuple[str, str], ...]
    constant: bool
    #: how conflicts are decided without the local engine, where they are
    form: constant_upserts.Form | None


def planned(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> Upsert | None:
    """How a statement looks conflicts up by tags; None where it needs the whole table."""
    known = constraint_check.rules(context, table)
    listed = constant_rows.listed(words, parts, table)
    if listed is None or words.keyword(parts.source) not in _SOURCES or known.generated:
        return None
    keys = [key for key in known.keys if tag_of(table, key.expressions)]
    if not known.keys or len(keys) < len(known.keys) or ROWID in words.names():
        return None
    # A key that the source does not give is NULL, unless it has a default.
    keyed = {fold(name) for name in known.key_columns()}
    if (keyed - {fold(name) for name in listed}) & {fold(name) for name in known.defaults}:
        return None
    if known.children and _writes_anew(words, parts, table, known, listed):
        return None
    if not _target_only(context, words, parts, table) or (
        known.foreign and _is_qualified(words, table)
    ):
        return None
    source = words.tokens[parts.source : parts.source_end]
    if "DEFAULT" in {keyword(token.text) for token in source}:
        return None
    given = _given(context, words, parts, table, listed, keyed)
    if given is None:
        return None
    constant = words.keyword(parts.source) == "VALUES" and all(map(flow.is_constant, source))
    form = None
    if context.local.dialect.has_simple_terms:
        field_of = context.local.arrow_field
        form = constant_upserts.form_of(words, parts, table, known, field_of) if constant else None
    elif not constant:
        # A source that is evaluated for its keys is evaluated again with the statement.
        return None
    return Upsert(words, parts, table, known, given, constant, form)


def upsert(context: Context, item: Upsert, source: pa.Table | None, verdict: Verdict) -> Answer:
    """Run it. ``source`` are the rows of a source that reads tables, None of any other; the verdict
    is that on what the statement depends on.
    """
    clock, table = Clock(), item.table
    leaks: Sequence[Fact] = flow.again(verdict)
    if context.attached and leaks:
        federation.record(context, leaks, f"a change of {table.label}")
        leaks = ()
    with clock.step("home"):
        new, given = _constant_rows(context, item), None
        if context.local.dialect.reads_off:
            keys: pa.Table | None = _constant_keys(context, item)
        else:
            keys = literal_keys.keys_of(context, item) if new is None and item.constant else new
        if keys is None:
            given, keys = _evaluated(context, item, source)
        tags = key_rows.tags_of(context, table, keys)
    with clock.step("server"):
        rows = key_rows.with_tags(context, table, tags, more=leaks)
    words = item.words if item.constant else _over_given(item)
    plan = ChangePlan(
        table.id, (), (table.id,), frozenset(), stand_in=item.rules.without_foreign,
        all_met=verdict.all_met,
    )  # fmt: skip

    def also_filled(connection: LocalConnection) -> None:
        if not item.constant and given is not None:
            _fill_given(connection, item, given)

    held = {table.id: rows}
    try:
        done = None
        if new is not None and item.form is not None and not verdict.all_met:
            done = item.form.decided(new, rows, words.parameters)
        if done is not None:
            return sending.sent(context, table, rows, done, clock)
        if context.local.dialect.reads_off:
            return read_off.run(context, words, plan, held, clock)
        from louver.trusted.executor.change import rehearsing

        return rehearsing.rehearsed_and_sent(context, words, plan, held, clock, also_filled)
    except errors.IntegrityError as error:
        # Another client may have written one of the keys since they were looked up.
        if context.in_transaction and context.local.dialect.fails_whole:
            if not statement_parts.is_key_of_conflict(item.words, error):
                raise
            raise errors.make("catalog.conflict") from error
        if context.in_transaction or _row_ids(key_rows.with_tags(context, table, tags)) == _row_ids(
            rows
        ):
            raise
        raise errors.make("catalog.conflict") from error


def _constant_rows(context: Context, item: Upsert) -> pa.Table | None:
    """The new rows, where no local engine need tell what they are, nor what they do."""
    if item.form is None or context.local.collated():
        return None
    return item.form.rows.rows([item.words.parameters])


def _constant_keys(context: Context, item: Upsert) -> pa.Table:
    """What a source of constants gives, in the columns that take it."""
    words, parts, table = item.words, item.parts, item.table
    listed = ", ".join(quoted(name) for name, _ in item.given)
    own, values = words.text(parts.source, parts.source_end)
    try:
        with constraint_check.rehearsal(context) as connection:
            connection.execute(
                f"CREATE TEMP TABLE {_KEYS} AS SELECT {listed} FROM {table.local_name} LIMIT 0"
            )
            connection.execute(f"INSERT INTO {_KEYS} {own}", values)
            return connection.fetch_arrow(f"SELECT * FROM {_KEYS}")
    except errors.Error:
        # What does not bind is said of the user's own text.
        context.local.statements.bind(*words.text(0, len(words.tokens)))
        raise


def _row_ids(rows: pa.Table) -> list[int]:
    return list(rows.column(storage.ROW_ID).to_pylist())


def _writes_anew(
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    known: constraint_check.Rules,
    listed: Sequence[str],
) -> bool:
    """Whether DuckDB may write an old row anew, which it refuses if others refer to the row: where
    a column of a key or a foreign key is set, or one of a nested type.
    """
    if statement_parts.only_adds(words):
        return False
    keyed = {fold(name) for name in known.key_columns()}
    names: Sequence[str] | None = [name for name in listed if fold(name) not in keyed]
    if words.keyword(parts.verb + 1) != "OR":
        names = _set_names(words, parts)
    elif len(known.keys) > 1:
        return True
    if names is None:
        return True
    columns = [table.column(name) for name in names]
    fixed = keyed | {fold(name) for foreign in known.foreign for name in foreign.columns}
    return any(
        column is None or fold(column.name) in fixed or any(p in column.type for p in NESTED)
        for column in columns
    )


def _set_names(words: statement_parts.Words, parts: statement_parts.Insert) -> Sequence[str] | None:
    """The columns that DO UPDATE sets; None in another form than ``name = expression``."""
    first = words.find("SET", parts.source_end)
    if first < 0:
        return None
    ends = [words.find(word, first) for word in ("WHERE", "RETURNING")]
    last = min([end for end in ends if end >= 0], default=len(words.tokens))
    names, depth, start = list[str](), 0, True
    for position in range(first + 1, last):
        token = words.tokens[position]
        if start:
            after = words.tokens[position + 1].text if position + 1 < last else ""
            if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) or after != "=":
                return None
            names.append(token.text)
        depth += (token.token_type in conflicts.OPENING) - (token.token_type in conflicts.CLOSING)
        start = depth == 0 and token.token_type == TokenType.COMMA
    return names


def _target_only(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> bool:
    """Whether what follows the source reads nothing but the target and the new rows."""
    names = words.names(parts.source_end) - {fold(table.name)}
    if _QUERIES & names or context.local.temporary.mentioned(names):
        return False
    # Without a query no word is a table: a column may have the name of one.
    return not statement_parts.reached(context.catalog, names)[1]


def _given(
    context: Context,
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    listed: Sequence[str],
    keyed: Collection[str],
) -> tuple[tuple[str, str], ...] | None:
    """The columns that the source gives, with their types; None where it cannot be evaluated alone,
    or DuckDB would compare the keys in other types than they are stored in: that may fail, or find
    others, and depends on every row. Values stand in the types of the columns that take them.
    """
    types = {column.name: column.type for column in table.columns}
    if words.keyword(parts.source) == "VALUES":
        names = words.names(parts.source, parts.source_end)
        known = parts.verb == 0 and _names_nothing(context, names)
        return tuple((name, types[name]) for name in listed) if known else None
    before, first = words.text(0, parts.verb)
    own, second = words.text(parts.source, parts.source_end, len(first))
    try:
        results = context.local.describe(f"{before} {own}", [*first, *second])
    except errors.Error:
        return None
    if len(results) != len(listed):
        return None
    given = tuple((name, type_) for name, (_, type_) in zip(listed, results, strict=True))
    same = all(_compares_as(type_, types[name]) for name, type_ in given if fold(name) in keyed)
    return given if same else None


def _compares_as(type_: str, stored: str) -> bool:
    """Whether a value of a type is compared with stored ones in their own type."""
    if type_ in _WHOLE and stored in _WHOLE:
        return _WHOLE.index(type_) <= _WHOLE.index(stored)
    return type_ == stored


def _names_nothing(context: Context, names: set[str]) -> bool:
    every = statement_parts.reached(context.catalog, names)[0]
    read = statement_parts.tables_named(context.catalog, names)
    return not read and not context.local.temporary.mentioned(every)


def _is_qualified(words: statement_parts.Words, table: Table) -> bool:
    """Whether the table is named with its schema, where a temporary one cannot stand in for it."""
    texts = [fold(token.text) for token in words.tokens]
    pairs = zip(texts, texts[1:], texts[2:], strict=False)
    return any(second == "." and third == fold(table.name) for _, second, third in pairs)


def _evaluated(
    context: Context, item: Upsert, source: pa.Table | None
) -> tuple[pa.Table, pa.Table]:
    """The rows that the source gives, and their keys in the types that these are stored in; a key
    of which a column is not given is NULL, and left out.
    """
    words, parts, table = item.words, item.parts, item.table
    before, first = words.text(0, parts.verb)
    own, second = words.text(parts.source, parts.source_end, len(first))
    sql, values = f"{before} INSERT INTO {_GIVEN} {own}", [*first, *second]
    columns = [column for column in table.columns if column.name in dict(item.given)]
    keyed = [c.name for c in columns if c.name in item.rules.key_columns()]
    listed = ", ".join(map(quoted, keyed))
    with constraint_check.rehearsal(context) as connection:
        _create_given(connection, item)
        if source is not None:
            renamed = source.rename_columns([f"c{i}" for i in range(source.num_columns)])
            connection.register(_SOURCE, renamed)
            sql, values = f"INSERT INTO {_GIVEN} SELECT * FROM {_SOURCE}", []
        try:
            connection.execute(sql, values)
        except errors.Error:
            # What does not bind is said of the user's own text.
            connection.execute("ROLLBACK; BEGIN TRANSACTION")
            whole, values = words.text(0, len(words.tokens))
            connection.execute(f"EXPLAIN {whole}", values)
            raise
        given = connection.fetch_arrow(f"SELECT * FROM {_GIVEN}")
        connection.require_exact(_GIVEN, replace(table, columns=columns), given)
        if all(column.type == dict(item.given)[column.name] for column in columns):
            return given, given
        connection.execute(
            f"CREATE TEMP TABLE {_KEYS} AS SELECT {listed} FROM {table.local_name} LIMIT 0;"
            f"INSERT INTO {_KEYS} SELECT {listed} FROM {_GIVEN}"
        )
        return given, connection.fetch_arrow(f"SELECT * FROM {_KEYS}")


def _over_given(item: Upsert) -> statement_parts.Words:
    """The statement with the evaluated rows as its source."""
    words, parts = item.words, item.parts
    start, end = words.tokens[parts.source].start, words.tokens[parts.source_end - 1].end + 1
    begin = words.tokens[parts.verb].start
    plain = f"{words.plain[begin:start]} SELECT * FROM {_GIVEN} {words.plain[end:]}"
    return replace(words, plain=plain, tokens=lexer.tokens(plain))


def _create_given(connection: LocalConnection, item: Upsert) -> None:
    columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in item.given)
    connection.execute(f"CREATE TEMP TABLE {_GIVEN} ({columns})")


def _fill_given(connection: LocalConnection, item: Upsert, given: pa.Table) -> None:
    _create_given(connection, item)
    connection.register(_SOURCE, given)
    connection.execute(f"INSERT INTO {_GIVEN} SELECT * FROM {_SOURCE}")
    connection.unregister(_SOURCE)
