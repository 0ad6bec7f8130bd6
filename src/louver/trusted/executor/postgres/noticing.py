"""What PostgreSQL remarks on definitions: what is there already, or is not, or goes along.

It is the private PostgreSQL's own, in a dry run over the declared schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor.answer import Notice
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.planner.sql import lexer

#: Definitions that the dry run can read whole; of a table only its name, since columns may be ENC.
_WHOLE = frozenset((
    "DROP", "SCHEMA", "SEQUENCE", "INDEX", "EXTENSION", "MATERIALIZED", "STATISTICS", "ALTER",
))  # fmt: skip


@dataclass(slots=True)
class Remarks:
    """Those of the definition that runs."""

    notices: list[Notice] = field(default_factory=list)


def note(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Before a definition runs: what will be remarked on it."""
    context.state.cache(Remarks).notices = []
    words = [keyword(token.text) for token in tokens]
    conditional = "EXISTS" in words[:8]
    if context.state.aborted or not (conditional or words[-1] == "CASCADE"):
        return
    sql = _rehearsed(text, tokens, words)
    if not sql:
        return
    with suppress(errors.Error), context.local.rehearsal() as connection:
        if isinstance(connection, PostgresConnection):
            remarks = connection.noticed(sql)
            context.state.cache(Remarks).notices = [
                Notice.of(
                    str(said["code"]), str(said["message"]), str(said["severity"]),
                    str(said["detail"]), str(said["hint"]),
                )
                for said in remarks
            ]  # fmt: skip


def _rehearsed(text: lexer.Text, tokens: Sequence[Token], words: Sequence[str]) -> str:
    """The text that makes the private PostgreSQL remark the same; "" of none."""
    if words[0] in ("DROP", "ALTER"):
        return text.home
    if "TABLE" not in words[:4]:
        return text.home if _WHOLE.intersection(words[:4]) else ""
    at = words.index("EXISTS") + 1
    end = at + 2 if words[at + 1 : at + 2] == ["."] else at
    # No placeholder precedes the name, so both texts are alike up to there.
    return f"{text.home[: tokens[end].end + 1]} ()" if end < len(tokens) else ""
