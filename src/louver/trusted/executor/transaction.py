"""Transactions: data, catalog and bounds change together or not at all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from sqlglot.tokens import Token

from louver import errors
from louver.trusted.executor import constraint_check, seen_state
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import blocks, head, sequences
from louver.trusted.executor.table_basis import require_same
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import Catalog, Table
from louver.untrusted.engines.engine import Nesting

_PATIENCE_S, _BRIEF_S = 10.0, 0.1  # how long changes of rows wait for one of the schema, and BEGIN


def begin(
    context: Context, *, read_only: bool = False, serializable: bool = False, follows: bool = False
) -> None:
    """BEGIN: row numbers are claimed before, so that a rollback cannot give them back. One that
    ``follows`` sees what is committed by its first statement, not only by now.
    """
    state = context.state
    if state.in_transaction:
        before, state.aborted = state.aborted, True  # as in DuckDB
        raise errors.make("transaction.aborted" if before else "transaction.active")
    seen_state.refresh(context)  # a token is of a version, and void once there is another
    if state.writable and not read_only:
        blocks.top_up(context)
        _get_ready(context, _BRIEF_S)
    state.follows = follows and isinstance(context.engine, Nesting)
    seen_state.fix_state(context, serializable=serializable, known=state.follows)
    state.saved, state.serializable = state.catalog, serializable
    state.definitions, state.read_only, state.began = 0, read_only, datetime.now(UTC)


def _get_ready(context: Context, patience_s: float = _PATIENCE_S) -> None:
    """Claim what rows bear, and a token to write them, which no one gets while a schema changes."""
    end, wait_s = time.monotonic() + patience_s, 0.001
    while True:
        if context.row_ids.ensure(context.catalog):
            seen_state.refresh(context)
        try:
            return context.store.register()
        except errors.OperationalError as error:
            if error.code != "catalog.conflict":
                raise
        seen_state.refresh(context)
        if time.monotonic() > end:
            return None
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, 0.1)


@contextmanager
def beside(context: Context) -> Iterator[None]:
    """In a transaction of its own, where the open one has changed nothing: it begins anew then."""
    state = context.state
    if not context.goes_beside():
        yield
        return
    context.engine.rollback()
    state.saved = None
    try:
        yield
        _ready_again(context)
    finally:
        _go_on(context)


def fix(context: Context) -> None:
    """Before the open transaction changes something: from here on it sees one state."""
    if context.state.follows:
        context.state.follows = False
        begin_anew(context)


def begin_anew(context: Context) -> None:
    """Let the open transaction see what is committed by its next statement, under the catalog of
    now; what it did is undone. Its time stays.
    """
    state, saved = context.state, context.state.saved
    if saved is None:
        raise errors.make("internal", detail="no transaction that could begin anew")
    state.saved = None
    try:
        with suppress(Exception):
            context.engine.rollback()
        _back_to(context, saved, schema_changed=state.definitions > 0)
        _ready_again(context)
    finally:
        _go_on(context)


def _ready_again(context: Context) -> None:
    seen_state.refresh(context)
    if context.state.writable and not context.state.read_only:
        _get_ready(context, _BRIEF_S)


def _go_on(context: Context) -> None:
    """The user's transaction goes on with another one on the server."""
    state = context.state
    state.saved, state.definitions, state.aborted = state.catalog, 0, False
    seen_state.fix_state(context, serializable=state.serializable, known=True)


def require_writable(context: Context) -> None:
    """Refuse a change where connection or transaction only reads, which ends the latter."""
    if not context.state.writable:
        raise errors.make("connection.read_only")
    if context.state.read_only if context.in_transaction else context.state.only_reads:
        context.state.aborted = context.in_transaction
        raise errors.make("transaction.read_only")


def commit(context: Context) -> None:
    """COMMIT: data, catalog and bounds at once; of a transaction that failed, ROLLBACK, as in both
    DuckDB and PostgreSQL: the error was the failing statement's.
    """
    state = context.state
    if state.saved is None:
        raise errors.make("transaction.none")
    if state.aborted:
        rollback(context)
        return
    for check in state.checks:
        check()
    saved, state.saved = state.saved, None
    context.release_time()
    try:
        context.storage.flush(lambda table: _is_keyed(context, table))
        _settle(context)
        context.engine.commit()
    except BaseException as error:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        _back_to(context, saved, schema_changed=True)
        state.ended(committed=False)
        if isinstance(error, errors.IntegrityError):
            # The server names a tag, and no row is at hand any more whose it could be.
            raise errors.make("transaction.key") from None
        raise
    _committed(context)
    state.ended(committed=True)


