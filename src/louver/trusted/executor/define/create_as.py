"""CREATE TABLE AS: every column takes over the protection of what it is computed from.

A clause in the list of columns goes before that, then the policy, as far as the flow rule allows
them. A column that depends on encrypted ones is never laxer than the strictest of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, own_schemas, quoted
from louver.trusted.executor import cardinality, federation, row_writer, send_order, transaction
from louver.trusted.executor import select as queries
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import fill, new_tables
from louver.trusted.executor.local import exact
from louver.trusted.executor.schema import (
    constraints,
    head,
    objects,
    tables,
)
from louver.trusted.executor.stated import Stated
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write import information_flow, permit
from louver.trusted.planner.write.information_flow import Flow
from louver.trusted.planner.write.reads import Reads, Secrets
from louver.trusted.planner.write.values import Relation
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.trusted.vault.facts import with_condition
from louver.trusted.vault.levels import allows
from louver.trusted.vault.protection import Protection


@dataclass(frozen=True, slots=True)
class Sources:
    """What the columns and the rows of a query depend on, and the catalog that knows these."""

    catalog: Catalog
    relation: Relation

    def of(self, position: int) -> Secrets:
        """What a column is kept as well as: what it depends on, and what decides which rows there
        are. Constants, values of files and the like are kept as well as everything that is read.
        """
        value = self.relation.at(position)
        if not value.secrets and (value.holders or not value.plains):
            return self.relation.secrets
        return value.secrets | self.relation.rows.all


@dataclass(frozen=True, slots=True)
class _Parts:
    """The pieces of a statement: name and list of columns without ENC, the clauses of the list, its
    names, and the query.
    """

    name: str
    before: str
    declared: Mapping[str, declare.Declared]
    names: Sequence[str]
    query: lexer.Text
    tokens: Sequence[Token]
    label: str
    empty: bool

    def renamed(self, columns: tables.Described) -> list[tuple[str, str]]:
        """The columns of the query under the names that are listed."""
        names = [*self.names, *(name for name, _ in columns[len(self.names) :])]
        return [(name, type_) for name, (_, type_) in zip(names, columns, strict=False)]


def query_of(tokens: Sequence[Token], at: int) -> int:
    """Where the query of CREATE TABLE … AS begins; 0 where there is none."""
    depth = 0
    for position in range(at, len(tokens)):
        token = tokens[position]
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return position + 1
    return 0


def run(
    context: Context,
    text: lexer.Text,
    tokens: Sequence[Token],
    at: int,
    parameters: list[object],
) -> Answer:
    """Run the statement; ``at`` is where its query begins."""
    parts = _parts(context, text, tokens, at)
    values = home_values(parts.query, parameters)
    statement = f"{parts.before} AS {parts.query.home}\nWITH NO DATA"
    answer = Answer()
    with federation.over(context, parts.tokens) as other:
        sources = lineage(other, parts.query, parts.tokens)
        by_rows = context.local.is_pivot_by_rows(parts.query.home, parts.tokens)
        if by_rows:
            require_form(sources)
        columns = [] if by_rows else parts.renamed(other.local.describe(parts.query.home, values))
        if not parts.empty:
            _require_flow(context, parts, columns, sources)
        if by_rows or not parts.empty:
            with exact.stored():
                answer = queries.select(context, parts.query, parts.tokens, parameters)
        if other is not context or by_rows:
            # The local schema does not know attached tables, nor rows that give columns, but what
            # the query gives.
            columns = parts.renamed(answer.columns) if by_rows else columns
            body = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)
            statement, values = f"{parts.name} ({body})", []
    rows = None if parts.empty else answer.rows
    notices = list(answer.notices)
    with transaction.writing(context, schema_changed=True) as catalog:
        change = objects.run(context, statement, values)
        objects.forget(context, catalog, change.removed)
        objects.follow(context, catalog, change, "TABLE")
        for kind, schema, name in change.added:
            if kind == "TABLE":
                table = _stored(context, catalog, (schema, name), parts, sources, rows)
                notices += cardinality.declared(table) + new_tables.noticed(context, table)
    # Of several statements DuckDB reports no count.
    uncounted = by_rows or (parts.empty and spoken().prints_objects)
    count = -1 if uncounted else rows.num_rows if rows is not None else 0
    return Answer(
        affected=count, times_ms=answer.times_ms, remote_sql=answer.remote_sql, notices=notices
    )


def lineage(context: Context, query: lexer.Text, tokens: Sequence[Token]) -> Sources:
    """What a query depends on. The declared schema holds the names of encrypted columns, so it
    counts as one. Refuses a query whose number of rows would tell values.
    """
    catalog = federation.catalog_of(context, tokens)
    reads = Reads(
        catalog, trees.parse(query.plain), tokens, None, context.state.origins,
        lambda: context.local.statements.depends_on_rows_alone(query.home),
    )  # fmt: skip
    relation = information_flow.of_query(reads)
    permit.require_counts(catalog.tables.values(), relation.rows.counted, "the new table")
    return Sources(catalog, relation)


def require_form(sources: Sources) -> None:
    """Refuse a new object that would show values by its own form: names of columns, labels."""
    ceiling = permit.lowest(sources.catalog, sources.relation.secrets)
    if ceiling not in ("", "plaintext"):
        raise errors.make(
            "leak.flow",
            source="an ENC column",
            ceiling=ceiling,
            target="The form of the new object",
            fix="List the values",
        )


def _parts(context: Context, text: lexer.Text, tokens: Sequence[Token], at: int) -> _Parts:
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
    start = head.read(tokens)
    before = declare.strip_enc(text.plain[: tokens[at - 1].start], tokens[:at])
    parts = lexer.tokens(query.plain)
    declare.refuse_alias(".".join(start.name), query.plain, parts)
    return _Parts(
        text.plain[: tokens[start.end - 1].end + 1],
        before.sql,
        before.columns,
        declare.listed_names(tokens[:at]),
        query,
        parts,
        tables.label_of(*_key(context, tokens)),
        empty,
    )


def stated(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Stated:
    """What the statement would show; nothing is read, and nothing is created."""
    parts = _parts(context, text, tokens, query_of(tokens, head.read(tokens).end))
    sources, result = lineage(context, parts.query, parts.tokens), Stated()
    if context.local.is_pivot_by_rows(parts.query.home, parts.tokens):
        require_form(sources)
        return result
    described = context.local.describe(parts.query.home, home_values(parts.query, parameters))
    columns = parts.renamed(described)
    protection = _protected(context, parts, columns, sources)
    scratch = context.catalog.copy()
    table = Table(*_key(context, tokens), scratch.take_table_id())
    table.columns = [
        tables.make_column(scratch, n, t, protection[fold(n)], constraints.Known(), context.backend)
        for n, t in columns
    ]
    if not parts.empty:
        _require_flow(context, parts, columns, sources)
        result.add_query(context, parts.query, parameters)
        flow = permit.Judge(sources.catalog, table).judge(_flow(table.columns, sources))
        result.facts += with_condition(flow, secrets.token_hex(8))
        result.facts += row_writer.at_rest(table, context.backend)
    return result


def _key(context: Context, tokens: Sequence[Token]) -> tuple[str, str]:
    start = head.read(tokens)
    return start.target[0] or context.catalog.schema, start.name[-1]


def _stored(
    context: Context,
    catalog: Catalog,
    key: tuple[str, str],
    parts: _Parts,
    sources: Sources,
    rows: pa.Table | None,
) -> Table:
    """The new table with its rows."""
    columns = new_tables.described(context, *key)
    protection = _protected(context, parts, columns, sources)
    table = new_tables.stored(context, catalog, key, columns, protection)
    sql = objects.introspected(context, "TABLE", *key)
    objects.remember(context, catalog, HomeObject("TABLE", *key, sql))
    if rows is not None:
        flow = _flow(table.columns, sources)
        shown = permit.Judge(sources.catalog, table).judge(flow)
        facts = with_condition(shown, secrets.token_hex(8))
        federation.record(context, facts, f"making {table.label}")
        data = rows.rename_columns([column.name for column in table.columns])
        data = fill.conformed(context, table, data)
        data = send_order.unordered(context.local, table, parts.query.plain, data)
        row_writer.append(context, table, data)
    return table


def _require_flow(
    context: Context, parts: _Parts, columns: tables.Described, sources: Sources
) -> None:
    """Refuse clauses that are laxer than what their columns depend on, before anything is sent."""
    protection = _protected(context, parts, columns, sources)
    targets = []
    for position, (name, type_) in enumerate(columns, 1):
        own = protection[fold(name)]
        targets.append(Column(name, type_, -position, own.encrypted, own.scheme, own.ceiling))
    target = Table(own_schemas().home, parts.label, 0, targets)
    permit.Judge(sources.catalog, target).judge(_flow(targets, sources))


def _flow(columns: Sequence[Column], sources: Sources) -> Flow:
    relation = sources.relation
    values = {fold(column.name): relation.at(i).secrets for i, column in enumerate(columns)}
    return Flow(values, relation.rows)


def _protected(
    context: Context, parts: _Parts, columns: tables.Described, sources: Sources
) -> dict[str, Protection]:
    """How every column is kept, by folded name."""
    results = {}
    for position, (name, type_) in enumerate(columns):
        read = sources.of(position)
        declared, rule = parts.declared.get(fold(name)), context.policy.rule(parts.label, name)
        wanted = context.protection(parts.label, name, type_, declared)
        inherited = None
        if read:
            inherited = _inherited(context, sources, read, type_)
            said = declared is not None and bool(declared.ceiling or declared.scheme)
            given = declared is not None or (rule is not None and wanted.encrypted)
            if not said and not (given and allows(inherited.ceiling, wanted.ceiling)):
                wanted = inherited
        if rule is not None or wanted is not inherited:
            wanted = context.policy.detailed(wanted, parts.label, name)
        results[fold(name)] = wanted
    return results


def _inherited(context: Context, sources: Sources, read: Secrets, type_: str) -> Protection:
    """The strictest protection of some encrypted columns; that of a single one in full."""
    ceiling = permit.lowest(sources.catalog, read)
    columns = [
        column
        for table in sources.catalog.tables.values()
        for column in table.columns
        if (table.id, column.id) in read
    ]
    words = {column.scheme for column in columns}
    word = words.pop() if len(words) == 1 and len(columns) == len(read) else ""
    row = scheme.using(word)
    served = row is None or context.backend.serves(row)
    protection = context.policy.inherited(word if served else "", ceiling, type_)
    if len(columns) == 1 and protection.scheme == columns[0].scheme:
        own = scheme.details(columns[0], sources.catalog.tables.values())
        protection = replace(protection, words=scheme.explicit({**protection.words, **own}))
    return protection
