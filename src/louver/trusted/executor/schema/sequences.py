"""Sequences go on where they stood: after a reconnect, an error and a ROLLBACK too, as in DuckDB.

Defaults are drawn in the binder, SELECTs in the workspace. Whichever of the two is not where the
catalog's text of the sequence puts it has drawn last, and the other is brought there. `claims` says
which numbers a session may draw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local import Place, SequenceState
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject


def save(local: LocalEngine, catalog: Catalog) -> bool:
    """Write into the catalog how far every sequence has come; says whether anything changed.

    To be called within `transaction.writing` after a statement that may have used one.
    """
    stored = items_of(catalog)
    if not stored:
        return False
    ahead = states(local, catalog)
    bring(local, ahead)
    for position, state in ahead.items():
        stored[position].sql = local.schema.resumed(state)
    return bool(ahead)


def are_temporary(drawn: Mapping[Place, SequenceState]) -> bool:
    """Whether nothing has to be stored of what was drawn."""
    return all(schema == TEMPORARY for schema, _ in drawn)


def states(local: LocalEngine, catalog: Catalog) -> dict[Place, SequenceState]:
    """How far those sequences have come that the catalog puts elsewhere."""
    stored = items_of(catalog)
    if not stored:
        return {}
    here, there = (schema.sequences() for schema in local.schemas)
    # The binder alone knows whose column a sequence goes with.
    there = {p: replace(s, sql=here[p].sql) for p, s in there.items() if p in here}
    by_name: dict[Place, SequenceState] = {}
    for position, item in stored.items():
        drawn = [
            state
            for state in (here.get(position), there.get(position))
            if state and state.last is not None
            if local.schema.resumed(state) != item.sql
        ]
        if drawn:
            by_name[position] = drawn[0] if drawn[0].cycle else max(drawn, key=_progress)
    return by_name


def restore(local: LocalEngine, drawn: Mapping[Place, SequenceState]) -> None:
    """Bring sequences of a home that was built anew to where they were before."""
    if drawn:
        now = local.schema.sequences()
        same = {p: s for p, s in drawn.items() if p in now and _range(now[p]) == _range(s)}
        bring(local, same)


def has_any(catalog: Catalog) -> bool:
    """Whether there is a sequence."""
    return bool(items_of(catalog))


def items_of(catalog: Catalog) -> dict[Place, HomeObject]:
    """The sequences of a catalog."""
    objects = (item for item in catalog.objects if item.kind == "SEQUENCE")
    return {(fold(item.schema), fold(item.name)): item for item in objects}


def bring(local: LocalEngine, ahead: Mapping[Place, SequenceState]) -> None:
    """Have sequences stand no further back than this, wherever they are drawn from."""
    if not ahead:
        return
    for schema in local.schemas:
        known = schema.sequences()
        for position, state in ahead.items():
            if position in known:
                schema.catch_up(known[position], state)


def bring_back(context: Context) -> None:
    """Where the open transaction is undone, sequences that it declares otherwise go on where they
    stood before.
    """
    local = context.local
    before = {p: s for p, s in local.schema.sequences().items() if s.last is not None}

    def end(committed: bool) -> None:
        if not committed:
            bring(local, before)

    # What was declared otherwise first is undone last.
    context.state.endings.insert(0, end)


def last_of(state: SequenceState) -> int:
    """The last value of a sequence of which one was drawn."""
    if state.last is None:
        raise errors.make("internal", detail="a sequence of which nothing was drawn")
    return state.last


def _progress(state: SequenceState) -> int:
    return last_of(state) * state.increment


def _range(state: SequenceState) -> tuple[object, ...]:
    return state.increment, state.low, state.high, state.cycle
