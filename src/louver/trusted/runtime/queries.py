"""SELECT: plan, record the leakage, ask the server, open, finish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.trusted.planner import check, lexer
from louver.trusted.planner.plan import Plan, Remote
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.remote import Printer, Template
from louver.trusted.planner.text import remote_text, slots_of
from louver.trusted.runtime import kept
from louver.trusted.runtime.answer import Answer, Clock
from louver.trusted.runtime.ledger import Fact
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

_SCHEMA_WORDS = ("information_schema", "pg_catalog", "sqlite_master", "duckdb_")
_MARKER = re.compile(r"⟪(p?)(\d+)⟫")


@dataclass(slots=True)
class Bound:
    """A plan with this statement's numbers in it: ready to be sent."""

    plan: Plan
    literals: Sequence[str]
    statements: list[Statement]
    home_sql: str
    home_parameters: list[object] | dict[str, object]


def select(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run one query."""
    clock = Clock()
    if any(word in text.plain.lower() for word in _SCHEMA_WORDS):
        return _on_schema(session, text, parameters)
    with clock.step("plan"):
        plan, shape = session.planner.plan(text, parameters, session.catalog, found)
    record(session, plan, found)
    with clock.step("bind"):
        keep(session, plan, clock)
        ready = bind(session, plan, shape, text, parameters)
    answers = {}
    for remote, statement in zip(plan.remotes, ready.statements, strict=True):
        with clock.step("server"):
            reply = session.engine.query(statement)
        with clock.step("open"):
            rows = session.columns.open(remote, reply, ready.literals, session.home.arrow_field)
            complete(remote, reply)
        types = [(output.name, output.type) for output in remote.outputs]
        answers[remote.home] = (types or [("louver_c0", "INTEGER")], rows)
    with clock.step("finish"):
        rows = session.home.finish(answers, ready.home_sql, ready.home_parameters)
    columns = list(zip(plan.names, plan.types, strict=True))
    if "pivot" in text.plain.lower():
        columns = session.home.describe_rows(rows)
    rows = rows.rename_columns([name for name, _ in columns])
    times = {**session.planner.times_ms, **clock.times_ms}
    sent = [statement.sql for statement in ready.statements]
    return Answer(rows, columns, -1, times, sent, ready.home_sql)


def select_or_modify(
    session: Session, text: lexer.Text, found: Sequence[Token], parameters: list[object]
) -> Answer:
    """WITH … may go on as a query or as a change."""
    from louver.trusted.runtime import modify

    depth = 0
    for token in found:
        depth += (token.text == "(") - (token.text == ")")
        word = token.text.upper()
        if depth == 0 and word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            run = modify.insert if word == "INSERT" else modify.change
            return run(session, text, found, parameters)
    return select(session, text, found, parameters)


def _on_schema(session: Session, text: lexer.Text, parameters: list[object]) -> Answer:
    rows = session.home.ask_schema(text.home, home_values(text, parameters))
    described = session.home.describe(text.home, home_values(text, parameters))
    return Answer(rows, described, home_sql=text.home)


def record(session: Session, plan: Plan, found: Sequence[Token]) -> list[Fact]:
    """Write what the plan reveals into the ledger; if that fails, nothing is sent."""
    facts = facts_of(plan)
    if not facts:
        return []
    return session.ledger.record(facts, f"{found[0].text.upper()} ({plan.kind})")


def facts_of(plan: Plan) -> list[Fact]:
    """The leaks of a plan as facts of the ledger."""
    return [Fact(k.table, tuple(k.columns), k.level, k.kind, k.text) for k in plan.leaks]


def keep(session: Session, plan: Plan, clock: Clock) -> None:
    """Have the server keep the powers of S that the plan needs, where that pays."""
    if session.in_transaction:
        return
    for remote in plan.remotes:
        kept.keep(session, remote, clock)


def bind(
    session: Session,
    plan: Plan,
    shape: lexer.Shape,
    text: lexer.Text,
    parameters: list[object],
) -> Bound:
    """Resolve keys, seal literals, print and check the texts."""
    literals = shape.literals
    statements = [bind_remote(session, remote, literals) for remote in plan.remotes]
    if not plan.home_sql:
        return Bound(plan, literals, statements, text.home, home_values(text, parameters))
    used: list[object] = []

    def put(found: re.Match[str]) -> str:
        if found[1]:
            used.append(parameters[int(found[2])])
            return f"${len(used)}"
        return literals[int(found[2])]

    return Bound(plan, literals, statements, _MARKER.sub(put, plan.home_sql), used)


def bind_remote(session: Session, remote: Remote, literals: Sequence[str]) -> Statement:
    """One remote query as a statement, checked."""
    usable = not session.in_transaction or all(s.table.kept_complete for s in remote.sources)
    template = remote.templates.get(usable)
    if template is None:
        template = remote.templates[usable] = _printed(session, remote, usable)
    constants = [session.columns.constant(item, literals) for item in template.constants]
    return Statement(template.text(literals), tuple(constants))


def _printed(session: Session, remote: Remote, usable: bool) -> Template:
    shares = any("sdb" in c.stored for s in remote.sources for c in s.table.columns)
    modulus = session.columns.modulus() if shares else b""
    printer = Printer(slots_of(remote, kept=usable), modulus, session.columns.powers)
    sql = check.check(remote_text(remote, printer), remote)
    return Template(sql, tuple(printer.constants))


def complete(remote: Remote, reply: pa.Table) -> None:
    """A table that was read whole must have as many rows as were stored, each once."""
    if not remote.whole_table or len(remote.sources) != 1 or remote.where or remote.limit:
        return
    table = remote.sources[0].table
    rows = reply.column(f"r{remote.sources[0].slot}")
    if reply.num_rows != table.row_count or len(rows.unique()) != reply.num_rows:
        raise errors.make(
            "row.missing", table=table.label, expected=table.row_count, found=reply.num_rows
        )
