"""Numbers of sequences that the compiled module draws without Python: those that the session has
claimed (`blocks`), from where it stands on. Whatever Python does with a sequence goes on behind
them, so that each number is drawn once, and `currval` and `lastval` are of the last one.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from louver import errors
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Place, SequenceState
from louver.trusted.executor.schema import blocks, sequences
from louver.trusted.vault import native

#: Fewer numbers than these are few, and a quarter of what was claimed ahead.
_FEW = 8
_FAST_S = 10.0
"""Where a block lasts no longer than this, the next one may be a long one."""


@dataclass(slots=True)
class _Drawn:
    """A sequence that is drawn from, told from a later one of its name by the ``id`` of its claim;
    "" before one is claimed.
    """

    numbers: Any = field(default_factory=lambda: native.module().proxy.SequenceNumbers())
    id: str = ""
    #: as it is declared
    state: SequenceState | None = None
    #: when numbers were claimed last
    claimed_s: float = 0.0


class _Sequences(dict[Place, _Drawn]):
    """The sequences of a session that are drawn from without Python, by folded schema and name."""


def of(context: Context, position: Place) -> Any | None:
    """The numbers of a sequence; None where they are not claimed in blocks."""
    item = sequences.items_of(context.catalog).get(position)
    state = context.local.schema.sequences().get(position)
    if item is None or item.temporary or state is None or state.temporary or state.cycle:
        return None
    if not context.store.shared or not context.state.writable:
        return None
    return context.state.cache(_Sequences).setdefault(position, _Drawn()).numbers


def provide(context: Context, ids: Collection[int], *, within: bool) -> bool:
    """Have numbers of these sequences, what is left of their blocks ``within`` a transaction that
    Python does not know of, else others as well; whether all have some.
    """
    if not within:
        take_over(context)
    known = context.state.cache(_Sequences)
    by_id = {drawn.numbers.id: position for position, drawn in known.items()}
    if not set(ids) <= by_id.keys() or context.in_transaction:
        return False
    if sequences.states(context.local, context.catalog):
        return False  # what Python has drawn is to be stored first
    try:
        return all(_provide(context, by_id[number], within) for number in ids)
    except errors.OperationalError:
        return False


def take_over(context: Context) -> None:
    """Have the session's sequences stand where the compiled module has left them."""
    known = context.state.cache(_Sequences)
    taken = [(drawn.numbers.taken(), position) for position, drawn in known.items()]
    moved = sorted((last, position) for last, position in taken if last is not None)
    claims, items = context.state.cache(blocks.Claims), sequences.items_of(context.catalog)
    for (_, last), position in moved:
        item, drawn = items.get(position), known[position]
        claim = claims.of(position, item)
        if item is None or claim is None or claim.id != drawn.id or drawn.state is None:
            continue  # it is declared otherwise since, and others go on behind the block
        state = replace(drawn.state, last=last)
        if not blocks.is_held(claim, position, state):
            continue  # of an earlier block: the session has gone on behind others' since
        for schema in context.local.schemas:
            schema.catch_up(drawn.state, state)
        if not context.in_transaction:
            # As `blocks.cover` notes it.
            item.sql = claim.own = context.local.schema.resumed(state)
            claim.at = last


def _provide(context: Context, position: Place, within: bool) -> bool:
    drawn, state = context.state.cache(_Sequences)[position], context.local.schema.sequences()
    claims, items = context.state.cache(blocks.Claims), sequences.items_of(context.catalog)
    claim, known, ahead = claims.of(position, items.get(position)), state.get(position), 0
    if known is None or known.last is None or known.cycle:
        return False
    last, step = drawn.numbers.last(), known.increment
    if last is not None and (
        claim is None
        or claim.id != drawn.id
        or not blocks.is_held(claim, position, replace(known, last=last))
    ):
        return False
    last = known.last if last is None else last
    if claim is not None:
        ahead = (claim.end - last) // step
    if not within and ahead < max(_FEW, claims.ahead.get(position, 0) // 4):
        now = time.monotonic()
        is_fast = now - drawn.claimed_s < _FAST_S
        more = blocks.extend(context, position, known, is_fast=is_fast, follows=ahead <= 0)
        if more is not None:
            claim, last, drawn.claimed_s = more, more.at, now
            ahead = (more.end - more.at) // step
    if claim is None or ahead <= 0:
        return False
    drawn.id, drawn.state = claim.id, replace(known, last=None)
    drawn.numbers.begin(last + step, step, ahead)
    return True
