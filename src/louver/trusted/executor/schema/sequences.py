"""Sequences go on where they stood: after a reconnect, an error and a ROLLBACK too, as in DuckDB.

Defaults are drawn in the binder, SELECTs in the workspace. Whichever of the two is not where the
catalog's text of the sequence puts it has drawn last, and the other is brought there.

Numbers are claimed in blocks, so that most statements that draw save nothing. The catalog on the
server says where anyone else goes on, behind all numbers that a session has claimed; the session's
own catalog says where the session stands. Numbers that are drawn beyond its block the session
claims before the rows are written that hold them: the block is extended if no one has claimed
numbers since, else the statement has drawn what is another's, and runs again behind it. A session
that ends gives back what it has not drawn; one that is killed does not, which leaves a gap. A
sequence that goes round has no blocks: every draw is saved.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

import duckdb

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local_engine import LocalEngine
from louver.trusted.executor.schema import object_texts
from louver.trusted.executor.schema.object_texts import Place, State
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject
from louver.trusted.vault.catalog_store import CatalogStore

MOST = 64
"""Numbers that are claimed ahead at most."""


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
        stored[position].sql = object_texts.resumed_sequence(state)
    return bool(ahead)


def are_temporary(drawn: Mapping[Place, State]) -> bool:
    """Whether nothing has to be stored of what was drawn."""
    return all(schema == TEMPORARY for schema, _ in drawn)


def states(local: LocalEngine, catalog: Catalog) -> dict[Place, State]:
    """How far those sequences have come that the catalog puts elsewhere."""
    stored = items_of(catalog)
    if not stored:
        return {}
    here, there = (
        object_texts.sequences(local.binder),
        object_texts.sequences(local.workspace),
    )
    by_name: dict[Place, State] = {}
    for position, item in stored.items():
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
        bring(local, same)


def has_any(catalog: Catalog) -> bool:
    """Whether there is a sequence."""
    return bool(items_of(catalog))


def items_of(catalog: Catalog) -> dict[Place, HomeObject]:
    """The sequences of a catalog."""
    objects = (item for item in catalog.objects if item.kind == "SEQUENCE")
    return {(fold(item.schema), fold(item.name)): item for item in objects}


def bring(local: LocalEngine, ahead: Mapping[Place, State]) -> None:
    """Have sequences stand no further back than this, wherever they are drawn from."""
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


# ---------------------------------------------------------------------- blocks


@dataclass(slots=True)
class Claim:
    """What a session has claimed of a sequence, told from a later one of its name by the ``id``.

    The texts are the sequence's as the catalog holds them: where the session stands, what its claim
    left on the server, and what was there last. ``end`` is the last number of the block.
    """

    id: str
    own: str
    stored: str
    seen: str
    end: int
    #: what it is once the open transaction is committed, which saves the catalog
    pending: Claim | None = None


class Claims(dict[Place, Claim]):
    """The claims of a session, by folded schema and name."""

    def __init__(self) -> None:
        super().__init__()
        #: how many numbers are claimed ahead the next time
        self.ahead: dict[Place, int] = {}

    def of(self, position: Place, item: HomeObject | None) -> Claim | None:
        """What is claimed of a sequence; None where another one of its name is meant."""
        claim = self.get(position)
        return claim if claim is not None and item is not None and item.id == claim.id else None

    def save(self, local: LocalEngine, store: CatalogStore, catalog: Catalog) -> None:
        """Save a version of the catalog, in which sequences go on behind what was claimed."""
        own = {position: item.sql for position, item in items_of(catalog).items()}
        states = object_texts.sequences(local.binder) if self else {}
        try:
            for position, item in items_of(catalog).items():
                if self.of(position, item) is not None:
                    item.sql = self._stored(position, item, states[position])
            store.save(catalog)
        finally:
            for position, item in items_of(catalog).items():
                item.sql = own[position]

    def _stored(self, position: Place, item: HomeObject, state: State) -> str:
        """A claimed sequence as the catalog is to have it, which has a new version."""
        claim = self[position]
        if item.sql == claim.own or _is_held(claim, position, state):
            claim.pending = replace(claim, own=item.sql)
        elif claim.seen == claim.stored:
            text, end = item.sql, int(state["last_value"])
            claim.pending = Claim(claim.id, text, text, text, end)
        else:
            del self[position]
            raise errors.make("catalog.conflict")
        return claim.pending.seen

    def ended(self, *, committed: bool) -> None:
        """The transaction that saved the catalog was committed or undone."""
        for position, claim in list(self.items()):
            if committed and claim.pending is not None:
                self[position] = claim.pending
            claim.pending = None


def cover(context: Context) -> bool:
    """Claim what was drawn since the last statement, and note where the session stands; says
    whether something is left that takes a version of the catalog of its own.
    """
    drawn = states(context.local, context.catalog)
    if not drawn:
        return False
    claims, items = context.state.cache(Claims), items_of(context.catalog)
    lacking = {
        position: state
        for position, state in drawn.items()
        if not _is_held(claims.of(position, items[position]), position, state)
    }
    if lacking and not _may_claim(context, lacking):
        return True
    if lacking:
        _claim(context, lacking)
    save(context.local, context.catalog)
    for position in drawn:
        if (claim := claims.of(position, items[position])) is not None:
            claim.own = items[position].sql
            if claim.pending is not None:
                claim.pending.own = claim.own
    return False


def top_up(context: Context) -> None:
    """Before a transaction, in which nothing can be claimed beside it: have numbers for it."""
    claims = context.state.cache(Claims)
    if not claims:
        return
    states, items = object_texts.sequences(context.local.binder), items_of(context.catalog)
    short: dict[Place, State] = {}
    for position, claim in claims.items():
        state = states.get(position)
        if state is None or state["last_value"] is None or claim.seen != claim.stored:
            continue
        if claims.of(position, items.get(position)) is None:
            continue
        left = abs(claim.end - state["last_value"]) // abs(state["increment_by"])
        if 2 * left < claims.ahead.get(position, 0):
            short[position] = state
    if short and _may_claim(context, short):
        _claim(context, short)


def carry(context: Context, loaded: Catalog) -> None:
    """Keep the session's place in a catalog that another client has saved."""
    claims, items = context.state.cache(Claims), items_of(loaded)
    before = items_of(context.catalog)
    drawn = states(context.local, context.catalog) if claims else {}
    for position, claim in list(claims.items()):
        item, state = items.get(position), drawn.get(position)
        if item is None or item.id != claim.id or claims.of(position, before.get(position)) is None:
            del claims[position]
            continue
        claim.own = before[position].sql
        if state is not None and _is_held(claim, position, state):
            claim.own = object_texts.resumed_sequence(state)
        elif state is not None:
            # What was drawn beyond the block is in no row.
            claim.own = claim.stored
        if claim.own == claim.stored != item.sql:
            # No number is left of the block, and others were claimed since.
            del claims[position]
        else:
            claim.seen, item.sql = item.sql, claim.own


