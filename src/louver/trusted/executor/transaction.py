"""Transactions: data, catalog and bounds change together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TypeVar

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import transaction_time
from louver.trusted.executor.schema import sequences
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.pin import PinState

Done = TypeVar("Done")


def refresh(context: Context, tokens: Sequence[Token] = (), seen: PinState | None = None) -> None:
    """Take over what another client has committed, of the tables that a statement may name, or
    of all; ``seen`` see `CatalogStore.load`.
    """
    if context.store.current_version() != context.catalog.version:
        loaded = context.store.load(seen)
        before = context.catalog
        loaded.objects += [item for item in before.objects if item.temporary]
        # What others wrote is rows, mostly: the local engine is built of declarations alone.
        adopt(context, loaded, schema_changed=_declared(loaded) != _declared(before))
        context.ledger.refresh()
    context.storage.refresh(_named(context.catalog, tokens))


def _declared(catalog: Catalog) -> object:
    """All that the local engine is built of."""
    tables = [
        (table.schema, table.name, table.id, [_column(column) for column in table.columns])
        for table in catalog.tables.values()
    ]
    # Temporary objects are the session's own, wherever they stand.
    objects = sorted(catalog.objects, key=lambda item: item.temporary)
    return tables, objects, catalog.settings


def _column(column: Column) -> object:
    return (column.name, column.type, column.id, column.nullable, column.expression)


def _named(catalog: Catalog, tokens: Sequence[Token]) -> list[Table]:
    tables = list(catalog.tables.values())
    if not tokens or any(item.kind in ("VIEW", "MACRO") for item in catalog.objects):
        return tables
    words = {fold(token.text) for token in tokens}
    return [table for table in tables if fold(table.name) in words]


def adopt(context: Context, catalog: Catalog, *, schema_changed: bool) -> None:
    """Make another catalog the session's own."""
    catalog.path = context.catalog.path
    catalog.touch()
    context.state.catalog = catalog
    context.state.flows.clear()
    if schema_changed:
        context.local.rebuild(catalog)
        context.local.forget_types()


def begin(context: Context, *, read_only: bool = False) -> None:
    """BEGIN: row numbers are claimed before, so that a rollback cannot give them back."""
    state = context.state
    if state.in_transaction:
        before, state.aborted = state.aborted, True  # as in DuckDB
        raise errors.make("transaction.aborted" if before else "transaction.active")
    if state.writable:
        context.row_ids.ensure(context.catalog)
    _fix_state(context)
    state.saved = state.catalog.copy()
    state.redefined, state.read_only, state.began = False, read_only, datetime.now(UTC)


def _fix_state(context: Context) -> None:
    """Begin a transaction whose first read fixes the state that it sees: the catalog's."""
    seen = context.store.pin.read()
    context.engine.begin()
    try:
        refresh(context, seen=seen)
    except BaseException:
        context.engine.rollback()
        raise


def in_snapshot(context: Context, run: Callable[[], Done]) -> Done:
    """Run a query on one state of the server, catalog and data together."""
    _fix_state(context)
    try:
        return run()
    finally:
        context.engine.commit()
        context.store.committed()


def require_writable(context: Context) -> None:
    """Refuse a change on a connection that only reads, and in a transaction that only reads, which
    ends it as in DuckDB.
    """
    if not context.state.writable:
        raise errors.make("connection.read_only")
    if context.in_transaction and context.state.read_only:
        context.state.aborted = True
        raise errors.make("transaction.read_only")


def fix_time(context: Context, tokens: Sequence[Token]) -> None:
    """Within a transaction the time stands still for the statements that ask for it."""
    state, binder = context.state, context.local.binder
    if state.fixed is not binder and transaction_time.reads_time(context.catalog, tokens):
        transaction_time.fix(context.local, state.began)
        state.fixed = binder


def commit(context: Context) -> None:
    """COMMIT: data, catalog and bounds at once."""
    state = context.state
    if state.saved is None:
        raise errors.make("transaction.none")
    if state.aborted:
        rollback(context)
        raise errors.make("transaction.aborted")
    saved, state.saved = state.saved, None
    _release(context)
    try:
        context.storage.flush(lambda table: _is_keyed(context, table))
        context.engine.commit()
    except BaseException:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        _back_to(context, saved, schema_changed=True)
        raise
    _committed(context)


