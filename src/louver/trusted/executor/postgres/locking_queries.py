"""Statements whose queries in brackets lock rows, as those of a queue of jobs do:
`UPDATE … WHERE id IN (SELECT id … FOR UPDATE SKIP LOCKED LIMIT 10)`.

Each such query runs first, by itself, and its rows stand in its place when the statement runs.
PostgreSQL may evaluate one again and again, and lock other rows each time; here it runs once. What
the statement may depend on is judged with the queries in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import select, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import flow, statement_parts
from louver.trusted.executor.change.statement_parts import Words
from louver.trusted.executor.context import Context
from louver.trusted.executor.parameters import bound
from louver.trusted.executor.postgres import lock_clause, row_locks
from louver.trusted.executor.postgres.lock_clause import Numbered, Query, Range
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_MOST_ROWS = 10_000
#: Types whose values are bound as they come.
_BOUND = frozenset((
    "smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "text",
    "character varying", "uuid", "date", "timestamp without time zone",
    "timestamp with time zone", "bytea",
))  # fmt: skip
#: Types whose values mean the same whatever they are compared with.
_LOOKED_UP = frozenset(("smallint", "integer", "bigint", "text", "uuid"))
#: Words that stand in any query.
_WORDS = frozenset(("with", "as", "(", ")", ",", "select", "from", "where", "materialized", "not"))
#: What stands before and behind a comparison that is a condition by itself.
_BEFORE = frozenset(("WHERE", "AND", "OR"))
_BEHIND = frozenset(("", "AND", "OR", "RETURNING"))
_OUTER = ("42P01", "42703")


def run(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run such a change; any other statement is refused."""
    transaction.require_writable(context)
    words = statement_parts.words_of(text, tokens, parameters)
    whole = Numbered(words, text.parameters)
    context.local.statements.bind(whole.text(), whole.values)
    queries = lock_clause.within(tokens)
    _require_form(words, queries)
    _judge(context, lock_clause.without(words, queries))

    def once() -> Answer:
        return _run(context, text, words, queries)

    return row_locks.within(context, once)


def _require_form(words: Words, queries: Sequence[Range]) -> None:
    """Of a change, in no other brackets and not in RETURNING: what stands in a query's place comes
    from ENC columns, and a query around it could compare it with plain ones on the server.
    """
    verb = statement_parts.verb_place(words) if _changes(words) else -1
    if verb < 0:
        refuse("A query that locks rows within another query")
    returning = words.find("RETURNING", verb)
    named = {fold(t.text) for t, after in pairwise(words.tokens[:verb]) if after.text != "."}
    for first, end in queries:
        depth = sum((t.text == "(") - (t.text == ")") for t in words.tokens[: first - 1])
        if depth or 0 < returning < first:
            refuse("A query that locks rows within another query")
        inner = {fold(token.text) for token in words.tokens[first:end]}
        own = {fold(token.text) for token in words.tokens[: min(verb, first)]} & inner & named
        if words.keyword(0) == "WITH" and (own - _WORDS or first > verb):
            refuse("A query that locks rows and may read one of WITH")


def _changes(words: Words) -> bool:
    return words.keyword(0) in statement_parts.VERBS or bool(select.changes(words.tokens))


def _judge(context: Context, words: Words) -> None:
    """What the target may depend on."""
    verb = statement_parts.verb_place(words)
    table = statement_parts.target(words, verb, context.catalog)
    if table is None:
        refuse("A change of anything but a table by a query that locks rows")
    if words.keyword(verb) == "INSERT":
        parts = statement_parts.parse_insert(words)
        if not parts.alternative:
            flow.require_insert(context, words, parts, table)
            return
    flow.require(context, words, table)


def _run(context: Context, text: lexer.Text, words: Words, queries: Sequence[Range]) -> Answer:
    starts, ends = [0, *(end for _, end in queries)], [*(first for first, _ in queries), None]
    outside = [token for a, b in zip(starts, ends, strict=True) for token in words.tokens[a:b]]
    rest = Numbered(words, text.parameters, outside)
    values, pieces = list(rest.values), list[str]()
    for start, (first, end) in zip(starts, queries, strict=False):
        query = lock_clause.cut(lock_clause.inner(words, first, end))
        rows = _locked(context, query, text.parameters)
        is_seen = _is_seen(context, words, query, first, end)
        listed = context.local.python_rows(rows.rows) if rows.rows is not None else []
        given = len(values)
        pieces.append(rest.text(start, first))
        pieces.append(_source(words, first, rows, listed, given, is_seen=is_seen))
        values += [value for row in listed for value in row]
    (fresh,) = lexer.split(" ".join([*pieces, rest.text(starts[-1])]))
    return context.run(fresh, bound(fresh, values))


