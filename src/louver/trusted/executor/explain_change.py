"""EXPLAIN of statements that are not queries."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.sql import declarations, lexer

_AT_HOME = "where    your machine; what it reads is read first, what it writes is sealed and sent"


def statement(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object], form: str
) -> str:
    """How the local engine would run a statement; nothing is run, and nothing is sent."""
    context.require_known(tokens)
    sql, values = text.home, home_values(text, parameters)
    if keyword(tokens[0].text) in ("CREATE", "ALTER"):
        # The clauses of CREATE TABLE AS precede every placeholder of its query.
        sql = declarations.strip_enc(text.home if values else text.plain, tokens).sql
    options = f"{context.local.dialect.explains}FORMAT {form}"
    rows = context.local.ask_schema(f"EXPLAIN ({options}) {sql}", values)
    if rows.num_columns > 2:
        raise errors.make("sql.unsupported", statement=f"EXPLAIN {keyword(tokens[0].text)}")
    # The last column is the explanation, of some engines line by line.
    lines = [row[-1] for row in context.local.python_rows(rows)]
    if form == "json":
        plan = json.loads(lines[0]) if isinstance(lines[0], str) else lines[0]
        return json.dumps({"split": "home", "servers": [], "home": plan}, indent=2)
    explanation = "\n".join(map(str, lines))
    return explanation if form == "mermaid" else f"{_AT_HOME}\n{explanation.rstrip()}"


def analyzed(text: str, measured: Sequence[str], answer: Answer, form: str) -> str:
    """What EXPLAIN says with what running the statement took."""
    rows = answer.rows.num_rows if answer.rows is not None else max(answer.affected, 0)
    if form == "json":
        times = {"times_ms": answer.times_ms, "rows": rows, "measured": list(measured)}
        return json.dumps({**json.loads(text), "analyzed": times}, indent=2)
    lines = [text, *measured, f"{'time':<9}{sum(answer.times_ms.values()):.1f} ms"]
    lines += [f"         {step:<10}{spent:9.2f} ms" for step, spent in answer.times_ms.items()]
    return "\n".join([*lines, f"rows     {rows}"])