def rollback(context: Context) -> None:
    """ROLLBACK."""
    state = context.state
    if state.saved is None:
        raise errors.make("transaction.none")
    saved, state.saved, state.aborted = state.saved, None, False
    context.release_time()
    with suppress(Exception):
        context.engine.rollback()
    _back_to(context, saved, schema_changed=state.definitions > 0)
    state.ended(committed=False)
    keep_drawn(context)


def _back_to(context: Context, saved: Catalog, *, schema_changed: bool) -> None:
    """Take an earlier catalog back; what sequences gave since then, they do not give again."""
    drawn = sequences.states(context.local, saved) if schema_changed else {}
    _undone(context)
    with context.local.temporary.undoing():
        seen_state.adopt(context, saved, schema_changed=schema_changed)
    sequences.restore(context.local, drawn)


def _committed(context: Context) -> None:
    context.store.committed()
    context.state.cache(blocks.Claims).ended(committed=True)
    context.storage.committed()
    context.state.growth.committed()
    context.local.temporary.before = None


def _undone(context: Context) -> None:
    context.store.rolled_back()
    context.state.cache(blocks.Claims).ended(committed=False)
    context.storage.undone()
    context.state.growth.undone()


def _settle(context: Context) -> None:
    """Before rows are committed that widen bounds: the catalog knows of it. Where the transaction
    saves a version, in that; else beside it, for no one's work depends on narrow bounds.
    """
    growth, own = context.state.growth, context.catalog
    drawn = sequences.has_any(own) and blocks.cover(context)
    if drawn or (growth.tables and context.store.saved):
        sequences.save(context.local, own)
        _store(context, own)
    elif growth.tables:
        context.store.amend(own, lambda newest: growth.into(newest, own))
        growth.committed()  # the bounds stay wide if the rows do not come: they are stored so
    growth.tables.clear()


def _store(context: Context, catalog: Catalog) -> None:
    context.state.cache(blocks.Claims).save(context.local, context.store, catalog)


def _is_keyed(context: Context, table: Table) -> bool:
    """Whether rows that somebody else has written since would have had to be looked at."""
    return bool(constraint_check.rules(context, table).keys)


def _save(context: Context, before: Catalog, catalog: Catalog) -> None:
    """Write the catalog, unless all that changed is rows of files that lie elsewhere."""
    spoken().require_names(before, catalog)
    head.refuse_marks(catalog)
    context.columns.note_hints(catalog)
    sequences.save(context.local, catalog)
    if context.backend.catalog_counts or catalog.without_counts() != before.without_counts():
        _store(context, catalog)


@contextmanager
def writing(
    context: Context, *, schema_changed: bool = False, plans_hold: bool = False,
    briefly: bool = False,
) -> Iterator[Catalog]:  # fmt: skip
    """A change of data and catalog, all or nothing. Plans are forgotten unless they hold, as
    they do when a layer opens, which changes neither rows nor schema.

    The block changes the catalog that it is given and the server; the catalog is saved in
    the same server transaction. A failure in the user's own transaction aborts that one.
    """
    state = context.state
    if not plans_hold or not state.writable:
        require_writable(context)
    if state.in_transaction:
        state.definitions += schema_changed
        state.untouched = briefly
        fix(context)
        try:
            context.store.exclude(briefly=briefly)
            state.untouched = False
            saved = seen_state.own_catalog(context)
            saved = saved if context.backend.catalog_counts else saved.copy()
            yield state.catalog
            _save(context, saved, state.catalog)
        except BaseException:
            state.aborted = not state.untouched
            raise
        _changed(context, schema_changed=schema_changed, plans_hold=plans_hold)
        return
    before = state.catalog
    if not plans_hold and context.row_ids.ensure(before):
        seen_state.refresh(context)
        require_same(before, state.catalog, rows=True)
    state.catalog = before.copy()
    context.engine.begin()
    try:
        context.store.exclude(briefly=briefly)
        yield state.catalog
        _save(context, before, state.catalog)
        context.storage.flush(lambda table: _is_keyed(context, table))
        context.engine.commit()
    except BaseException as error:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        _back_to(context, before, schema_changed=schema_changed)
        if lost(context, error):
            raise errors.make("catalog.conflict") from error
        raise
    _committed(context)
    _changed(context, schema_changed=schema_changed, plans_hold=plans_hold)


