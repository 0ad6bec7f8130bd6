"""Layers of onions opened in place on the server, once.

The server is sent the key of a layer and takes the layer off every row; the catalog says so from
the same transaction on. Whatever happens in between, either both are changed or neither, and who
comes next opens what is still closed. What was sent is in the ledger before, and stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from louver import errors
from louver.trusted.planner.values import Opening
from louver.trusted.runtime import spotcheck
from louver.trusted.runtime.ddl.representations import server_type
from louver.trusted.runtime.facts import of_openings
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.untrusted.engines.engine import lost_race
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

STATES = {"eq": ("closed", "det", "join"), "ord": ("closed", "open")}
"""The states of each onion, the outermost layer first."""
LEAST_ROWS = 100_000
"""From so many changed rows on, the server tidies up what the change left behind."""


def require(session: Session, openings: Sequence[Opening]) -> list[str]:
    """Open what is not open yet; sentences for the user, where there is something to say.

    Raises ``catalog.conflict`` when another client was faster: then the plan is old as well.
    """
    needed = [opening for opening in openings if _closed(session.catalog, opening)]
    spotcheck.require(session, openings, anew=needed)
    if not needed:
        return []
    facts = of_openings(needed, session.catalog)
    if session.ledger.new(facts):
        raise errors.make("internal", detail="a layer's key is wanted before its leak is recorded")
    if session.engine.in_transaction and not session.in_transaction:
        _within(session, needed)
    else:
        # No plan depends on what is open: that is looked up when it is bound.
        with session.writing(plans_hold=True) as catalog:
            _all(session, catalog, needed)
    _tidy(session, needed)
    return [f"A layer was opened for this query: {fact.text}." for fact in facts]


def _closed(catalog: Catalog, opening: Opening) -> bool:
    _, column = catalog.column(opening.table, opening.column)
    states = STATES[opening.onion]
    if opening.onion not in column.stored or opening.state not in states:
        raise errors.make("internal", detail=f"there is no {opening.onion} layer to open")
    now = column.layers.get(opening.onion, "closed")
    return states.index(now) < states.index(opening.state)


def _within(session: Session, needed: Sequence[Opening]) -> None:
    """In the snapshot of a query that is repeated: it is committed when the query is done."""
    working = session.catalog.copy()
    _all(session, working, needed)
    session.store.save(working)
    session.adopt(working, schema_changed=False)


def _all(session: Session, catalog: Catalog, needed: Sequence[Opening]) -> None:
    for opening in needed:
        table, column = catalog.column(opening.table, opening.column)
        _open(session, table, column, opening.onion, opening.state)


def _open(session: Session, table: Table, column: Column, onion: str, state: str) -> None:
    """Take off the layers above a state.

    UPDATE, though ALTER … USING is somewhat quicker: a key can be bound to it, so it is in no
    statement's text.
    """
    place = (table.id, column.id, column.generation)
    name = column.stored[onion]
    code, keys = name, []
    wide = "_wide" if server_type(column, onion) == "UUID" else ""
    if column.layers.get(onion, "closed") == "closed":
        keys.append(session.keyring.layer_key(*place, onion))
        code = f"onion_open{wide}({code}, row_id, ${len(keys)})"
        column.layers[onion] = "open" if onion == "ord" else "det"
    if state == "join":
        keys.append(session.keyring.det_key(*place))
        code = f"onion_join{wide}({code}, ${len(keys)})"
        column.layers[onion] = "join"
    sql = f"UPDATE {table.server} SET {name} = {code}"
    try:
        changed = session.engine.run(Statement(sql, tuple(keys), kind="write"))
    except errors.DatabaseError as error:
        if lost_race(error):
            raise errors.make("catalog.conflict") from error
        raise
    if changed != table.row_count:
        raise errors.make("row.missing", table=table.label, expected=table.row_count, found=changed)


def _tidy(session: Session, needed: Sequence[Opening]) -> None:
    """Have a large changed column written anew; who writes at the same time does not allow it."""
    rows = [session.catalog.column(o.table, o.column)[0].row_count for o in needed]
    if not session.engine.in_transaction and max(rows) >= LEAST_ROWS:
        with suppress(errors.Error):
            session.engine.run(Statement("CHECKPOINT", kind="ddl"))
