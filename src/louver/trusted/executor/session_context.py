"""What a session is made of: the database as it is found, the local engine of its language, and
the context in which its statements run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from louver import errors
from louver.trusted import backends
from louver.trusted.backends.backend import Backend
from louver.trusted.executor import dispatch
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.columns import Columns
from louver.trusted.executor.context import Context, Opener
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.executor.state import State
from louver.trusted.executor.stopped_sums import Stopped
from louver.trusted.executor.storage import Parts, Storage
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import DUCKDB, Catalog
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine, Named
from louver.wire.messages import Statement

Runner = Callable[[Context, lexer.Text, list[object]], Answer]
"""Runs one statement."""


@dataclass(frozen=True, slots=True)
class Database:
    """A database as it was found."""

    engine: Engine
    backend: Backend
    store: CatalogStore
    state: State


def database_of(engine: Engine, keyring: KeyRing, language: str, *, writable: bool) -> Database:
    """The database that an engine holds. One that is created gets the language, or that of its
    backend; one that is there must have it.
    """
    backend = backends.named(engine.backend)
    if backend.probe:
        extensions = engine.query(Statement(backend.probe)).column(0).to_pylist()
        backend = backend.having(extensions)
    store = CatalogStore(
        engine,
        keyring,
        shared=backend.concurrent,
        embedded=backend.embedded,
        language=backend.speaking(language or backend.languages[0]).local_dialect,
    )
    catalog = store.load()
    if language and catalog.language != language:
        raise errors.make("language.other", own=catalog.language, given=language)
    state = State(catalog, writable=writable)
    return Database(engine, backend.speaking(catalog.language), store, state)


def local_engine(language: str, engine: Engine) -> LocalEngine:
    """The local engine of a language, for a session of an engine's."""
    if language == DUCKDB:
        return DuckDBLocalEngine()
    if language == "postgres":
        from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine

        return PostgresLocalEngine(engine.identity if isinstance(engine, Named) else ("", ""))
    raise errors.make("internal", detail=f"no local engine speaks {language:.40}")


def of(
    database: Database,
    keyring: KeyRing,
    policy: Policy,
    local: LocalEngine,
    modulus_bits: int,
    storage: Callable[[Parts], Storage],
    opener: Opener,
    runner: Runner,
) -> Context:
    """The context of a session on a database; ``runner`` runs its statements."""
    engine, backend, store = database.engine, database.backend, database.store
    state, writable = database.state, database.state.writable
    state.planning = replace(state.planning, opens_layers=writable)
    state.origins.files = local.files.tables
    stopped = Stopped(store.pin)
    ledger = Ledger(engine.side(), keyring, store.pin, lambda: state.catalog, writable=writable)
    publish = partial(_publish, store) if backend.concurrent else None
    row_ids = RowIds(engine.side(), store.pin, publish)
    columns = Columns(keyring, lambda: state.catalog, modulus_bits, local.value, stopped.add)
    columns.tiles = partial(_tiles, engine, backend, columns) if backend.has_tiles else None
    planner = Planner(local, columns.modulus_bits, lambda _: backend)
    entries = storage(Parts(engine, backend, store.pin, local, ledger, row_ids, columns, state))
    return Context(
        engine=engine,
        backend=backend,
        keyring=keyring,
        policy=policy.stored_on(backend),
        store=store,
        local=local,
        ledger=ledger,
        row_ids=row_ids,
        stopped=stopped,
        columns=columns,
        storage=entries,
        planner=planner,
        state=state,
        runner=runner,
        require_known=dispatch.handler,
        opener=opener,
    )


def _tiles(engine: Engine, backend: Backend, columns: Columns) -> Any:
    """What reads tiles, which few sessions need."""
    from louver.trusted.executor.tiles.reading import Tiles

    return Tiles(engine, backend, lambda: columns.keyring)


def _publish(store: CatalogStore, own: Catalog, number: int, bits: str) -> None:
    def add(newest: Catalog) -> bool:
        newest.epochs = newest.epochs.adding(number, bits)
        return True

    store.amend(own, add)
