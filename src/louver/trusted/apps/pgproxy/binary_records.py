"""Records without a type in their binary form: rows of a query's have them as texts, which cannot
be read back, so that the query is run with what makes that form of them (`numbered`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver.names import keyword
from louver.trusted.apps.pgproxy.described import Prepared
from louver.trusted.executor.postgres import lock_clause

_RECORD = 2249


def asked_for(prepared: Prepared, formats: Sequence[int]) -> str | None:
    """The text of a query that makes the binary form of its records, where a client wants that;
    else None. The order of rows is the query's, so that it must have none.
    """
    columns, tokens = prepared.columns, prepared.tokens
    if not columns or not any(formats):
        return None
    forms = list(formats) * len(columns) if len(formats) == 1 else formats
    wanted = [
        column[3] == _RECORD and form == 1 for column, form in zip(columns, forms, strict=False)
    ]
    if not any(wanted) or keyword(tokens[0].text) not in ("SELECT", "VALUES"):
        return None
    if _is_ordered(tokens) or lock_clause.locks(tokens):
        return None
    names = [f"louver_{at}" for at in range(len(columns))]
    shown = ", ".join(
        f"pg_catalog.record_send({name}) AS {name}" if is_wanted else name
        for name, is_wanted in zip(names, wanted, strict=True)
    )
    return f"SELECT {shown} FROM (\n{prepared.sql}\n) AS louver_records ({', '.join(names)})"


def _is_ordered(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and keyword(token.text).startswith("ORDER"):
            return True
    return False
