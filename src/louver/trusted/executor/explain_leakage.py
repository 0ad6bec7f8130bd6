"""EXPLAIN (LEAKAGE): facts, layers and sentences; of a change, what it would show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import cardinality, federation, select
from louver.trusted.executor.change import stated as stating
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import create_as
from louver.trusted.executor.explain_change import statement
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.reported_leakage import so_far
from louver.trusted.executor.schema import head
from louver.trusted.executor.stated import Stated
from louver.trusted.planner import explain as explaining
from louver.trusted.planner.ir import Opening
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.scheme import scheme_of


def change(
    context: Context,
    text: lexer.Text,
    words: Sequence[Token],
    parameters: list[object],
    *,
    leakage: bool,
    form: str,
) -> str:
    """How a change would run, and what it would show."""
    explanation = (
        "" if keyword(words[0].text) == "COPY" and leakage
        else statement(context, text, words, parameters, form)
    )  # fmt: skip
    if not leakage:
        return explanation
    if form == "mermaid":
        raise errors.make("sql.unsupported", statement="EXPLAIN (LEAKAGE, FORMAT mermaid) a change")
    with federation.over(context, words) as other:
        result = _stated(other, text, words, parameters)
    facts = list(dict.fromkeys(result.facts))
    new = context.ledger.new(facts)
    paid = [fact for fact in facts if fact not in set(new)]
    layers = layers_of(context, result.opens)
    warnings = cardinality.warned(new, context.catalog)
    if form == "json":
        body = json.loads(explanation or "{}") | {
            "reveals": {
                "new": [fact_json(fact) for fact in new],
                "known": [fact_json(fact) for fact in paid],
            },
            "layers": layers,
            "warnings": warnings,
        }
        return json.dumps(body, indent=2)
    listed = [f"{other['column']}: {other['layer']} layer (now {other['now']})" for other in layers]
    lines = explaining.leakage(sentences(context, new), sentences(context, paid), warnings)
    opened = [f"opens    {layer}" for layer in listed]
    return "\n".join([*([explanation] if explanation else []), *opened, *lines])


def layers_of(context: Context, opens: Sequence[Opening]) -> list[dict[str, str]]:
    """The layers that running a plan would open: a query after it finds them open."""
    results = []
    for opening in opens:
        table, column = context.catalog.column(opening.table, opening.column)
        row = scheme_of(opening.onion)
        now = row.rank(column.layers.get(opening.onion, ""))
        if now >= row.rank(opening.state):
            continue
        shown = row.layers[now].called
        results.append(
            {
                "column": f"{table.label}.{column.name}",
                "layer": row.layer(opening.state).called,
                "now": f"open for {shown}" if now else shown,
            }
        )
    return results


def sentences(context: Context, facts: list[Fact]) -> list[str]:
    """Two kinds of facts may say the same to people; once is enough."""
    sentences = [(f"{fact.text} [{fact.level}]", context.ledger.conditions(fact)) for fact in facts]
    return list(dict.fromkeys(text + so_far(count) for text, count in sentences))


def fact_json(fact: Fact) -> dict[str, Any]:
    """A fact as plain data."""
    return {
        "table": fact.table,
        "columns": list(fact.columns),
        "level": fact.level,
        "kind": fact.kind,
        "reveals": fact.text,
    }


def _stated(
    context: Context, text: lexer.Text, words: Sequence[Token], parameters: list[object]
) -> Stated:
    first = keyword(words[0].text)
    if first in stating.VERBS or (first == "WITH" and select.changes(words)):
        return stating.stated(context, text, words, parameters)
    start = head.read(words) if first == "CREATE" else None
    table = start is not None and start.kind == "TABLE" and not start.temporary
    if start is not None and table and create_as.query_of(words, start.end):
        return create_as.stated(context, text, words, parameters)
    raise errors.make("sql.unsupported", statement=f"EXPLAIN (LEAKAGE) {first}")
