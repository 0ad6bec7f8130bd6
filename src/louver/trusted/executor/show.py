"""Statements that look or switch: EXPLAIN, SHOW, DESCRIBE, PRAGMA, SET, RESET."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import (
    binding,
    cardinality,
    explain_leakage,
    federation,
    prepared,
    reported_leakage,
    seen_state,
    select,
    settings,
    variables,
)
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import printed
from louver.trusted.executor.explain_change import analyzed
from louver.trusted.executor.front import Common, Configurable
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.schema import head
from louver.trusted.executor.schema_queries import asks_schema
from louver.trusted.planner import explain as explaining
from louver.trusted.planner.advisor import estimate
from louver.trusted.planner.ir import Plan, RemoteQuery
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Table

FORMATS = ("text", "json", "mermaid")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT", "SUMMARIZE")
_COMMENTS = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*"
_EXPLAIN = re.compile(
    rf"{_COMMENTS}EXPLAIN\b{_COMMENTS}(?P<analyze>ANALYZE\b)?{_COMMENTS}"
    r"(?:\((?P<options>\s*(?:LEAKAGE|FORMAT|ANALYZE)\b[^()]*)\))?",
    re.IGNORECASE | re.DOTALL,
)
#: What SHOW takes beside names of tables and settings.
_SHOWN = ("TABLES", "DATABASES", "LEAKAGE", "PROTECTION")
_LEAKAGE = re.compile(
    rf"{_COMMENTS}SHOW\s+LEAKAGE(?:\s+FOR\s+(?P<table>.+?))?{_COMMENTS}$", re.IGNORECASE | re.DOTALL
)
_PRAGMAS = (
    "table_info", "show", "show_tables", "show_tables_expanded", "show_databases",
    "database_list", "version", "platform", "functions", "collations",
)  # fmt: skip


def explain(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """EXPLAIN [ANALYZE] [(LEAKAGE [, FORMAT text|json|mermaid])] statement."""
    wanted = explaining_of(text)
    inner, words = wanted.text, lexer.tokens(wanted.text.plain)
    if lexer.words(words, 1) == ["EXECUTE"]:
        inner, parameters = prepared.resolved(context, inner, words)
    explanation = explained(context, inner, parameters, leakage=wanted.leakage, form=wanted.form)
    return told_by(wanted, explanation, context.storage, lambda: context.run(inner, parameters))


@dataclass(frozen=True, slots=True)
class Explaining:
    """What EXPLAIN is to say, of which statement."""

    text: lexer.Text
    analyze: bool
    leakage: bool
    form: str


def explaining_of(text: lexer.Text) -> Explaining:
    """The statement within an EXPLAIN, and the options."""
    match = _EXPLAIN.match(text.plain)
    if match is None:
        raise errors.make("sql.syntax", detail="EXPLAIN without a statement")
    # No placeholder precedes the statement, so both texts begin alike.
    inner = lexer.Text(
        text.home[match.end() :].strip(), text.plain[match.end() :].strip(), text.parameters
    )
    return Explaining(inner, *_options(match))


def told_by(
    wanted: Explaining, text: str, storage: Configurable, run: Callable[[], Answer]
) -> Answer:
    """The answer of EXPLAIN; with ANALYZE the statement runs."""
    if wanted.analyze:
        storage.measure(True)
        try:
            answer = run()
        finally:
            measured = storage.measure(False)
        text = analyzed(text, measured, answer, wanted.form)
    key = "leakage" if wanted.leakage else "analyzed_plan" if wanted.analyze else "louver_plan"
    rows = pa.table({"explain_key": [key], "explain_value": [text]})
    return Answer(rows, [("explain_key", "VARCHAR"), ("explain_value", "VARCHAR")])


def describes(words: Sequence[Token]) -> bool:
    """Whether a statement is a DESCRIBE, which the declared schema answers."""
    return lexer.words(words, 1) in (["DESCRIBE"], ["DESC"])


def is_query(words: Sequence[Token]) -> bool:
    """Whether a statement reads and changes nothing, so that a plan can say what it shows."""
    first = "".join(lexer.words(words, 1))
    return first in _QUERIES and not (first == "WITH" and select.changes(words))


def _options(match: re.Match[str]) -> tuple[bool, bool, str]:
    analyze, leakage, form = bool(match["analyze"]), False, "text"
    for option in (match["options"] or "").split(","):
        words = option.split()
        name = keyword(words[0]) if words else ""
        if name == "LEAKAGE" and len(words) == 1:
            leakage = True
        elif name == "ANALYZE" and len(words) == 1:
            analyze = True
        elif name == "FORMAT" and len(words) == 2:
            form = fold(words[1].strip("'\""))
        elif words:
            raise errors.make("sql.syntax", detail=f"EXPLAIN has no option {option.strip()}")
    if form not in FORMATS:
        raise errors.make("setting.value", name="FORMAT", value=form, known=", ".join(FORMATS))
    if analyze and form == "mermaid":
        raise errors.make("sql.unsupported", statement=f"EXPLAIN ANALYZE with FORMAT {form}")
    return analyze, leakage, form


def bound(
    context: Context, text: lexer.Text, parameters: list[object]
) -> tuple[binding.Bound, list[str], lexer.Shape]:
    """The plan, the texts that would be sent, and the statement's shape. Nothing is sent and
    nothing recorded.
    """
    plan, shape = context.plan(text, parameters)
    ready = binding.bind(context, plan, shape, text, parameters)
    resolver = Resolver(context.catalog, parse(text.plain))
    filled = estimate.fill(plan, resolver, context.planner.servers(), shape, parameters)
    ready.plan, rows = filled, [remote.rows for remote in filled.remotes]
    return ready, ready.sent(context.storage, plan, rows), shape


def would_send(context: Context, text: lexer.Text, parameters: list[object]) -> list[str]:
    """What each server would be sent for a query."""
    if _is_local(context, text):
        return []
    with federation.over(context, lexer.tokens(text.plain)) as other:
        _, sent, _ = bound(other, text, parameters)
    return sent


def _is_local(context: Context, text: lexer.Text) -> bool:
    """Whether the declared schema alone answers a query."""
    words = lexer.tokens(text.plain)
    return describes(words) or asks_schema(context, text, words)


def explained(
    context: Context,
    text: lexer.Text,
    parameters: list[object],
    *,
    leakage: bool = False,
    form: str = "text",
) -> str:
    """What would happen on a statement, and with ``leakage`` what a query would newly show."""
    if form not in FORMATS:
        raise errors.make("setting.value", name="FORMAT", value=form, known=", ".join(FORMATS))
    words = lexer.tokens(text.plain)
    if not context.in_transaction:
        seen_state.refresh(context, words)
    if not is_query(words) and not describes(words):
        first = "".join(lexer.words(words, 1))
        if first in ("", "EXPLAIN"):
            raise errors.make("sql.unsupported", statement=f"EXPLAIN {first}".rstrip())
        return explain_leakage.change(context, text, words, parameters, leakage=leakage, form=form)
    with federation.over(context, lexer.tokens(text.plain)) as other:
        return _explained(other, text, parameters, leakage=leakage, form=form)


def _explained(
    context: Context, text: lexer.Text, parameters: list[object], *, leakage: bool, form: str
) -> str:
    if _is_local(context, text):
        ready, stated = binding.Bound(Plan("home", ()), [], [], text.home, []), list[Fact]()
        sent = list[str]()
    else:
        ready, sent, shape = bound(context, text, parameters)
        stated = context.stated(ready.plan, shape)
    facts = list(dict.fromkeys(stated))
    facts += [fact for request in ready.statements for fact in context.storage.shows(request)]
    new = context.ledger.new(facts)
    paid = [fact for fact in facts if fact not in set(new)]
    layers = explain_leakage.layers_of(context, ready.plan.opens)
    listed = [f"{other['column']}: {other['layer']} layer (now {other['now']})" for other in layers]
    warnings = cardinality.warned(new, context.catalog) if leakage else []
    if form == "mermaid":
        return explaining.mermaid(sent, ready.home_sql, listed)
    if form == "json":
        body = {**_as_json(ready, sent, new, paid, leakage), "layers": layers}
        return json.dumps({**body, "warnings": warnings} if leakage else body, indent=2)
    return explaining.explain(
        ready.plan,
        sent,
        ready.home_sql,
        explain_leakage.sentences(context, new) if leakage else None,
        explain_leakage.sentences(context, paid),
        listed,
        warnings,
    )


def _as_json(
    ready: binding.Bound, sent: list[str], new: list[Fact], paid: list[Fact], leakage: bool
) -> dict[str, Any]:
    servers = [
        {
            "sql": sql,
            "constants_bytes": [
                len(c) if isinstance(c, bytes | str) else 8 for c in statement.constants
            ],
            "fills": ".".join(part for part in remote.home if part),
            **_expected(remote),
        }
        for sql, statement, remote in zip(sent, ready.statements, ready.plan.remotes, strict=True)
    ]
    opened = [
        {"column": output.name, "as": output.kind, "type": output.type}
        for remote in ready.plan.remotes
        for output in remote.outputs
        if output.kind != "absent"
    ]
    body: dict[str, Any] = {
        "split": ready.plan.kind,
        "servers": servers,
        "opens": opened,
        "home": ready.home_sql,
        "columns": [
            {"name": name, "type": type_}
            for name, type_ in zip(ready.plan.names, ready.plan.types, strict=True)
        ],
    }
    if leakage:
        body["reveals"] = {
            "new": [explain_leakage.fact_json(fact) for fact in new],
            "known": [explain_leakage.fact_json(fact) for fact in paid],
        }
    return body


def _expected(remote: RemoteQuery) -> dict[str, int]:
    if not remote.width:
        return {}
    rows = round(remote.rows)
    return {"expected_rows": rows, "expected_bytes": rows * remote.width}


def show(
    context: Common, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """SHOW LEAKAGE [FOR t], and DuckDB's own SHOW."""
    match = _LEAKAGE.match(text.plain)
    if match is None:
        words = lexer.words(tokens, 4)
        if words[1:3] == ["CREATE", "TABLE"] and isinstance(context, Context):
            return _created(context, tokens)
        if words[1:] == ["ALL", "TABLES"] and isinstance(context, Context):
            from louver.trusted.executor import described

            return described.with_types(context, _at_home(context, text, parameters))
        if words[1:3] in (["PROTECTION"], ["PROTECTION", "FOR"]) and isinstance(context, Context):
            from louver.trusted.executor import described

            wanted = _named(context, tokens, 3) if len(words) > 2 else None
            return described.protection(context, wanted)
        if len(words) == 2 and context.catalog.named("", tokens[1].text) is None:
            value = settings.value(context, tokens[1].text)
            if value is not None:
                return value
        try:
            return _at_home(context, text, parameters)
        except errors.Error as error:
            close = difflib.get_close_matches("".join(words[1:2]), _SHOWN, n=1, cutoff=0.7)
            if len(words) == 2 and close and error.code == "duckdb.catalog":
                fields = {"word": tokens[1].text, "close": close[0]}
                error.fix = errors.make("sql.misspelled", **fields).fix
            raise
    return reported_leakage.answer(context, match["table"])