def _is_seen(context: Context, words: Words, query: Query, first: int, end: int) -> bool:
    """Whether the server may look rows up by what a query gives: it is a plain column, or the
    column that it is compared with, of rows that the server sees locked. A code or tag of another
    ENC column's values would show it which of these are equal.
    """
    tree, tables = lock_clause.sources(query.readable())
    item = tree.selects[0].unalias() if len(tree.selects) == 1 else None
    if not isinstance(item, exp.Column) or not isinstance(item.this, exp.Identifier):
        return False
    name = item.name if item.this.quoted else fold(item.name)
    pairs = [
        (table, column)
        for alias, node in tables
        if not item.table or fold(item.table) == fold(alias)
        if alias in (query.clause.names or (alias,))
        if (table := context.catalog.named(node.db, node.name)) is not None
        for column in table.columns
        if column.name == name
    ]
    if len(pairs) != 1:
        return False
    ((table, column),) = pairs
    if not column.encrypted:
        return True
    alone = words.keyword(end + 1) in _BEHIND
    return alone and _is_column_of_target(context, words, first - 3, table, name)


def _is_column_of_target(
    context: Context, words: Words, position: int, table: Table, name: str
) -> bool:
    """Whether a column of the table that is changed, and nothing but it, is compared at a place."""
    verb = statement_parts.verb_place(words)
    if statement_parts.target(words, verb, context.catalog) != table:
        return False
    if words.keyword(verb) not in ("UPDATE", "DELETE") or words.tokens[position].text != name:
        return False
    start = position
    if words.tokens[position - 1].text == ".":
        _, target, end = statement_parts.qualified(words, statement_parts.target_place(words, verb))
        alias = words.tokens[end + (words.keyword(end) == "AS")].text
        start -= 2
        if words.tokens[start].text not in (target, alias):
            return False
    return words.keyword(start - 1) in _BEFORE


def _locked(context: Context, query: Query, keys: Sequence[int | str]) -> Answer:
    try:
        answer = row_locks.locked(context, query, keys)
    except errors.Error as error:
        if error.sqlstate in _OUTER:
            refuse("A query that locks rows and names columns of the statement around it")
        raise
    rows = pa.table({}) if answer.rows is None else answer.rows
    if rows.num_rows > _MOST_ROWS:
        refuse(f"A query within a statement that locks more than {_MOST_ROWS:,} rows")
    if not answer.columns or not _BOUND.issuperset(
        type_.partition("(")[0] for _, type_ in answer.columns
    ):
        refuse("A query within a statement that locks rows and gives values of other types")
    return answer


def _source(
    words: Words, first: int, answer: Answer, rows: Sequence[Sequence[object]], bound_before: int,
    *, is_seen: bool,
) -> str:  # fmt: skip
    """What stands between the brackets instead: values where that means the same and ``is_seen``,
    so that rows are looked up by them, else a query of them, which runs on this machine.
    """
    before, count = words.keyword(first - 2), len(answer.columns)
    within = before == "IN" and words.keyword(first - 3) != "NOT"
    alone = count == 1 and (within or words.tokens[first - 2].text == "=")
    alone = alone and is_seen and answer.columns[0][1] in _LOOKED_UP
    numbers = iter(range(bound_before + 1, bound_before + 1 + len(rows) * count))
    if alone and rows and (within or len(rows) == 1):
        return ", ".join(f"${next(numbers)}" for _ in rows)
    types = [type_ for _, type_ in answer.columns]
    names = ", ".join(quoted(name) for name, _ in answer.columns)
    listed = [", ".join(f"${next(numbers)}::{type_}" for type_ in types) for _ in rows]
    listed = listed or [", ".join(f"NULL::{type_}" for type_ in types)]
    brackets = ", ".join(f"({row})" for row in listed)
    condition = "" if rows else " WHERE false"
    return f"SELECT * FROM (VALUES {brackets}) AS louver_locked({names}){condition}"
