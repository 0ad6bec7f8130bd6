"""Savepoints: the server's, and beside each what the session keeps of the open transaction.

The ledger never goes back: what a server was shown, it was shown.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from louver import errors
from louver.trusted.executor import seen_state, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import blocks, sequences
from louver.trusted.executor.state import Savepoint
from louver.untrusted.engines.engine import Nesting

_PATIENCE_S = 10.0
"""How long a transaction that has done nothing is begun anew while others save catalogs."""


def add(context: Context, name: str, states: dict[type, Any]) -> None:
    """SAVEPOINT: a name may be there already, which is then hidden."""
    state, temporary = context.state, context.local.temporary
    try:
        _engine(context).add_savepoint(len(state.savepoints))
    except errors.OperationalError as error:
        # Of a transaction that sends nothing before: it is under an earlier catalog.
        if error.code != "catalog.conflict" or state.savepoints or context.store.holds:
            raise
        begin_anew(context)
        _engine(context).add_savepoint(0)
    point = Savepoint(
        name=name,
        catalog=state.catalog,
        store=context.store.position(),
        claims=state.cache(blocks.Claims).pending(),
        temporary=temporary.state() if temporary.names else ({}, {}, {}),
        states=states,
        definitions=state.definitions,
    )
    state.savepoints.append(point)


def undo_to(context: Context, position: int) -> Savepoint:
    """ROLLBACK TO: all that came after a savepoint is undone, and the savepoint stays."""
    state, local = context.state, context.local
    point = state.savepoints[position]
    _engine(context).undo_to_savepoint(position)
    del state.savepoints[position + 1 :]
    drawn = sequences.states(local, context.catalog)
    context.store.return_to(point.store)
    state.cache(blocks.Claims).return_to(point.claims)
    redefined = state.definitions != point.definitions
    if point.catalog is not state.catalog or redefined:
        # What a definition that failed has left in the local engine goes too. Where there was none,
        # the engine stays: types that are made anew would have other numbers.
        seen_state.adopt(context, point.catalog, schema_changed=redefined)
        point = replace(point, definitions=state.definitions)
        state.savepoints[position] = point
    sequences.restore(local, drawn)
    if point.temporary[0] or local.temporary.names:
        local.temporary.restore(point.temporary)
    state.aborted = False
    return point


def release(context: Context, position: int) -> None:
    """RELEASE: a savepoint and those after it are forgotten; what was done stays."""
    _engine(context).release_savepoint(position)
    del context.state.savepoints[position:]


def begin_anew(context: Context) -> None:
    """Let the open transaction, which has done nothing but set savepoints, see what is committed by
    now; they are set again.
    """
    state, engine = context.state, _engine(context)
    end = time.monotonic() + _PATIENCE_S
    while True:
        transaction.begin_anew(context)
        try:
            context.engine.catch_up()
            break
        except errors.OperationalError as error:
            if error.code != "catalog.conflict" or time.monotonic() > end:
                raise
    for number in range(len(state.savepoints)):
        engine.add_savepoint(number)
    now, position = state.catalog, context.store.position()
    state.savepoints[:] = [
        replace(p, catalog=now, store=position, definitions=state.definitions)
        for p in state.savepoints
    ]


def _engine(context: Context) -> Nesting:
    engine = context.engine
    if not isinstance(engine, Nesting):
        raise errors.make("sql.unsupported", statement="SAVEPOINT")
    return engine
