"""CREATE: tables with their protection, and everything that lives on the client only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import (
    cardinality,
    constraint_check,
    federation,
    row_writer,
    transaction,
)
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import covering_macros, fill, temporary_objects
from louver.trusted.executor.define import temporary_tables as tables_temporary
from louver.trusted.executor.local.local_engine import quoted
from louver.trusted.executor.schema import (
    declarations,
    head,
    object_texts,
    objects,
    sequences,
    tables,
)
from louver.trusted.executor.settings import EXPRESSION_SETTINGS
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer, resolver, trees
from louver.trusted.planner.write import information_flow, permit
from louver.trusted.planner.write.reads import Reads
from louver.trusted.planner.write.values import Rows
from louver.trusted.vault.catalog import Catalog, HomeObject, Table
from louver.trusted.vault.facts import with_condition
from louver.trusted.vault.protection import Protection

NOT_GIVEN: Mapping[str, declare.Declared] = {}


def create(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
    given: Mapping[str, declare.Declared] | None = NOT_GIVEN,
) -> Answer:
    """Run a CREATE statement. ``given`` is what is said elsewhere of a table's columns, None if all
    are ENC.
    """
    start = head.read(tokens)
    if start.temporary and start.kind == "TABLE":
        return tables_temporary.create(context, text, tokens, parameters, start.target[1])
    position = temporary_objects.resolved(context, start)
    table_macro = start.kind == "MACRO" and object_texts.is_table_macro(tokens)
    kind = "MACRO TABLE" if table_macro else start.kind
    if start.conditional and objects.exists(context, kind, position):
        # Nothing is made, but the statement may be wrong.
        declared = start.kind == "TABLE" and not text.parameters
        sql = declare.strip_enc(text.plain, tokens).sql if declared else text.home
        objects.run(context, sql, home_values(text, parameters))
        return Answer()
    if start.kind == "TABLE":
        head.refuse_reserved(start.target[1])
        at = _query_of(tokens, start.end)
        if at:
            return _from_query(context, text, tokens, at, parameters)
        return _table(context, text, tokens, given)
    if start.kind == "VIEW":
        head.refuse_reserved(start.target[1])
    return _at_home(context, text, tokens, start, parameters)


def _table(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    given: Mapping[str, declare.Declared] | None,
) -> Answer:
    if text.parameters:
        raise errors.make("sql.unsupported", statement="A placeholder in CREATE TABLE")
    said = declare.strip_enc(text.plain, tokens)
    stored = temporary_objects.independent(context, head.read(tokens), said.sql)
    notices: list[str] = []
    with transaction.writing(context, schema_changed=True) as catalog:
        change = objects.run(context, said.sql)
        objects.forget(context, catalog, change.removed)
        for kind, schema, name in change.added:
            if kind != "TABLE":
                continue
            columns = _described(context, schema, name)
            generated = tables.generated_columns(context, schema, name)
            _require_defaults(context, generated)
            label = tables.label_of(schema, name)
            every = {fold(name): declare.Declared(name, "", "") for name, _ in columns}
            declared = {**said.columns, **(every if given is None else given)}
            protection = tables.protect(context, label, columns, declared, generated)
            table = _stored(context, catalog, (schema, name), columns, protection)
            objects.remember(context, catalog, HomeObject("TABLE", schema, name, stored))
            declarations.require(context, catalog, table)
            notices += cardinality.declared(table)
    return Answer(notices=notices)


def _require_defaults(context: Context, generated: frozenset[str]) -> None:
    """What a generated column holds must be what every other session would compute."""
    changed = context.local.changed(EXPRESSION_SETTINGS) if generated else []
    if changed:
        statement = f"A generated column where {changed[0]} is set (begin a new session)"
        raise errors.make("sql.unsupported", statement=statement)


def _described(context: Context, schema: str, name: str) -> list[tuple[str, str]]:
    """The columns of a new table, if they are such as Louver keeps."""
    columns = objects.described(context, schema, name)
    head.refuse_reserved(*(column for column, _ in columns))
    return columns


def _query_of(tokens: Sequence[Token], at: int) -> int:
    """Where the query of CREATE TABLE … AS begins; 0 where there is none."""
    depth = 0
    for position in range(at, len(tokens)):
        token = tokens[position]
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return position + 1
    return 0


def _from_query(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    at: int,
    parameters: list[object],
) -> Answer:
    """CREATE TABLE AS: what was read encrypted is stored encrypted, every column of it."""
    words = [keyword(token.text) for token in tokens[-3:]]
    empty, ending = words == ["WITH", "NO", "DATA"], words[1:] == ["WITH", "DATA"]
    behind = -3 if empty else -2 if ending else None
    first, last = tokens[at].start, tokens[behind or -1]
    # No placeholder precedes the query, so both texts are alike up to here.
    tail = len(text.plain) - last.start if behind else 0
    query = lexer.Text(
        text.home[first : len(text.home) - tail],
        text.plain[first : len(text.plain) - tail],
        text.parameters,
    )
    inner = lexer.tokens(query.plain)
    with federation.over(context, inner) as other:
        ceiling, decided = _ceiling_read(other, query, inner)
        by_rows = resolver.pivots(inner) and not resolver.lists_values(query.plain, inner)
        if by_rows and ceiling not in ("", "plaintext"):
            raise _by_columns(ceiling)
        known = not empty or by_rows
        answer = queries.select(context, query, inner, parameters) if known else Answer()
        values = home_values(query, parameters)
        statement = text.home[: len(text.home) - tail] + "\nWITH NO DATA"
        if other is not context or by_rows:
            # The local schema does not know attached tables, nor rows that give columns, but
            # what the query gives.
            columns = answer.columns if by_rows else other.local.describe(query.home, values)
            body = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)
            statement, values = f"{text.home[: tokens[at - 1].start]} ({body})", []
    if empty:
        answer = Answer()
    with transaction.writing(context, schema_changed=True) as catalog:
        change = objects.run(context, statement, values)
        objects.forget(context, catalog, change.removed)
        for kind, schema, name in change.added:
            if kind != "TABLE":
                continue
            columns = _described(context, schema, name)
            protection = tables.protect(context, tables.label_of(schema, name), columns, {})
            if ceiling:
                protection = dict.fromkeys(protection, context.policy.derived(ceiling))
            table = _stored(context, catalog, (schema, name), columns, protection)
            sql = objects.introspected(context, "TABLE", schema, name)
            objects.remember(context, catalog, HomeObject("TABLE", schema, name, sql))
            if answer.rows is not None:
                judge = permit.Judge(federation.catalog_of(context, inner), table)
                shown = with_condition(judge.judge_rows(decided), secrets.token_hex(8))
                federation.record(context, shown, f"making {table.label}")
                data = answer.rows.rename_columns([column.name for column in table.columns])
                row_writer.append(context, table, fill.conformed(context, table, data))
        sequences.save(context.local, catalog)
    count = answer.rows.num_rows if answer.rows is not None else 0
    return Answer(affected=count, times_ms=answer.times_ms, remote_sql=answer.remote_sql)


def _by_columns(ceiling: str) -> errors.Error:
    """What refuses a new object that would show values by its own form."""
    return errors.make(
        "leak.flow",
        source="an ENC column",
        ceiling=ceiling,
        target="The form of the new object",
        fix="List the values",
    )


def _ceiling_read(context: Context, query: lexer.Text, tokens: Sequence[Token]) -> tuple[str, Rows]:
    """The lowest ceiling of the encrypted columns that a query's answer depends on, "" for none,
    and what decides which rows it has.

    The declared schema holds the names of encrypted columns, so it counts as one. Refuses a query
    whose number of rows would tell values.
    """
    catalog = federation.catalog_of(context, tokens)
    reads = Reads(catalog, trees.parse(query.plain), tokens, None, context.state.origins)
    rows = information_flow.rows_of(reads)
    permit.require_counts(catalog.tables.values(), rows.counted, "the new table")
    return permit.lowest(catalog, information_flow.of_query(reads)), rows


def _at_home(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    start: head.Head,
    parameters: list[object],
) -> Answer:
    """Views, indexes, schemas, types, sequences, macros: nothing of them goes to the server."""
    if start.kind == "TYPE":
        text, parameters = _with_labels(context, text, tokens, parameters), []
    elif start.kind == "MACRO":
        covering_macros.require(context, start, text.plain, tokens)
    values = home_values(text, parameters)
    table = rows_before = None
    if start.kind == "INDEX" and "UNIQUE" in start.modifiers:
        constraint_check.require_no_variable(context, [text.plain], "Whether the index can be made")
        table = fill.table_of_index(context.catalog, tokens)
        rows_before = fill.read(context, table) if table else None
    if not start.temporary:
        temporary_objects.independent(context, start, text.home, values)
    with temporary_objects.changing(context, start.temporary) as catalog:
        change = objects.run(context, text.home, values, macros=start.kind == "MACRO")
        if table is not None and rows_before is not None:
            fill.tried(context, table, rows_before, text.home)
        objects.forget(context, catalog, change.removed)
        for key, schema, name in change.added:
            kind = "MACRO" if key == "MACRO TABLE" else key
            objects.remember(context, catalog, HomeObject(kind, schema, name, text.home))
    return Answer()


def _with_labels(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> lexer.Text:
    """CREATE TYPE … AS ENUM (query) with the labels that the query gives. A server is sent the
    labels of plain columns, so they may depend on nothing that it must not know.
    """
    words = [keyword(token.text) for token in tokens]
    at = words.index("ENUM") + 1 if "ENUM" in words else len(words)
    queries_begin = ("SELECT", "FROM", "WITH", "VALUES", "PIVOT", "UNPIVOT", "(")
    if words[at : at + 1] != ["("] or words[at + 1] not in queries_begin or words[-1] != ")":
        return text
    # No placeholder precedes the query, so both texts are alike up to here.
    first, last = tokens[at].end + 1, len(text.plain) - tokens[-1].start
    query = lexer.Text(
        text.home[first : len(text.home) - last], text.plain[first:-last], text.parameters
    )
    inner = lexer.tokens(query.plain)
    ceiling, _ = _ceiling_read(context, query, inner)
    if ceiling not in ("", "plaintext"):
        raise _by_columns(ceiling)
    rows = queries.select(context, query, inner, parameters).rows
    labels = rows.column(0).to_pylist() if rows is not None and rows.num_columns == 1 else []
    if rows is None or rows.num_columns != 1 or not all(isinstance(other, str) for other in labels):
        return text
    listed = ", ".join("'" + str(other).replace("'", "''") + "'" for other in labels)
    sql = f"{text.plain[:first]}{listed})"
    return lexer.Text(sql, sql, ())


def _stored(
    context: Context,
    catalog: Catalog,
    key: tuple[str, str],
    columns: tables.Described,
    protection: Mapping[str, Protection],
) -> Table:
    """A declared table in the catalog and on the server."""
    binder, backend = context.local.binder, context.backend
    table = tables.build(catalog, *key, columns, protection, binder, backend)
    catalog.add(table)
    context.storage.create(table)
    return table
