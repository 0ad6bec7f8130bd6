"""CREATE: tables with their protection, and everything that lives on the client only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import (
    cardinality,
    constraint_check,
    transaction,
)
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import (
    comments,
    covering_macros,
    create_as,
    fill,
    new_tables,
    postgres_forms,
    temporary_objects,
)
from louver.trusted.executor.local import object_texts
from louver.trusted.executor.schema import (
    declarations,
    head,
    objects,
    tables,
)
from louver.trusted.executor.settings import EXPRESSION_SETTINGS
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import HomeObject, Table

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
    postgres_forms.require_new(context, start, text.home, tokens)
    if start.temporary and start.kind == "TABLE":
        from louver.trusted.executor.define import temporary_endings

        return temporary_endings.create(context, text, tokens, parameters, start.target[1])
    if start.temporary and start.kind == "SEQUENCE" and spoken().prints_objects:
        from louver.trusted.executor.define import temporary_tables

        temporary_objects.resolved(context, start)
        return temporary_tables.create(context, text, tokens, parameters, start.target[1])
    if temporary_objects.implied(context, start, text.home, home_values(text, parameters)):
        # No placeholder precedes the word, so both texts are alike up to there.
        at = tokens[[keyword(token.text) for token in tokens].index(start.kind)].start
        home, plain = (f"{sql[:at]}TEMP {sql[at:]}" for sql in (text.home, text.plain))
        text = lexer.Text(home, plain, text.parameters)
        return create(context, text, lexer.tokens(text.plain), parameters, given)
    position = temporary_objects.resolved(context, start)
    table_macro = start.kind == "MACRO" and object_texts.is_table_macro(tokens)
    kind = "MACRO TABLE" if table_macro else start.kind
    filled = start.kind == "TABLE" and bool(create_as.query_of(tokens, start.end))
    filled = filled and spoken().prints_objects
    if (start.conditional or filled) and objects.exists(context, kind, position):
        # Nothing is made, but the statement may be wrong, and is before its query runs.
        sql = text.home
        if start.kind == "TABLE" and (not text.parameters or create_as.query_of(tokens, start.end)):
            # No placeholder precedes a clause, so both texts are alike up to there.
            sql = declare.strip_enc(text.home, tokens).sql
        objects.run(context, sql, home_values(text, parameters))
        return Answer()
    if start.kind == "TABLE":
        head.refuse_reserved(start.target[1])
        at = create_as.query_of(tokens, start.end)
        if at:
            return create_as.run(context, text, tokens, at, parameters)
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
    is_like = any(token.token_type == TokenType.LIKE for token in tokens)
    likened = _likened(context, tokens) if is_like else []
    said = declare.strip_enc(text.plain, tokens)
    stored = temporary_objects.independent(context, head.read(tokens), said.sql)
    notices: list[str] = []
    with transaction.writing(context, schema_changed=True) as catalog:
        change = objects.run(context, said.sql)
        objects.forget(context, catalog, change.removed)
        objects.follow(context, catalog, change, "TABLE")
        for kind, schema, name in change.added:
            if kind != "TABLE":
                continue
            columns = new_tables.described(context, schema, name)
            generated = tables.generated_columns(context, schema, name)
            _require_defaults(context, generated)
            label = tables.label_of(schema, name)
            every = {fold(name): declare.Declared(name, "", "") for name, _ in columns}
            declared = {**said.columns, **(every if given is None else given)}
            protection = tables.protect(context, label, columns, declared, generated)
            if likened:
                from louver.trusted.executor.define import like

                protection = like.protected(context, label, likened, protection)
            table = new_tables.stored(context, catalog, (schema, name), columns, protection)
            table_object = objects.printed(context, HomeObject("TABLE", schema, name, stored))
            objects.remember(context, catalog, table_object)
            declarations.require(context, catalog, table)
            notices += cardinality.declared(table) + new_tables.noticed(context, table)
        # INCLUDING COMMENTS brings some.
        comments.keep(context, catalog, anew=is_like)
    return Answer(notices=notices)


def _likened(context: Context, tokens: Sequence[Token]) -> list[Table]:
    from louver.trusted.executor.define import like

    return like.sources(context, tokens)


def _require_defaults(context: Context, generated: frozenset[str]) -> None:
    """What a generated column holds must be what every other session would compute."""
    changed = context.local.settings_changed(EXPRESSION_SETTINGS) if generated else []
    if changed:
        statement = f"A generated column where {changed[0]} is set (begin a new session)"
        raise errors.make("sql.unsupported", statement=statement)


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
    from louver.trusted.executor.schema import indexes

    values = home_values(text, parameters)
    table = None
    if start.kind == "INDEX" and "UNIQUE" in start.modifiers:
        constraint_check.require_no_variable(context, [text.plain], "Whether the index can be made")
        table = indexes.table_of(context.catalog, tokens)
    if not start.temporary:
        temporary_objects.independent(context, start, text.home, values)
    with temporary_objects.changing(context, start.temporary) as catalog:
        indexed = indexes.table_of(catalog, tokens) if start.kind == "INDEX" else None
        before = indexes.wanted(catalog, indexed, context.backend) if indexed is not None else []
        # Read within the change: no row comes between.
        rows_before = fill.read(context, table) if table is not None else None
        rehearsed = rows_before is not None and spoken().prints_objects
        if table is not None and rows_before is not None and rehearsed:
            fill.rehearsed(context, table, rows_before, text.home, tokens)
        change = objects.run(context, text.home, values, macros=start.kind == "MACRO")
        if table is not None and rows_before is not None and not rehearsed:
            fill.tried(context, table, rows_before, text.home)
        objects.name_functions(catalog, change)
        objects.forget(context, catalog, change.removed)
        objects.refresh(context, catalog, change.altered)
        for key, schema, name in change.added:
            kind = "MACRO" if key == "MACRO TABLE" else key
            postgres_forms.require_kind(context, start, kind)
            item = objects.printed(context, HomeObject(kind, schema, name, text.home))
            postgres_forms.require_body(context, item)
            objects.remember(context, catalog, item)
        if table is not None:
            from louver.trusted.executor.define import tagging

            tagging.settle(context, catalog, catalog.tables[table.key])
        elif indexed is not None:
            context.storage.index(indexed, before)
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
    create_as.require_form(create_as.lineage(context, query, inner))
    rows = queries.select(context, query, inner, parameters).rows
    labels = rows.column(0).to_pylist() if rows is not None and rows.num_columns == 1 else []
    if rows is None or rows.num_columns != 1 or not all(isinstance(other, str) for other in labels):
        return text
    listed = ", ".join("'" + str(other).replace("'", "''") + "'" for other in labels)
    sql = f"{text.plain[:first]}{listed})"
    return lexer.Text(sql, sql, ())
