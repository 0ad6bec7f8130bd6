"""SELECT: plan, record the leakage, ask the server, open, finish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.executor import (
    binding,
    cardinality,
    federation,
    materialized_terms,
    onion_adjustment,
    schema_queries,
)
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.define.sequences import keep_sequences
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.plan_leakage import facts_of, joinable_kinds
from louver.trusted.executor.table_scan import understood
from louver.trusted.planner.plan import Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import pivots
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write import sequence_draws
from louver.trusted.planner.write.reads import Reads
from louver.trusted.vault.facts import condition_of

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session


def select(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run one query."""
    with federation.over(session, found) as one:
        return _select(one, text, found, parameters)


def described(
    session: Session, text: lexer.Text, parameters: list[object]
) -> tuple[list[tuple[str, str]], dict[str, float]] | None:
    """Names and types of a query's columns and the milliseconds of planning, before it runs."""
    from louver.trusted.executor import dispatch

    found = lexer.tokens(text.plain)
    if dispatch.handler(found) is not select or pivots(found):
        return None
    if schema_queries.asks_schema(session, text, found):
        return None
    if not session.in_transaction:
        session.refresh(found)
    with federation.over(session, found) as one:
        plan, _ = one.planner.plan(text, parameters, one.catalog)
        return list(zip(plan.names, plan.types, strict=True)), dict(one.planner.times_ms)


def _select(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    clock = Clock()
    if schema_queries.asks_schema(session, text, found):
        return schema_queries.answer(session, text, found, parameters)
    with clock.step("plan"):
        plan, shape = session.planner.plan(text, parameters, session.catalog, found)
    secret = plan.reads_secret or session.local.is_secret
    if secret and sequence_draws.draws(session.catalog, found):
        sequence_draws.require(
            Reads(session.catalog, parse(text.plain), found, None, session.local), found
        )
    notices = cardinality.warned(record(session, plan, shape, found), session.catalog)
    with clock.step("open layers"), understood():
        notices += onion_adjustment.require(session, plan.opens)
    keep(session, plan, clock)
    with clock.step("bind"):
        ready = binding.bind(session, plan, shape, text, parameters)
    answers: dict[tuple[str, str], tuple[list[tuple[str, str]], pa.Table]] = {}
    narrow = session.storage.narrowing(ready.literals)
    for remote, statement in zip(plan.remotes, ready.statements, strict=True):
        with clock.step("bind"):
            narrowed = narrow(remote, statement, answers)
        rows = session.storage.answer(remote, narrowed, ready.literals, clock)
        types = [(o.name, o.type) for o in remote.outputs if o.kind != "raw"]
        answers[remote.home] = (types or [("louver_c0", "INTEGER")], rows)
    with clock.step("finish"):
        rows = session.home.finish(answers, ready.home_sql, ready.home_parameters, plan.types)
    keep_sequences(session, found)
    columns = list(zip(plan.names, plan.types, strict=True))
    if pivots(found):
        columns = session.home.told
    rows = rows.rename_columns([name for name, _ in columns])
    times = {**session.planner.times_ms, **clock.times_ms}
    sent = [statement.sql for statement in ready.statements]
    return Answer(rows, columns, -1, times, sent, ready.home_sql, notices)


def select_or_modify(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """WITH … may go on as a query or as a change."""
    from louver.trusted.executor import change as modify

    word = changes(found)
    if word:
        run = modify.insert if word == "INSERT" else modify.change
        return run(session, text, found, parameters)
    return select(session, text, found, parameters)


def changes(found: Sequence[Token]) -> str:
    """The verb of a change behind WITH; "" for a query."""
    depth = 0
    for token in found:
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        depth += (token.text == "(") - (token.text == ")")
        word = keyword(token.text)
        if depth == 0 and word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return word
    return ""


def stated(session: Session, plan: Plan, shape: lexer.Shape) -> list[Fact]:
    """What a plan shows with the numbers of its statement."""
    known = session.ledger.facts(joinable_kinds()) if plan.opens else ()
    condition = ""
    if any(leak.counted for leak in plan.leaks):
        tables = {s.table.id: s.table for r in plan.remotes for s in (*r.sources, *r.inner)}
        parts = (shape.key, *shape.literals)
        condition = condition_of(parts, tables.values(), session.storage.stamp)
    return facts_of(plan, session.catalog, known, condition)


def record(session: Session, plan: Plan, shape: lexer.Shape, found: Sequence[Token]) -> list[Fact]:
    """Write what the plan reveals into the ledger; if that fails, nothing is sent."""
    facts = stated(session, plan, shape)
    if not facts:
        return []
    return session.ledger.record(facts, f"{keyword(found[0].text)} ({plan.kind})")


def keep(session: Session, plan: Plan, clock: Clock) -> None:
    """Have the server keep the powers of S that the plan needs, where that pays."""
    if session.in_transaction or session.engine.in_transaction:
        return
    for remote in plan.remotes:
        materialized_terms.keep(session, remote, clock)
