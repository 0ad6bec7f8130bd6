"""The session: the one place that orders the steps of a statement.

parse → analyse → rewrite → choose → split → check → seal literals → server → open → finish.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted import backends
from louver.trusted.executor import attached_files, dispatch, federation, select, show
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.columns import Columns
from louver.trusted.executor.containment import contained
from louver.trusted.executor.define import sequences, temporary_objects
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.local import transaction_time
from louver.trusted.executor.local.local_engine import Home
from louver.trusted.executor.parameters import Parameters, bound, split
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.executor.server_storage import ServerStorage
from louver.trusted.executor.stopped_sums import Stopped
from louver.trusted.executor.storage import Storage
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.local import Local
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import PinState
from louver.untrusted.engines.engine import Engine

_ATTEMPTS = 8
_UNBOUND = {f"duckdb.{kind}" for kind in ("binder", "catalog", "parser", "syntax", "permission")}


class Session:
    """One client of one database: its keys, its catalog, its ledger, its DuckDB at home."""

    transactional = True

    def __init__(
        self,
        engine: Engine,
        keyring: KeyRing,
        policy: Policy,
        *,
        modulus_bits: int = 2048,
        storage: Callable[[Session], Storage] = ServerStorage,
    ) -> None:
        self.engine, self.backend = engine, backends.named(engine.backend)
        self.policy = policy.stored_as(self.backend.storage)
        self.keyring = keyring
        self.store = CatalogStore(engine, keyring)
        self.home = Home()
        self.closed = False
        try:
            self.catalog: Catalog = self.store.load()
            self.storage = storage(self)
            self.ledger = Ledger(engine.side(), keyring, self.store.pin, lambda: self.catalog)
            self.row_ids = RowIds(engine.side(), self.store.pin)
            self.stopped = Stopped(self.store.pin)
            self.columns = Columns(
                keyring, self.catalog, modulus_bits, self.home.value, self.stopped.add
            )
            self.planner = Planner(self.home, self.columns.modulus_bits, lambda _: self.backend)
            self.planner.stopped = self.stopped
            self.home.rebuild(self.catalog)
        except BaseException:
            self.home.close()
            raise
        #: what changes show, by table and shape of the statement
        self.flows: dict[tuple[tuple[str, str], str], tuple[Fact, ...]] = {}
        self._saved: Catalog | None = None
        self.redefined = False  # whether the open transaction may have changed the home
        self.aborted = self._read_only = False
        self.untouched = False  # what fails now has changed nothing: the transaction goes on
        #: when the open transaction began, and the instance at home that says that time
        self._began = datetime.now(UTC)
        self._fixed: duckdb.DuckDBPyConnection | None = None
        #: other connections whose tables queries may read, by schema
        self.attached: dict[str, Session] = {}
        # the statements of PREPARE by folded name, each with the search path that it had
        self.prepared: dict[str, tuple[lexer.Text, tuple[str, ...]]] = {}
        self.local = Local()  # what the session's variables depend on

    # ------------------------------------------------------------------ statements

    def execute(self, sql: str, parameters: Parameters = None) -> Answer:
        """Run every statement of a text; the last one's answer."""
        if self.closed:
            raise errors.make("connection.closed")
        answer, notices = Answer(), list[str]()
        with contained(self):
            for text in split(sql, parameters):
                try:
                    answer = self.run(text, bound(text, parameters))
                except KeyboardInterrupt:
                    self.engine.interrupt()
                    raise
                notices += answer.notices
        answer.notices = notices
        return answer

    def run(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one statement."""
        found = lexer.tokens(text.plain)
        handler = dispatch.handler(found, self)
        if self.aborted and handler is not dispatch.transaction:
            raise errors.make("transaction.aborted")
        if not self.in_transaction:
            self.refresh(found)
        elif self._fixed is not self.home.schema and transaction_time.asked(self.catalog, found):
            transaction_time.fix(self.home, self._began)
            self._fixed = self.home.schema
        attached_files.require_readable(self, found)
        try:
            return self._repeated(handler, text, found, parameters)
        except errors.Error as error:
            # As in DuckDB: a statement that fails while it runs ends the transaction, one that
            # does not bind leaves it usable.
            failed = error.code.startswith("duckdb.") and error.code not in _UNBOUND
            if failed or isinstance(error, errors.IntegrityError | errors.DataError):
                self.aborted = self.in_transaction
            federation.require_found(self, error)
            raise

    def _outrun(self) -> bool:
        """Whether what looked like tampering may be rows that another client wrote."""
        return not self.in_transaction and self.store.current_version() != self.catalog.version

    def _repeated(
        self,
        handler: dispatch.Handler,
        text: lexer.Text,
        found: Sequence[Token],
        parameters: list[object],
    ) -> Answer:
        """Run a handler; again where another client wrote, or opened a layer, while it read."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return handler(self, text, found, parameters)
            except errors.VerificationError:
                if not self._outrun():
                    raise
                if handler is dispatch.select:
                    return self._in_snapshot(lambda: handler(self, text, found, parameters))
            except errors.OperationalError as error:
                repeatable = handler is dispatch.select and not self.in_transaction
                if error.code != "catalog.conflict" or not repeatable:
                    raise
            self.refresh()
        return self._without_openings(lambda: handler(self, text, found, parameters))

    def _without_openings(self, run: Callable[[], Answer]) -> Answer:
        """Run a query on the layers that are open: another client keeps the rest from opening."""
        self.planner.forget()
        self.planner.opens_layers = False
        try:
            return run()
        finally:
            self.planner.opens_layers = True
            self.planner.forget()

    def _in_snapshot(self, run: Callable[[], Answer]) -> Answer:
        """Run a query on one state of the server, catalog and data together."""
        self._fix_state()
        try:
            return run()
        finally:
            self.engine.commit()
            self.store.committed()

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Answer:
        """Run a SELECT of the session's own."""
        return self.select(lexer.split(sql)[0], list(parameters))

    def select(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one query, and nothing around it."""
        return dispatch.select(self, text, lexer.tokens(text.plain), parameters)

    def bound(self, text: lexer.Text, parameters: Parameters) -> list[object]:
        """The values of a statement's placeholders, in the order of the text."""
        return bound(text, parameters)

    def described(
        self, text: lexer.Text, parameters: list[object]
    ) -> tuple[list[tuple[str, str]], dict[str, float]] | None:
        """Names and types of a query's columns, and the milliseconds that planning it took; None
        for what is no query that can be planned before it runs.
        """
        with contained(self):
            return select.described(self, text, parameters)

    def would_send(self, text: lexer.Text, parameters: list[object]) -> list[str]:
        """What each server would be sent for a query; nothing is sent."""
        with contained(self):
            return show.would_send(self, text, parameters)

    def explained(
        self, text: lexer.Text, parameters: list[object], *, leakage: bool = False,
        form: str = "text",
    ) -> str:  # fmt: skip
        """What would happen on a query, and with ``leakage`` what it would newly show."""
        with contained(self):
            return show.explained(self, text, parameters, leakage=leakage, form=form)

    def _fix_state(self) -> None:
        """Begin a transaction whose first read fixes the state that it sees: the catalog's."""
        seen = self.store.pin.read()
        self.engine.begin()
        try:
            self.refresh(seen=seen)
        except BaseException:
            self.engine.rollback()
            raise

    def refresh(self, found: Sequence[Token] = (), seen: PinState | None = None) -> None:
        """Take over what another client has committed, of the tables that a statement may name, or
        of all; ``seen`` see `CatalogStore.load`.
        """
        if self.store.current_version() != self.catalog.version:
            self.adopt(
                temporary_objects.kept(self.catalog, self.store.load(seen)), schema_changed=True
            )
            self.ledger.refresh()
        self.storage.refresh(self._named(found))

    def _named(self, found: Sequence[Token]) -> list[Table]:
        tables = list(self.catalog.tables.values())
        if not found or any(item.kind in ("VIEW", "MACRO") for item in self.catalog.objects):
            return tables
        words = {fold(token.text) for token in found}
        return [table for table in tables if fold(table.name) in words]

    def adopt(self, catalog: Catalog, *, schema_changed: bool) -> None:
        """Make another catalog the session's own."""
        catalog.path, self.catalog = self.catalog.path, catalog
        self.columns.catalog = catalog
        self.planner.forget()
        self.flows.clear()
        if schema_changed:
            self.home.rebuild(catalog)
            self.home.forget_types()

    @property
    def in_transaction(self) -> bool:
        """Whether the user has said BEGIN."""
        return self._saved is not None

    def begin(self, *, read_only: bool = False) -> None:
        """BEGIN: row numbers are claimed before, so that a rollback cannot give them back."""
        if self.in_transaction:
            before, self.aborted = self.aborted, True  # as in DuckDB
            raise errors.make("transaction.aborted" if before else "transaction.active")
        self.row_ids.ensure(self.catalog)
        self._fix_state()
        self._saved = self.catalog.copy()
        self.redefined, self._read_only, self._began = False, read_only, datetime.now(UTC)

    def require_writable(self) -> None:
        """Refuse a change in a transaction that only reads, which ends it as in DuckDB."""
        if self.in_transaction and self._read_only:
            self.aborted = True
            raise errors.make("transaction.read_only")

    def commit(self) -> None:
        """COMMIT: data, catalog and bounds at once."""
        if self._saved is None:
            raise errors.make("transaction.none")
        if self.aborted:
            self.rollback()
            raise errors.make("transaction.aborted")
        saved, self._saved = self._saved, None
        self._release()
        try:
            self.storage.flush()
            self.engine.commit()
        except BaseException:
            if self.engine.in_transaction:
                with suppress(Exception):
                    self.engine.rollback()
            self._back_to(saved, schema_changed=True)
            raise
        self._committed()

    def rollback(self) -> None:
        """ROLLBACK."""
        if self._saved is None:
            raise errors.make("transaction.none")
        saved, self._saved, self.aborted = self._saved, None, False
        self._release()
        with suppress(Exception):
            self.engine.rollback()
        self._back_to(saved, schema_changed=self.redefined)
        sequences.keep_drawn(self)

    def _release(self) -> None:
        """The time goes on at the end of a transaction."""
        if self._fixed is self.home.schema:
            transaction_time.release(self.home)
        self._fixed = None

    def _back_to(self, saved: Catalog, *, schema_changed: bool) -> None:
        """Take an earlier catalog back; what sequences gave since then, they do not give again."""
        drawn = sequences.states(self, saved) if schema_changed else {}
        self._undone()
        with self.home.temporary.undoing(self.home):
            self.adopt(saved, schema_changed=schema_changed)
        sequences.restore(self, drawn)

    def _committed(self) -> None:
        self.store.committed()
        self.storage.committed()
        self.home.temporary.before = None

    def _undone(self) -> None:
        self.store.rolled_back()
        self.storage.undone()

    def _save(self, before: Catalog, catalog: Catalog) -> None:
        """Write the catalog, unless all that changed is rows of files that lie elsewhere."""
        if self.backend.catalog_counts or catalog.without_counts() != before.without_counts():
            self.store.save(catalog)

    @contextmanager
    def writing(
        self, *, schema_changed: bool = False, plans_hold: bool = False
    ) -> Iterator[Catalog]:
        """A change of data and catalog, all or nothing. Plans are forgotten unless they hold, as
        they do when a layer opens, which changes neither rows nor schema.

        The block changes the catalog that it is given and the server; the catalog is saved in
        the same server transaction. A failure in the user's own transaction aborts that one.
        """
        if not plans_hold:
            self.require_writable()
        if self.in_transaction:
            self.redefined = self.redefined or schema_changed
            self.untouched = False
            try:
                saved = self.catalog if self.backend.catalog_counts else self.catalog.copy()
                yield self.catalog
                self._save(saved, self.catalog)
            except BaseException:
                self.aborted = not self.untouched
                raise
            self._changed(schema_changed=schema_changed, plans_hold=plans_hold)
            return
        before = self.catalog
        self.catalog = self.columns.catalog = before.copy()
        self.row_ids.ensure(before)
        self.engine.begin()
        try:
            yield self.catalog
            self._save(before, self.catalog)
            self.storage.flush()
            self.engine.commit()
        except BaseException:
            if self.engine.in_transaction:
                with suppress(Exception):
                    self.engine.rollback()
            self._back_to(before, schema_changed=schema_changed)
            raise
        self._committed()
        self._changed(schema_changed=schema_changed, plans_hold=plans_hold)

    def _changed(self, *, schema_changed: bool, plans_hold: bool) -> None:
        if schema_changed:
            self.flows.clear()
        if not plans_hold:
            self.planner.forget()

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """Rows as Python values."""
        return self.home.python_rows(rows)

    def close(self) -> None:
        """End the session; an open transaction is undone."""
        if self.closed:
            return
        self.closed = True
        if self.in_transaction:
            with suppress(errors.Error):
                self.rollback()
        for other in self.attached.values():
            other.close()
        self.home.close()
        self.engine.close()
