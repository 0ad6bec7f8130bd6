"""Statements that read all that they depend on in one state of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from louver import errors
from louver.trusted.executor import seen_state, transaction
from louver.trusted.executor.context import Context

Done = TypeVar("Done")


def in_snapshot(context: Context, run: Callable[[], Done]) -> Done:
    """Run a query on one state of the server, catalog and data together."""
    seen_state.fix_state(context)
    try:
        return run()
    finally:
        context.engine.commit()
        context.store.committed()


@contextmanager
def alone(context: Context) -> Iterator[None]:
    """A transaction of one statement; within the user's own transaction it is a part of that.
    Raises `catalog.conflict` where what was planned before may not hold any more.
    """
    if context.in_transaction:
        yield
        return
    before = context.catalog
    transaction.begin(context)
    try:
        if context.catalog is not before:
            raise errors.make("catalog.conflict")
        yield
    except BaseException as error:
        transaction.rollback(context)
        if transaction.lost(context, error):
            raise errors.make("catalog.conflict") from error
        raise
    transaction.commit(context)
