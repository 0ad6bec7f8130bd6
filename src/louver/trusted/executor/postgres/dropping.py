"""DROP of kinds of objects that a database of Louver's never has: operators, triggers, rules, …

The private PostgreSQL runs the statement and undoes it, so that its errors are PostgreSQL's own.
With IF EXISTS it changes nothing where there is no such object, which its transaction tells: one
that has written nothing has no number. Objects of the whole server (roles, databases, …) are not
among them: those of the private one are others.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import define, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer

_ABSENT = frozenset(
    ("ACCESS", "AGGREGATE", "CAST", "COLLATION", "CONVERSION", "EVENT", "EXTENSION", "FOREIGN",
     "LANGUAGE", "MATERIALIZED", "OPERATOR", "POLICY", "PROCEDURE", "PUBLICATION", "ROUTINE",
     "RULE", "SERVER", "STATISTICS", "TEXT", "TRANSFORM", "TRIGGER")
)  # fmt: skip
_NUMBER = "SELECT pg_catalog.pg_current_xact_id_if_assigned()::text"


def drop(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """DROP; of what there cannot be as of what there is."""
    # What follows such a word may be one token to the lexer.
    kind = keyword(text.plain[tokens[0].end + 1 :].split(maxsplit=1)[0]) if tokens[1:] else ""
    if not kind:
        context.local.statements.require_syntax(text.home)
    if kind not in _ABSENT or text.parameters:
        return define.drop(context, text, tokens, parameters)
    context.local.statements.require_syntax(text.home)
    transaction.require_writable(context)
    with context.local.rehearsal() as connection:
        before = connection.fetchone(_NUMBER)
        connection.execute(text.home)
        changed = connection.fetchone(_NUMBER) != (None,) or before != (None,)
    if changed:
        raise errors.make("sql.unsupported", statement=f"DROP {kind}")
    return Answer()
