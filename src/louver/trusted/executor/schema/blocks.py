"""Numbers of sequences are claimed in blocks, so that most statements that draw save nothing.

The catalog on the server says where anyone else goes on, behind all numbers that a session has
claimed; the session's own catalog says where the session stands. Numbers that are drawn beyond its
block the session claims before the rows are written that hold them: the block is extended if no one
has claimed numbers since, else the statement has drawn what is another's, and runs again behind it.
A session that ends gives back what it has not drawn; one that is killed does not, which leaves a
gap. A sequence that goes round has no blocks: every draw is saved.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local import Place, SequenceState
from louver.trusted.executor.schema import sequences
from louver.trusted.vault.catalog import TEMPORARY, Catalog, HomeObject
from louver.trusted.vault.catalog_store import CatalogStore
from louver.untrusted.engines.engine import Nesting

MOST = 64
"""Numbers that are claimed ahead at most."""
MOST_FAST = 1024
"""The same of sequences that are drawn from so fast that this does not last long."""


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
        #: whether a statement has drawn what is another's, and knows now where others go on
        self.again = False
        #: whether the open transaction has claimed beside itself, which a version that it saves
        #: does not follow on; and whether the next one is not to, because that was so
        self.beside = self.within = False

    def of(self, position: Place, item: HomeObject | None) -> Claim | None:
        """What is claimed of a sequence; None where another one of its name is meant."""
        claim = self.get(position)
        return claim if claim is not None and item is not None and item.id == claim.id else None

    def save(self, local: LocalEngine, store: CatalogStore, catalog: Catalog) -> None:
        """Save a version of the catalog, in which sequences go on behind what was claimed."""
        own = {position: item.sql for position, item in sequences.items_of(catalog).items()}
        states = local.schema.sequences() if self else {}
        try:
            for position, item in sequences.items_of(catalog).items():
                if self.of(position, item) is not None:
                    item.sql = self._stored(position, item, states[position])
            store.save(catalog)
        except errors.OperationalError:
            self.within = self.beside
            raise
        finally:
            for position, item in sequences.items_of(catalog).items():
                item.sql = own[position]

    def _stored(self, position: Place, item: HomeObject, state: SequenceState) -> str:
        """A claimed sequence as the catalog is to have it, which has a new version."""
        claim = self[position]
        if item.sql == claim.own or is_held(claim, position, state):
            claim.pending = replace(claim, own=item.sql, at=sequences.last_of(state))
        elif claim.seen == claim.stored:
            text, end = item.sql, sequences.last_of(state)
            claim.pending = Claim(claim.id, text, text, text, end, end)
        else:
            del self[position]
            raise errors.make("catalog.conflict")
        return claim.pending.seen

    def ended(self, *, committed: bool) -> None:
        """The transaction that saved the catalog was committed or undone."""
        self.beside, self.within = False, self.within and not committed
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

    def take_again(self) -> bool:
        """Whether the statement that failed is to run again, and nothing else; asked once."""
        again, self.again = self.again, False
        return again


def cover(context: Context) -> bool:
    """Claim what was drawn since the last statement, and note where the session stands; says
    whether something is left that takes a version of the catalog of its own.
    """
    drawn = sequences.states(context.local, context.catalog)
    if not drawn:
        return False
    claims, items = context.state.cache(Claims), sequences.items_of(context.catalog)
    lacking = {
        position: state
        for position, state in drawn.items()
        if not is_held(claims.of(position, items[position]), position, state)
    }
    if lacking and not _may_claim(context, lacking):
        return True
    if lacking:
        _claim(context, lacking)
    sequences.save(context.local, context.catalog)
    for position in drawn:
        if (claim := claims.of(position, items[position])) is not None:
            claim.own, claim.at = items[position].sql, sequences.last_of(drawn[position])
            if claim.pending is not None:
                claim.pending.own, claim.pending.at = claim.own, claim.at
    return False


def top_up(context: Context) -> None:
    """Before a transaction, beside which nothing may be to be claimed: have numbers for it."""
    claims = context.state.cache(Claims)
    if not claims:
        return
    states, items = context.local.schema.sequences(), sequences.items_of(context.catalog)
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
        # Where others were faster, it goes without.
        with suppress(errors.OperationalError):
            _claim(context, short)


def carry(context: Context, loaded: Catalog) -> None:
    """Keep the session's place in a catalog that another client has saved."""
    claims, items = context.state.cache(Claims), sequences.items_of(loaded)
    before = sequences.items_of(context.catalog)
    drawn = sequences.states(context.local, context.catalog) if claims else {}
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
        if state is not None and is_held(claim, position, state):
            claim.own, claim.at = context.local.schema.resumed(state), sequences.last_of(state)
        elif state is not None:
            # What was drawn beyond the block is in no row.
            claim.own, claim.at = claim.stored, claim.end
        if claim.own == claim.stored != item.sql:
            # No number is left of the block, and others were claimed since.
            del claims[position]
        else:
            claim.seen, item.sql = item.sql, claim.own
    for position, item in items.items():
        own = before.get(position)
        if own is not None and own.sql != item.sql:
            _follows(context, position, items)


