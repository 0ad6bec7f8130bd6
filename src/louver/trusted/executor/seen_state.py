"""Which state of the database a session sees, and the catalog that describes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.object_texts import built_of
from louver.trusted.executor.schema import blocks
from louver.trusted.executor.state import Growth
from louver.trusted.executor.table_basis import is_same, require_same
from louver.trusted.planner.sql.resolver import name_words
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.pin import PinState
from louver.untrusted.engines.engine import Nesting


def refresh(context: Context, tokens: Sequence[Token] = (), seen: PinState | None = None) -> None:
    """Take over what others committed of a statement's tables, or of all (`CatalogStore.load`)."""
    version = context.catalog.version
    if context.store.current_version() != version or not context.store.knows(version):
        loaded = context.store.load(seen)
        before = context.catalog
        blocks.carry(context, loaded)
        loaded.objects += [item for item in before.objects if item.temporary]
        # What others wrote is rows, mostly: the local engine is built of declarations alone.
        adopt(context, loaded, schema_changed=built_of(loaded) != built_of(before))
        context.state.growth = Growth()
        context.ledger.refresh()
    if not context.backend.catalog_counts:
        context.storage.refresh(_named(context.catalog, tokens))


def is_outrun(context: Context, version: int) -> bool:
    """Whether what looked like tampering may be what another client did meanwhile, since a version
    of the catalog: rows of a new epoch may have had the session read a newer one.
    """
    if context.in_transaction:
        return False
    return context.store.current_version() != version


def join(context: Context, seen: PinState) -> None:
    """Take over what others have added to the catalog for their rows, in a transaction that has
    changed rows itself, and begun anew after ``seen``; `catalog.conflict` where more is otherwise.
    Savepoints return to the same.
    """
    state, own = context.state, context.catalog
    if context.store.current_version() == own.version:
        return
    loaded = context.store.load(seen)
    blocks.carry(context, loaded)
    require_same(own, loaded)
    for point in state.savepoints:
        require_same(own, point.catalog)
    loaded.objects += [item for item in own.objects if item.temporary]
    saved = loaded.copy()
    saved.path = own.path
    state.growth.into(loaded, own)
    adopt(context, loaded, schema_changed=False)
    state.saved = saved
    state.savepoints[:] = [replace(point, catalog=loaded) for point in state.savepoints]


def _named(catalog: Catalog, tokens: Sequence[Token]) -> list[Table]:
    tables = list(catalog.tables.values())
    if not tokens or any(item.kind in ("VIEW", "MACRO") for item in catalog.objects):
        return tables
    words = name_words(tokens)
    return [table for table in tables if fold(table.name) in words]


def adopt(context: Context, catalog: Catalog, *, schema_changed: bool) -> None:
    """Make another catalog the session's own."""
    catalog.path = context.catalog.path
    catalog.touch()
    if catalog is not context.state.catalog:
        # What rows add to a catalog decides nothing of what changes may depend on.
        if not is_same(context.state.catalog, catalog):
            context.state.flows.clear()
        context.state.catalog = catalog
    if schema_changed:
        context.local.rebuild(catalog)
        context.local.forget_types()
        if isinstance(context.engine, Nesting):
            context.engine.forget_plans()


def own_catalog(context: Context) -> Catalog:
    """The catalog of the open transaction, to be changed: ROLLBACK returns to another one."""
    state = context.state
    if any(held is state.catalog for held in (state.saved, *(p.catalog for p in state.savepoints))):
        state.catalog = state.catalog.copy()
    return state.catalog


def fix_state(context: Context, *, serializable: bool = False, known: bool = False) -> None:
    """Begin a transaction whose first read fixes the state that it sees: the catalog's; or the
    statement's that comes next, which raises `catalog.conflict` if the catalog is not the ``known``
    one any more.
    """
    seen, engine = context.store.pin.read(), context.engine
    if serializable and not isinstance(engine, Nesting):
        raise errors.make("sql.unsupported", statement="ISOLATION LEVEL SERIALIZABLE")
    engine.begin()
    try:
        if serializable and isinstance(engine, Nesting):
            engine.serialize()
        if known:
            if isinstance(engine, Nesting):
                engine.remember()
            context.store.versions.expect(context.catalog.version)
        else:
            refresh(context, seen=seen)
    except BaseException:
        context.engine.rollback()
        raise


def follow(context: Context) -> None:
    """Let the open transaction, which has changed nothing, see what is committed by its next
    statement, which raises `catalog.conflict` where it is not under this catalog.
    """
    engine = context.engine
    if not isinstance(engine, Nesting):
        raise errors.make("internal", detail="a transaction that cannot begin anew")
    engine.begin_anew()
    engine.remember()
    context.store.versions.expect(context.catalog.version)


@contextmanager
def same_state(context: Context) -> Iterator[None]:
    """Reads of one state of all tables, under the catalog that describes it: else
    `catalog.conflict`, and nothing was read.
    """
    fixed = context.in_transaction or context.engine.in_transaction
    if fixed or context.attached or not context.backend.catalog_counts:
        yield
        return
    context.engine.begin()
    try:
        context.store.versions.expect(context.catalog.version)
        yield
        context.engine.commit()
    except BaseException:
        if context.engine.in_transaction:
            with suppress(Exception):
                context.engine.rollback()
        raise
