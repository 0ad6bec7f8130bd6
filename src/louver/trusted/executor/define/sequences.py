"""Sequences go on where they stood: after a reconnect, an error and a ROLLBACK too, as in DuckDB.

Defaults are drawn in the schema at home, SELECTs in the hall. Whichever of the two is not where the
catalog's text of the sequence puts it has drawn last, and the other is brought there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import duckdb
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.executor.define import object_texts
from louver.trusted.executor.define.object_texts import Place, State
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session


def save_sequences(session: Session, catalog: Catalog) -> bool:
    """Write into the catalog how far every sequence has come; says whether anything changed.

    To be called within `session.writing` after a statement that may have used one.
    """
    items = _items(catalog)
    if not items:
        return False
    ahead = states(session, catalog)
    _bring(session, ahead)
    for place, state in ahead.items():
        items[place].sql = object_texts.resumed_sequence(state)
    return bool(ahead)


def keep_sequences(session: Session, found: Sequence[Token]) -> None:
    """Make durable what a query has drawn: nobody gets the same value again after a reconnect."""
    if not _items(session.catalog) or not sequence_draws.draws(session.catalog, found):
        return
    if _are_temporary(states(session, session.catalog)):
        save_sequences(session, session.catalog)
        return
    with session.writing() as catalog:
        save_sequences(session, catalog)


def _are_temporary(drawn: Mapping[Place, State]) -> bool:
    """Whether nothing has to be stored of what was drawn."""
    return all(schema == TEMPORARY for schema, _ in drawn)


def keep_drawn(session: Session) -> None:
    """The same of what a statement has drawn that failed, or a transaction that was undone.

    Should this fail, they stay drawn in this session, and the next change stores them.
    """
    drawn = states(session, session.catalog)
    if not drawn:
        return
    if session.in_transaction or _are_temporary(drawn):
        save_sequences(session, session.catalog)
        return
    with suppress(errors.Error), session.writing() as catalog:
        save_sequences(session, catalog)


def states(session: Session, catalog: Catalog) -> dict[Place, State]:
    """How far those sequences have come that the catalog puts elsewhere."""
    items = _items(catalog)
    if not items:
        return {}
    here, there = (
        object_texts.sequences(session.home.schema),
        object_texts.sequences(session.home.hall),
    )
    found: dict[Place, State] = {}
    for place, item in items.items():
        drawn = [
            state
            for state in (here.get(place), there.get(place))
            if state and state["last_value"] is not None
            if object_texts.resumed_sequence(state) != item.sql
        ]
        if drawn:
            found[place] = drawn[0] if drawn[0]["cycle"] else max(drawn, key=_progress)
    return found


def restore(session: Session, drawn: Mapping[Place, State]) -> None:
    """Bring sequences of a home that was built anew to where they were before."""
    if drawn:
        now = object_texts.sequences(session.home.schema)
        same = {p: s for p, s in drawn.items() if p in now and _range(now[p]) == _range(s)}
        _bring(session, same)


def _items(catalog: Catalog) -> dict[Place, HomeObject]:
    objects = (item for item in catalog.objects if item.kind == "SEQUENCE")
    return {(fold(item.schema), fold(item.name)): item for item in objects}


def _bring(session: Session, ahead: Mapping[Place, State]) -> None:
    if not ahead:
        return
    for connection in (session.home.schema, session.home.hall):
        known = object_texts.sequences(connection)
        for place, state in ahead.items():
            if place in known:
                _catch_up(connection, known[place], state)


def _catch_up(connection: duckdb.DuckDBPyConnection, behind: State, ahead: State) -> None:
    """Draw as many numbers as another instance has drawn since."""
    count = _between(behind, ahead)
    if count > 0:
        text = f"{_database(behind)}{object_texts.sequence_place(behind)}".replace("'", "''")
        connection.execute(f"SELECT max(nextval('{text}')) FROM range({count})").fetchall()


def _database(state: State) -> str:
    """What tells a stored sequence from a temporary one, which would come first."""
    return "" if state["temporary"] else "memory."


def _between(behind: State, ahead: State) -> int:
    """How many numbers bring a sequence to another state of it."""
    step, last, wanted = behind["increment_by"], behind["last_value"], ahead["last_value"]
    if last == wanted:
        return 0
    first, drawn = (behind["start_value"], 1) if last is None else (last, 0)
    way = wanted - first
    if way * step >= 0 and way % step == 0:
        return int(drawn + way // step)
    if not behind["cycle"]:
        return 0
    low, high = behind["min_value"], behind["max_value"]
    again, end = (low, high) if step > 0 else (high, low)
    return int(drawn + (end - first) // step + 1 + (wanted - again) // step)


def _progress(state: State) -> int:
    return int(state["last_value"] * state["increment_by"])


def _range(state: State) -> tuple[object, ...]:
    return tuple(state[name] for name in ("increment_by", "min_value", "max_value", "cycle"))