def release(context: Context) -> None:
    """Give back what was claimed and not drawn, where no one has claimed numbers since."""
    claims = context.state.cache(Claims)
    rest = {p: claim for p, claim in claims.items() if claim.own != claim.stored}
    if not rest or context.in_transaction or not context.state.writable:
        return

    def add(newest: Catalog) -> bool:
        items, changed = sequences.items_of(newest), False
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


def is_held(claim: Claim | None, position: Place, state: SequenceState) -> bool:
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
    if context.in_transaction and not _is_repeated(context):
        return False
    return not any(state.cycle for state in lacking.values())


def _is_repeated(context: Context) -> bool:
    """Whether the open transaction is done again where it saves a version, for that follows on the
    state of the catalog that it reads.
    """
    state, engine = context.state, context.engine
    if not (state.follows_on and isinstance(engine, Nesting) and engine.remembers):
        return False
    return not (state.definitions or context.local.temporary.names or state.cache(Claims).within)


def _claim(context: Context, lacking: Mapping[Place, SequenceState]) -> None:
    """Claim numbers up to where sequences stand, and some ahead; `catalog.conflict` where another
    client has claimed them.
    """
    claims, own = context.state.cache(Claims), sequences.items_of(context.catalog)
    fresh: dict[Place, Claim] = {}
    behind: dict[Place, HomeObject] = {}

    def add(newest: Catalog) -> bool:
        items = sequences.items_of(newest)
        fresh.clear()
        for position, state in lacking.items():
            item, claim = items.get(position), claims.of(position, own[position])
            before = (claim.id, claim.stored) if claim else (own[position].id, own[position].sql)
            if item is None or (item.id, item.sql) != before:
                claims.pop(position, None)
                fresh.clear()
                behind.update(items)
                return False
            end = _last(state, claims.ahead.get(position, 0))
            text = context.local.schema.resumed(replace(state, last=end))
            item.sql, item.id = text, item.id or secrets.token_hex(8)
            own_text = context.local.schema.resumed(state)
            fresh[position] = Claim(item.id, own_text, text, text, end, sequences.last_of(state))
        return True

    context.store.amend(context.catalog, add)
    if not fresh:
        if not context.in_transaction:
            # What the session knows of the sequence is to be loaded anew, whatever the version.
            context.catalog.version = 0
        elif not [p for p in lacking if p not in claims and not _follows(context, p, behind)]:
            claims.again = True
        raise errors.make("catalog.conflict")
    claims.beside = context.in_transaction
    claims.update(fresh)
    for position, claim in fresh.items():
        own[position].id = claim.id
        claims.ahead[position] = min(max(2 * claims.ahead.get(position, 0), 1), MOST)


def extend(
    context: Context, position: Place, state: SequenceState, *, is_fast: bool, follows: bool
) -> Claim | None:
    """Claim more numbers of a sequence than the session has ahead, outside of transactions. Where
    others have claimed some since, it goes on behind these, if it ``follows``. None where nothing
    was claimed.
    """
    claims, own = context.state.cache(Claims), sequences.items_of(context.catalog)[position]
    if not _may_claim(context, {position: state}):
        return None
    schema, claim = context.local.schema, claims.of(position, own)
    ahead = min(max(2 * claims.ahead.get(position, 0), 1), MOST_FAST if is_fast else MOST)
    before = (claim.id, claim.stored) if claim else (own.id, own.sql)
    fresh: list[Claim] = []

    def add(newest: Catalog) -> bool:
        item = sequences.items_of(newest).get(position)
        fresh.clear()
        if item is None or own.id not in ("", item.id):
            return False
        if schema.declared(item.sql) != schema.declared(own.sql):
            return False
        stood = state
        if (item.id, item.sql) != before:
            if not follows:
                return False
            stood = replace(state, last=schema.last_in(state, item.sql))
        end = _last(stood, ahead)
        if end == stood.last:
            return False
        text, own_text = schema.resumed(replace(stood, last=end)), schema.resumed(stood)
        item.sql, item.id = text, item.id or secrets.token_hex(8)
        fresh.append(Claim(item.id, own_text, text, text, end, sequences.last_of(stood)))
        return True

    context.store.amend(context.catalog, add)
    if not fresh:
        return None
    (claim,) = fresh
    if claim.at != state.last:
        for each in context.local.schemas:
            each.go_on(each.sequences()[position], claim.own)
    own.sql, own.id = claim.own, claim.id
    claims[position], claims.ahead[position] = claim, ahead
    return claim


def _follows(context: Context, position: Place, others: Mapping[Place, HomeObject]) -> bool:
    """Have a sequence of which the session has no numbers go on where others do; False where it is
    another one, or the local engine has to be built anew for that.
    """
    own, item = sequences.items_of(context.catalog)[position], others.get(position)
    declared = context.local.schema.declared
    if item is None or own.id not in ("", item.id) or declared(own.sql) != declared(item.sql):
        return False
    for schema in context.local.schemas:
        known = schema.sequences()
        if position in known and not schema.go_on(known[position], item.sql):
            return False
    own.sql, own.id = item.sql, item.id
    return True


def _last(state: SequenceState, ahead: int) -> int:
    """The number so many steps ahead, or the last one that the sequence has."""
    last, step = sequences.last_of(state), state.increment
    limit = state.high if step > 0 else state.low
    return last + step * max(0, min(ahead, (limit - last) // step))