@contextmanager
def writing_rows(context: Context, table: Table, *, refers: bool = False) -> Iterator[Catalog]:
    """A change of one table's rows, all or nothing, as `writing`. Where nothing depends on the
    catalog's telling that they changed, any number of clients do so at once, and it stays as it is.
    Where new rows ``refer`` to others, the block looks these up.
    """
    state = context.state
    if _cover(context) or constraint_check.is_counted(context, table):
        with writing(context) as catalog:
            yield catalog
        return
    require_writable(context)
    if state.in_transaction:
        state.untouched = False
        fix(context)
        try:
            context.store.enter(refers=refers)
            yield state.catalog
            context.engine.catch_up()
            _keep(context)
        except BaseException:
            state.aborted = not state.untouched
            raise
        return
    before = state.catalog
    _get_ready(context)
    try:
        _begin_rows(context, before, refers=refers)
        yield state.catalog
        _settle(context)
        context.engine.commit()
    except BaseException as error:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        _undone(context)
        if lost(context, error):
            raise errors.make("catalog.conflict") from error
        raise
    _committed(context)


def _begin_rows(context: Context, before: Catalog, *, refers: bool) -> None:
    """Begin the server's transaction of a change of rows that was decided under a catalog."""
    while True:
        require_same(before, context.catalog)
        context.engine.begin()
        context.store.enter(refers=refers)
        # What is looked up may bear numbers that only the newest catalog knows.
        if not refers or context.store.current_version() == context.catalog.version:
            return
        context.engine.rollback()
        context.store.rolled_back()
        seen_state.refresh(context)


def lost(context: Context, error: BaseException) -> bool:
    """Whether the server refused rows because another connection changed the same ones. What breaks
    a key of the server's own is not that: it would fail again.
    """
    if not isinstance(error, errors.DatabaseError) or isinstance(error, errors.IntegrityError):
        return False
    return error.code != "catalog.conflict" and context.engine.lost_race(error)


def _changed(context: Context, *, schema_changed: bool, plans_hold: bool) -> None:
    if schema_changed:
        context.state.flows.clear()
    if not plans_hold:
        context.catalog.touch()


def require_drawing(context: Context, tokens: Sequence[Token]) -> None:
    """Refuse a query that draws, in a transaction that only reads, before it has drawn."""
    if context.state.read_only and sequence_draws.writes(context.catalog, tokens):
        require_writable(context)


def keep_sequences(context: Context, tokens: Sequence[Token]) -> None:
    """Make durable what a query has drawn: no one gets the same value again after a reconnect."""
    catalog = context.catalog
    if sequences.has_any(catalog) and sequence_draws.draws(catalog, tokens):
        if not sequences.are_temporary(sequences.states(context.local, catalog)):
            require_writable(context)
        _keep(context)


def keep_drawn(context: Context) -> None:
    """The same of what a statement has drawn that failed, or a transaction that was undone.

    Should this fail, they stay drawn in this session, and the next change stores them.
    """
    with suppress(errors.Error):
        if not context.in_transaction:
            _keep(context)
        else:
            sequences.bring(context.local, sequences.states(context.local, context.catalog))


def _keep(context: Context) -> None:
    if _cover(context):
        with writing(context):
            pass


def _cover(context: Context) -> bool:
    """See `blocks.cover`; what it claimed beside a transaction in which nothing has been changed is
    part of what that one sees.
    """
    state, version = context.state, context.catalog.version
    left = sequences.has_any(state.catalog) and blocks.cover(context)
    fresh = state.anew and state.catalog is state.saved and not context.store.holds
    if fresh and context.catalog.version != version:
        seen_state.follow(context)
    return left
