"""Sequences go on where they stood: after a reconnect, an error and a ROLLBACK too, as in DuckDB.

Defaults are drawn in the binder, SELECTs in the workspace. Whichever of the two is not where the
catalog's text of the sequence puts it has drawn last, and the other is brought there.
"""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from louver.names import fold
from louver.trusted.executor.local.local_engine import LocalEngine
from louver.trusted.executor.schema import object_texts
from louver.trusted.executor.schema.object_texts import Place, State
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject


def save(local: LocalEngine, catalog: Catalog) -> bool:
    """Write into the catalog how far every sequence has come; says whether anything changed.

    To be called within `transaction.writing` after a statement that may have used one.
    """
    items = _items(catalog)
    if not items:
        return False
    ahead = states(local, catalog)
    _bring(local, ahead)
    for position, state in ahead.items():
        items[position].sql = object_texts.resumed_sequence(state)
    return bool(ahead)


def are_temporary(drawn: Mapping[Place, State]) -> bool:
    """Whether nothing has to be stored of what was drawn."""
    return all(schema == TEMPORARY for schema, _ in drawn)


def states(local: LocalEngine, catalog: Catalog) -> dict[Place, State]:
    """How far those sequences have come that the catalog puts elsewhere."""
    items = _items(catalog)
    if not items:
        return {}
    here, there = (
        object_texts.sequences(local.binder),
        object_texts.sequences(local.workspace),
    )
    by_name: dict[Place, State] = {}
    for position, item in items.items():
        drawn = [
            state
            for state in (here.get(position), there.get(position))
            if state and state["last_value"] is not None
            if object_texts.resumed_sequence(state) != item.sql
        ]
        if drawn:
            by_name[position] = drawn[0] if drawn[0]["cycle"] else max(drawn, key=_progress)
    return by_name


def restore(local: LocalEngine, drawn: Mapping[Place, State]) -> None:
    """Bring sequences of a home that was built anew to where they were before."""
    if drawn:
        now = object_texts.sequences(local.binder)
        same = {p: s for p, s in drawn.items() if p in now and _range(now[p]) == _range(s)}
        _bring(local, same)


def has_any(catalog: Catalog) -> bool:
    """Whether there is a sequence."""
    return bool(_items(catalog))


def _items(catalog: Catalog) -> dict[Place, HomeObject]:
    objects = (item for item in catalog.objects if item.kind == "SEQUENCE")
    return {(fold(item.schema), fold(item.name)): item for item in objects}


def _bring(local: LocalEngine, ahead: Mapping[Place, State]) -> None:
    if not ahead:
        return
    for connection in (local.binder, local.workspace):
        known = object_texts.sequences(connection)
        for position, state in ahead.items():
            if position in known:
                _catch_up(connection, known[position], state)


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
