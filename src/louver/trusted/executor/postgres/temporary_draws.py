"""Which statements draw numbers in the workspace, where temporary sequences move."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver.names import keyword
from louver.trusted.executor import temporary_numbers
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import temporary_tables
from louver.trusted.executor.postgres import lock_clause
from louver.trusted.planner.write import sequence_draws

_QUERIES = ("SELECT", "VALUES", "TABLE", "(")


def require(context: Context, tokens: Sequence[Token]) -> None:
    """Refuse what would draw from a temporary sequence elsewhere."""
    if not sequence_draws.draws(context.catalog, tokens):
        return
    word = keyword(tokens[0].text)
    if word == "CREATE" and keyword(tokens[1].text) in ("TEMP", "TEMPORARY", "LOCAL", "GLOBAL"):
        return
    locks = lock_clause.locks(tokens) or bool(lock_clause.within(tokens))
    if (word in _QUERIES and not locks) or temporary_tables.is_target(context, tokens):
        return
    temporary_numbers.require_none(context, tokens)
