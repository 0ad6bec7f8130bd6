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

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local import Place, SequenceState
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


def _progress(state: SequenceState) -> int:
    return _last_of(state) * state.increment


def _range(state: SequenceState) -> tuple[object, ...]:
    return state.increment, state.low, state.high, state.cycle


def _last_of(state: SequenceState) -> int:
    """The last value of a sequence of which one was drawn."""
    if state.last is None:
        raise errors.make("internal", detail="a sequence of which nothing was drawn")
    return state.last


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
    #: the last number that the session has drawn
    at: int
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
        states = local.schema.sequences() if self else {}
        try:
            for position, item in items_of(catalog).items():
                if self.of(position, item) is not None:
                    item.sql = self._stored(position, item, states[position])
            store.save(catalog)
        finally:
            for position, item in items_of(catalog).items():
                item.sql = own[position]

    def _stored(self, position: Place, item: HomeObject, state: SequenceState) -> str:
        """A claimed sequence as the catalog is to have it, which has a new version."""
        claim = self[position]
        if item.sql == claim.own or _is_held(claim, position, state):
            claim.pending = replace(claim, own=item.sql, at=_last_of(state))
        elif claim.seen == claim.stored:
            text, end = item.sql, _last_of(state)
            claim.pending = Claim(claim.id, text, text, text, end, end)
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

    def pending(self) -> dict[Place, Claim]:
        """What claims are to be once the open transaction is committed, as of a savepoint."""
        return {key: claim.pending for key, claim in self.items() if claim.pending is not None}

    def return_to(self, pending: Mapping[Place, Claim]) -> None:
        """The server has gone back to a savepoint."""
        for key, claim in self.items():
            claim.pending = pending.get(key)


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
            claim.own, claim.at = items[position].sql, _last_of(drawn[position])
            if claim.pending is not None:
                claim.pending.own, claim.pending.at = claim.own, claim.at
    return False


def top_up(context: Context) -> None:
    """Before a transaction, in which nothing can be claimed beside it: have numbers for it."""
    claims = context.state.cache(Claims)
    if not claims:
        return
    states, items = context.local.schema.sequences(), items_of(context.catalog)
    short: dict[Place, SequenceState] = {}
    for position, claim in claims.items():
        state = states.get(position)
        if state is None or state.last is None or claim.seen != claim.stored:
            continue
        if claims.of(position, items.get(position)) is None:
            continue
        left = abs(claim.end - state.last) // abs(state.increment)
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
        declared = context.local.schema.declared
        if declared(item.sql) != declared(claim.seen):
            # Others go on behind the block, so what is left of it is given up.
            del claims[position]
            continue
        claim.own = before[position].sql
        if state is not None and _is_held(claim, position, state):
            claim.own, claim.at = context.local.schema.resumed(state), _last_of(state)
        elif state is not None:
            # What was drawn beyond the block is in no row.
            claim.own, claim.at = claim.stored, claim.end
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


def settle(context: Context) -> None:
    """Before sequences are declared otherwise: have no block behind which others have claimed."""
    claims = context.state.cache(Claims)
    if context.in_transaction or all(claim.seen == claim.stored for claim in claims.values()):
        return
    release(context)
    # What the session knows of its sequences is to be loaded anew.
    claims.clear()
    context.catalog.version = 0


def let_go(context: Context, position: Place) -> None:
    """Give up the block of a sequence that is declared otherwise: the catalog that is saved says
    where the session stands, and others go on from there.
    """
    claim = context.state.cache(Claims).pop(position, None)
    if claim is not None and claim.seen != claim.stored:
        statement = "A change of a sequence that others draw from, within a transaction,"
        raise errors.make("sql.unsupported", statement=statement)


def _is_held(claim: Claim | None, position: Place, state: SequenceState) -> bool:
    """Whether a sequence stands within the session's block."""
    if position[0] == TEMPORARY:
        return True
    if claim is None or state.last is None:
        return False
    step = state.increment
    # What goes back belongs to no block: others are to go on from there as well.
    return (claim.end - state.last) * step >= 0 and (state.last - claim.at) * step >= 0


def _may_claim(context: Context, lacking: Mapping[Place, SequenceState]) -> bool:
    """Whether numbers can be claimed now, beside what the session does."""
    if not context.store.shared or not context.state.writable or context.store.saved:
        return False
    if context.in_transaction:
        # A version that it saves later follows on the state of the catalog that it reads.
        return False
    return not any(state.cycle for state in lacking.values())


def _claim(context: Context, lacking: Mapping[Place, SequenceState]) -> None:
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
            text = context.local.schema.resumed(replace(state, last=end))
            item.sql, item.id = text, item.id or secrets.token_hex(8)
            own_text = context.local.schema.resumed(state)
            fresh[position] = Claim(item.id, own_text, text, text, end, _last_of(state))
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


def _last(state: SequenceState, ahead: int) -> int:
    """The number so many steps ahead, or the last one that the sequence has."""
    last, step = _last_of(state), state.increment
    limit = state.high if step > 0 else state.low
    return last + step * max(0, min(ahead, (limit - last) // step))
