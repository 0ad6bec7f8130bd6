"""Sequences go on where they stood, after a reconnect too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.runtime.ddl import texts
from louver.trusted.runtime.home import quoted
from louver.trusted.vault.catalog import Catalog

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

_STATE = "SELECT schema_name, sequence_name, last_value, increment_by FROM duckdb_sequences()"
_CATCH_UP_STEPS = 1 << 20


def save_sequences(session: Session, catalog: Catalog) -> bool:
    """Write into the catalog how far every sequence has come; says whether anything changed.

    To be called within `session.writing` after a statement that may have used one. Defaults are
    drawn in the schema, SELECTs in the hall; the one that lags is brought up to the other.
    """
    items = [item for item in catalog.objects if item.kind == "SEQUENCE"]
    if not items:
        return False
    schema, hall = _state(session.home.schema), _state(session.home.hall)
    changed = False
    for item in items:
        place = (fold(item.schema), fold(item.name))
        here, there = schema.get(place), hall.get(place)
        if here is None or there is None or (here[0] is None and there[0] is None):
            continue
        step = here[1]
        ahead = max((v for v in (here[0], there[0]) if v is not None), key=lambda v: v * step)
        _catch_up(session.home.schema, item.schema, item.name, here[0], ahead, step)
        _catch_up(session.home.hall, item.schema, item.name, there[0], ahead, step)
        sql = texts.resumed_sequence(session.home.schema, item.schema, item.name)
        changed = changed or sql != item.sql
        item.sql = sql
    return changed


def keep_sequences(session: Session, found: Sequence[Token]) -> None:
    """Make durable what a query has drawn: nobody gets the same value again after a reconnect."""
    if not any(fold(token.text) == "nextval" for token in found):
        return
    if any(item.kind == "SEQUENCE" for item in session.catalog.objects):
        with session.writing() as catalog:
            save_sequences(session, catalog)


def _state(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], tuple[int | None, int]]:
    rows = connection.execute(_STATE).fetchall()
    return {(fold(schema), fold(name)): (last, step) for schema, name, last, step in rows}


def _catch_up(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    name: str,
    last: int | None,
    ahead: int,
    step: int,
) -> None:
    """Draw until the value that the other instance has come to."""
    if last == ahead:
        return
    place = f"{quoted(schema)}.{quoted(name)}"
    for _ in range(_CATCH_UP_STEPS):
        row = connection.execute("SELECT nextval(?)", [place]).fetchone()
        if row is None or row[0] * step >= ahead * step:
            return
