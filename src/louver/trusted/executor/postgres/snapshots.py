"""What the statements of a transaction see: each one's state of the data, or all the same.

A transaction is REPEATABLE READ on the server from the first statement on that changes or locks
something. Before that nothing is lost when the server's transaction begins anew: for the first
statement of any, and for each one at READ COMMITTED, so that it sees what others have committed by
then. A change that others were faster than runs again in the same way.

At READ COMMITTED a later change runs again too: the server's transaction begins anew, does what it
did before, each statement with the same outcome, and the change sees what others have left.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

from louver import errors
from louver.trusted.executor import savepoints, seen_state, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import blocks, sequences
from louver.trusted.vault.catalog import Catalog
from louver.untrusted.engines.engine import Nesting

Done = TypeVar("Done")
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 4, 256


def seeing(context: Context, run: Callable[[], Done], *, reads: bool, stays: bool = False) -> Done:
    """Run a statement on the state that it is to see. ``reads`` says that it changes nothing by
    itself, ``stays`` that what it contains are statements of their own, if anything.
    """
    state = context.state
    if stays or state.aborted or not (state.follows or state.follows_on):
        return run()
    if not state.follows:
        return _repeating(context, run)
    goes_on, state.follows = state.follows_on, False
    state.anew = True
    try:
        done = _outlasting(context, run)
    finally:
        state.anew = False
    changed = context.store.holds or state.catalog is not state.saved
    state.follows = reads and goes_on and not changed
    engine = context.engine
    if not goes_on and not (isinstance(engine, Nesting) and engine.only_locks):
        context.engine.catch_up()  # where nothing was sent: the state is that of now
    return done


def _outlasting(context: Context, run: Callable[[], Done]) -> Done:
    seen_state.follow(context)
    return _again(context, run, lambda _: transaction.begin_anew(context))


def _repeating(context: Context, run: Callable[[], Done]) -> Done:
    """Run a statement of a transaction that has changed something."""
    state, engine = context.state, context.engine
    count = engine.remembered() if isinstance(engine, Nesting) else None
    # What the local engine would have to go back to is not repeated.
    if count is None or state.definitions or context.local.temporary.names:
        state.follows_on = False
        return run()
    catalog, position = state.catalog, context.store.position()
    claims = state.cache(blocks.Claims)
    pending = claims.pending()
    claims.take_again()

    def renew(failure: errors.Error) -> None:
        nonlocal catalog, count
        if not isinstance(engine, Nesting):
            raise failure
        if claims.take_again() and engine.remembered() == count:
            state.aborted = False  # the statement has sent nothing yet but what reads
            return
        if state.catalog is not catalog or state.definitions:
            _forget_definition(context, catalog)
        if count == len(state.savepoints) and not position[0] and catalog is state.saved:
            # There are savepoints, but nothing that they return to.
            savepoints.begin_anew(context)
            count, catalog = engine.remembered() or 0, state.catalog
            return
        context.store.return_to(position)
        claims.return_to(pending)
        try:
            seen = context.store.pin.read()
            engine.repeat(count or 0)
            seen_state.join(context, seen)
        except errors.Error:
            raise failure from None
        state.aborted, catalog = False, state.catalog

    return _again(context, run, renew)


def _forget_definition(context: Context, before: Catalog) -> None:
    """Have a session know nothing of what a statement that was outrun has defined."""
    drawn = sequences.states(context.local, context.catalog)
    seen_state.adopt(context, before, schema_changed=context.state.definitions > 0)
    sequences.restore(context.local, drawn)
    context.state.definitions = 0


def _again(
    context: Context, run: Callable[[], Done], renew: Callable[[errors.Error], None]
) -> Done:
    end, longest_ms = time.monotonic() + context.patience_s, _FIRST_WAIT_MS
    while True:
        try:
            return run()
        except errors.Error as error:
            outrun = error.code == "catalog.conflict" or transaction.lost(context, error)
            if not outrun or not context.in_transaction or time.monotonic() > end:
                raise
            failure = error
        time.sleep(secrets.randbelow(longest_ms) / 1000)
        longest_ms = min(2 * longest_ms, _LONGEST_WAIT_MS)
        renew(failure)
