"""What the statements of a transaction see: each one's state of the data, or all the same.

A transaction is REPEATABLE READ on the server from the first statement on that changes or locks
something. Before that nothing is lost when the server's transaction begins anew: for the first
statement of any, and for each one at READ COMMITTED, so that it sees what others have committed by
then. A change that others were faster than runs again in the same way.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TypeVar

from louver import errors
from louver.trusted.executor import transaction
from louver.trusted.executor.context import Context

Done = TypeVar("Done")
_PATIENCE_S = 30.0
"""How long a change is tried again while other clients write."""
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 4, 256


def seeing(context: Context, run: Callable[[], Done], *, reads: bool, stays: bool = False) -> Done:
    """Run a statement on the state that it is to see. ``reads`` says that it changes nothing by
    itself, ``stays`` that what it contains are statements of their own, if anything.
    """
    state = context.state
    if stays or state.aborted or not state.follows:
        return run()
    goes_on, state.follows = state.follows_on, False
    state.anew = True
    try:
        done = _outlasting(context, run)
    finally:
        state.anew = False
    changed = context.store.holds or state.catalog is not state.saved
    state.follows = reads and goes_on and not changed
    if not goes_on:
        context.engine.catch_up()  # where nothing was sent: the state is that of now
    return done


def _outlasting(context: Context, run: Callable[[], Done]) -> Done:
    end, longest_ms = time.monotonic() + _PATIENCE_S, _FIRST_WAIT_MS
    transaction.follow(context)
    while True:
        try:
            return run()
        except errors.Error as error:
            outrun = error.code == "catalog.conflict" or transaction.lost(context, error)
            if not outrun or not context.in_transaction or time.monotonic() > end:
                raise
        time.sleep(secrets.randbelow(longest_ms) / 1000)
        longest_ms = min(2 * longest_ms, _LONGEST_WAIT_MS)
        transaction.begin_anew(context)