def release(context: Context) -> None:
    """Give back what was claimed and not drawn, where no one has claimed numbers since."""
    claims = context.state.cache(Claims)
    rest = {p: claim for p, claim in claims.items() if claim.own != claim.stored}
    if not rest or context.in_transaction or not context.state.writable:
        return

    def add(newest: Catalog) -> bool:
        items, changed = items_of(newest), False
        for position, claim in rest.items():
            item = items.get(position)
            if item is not None and (item.id, item.sql) == (claim.id, claim.stored):
                item.sql, changed = claim.own, True
        return changed

    context.store.amend(context.catalog, add)
    claims.clear()


def _is_held(claim: Claim | None, position: Place, state: State) -> bool:
    """Whether a sequence stands within the session's block."""
    if position[0] == TEMPORARY:
        return True
    if claim is None or state["last_value"] is None:
        return False
    return bool((claim.end - state["last_value"]) * state["increment_by"] >= 0)


def _may_claim(context: Context, lacking: Mapping[Place, State]) -> bool:
    """Whether numbers can be claimed now, beside what the session does."""
    if not context.store.shared or not context.state.writable or context.store.saved:
        return False
    if context.in_transaction:
        # A version that it saves later follows on the state of the catalog that it reads.
        return False
    return not any(state["cycle"] for state in lacking.values())


def _claim(context: Context, lacking: Mapping[Place, State]) -> None:
    """Claim numbers up to where sequences stand, and some ahead; `catalog.conflict` where another
    client has claimed them.
    """
    claims, own = context.state.cache(Claims), items_of(context.catalog)
    fresh: dict[Place, Claim] = {}

    def add(newest: Catalog) -> bool:
        items = items_of(newest)
        fresh.clear()
        for position, state in lacking.items():
            item, claim = items.get(position), claims.of(position, own[position])
            before = (claim.id, claim.stored) if claim else (own[position].id, own[position].sql)
            if item is None or (item.id, item.sql) != before:
                claims.pop(position, None)
                fresh.clear()
                return False
            end = _last(state, claims.ahead.get(position, 0))
            text = object_texts.resumed_sequence({**state, "last_value": end})
            item.sql, item.id = text, item.id or secrets.token_hex(8)
            own_text = object_texts.resumed_sequence(state)
            fresh[position] = Claim(item.id, own_text, text, text, end)
        return True

    context.store.amend(context.catalog, add)
    if not fresh:
        # What the session knows of the sequence is to be loaded anew, whatever the version.
        context.catalog.version = 0
        raise errors.make("catalog.conflict")
    claims.update(fresh)
    for position, claim in fresh.items():
        own[position].id = claim.id
        claims.ahead[position] = min(max(2 * claims.ahead.get(position, 0), 1), MOST)


def _last(state: State, ahead: int) -> int:
    """The number so many steps ahead, or the last one that the sequence has."""
    last, step = int(state["last_value"]), int(state["increment_by"])
    limit = int(state["max_value"] if step > 0 else state["min_value"])
    return last + step * max(0, min(ahead, (limit - last) // step))