def _created(context: Context, tokens: Sequence[Token]) -> Answer:
    """SHOW CREATE TABLE: statements that create a table again, as they need no policy."""
    table = _named(context, tokens, 3)
    statements = [printed.create_table(context, table), *printed.beside(context, table)]
    rows = pa.table({"table_name": [table.label], "sql": [";\n".join(statements)]})
    return Answer(rows, [("table_name", "VARCHAR"), ("sql", "VARCHAR")])


def _named(context: Common, tokens: Sequence[Token], at: int) -> Table:
    """The table whose name is the rest of a statement."""
    name, end = head.names(tokens, at)
    table = context.catalog.named(name[-2] if len(name) > 1 else "", name[-1]) if name else None
    if table is None or end != len(tokens):
        raise errors.make("table.missing", table=".".join(name))
    return table


def schema(
    context: Common, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """DESCRIBE t, DESCRIBE query, and the PRAGMAs that look at the schema."""
    words = lexer.words(tokens, 3)
    if words[0] != "PRAGMA":
        answer = _at_home(context, text, parameters)
        parts, end = head.names(tokens, 2 if words[1:2] == ["TABLE"] else 1)
        if not isinstance(context, Context) or end != len(tokens) or not parts:
            return answer
        table = context.catalog.named(parts[-2] if len(parts) > 1 else "", parts[-1])
        if table is None:
            return answer
        from louver.trusted.executor import described

        return described.with_clauses(context, table, answer)
    name = tokens[1].text if len(tokens) > 1 else ""
    if fold(name) in _PRAGMAS:
        return _at_home(context, text, parameters)
    if len(words) == 3 and words[2] == "=":
        return settings.change(context, lexer.Text(f"SET {text.home[6:]}", "", ()))
    if fold(name) in settings.NOTHING and len(tokens) == 2:
        return Answer()
    raise errors.make("sql.unsupported", statement=f"PRAGMA {name}")


def _at_home(context: Common, text: lexer.Text, parameters: list[object]) -> Answer:
    rows = context.local.ask_schema(text.home, home_values(text, parameters))
    return Answer(rows, context.local.last_columns, home_sql=text.home)


def setting(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """SET and RESET."""
    if variables.named(text, tokens):
        return variables.change(context, text, tokens, parameters)
    return settings.change(context, text)
