"""The flow rule applied: a verdict per shape of statement, its leaks in the ledger."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import keyword
from louver.trusted.executor import constraint_check, federation
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.state import Verdict
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write import information_flow, permit, sequence_draws
from louver.trusted.planner.write.reads import Reads
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact, with_condition

_CONSTANTS = frozenset("VALUES ( ) , [ ] { } : :: + - NULL TRUE FALSE DEFAULT".split())
MOST_SHAPES = 4096
"""Shapes whose verdicts are kept; the oldest go first."""


def require(
    context: Context,
    words: statement_parts.Words,
    table: Table,
    reading: Sequence[Token] | None = None,
) -> Verdict:
    """Refuse a change that lets its table depend on what it may not; note what it shows.

    ``reading`` are the tokens of what is read, where the rest only says what is written.
    """
    known = judged(context, words, table, reading)
    _record(context, table, again(known))
    return known


def require_again(context: Context, table: Table, verdict: Verdict) -> None:
    """The same where the verdict is known."""
    _record(context, table, again(verdict))


def verdict(context: Context, words: statement_parts.Words, table: Table) -> Verdict | None:
    """The verdict on a change, if it was judged since names last changed."""
    return context.state.flows.get((table.key, lexer.shape(words.plain, words.tokens).key))


def _record(context: Context, table: Table, leaks: list[Fact]) -> None:
    if leaks:
        federation.record(context, leaks, f"a change of {table.label}")


def facts(
    context: Context,
    words: statement_parts.Words,
    table: Table,
    reading: Sequence[Token] | None = None,
) -> list[Fact]:
    """What a change shows by what it depends on; raises if it may not."""
    return again(judged(context, words, table, reading))


def judged(
    context: Context,
    words: statement_parts.Words,
    table: Table,
    reading: Sequence[Token] | None = None,
) -> Verdict:
    """The verdict on a change; raises if it depends on what it may not."""
    shape = (table.key, lexer.shape(words.plain, words.tokens).key)
    known = context.state.flows.get(shape)
    if known is None:
        attached = federation.mentions(context, words.tokens)
        try:
            known = _judged(context, words, table, words.tokens if reading is None else reading)
        except errors.LeakageRefused:
            if not attached:
                _bind(context, words)
            raise
        if not attached:
            if len(context.state.flows) >= MOST_SHAPES:
                context.state.flows.pop(next(iter(context.state.flows)))
            context.state.flows[shape] = known
    return known


def again(verdict: Verdict) -> list[Fact]:
    """What a change shows that has a verdict. What a text means depends on variables, views and
    rows: each change is a condition.
    """
    return with_condition(verdict.leaks, secrets.token_hex(8)) if verdict.leaks else []


def require_insert(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> None:
    """The same of an INSERT without a way out for conflicts."""
    _record(context, table, of_insert(context, words, parts, table))


def of_insert(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> list[Fact]:
    """What such an INSERT shows. Constants depend on nothing, and a text may hold many of them."""
    if sequence_draws.draws(context.catalog, words.tokens[parts.returning : parts.end]):
        # What is returned are rows of the table, and may decide what a sequence gives next.
        return facts(context, words, table)
    source = words.tokens[parts.source : parts.source_end]
    if all(map(is_constant, source)) and _defaults_are_constant(context, table):
        return []
    reading = [*words.tokens[: parts.verb], *words.tokens[parts.source :]]
    return facts(context, words, table, reading)


def _bind(context: Context, words: statement_parts.Words) -> None:
    """A statement that DuckDB does not bind is wrong before it is refused; whether it binds may
    depend on rows, which the binder does not have.
    """
    sql, values = words.text(0, len(words.tokens))
    if context.local.is_pivot_by_rows(sql, words.tokens):
        return
    context.local.statements.bind(sql, values)


def is_constant(token: Token) -> bool:
    """Whether a word of a source is part of constants."""
    if token.token_type in (TokenType.STRING, TokenType.NUMBER):
        return True
    return keyword(token.text) in _CONSTANTS or statement_parts.parameter_of(token) is not None


def _defaults_are_constant(context: Context, table: Table) -> bool:
    """Whether what a column gets by itself depends on nothing."""
    shape = (table.key, "DEFAULT VALUES")
    if shape not in context.state.flows:
        tree = exp.Insert(this=exp.Table(), default=True)
        reads = Reads(context.catalog, tree, (), table, context.state.origins)
        target = information_flow.Target(table, constraint_check.rules(context, table).defaults)
        if any(information_flow.of_change(reads, target).values.values()):
            return False
        context.state.flows[shape] = Verdict(())
    return True


def _judged(
    context: Context, words: statement_parts.Words, table: Table, reading: Sequence[Token]
) -> Verdict:
    catalog = federation.catalog_of(context, words.tokens)
    if not context.state.origins.is_secret and not any(
        t.has_encrypted for t in catalog.tables.values()
    ):
        return Verdict(())
    whole, _ = words.text(0, len(words.tokens))
    reads = Reads(
        catalog, parse(words.plain), reading, table, context.state.origins,
        lambda: context.local.statements.depends_on_rows_alone(whole),
    )  # fmt: skip
    sequence_draws.require(reads, words.tokens)
    rules = constraint_check.rules(context, table)
    target = information_flow.Target(table, rules.defaults, rules.key_columns())
    judge, change = permit.Judge(catalog, table), information_flow.of_change(reads, target)
    return Verdict(tuple(judge.judge(change)), judge.shows_unchanged(change))
