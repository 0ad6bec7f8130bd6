"""What a change would show a server, for EXPLAIN (LEAKAGE): nothing is read, written or opened.

It is said for the case that the change finds rows to change and that they are new. A change that
the flow rule refuses is refused here too.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import constraint_check, row_writer, server_scans
from louver.trusted.executor.change import changing, flow, statement_parts
from louver.trusted.executor.change.inserting import reads_elsewhere
from louver.trusted.executor.context import Context
from louver.trusted.executor.stated import Stated
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact, fact

VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY")


def stated(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Stated:
    """What a change would show."""
    words = statement_parts.words_of(text, tokens, parameters)
    result = Stated()
    if keyword(tokens[0].text) == "COPY":
        _copy(context, words, result)
        return result
    if keyword(tokens[0].text) == "TRUNCATE":
        position = 2 if words.keyword(1) == "TABLE" else 1
        schema, name, _ = statement_parts.qualified(words, position)
        result.add_scan(context, _required(context.catalog.named(schema, name), name))
        return result
    statement_parts.require_named(context.catalog, words)
    verb = statement_parts.verb_place(words)
    table = _required(statement_parts.target(words, verb, context.catalog), "of this database")
    if words.keyword(verb) == "INSERT":
        parts = statement_parts.parse_insert(words)
        lookup = _looked_up(context, words, parts, table)
        if lookup is not None:
            result.facts += flow.facts(context, words, table)
            result.facts += lookup
            _inserted(context, words, parts, table, result)
            _touched(table, result)
            return result
        if not parts.alternative and not reads_elsewhere(context, words, parts):
            result.facts += flow.of_insert(context, words, parts, table)
            _inserted(context, words, parts, table, result)
            return result
    _change(context, words, verb, table, result)
    return result


def _looked_up(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> list[Fact] | None:
    """What an INSERT shows that looks conflicts up by tags; None of any other."""
    if not parts.alternative:
        return None
    from louver.trusted.executor import key_rows
    from louver.trusted.executor.change import upserting

    lookup = upserting.planned(context, words, parts, table)
    return None if lookup is None else key_rows.facts(context, table)


def _inserted(
    context: Context,
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    result: Stated,
) -> None:
    """What the source of an INSERT shows, and its rows."""
    names = words.names(parts.source, parts.source_end) | words.names(0, parts.verb)
    if statement_parts.tables_named(context.catalog, names):
        before, first = words.text(0, parts.verb)
        own, second = words.text(parts.source, parts.source_end, len(first))
        (query,) = lexer.split(f"{before} {own}")
        result.add_query(context, query, [*first, *second])
    _appended(context, table, result)


def _change(
    context: Context, words: statement_parts.Words, verb: int, table: Table, result: Stated
) -> None:
    result.facts += flow.facts(context, words, table)
    plan = changing.planned(context, words, verb, table)
    if plan.rows is not None:
        result.add_plan(context, plan.rows, words.shape())
    else:
        for other in map(context.catalog.by_id, plan.rehearsed):
            result.add_scan(context, other)
    _touched(table, result)
    if words.keyword(verb) != "DELETE":
        result.facts += row_writer.at_rest(table, context.backend)
    for child in changing.acted_on(context, table):
        _touched(child, result)
        result.facts += row_writer.at_rest(child, context.backend)
    if plan.rows is not None and words.keyword(verb) != "DELETE":
        _referring(context, table, result)
    if plan.rows is not None and words.keyword(verb) != "INSERT":
        _referred(context, table, result)


def _touched(table: Table, result: Stated) -> None:
    columns = [column for column in table.columns if column.encrypted]
    if columns:
        result.facts.append(fact("rows.write", table, columns))


def _copy(context: Context, words: statement_parts.Words, result: Stated) -> None:
    """COPY … FROM writes like INSERT; COPY … TO reads like a query."""
    position = 1
    if words.keyword(1) == "(":
        raise errors.make("sql.unsupported", statement="EXPLAIN (LEAKAGE) COPY … TO")
    schema, name, end = statement_parts.qualified(words, position)
    position = next((i for i in range(end, len(words.tokens)) if words.keyword(i) == "FROM"), -1)
    if position < 0:
        raise errors.make("sql.unsupported", statement="EXPLAIN (LEAKAGE) COPY … TO")
    _appended(context, _required(context.catalog.named(schema, name), name), result)


def _appended(context: Context, table: Table, result: Stated) -> None:
    """New rows, and the keys that they are compared with."""
    rules = constraint_check.rules(context, table)
    names = [name for key in constraint_check.untagged(table, rules) for name in key.columns]
    if names:
        result.facts += server_scans.scan_facts(context.backend, table, names)
    _referring(context, table, result)
    result.facts += row_writer.at_rest(table, context.backend)


def _referring(context: Context, table: Table, result: Stated) -> None:
    """The parents of new rows."""
    if constraint_check.rules(context, table).foreign:
        from louver.trusted.executor import references

        result.facts += references.facts_of_rows(context, table)
        for parent, columns in references.parents_of(context, table):
            result.facts += server_scans.scan_facts(context.backend, parent, columns)


def _referred(context: Context, table: Table, result: Stated) -> None:
    """The rows that refer to those that go."""
    if constraint_check.rules(context, table).children:
        from louver.trusted.executor import references

        for child, columns, sql in references.searches(context, table):
            result.facts += server_scans.scan_facts(context.backend, child, columns)
            if sql:
                (query,) = lexer.split(sql)
                result.add_query(context, query, [None] * len(columns))


def _required(table: Table | None, name: str) -> Table:
    if table is None:
        raise errors.make("table.missing", table=name)
    return table