def rollback(context: Context) -> None:
    """ROLLBACK."""
    state = context.state
    if state.saved is None:
        raise errors.make("transaction.none")
    saved, state.saved, state.aborted = state.saved, None, False
    _release(context)
    with suppress(Exception):
        context.engine.rollback()
    _back_to(context, saved, schema_changed=state.redefined)
    keep_drawn(context)


def _release(context: Context) -> None:
    """The time goes on at the end of a transaction."""
    if context.state.fixed is context.local.binder:
        transaction_time.release(context.local)
    context.state.fixed = None


def _back_to(context: Context, saved: Catalog, *, schema_changed: bool) -> None:
    """Take an earlier catalog back; what sequences gave since then, they do not give again."""
    drawn = sequences.states(context.local, saved) if schema_changed else {}
    context.store.rolled_back()
    context.storage.undone()
    with context.local.temporary.undoing(context.local):
        adopt(context, saved, schema_changed=schema_changed)
    sequences.restore(context.local, drawn)


def _committed(context: Context) -> None:
    context.store.committed()
    context.storage.committed()
    context.local.temporary.before = None


def _is_keyed(context: Context, table: Table) -> bool:
    """Whether rows that somebody else has written since would have had to be looked at."""
    return bool(constraint_check.rules(context, table).keys)


def _save(context: Context, before: Catalog, catalog: Catalog) -> None:
    """Write the catalog, unless all that changed is rows of files that lie elsewhere."""
    context.columns.note_hints(catalog)
    if context.backend.catalog_counts or catalog.without_counts() != before.without_counts():
        context.store.save(catalog)


@contextmanager
def writing(
    context: Context, *, schema_changed: bool = False, plans_hold: bool = False
) -> Iterator[Catalog]:
    """A change of data and catalog, all or nothing. Plans are forgotten unless they hold, as
    they do when a layer opens, which changes neither rows nor schema.

    The block changes the catalog that it is given and the server; the catalog is saved in
    the same server transaction. A failure in the user's own transaction aborts that one.
    """
    state = context.state
    if not plans_hold or not state.writable:
        require_writable(context)
    if state.in_transaction:
        state.redefined = state.redefined or schema_changed
        state.untouched = False
        try:
            saved = state.catalog if context.backend.catalog_counts else state.catalog.copy()
            yield state.catalog
            _save(context, saved, state.catalog)
        except BaseException:
            state.aborted = not state.untouched
            raise
        _changed(context, schema_changed=schema_changed, plans_hold=plans_hold)
        return
    before = state.catalog
    state.catalog = before.copy()
    context.row_ids.ensure(before)
    context.engine.begin()
    try:
        yield state.catalog
        _save(context, before, state.catalog)
        context.storage.flush(lambda table: _is_keyed(context, table))
        context.engine.commit()
    except BaseException as error:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        _back_to(context, before, schema_changed=schema_changed)
        if _lost(context, error):
            raise errors.make("catalog.conflict") from error
        raise
    _committed(context)
    _changed(context, schema_changed=schema_changed, plans_hold=plans_hold)


def _lost(context: Context, error: BaseException) -> bool:
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


# ---------------------------------------------------------------------- sequences


def keep_sequences(context: Context, tokens: Sequence[Token]) -> None:
    """Make durable what a query has drawn: no one gets the same value again after a reconnect."""
    catalog = context.catalog
    if not sequences.has_any(catalog) or not sequence_draws.draws(catalog, tokens):
        return
    if sequences.are_temporary(sequences.states(context.local, catalog)):
        sequences.save(context.local, catalog)
        return
    with writing(context) as working:
        sequences.save(context.local, working)


def keep_drawn(context: Context) -> None:
    """The same of what a statement has drawn that failed, or a transaction that was undone.

    Should this fail, they stay drawn in this session, and the next change stores them.
    """
    drawn = sequences.states(context.local, context.catalog)
    if not drawn:
        return
    if context.in_transaction or sequences.are_temporary(drawn):
        sequences.save(context.local, context.catalog)
        return
    with suppress(errors.Error), writing(context) as working:
        sequences.save(context.local, working)
