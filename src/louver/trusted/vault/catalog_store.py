"""Storage of the catalog: one encrypted row next to the data.

It is bound to the database and to its version, saved in the same server transaction as the data
that it describes, and compared with the local pin whenever it is read.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from louver import errors
from louver.trusted.vault import catalog_text, process_version
from louver.trusted.vault.catalog import DUCKDB, Catalog
from louver.trusted.vault.pin import Keys, Pin, Pins, PinState, is_other_file
from louver.trusted.vault.writers import Position, Seen, Versions, Writers, turn, written
from louver.untrusted.engines.engine import Engine
from louver.wire import control
from louver.wire.messages import Statement

Carry = Callable[[str, str], tuple[int, str]]
"""Writes the ledger of one identity under another one; its length and hash."""
ORIGIN = "origin"
"""The setting of a catalog with the first identity of a database that began as a copy."""
_PURPOSE = "catalog"
_PATIENCE_S = 10.0
"""How long an addition to the catalog waits for others."""
_MAX_VERSION = 1 << 62


class CatalogStore:
    """Loads and saves the catalog of one database through one connection."""

    def __init__(
        self, engine: Engine, keys: Keys, pins: Pins | None = None, *, shared: bool = False,
        embedded: bool = False, language: str = DUCKDB,
    ) -> None:  # fmt: skip
        """A store on `engine`; call `load` first. Where it is ``shared``, rows are written without
        a new version (`Writers`); where it is ``embedded``, only this process writes. A database
        that is created gets the ``language``.
        """
        self._language = language
        self._engine = engine
        self._embedded = embedded
        self._process = process_version.Part(engine.address if embedded else "")
        self.versions = Versions(engine, self._process)
        self.writers = Writers(engine) if shared else None
        self._beside: CatalogStore | None = None
        self._keys = keys
        self._pins = pins or Pins(keys)
        self._pin: Pin | None = None
        self._known: Seen | None = None
        self._pending: Seen | None = None

    @property
    def shared(self) -> bool:
        """Whether rows are written, and numbers claimed, beside versions of the catalog."""
        return self.writers is not None

    @property
    def pin(self) -> Pin:
        """The pin of the loaded database."""
        if self._pin is None:
            raise errors.make("internal", detail="the catalog has not been loaded")
        return self._pin

    def load(self, seen: PinState | None = None) -> Catalog:
        """The server's catalog, verified; a new one if the server is empty.

        ``seen`` is the pin before the reading transaction began: the transaction need not show what
        other sessions have committed since.
        """
        # The order matters: a session that creates the database concurrently commits, then pins.
        address = self._engine.address
        known = self._pins.database_at(address) if address else None
        if self._pin is None and known is not None:
            self._pin = self._pins.pin(known, persistent=True)
        if seen is None and self._pin is not None:
            seen = self._pin.read()
        if self._known is None:
            self._process.begin()
        names = self._engine.table_names()
        if self.writers is not None:
            self.writers.prepare(names)
        if control.CATALOG_TABLE not in names:
            if known is not None and self._engine.created:
                raise self._error("catalog.gone")
            if known is not None or any(map(_is_strange, names)):
                raise self._error("catalog.missing")
            try:
                return self._create()
            except errors.OperationalError as error:
                # Two sessions that start together may both try to create it; the slower one reads.
                if error.code != "catalog.conflict" or self._engine.in_transaction:
                    raise
        rows = self._engine.query(control.CATALOG_READ).to_pylist()
        if len(rows) != 1:
            raise self._error("catalog.format", f"{len(rows)} rows instead of 1")
        version, database_id = rows[0]["version"], rows[0]["database_id"]
        key_id, body = rows[0]["key_id"], rows[0]["body"]
        named = isinstance(version, int) and isinstance(database_id, str)
        if not named or not isinstance(body, bytes):
            raise self._error("catalog.format", "columns of other types")
        if key_id != self._keys.key_id:
            raise errors.make("key.wrong", key_id=self._keys.key_id)
        catalog, text = self._open(version, database_id, body)
        self._check_address(database_id)
        if self._pin is None or self._pin.database_id != database_id:
            self._pin, seen = (
                self._pins.pin(database_id, persistent=bool(self._engine.address)),
                None,
            )
        self._accept(catalog, catalog_text.fingerprint(text), seen or self._pin.read())
        return catalog

    def current_version(self) -> int:
        """The version on the server as this connection sees it; cheap, read for every statement."""
        return self.versions.current()

    def knows(self, version: int) -> bool:
        """Whether a version was loaded or saved here, and not by a transaction that was undone."""
        return any(item is not None and item.version == version for item in self._seen())

    def save(self, catalog: Catalog) -> None:
        """Write the next version in the current server transaction.

        If another client wrote a version in between, `catalog.conflict` is raised and nothing is
        written. Call `committed` or `rolled_back` when the transaction has ended.
        """
        self.exclude()
        self._process.begin_saving()
        base = self._base(catalog)
        fresh = catalog.version + 1
        before = (catalog.previous, catalog.stamp)
        catalog.version, catalog.previous = fresh, base.fingerprint
        catalog.stamp = secrets.token_hex(8)
        try:
            text = catalog.to_json()
            body = self._seal(catalog, text)
            update = Statement(control.CATALOG_UPDATE, (fresh, body, base.version), kind="write")
            if written(self._engine, update) != 1:
                raise errors.make("catalog.conflict")
        except BaseException:
            catalog.version = base.version
            catalog.previous, catalog.stamp = before
            raise
        self._pending = Seen(fresh, catalog_text.fingerprint(text))

    def amend(self, own: Catalog, add: Callable[[Catalog], bool]) -> None:
        """Add to the catalog what may be added while others write (bounds, epochs), at once: what
        this connection's transaction does has no part in it. ``add`` changes the newest version,
        and says whether it did; it may be called several times. ``own``, which has the addition or
        may get it by another call, becomes that version if it was the one before.
        """
        if self._beside is None:
            side = self._engine.side()
            self._beside = CatalogStore(side, self._keys, self._pins, embedded=self._embedded)
            self._beside._pin = self._pin
        end, longest_ms = time.monotonic() + _PATIENCE_S, 2
        while True:
            try:
                with turn(self._engine.address, "catalog"):
                    return self._follow(own, self._beside._amended(add))
            except errors.OperationalError as error:
                if error.code != "catalog.conflict" or time.monotonic() > end:
                    raise
            time.sleep(secrets.randbelow(longest_ms) / 1000)
            longest_ms = min(2 * longest_ms, 128)

    def _follow(self, own: Catalog, newest: Catalog | None) -> None:
        """Have a catalog be the version that was made from it."""
        if newest is None or newest.version != own.version + 1 or self._beside is None:
            return
        own.version, own.previous, own.stamp = newest.version, newest.previous, newest.stamp
        own.epochs = newest.epochs
        if self._pending is not None:
            self._pending = self._beside._known
        else:
            self._known = self._beside._known

    def _amended(self, add: Callable[[Catalog], bool]) -> Catalog | None:
        seen = self._pin.read() if self._pin is not None else None
        self._engine.begin()
        try:
            catalog = self.load(seen)
            changed = add(catalog)
            if changed:
                self.save(catalog)
            self._engine.commit()
        except BaseException as error:
            self.rolled_back()
            if self._engine.in_transaction:
                self._engine.rollback()
            if isinstance(error, errors.DatabaseError) and self._engine.lost_race(error):
                raise errors.make("catalog.conflict") from error
            raise
        self.committed()
        return catalog if changed else None

    def register(self) -> None:
        """Before a transaction that may change rows: get a token, unless there is one that knows
        of this version.
        """
        if self.writers is not None and self._known is not None:
            self.writers.register(self._known.version)

    def enter(self, *, refers: bool = False) -> None:
        """In a transaction, before it first changes rows: from here on no one saves a version
        beside it, nor has one been saved since `register`; else `catalog.conflict`. Where new rows
        ``refer`` to others, no one holds references beside it either.
        """
        if self.writers is not None:
            self.writers.enter(refers=refers)

    def hold_references(self) -> None:
        """In a transaction that removes keys, before it looks for rows that refer to these: from
        here on no one adds references beside it, nor has since the state that it reads; else
        `catalog.conflict`.
        """
        if self.writers is not None:
            self.writers.hold_references()

    def exclude(self, *, briefly: bool = False) -> None:
        """In a transaction that will save a version, before it reads what this depends on: from
        here on no one changes rows beside it; else `catalog.conflict`.
        """
        if self.writers is not None:
            self.writers.exclude(briefly=briefly)

    @property
    def holds(self) -> bool:
        """Whether the open transaction has changed rows, or saves a version."""
        return self.writers is not None and self.writers.held != (frozenset(), False)

    @property
    def saved(self) -> bool:
        """Whether the open transaction saves a version."""
        return self.writers is not None and self.writers.excluding

    def _ended(self) -> None:
        """The transaction was committed or undone."""
        if self.writers is not None:
            self.writers.ended()
        self._process.end_saving()

    def committed(self) -> None:
        """The server has committed the saved version: pin it."""
        self._ended()
        if self._pending is not None:
            self._known, self._pending = self._pending, None
            self.pin.advance_catalog(self._known.version, self._known.fingerprint)

    def rolled_back(self) -> None:
        """The server has rolled back the saved version: forget it."""
        self._ended()
        self._pending = None

    def position(self) -> Position:
        """What the open transaction holds and saves, as of a savepoint."""
        return self._pending, self.writers.held if self.writers else None

    def return_to(self, position: Position) -> None:
        """The server has gone back to a savepoint."""
        self._pending, held = position
        if self.writers is not None and held is not None:
            self.writers.held = held

    def fork(self, carry: Carry) -> Catalog:
        """Make the database at this address, a copy of another one, a database of its own.

        ``carry`` writes the ledger under the new identity and returns its length and hash. The
        pin of the original stays as it is. Column keys stay too: only rows written from now on
        differ, by the random bits of their epochs (decision 0014).
        """
        rows = self._engine.query(control.CATALOG_READ).to_pylist()
        if len(rows) != 1:
            raise self._error("catalog.format", f"{len(rows)} rows instead of 1")
        if rows[0]["key_id"] != self._keys.key_id:
            raise errors.make("key.wrong", key_id=self._keys.key_id)
        version, former = rows[0]["version"], rows[0]["database_id"]
        catalog, text = self._open(version, former, rows[0]["body"])
        catalog.settings.setdefault(ORIGIN, former)
        catalog.database_id, catalog.version = secrets.token_hex(16), version + 1
        catalog.previous, catalog.stamp = catalog_text.fingerprint(text), secrets.token_hex(8)
        text = catalog.to_json()
        replaced = (catalog.version, catalog.database_id, self._seal(catalog, text), version)
        self._process.begin_saving()
        self._engine.begin()
        try:
            length, head = carry(former, catalog.database_id)
            update = Statement(control.CATALOG_REPLACE, replaced, kind="write")
            if written(self._engine, update) != 1:
                raise errors.make("catalog.conflict")
            self._engine.commit()
        except BaseException:
            if self._engine.in_transaction:
                self._engine.rollback()
            raise
        finally:
            self._ended()
        self._pin = self._pins.pin(catalog.database_id, persistent=bool(self._engine.address))
        for column in self._pins.pin(former).read().stopped:
            self._pin.stop_sums((column[0], column[1]))
        self._pin.advance_catalog(catalog.version, catalog_text.fingerprint(text))
        self._pin.advance_ledger(length, head)
        if self._engine.address:
            self._pins.remember(self._engine.address, catalog.database_id)
        return catalog

    def _error(self, code: str, detail: str = "") -> errors.Error:
        return errors.make(code, place=self._engine.address or "this database", detail=detail)

    def _create(self) -> Catalog:
        address = self._engine.address
        catalog = Catalog.create(self._language)
        catalog.version, catalog.stamp = 1, secrets.token_hex(8)
        text = catalog.to_json()
        row = (1, catalog.database_id, self._keys.key_id, self._seal(catalog, text))
        own = not self._engine.in_transaction
        if own:
            self._engine.begin()
        try:
            written(self._engine, control.CATALOG_CREATE)
            if self.writers is not None:
                written(self._engine, control.WRITERS_CREATE)
            written(self._engine, Statement(control.CATALOG_INSERT, row, kind="write"))
            if own:
                self._engine.commit()
        except BaseException:
            if own and self._engine.in_transaction:
                self._engine.rollback()
            raise
        self._pin = self._pins.pin(catalog.database_id, persistent=bool(address))
        if address:
            self._pins.remember(address, catalog.database_id)
        self._accept(catalog, catalog_text.fingerprint(text), self._pin.read())
        return catalog

    def _check_address(self, database_id: str) -> None:
        """Refuse a database other than the one seen at this address with the same key."""
        address = self._engine.address
        if not address:
            return
        known = self._pins.database_at(address)
        if known is not None and known != database_id:
            raise self._error("catalog.replaced")
        if known is None:
            for other in self._pins.addresses_of(database_id):
                if is_other_file(address, other):
                    raise errors.make("catalog.copied", place=address, original=other)
        self._pins.remember(address, database_id)

    def _accept(self, catalog: Catalog, fingerprint: str, before: PinState) -> None:
        """Compare with the pin, then advance it, but not to a version that may be rolled back."""
        seen, address = Seen(catalog.version, fingerprint), self._engine.address or "this database"
        if self._pending == seen:
            return
        before.check_catalog(catalog.version, fingerprint, catalog.previous, address)
        if self._engine.in_transaction:
            self._pending = seen
        else:
            self._known, self._pending = seen, None
            self.pin.advance_catalog(catalog.version, fingerprint)

    def _seen(self) -> tuple[Seen | None, Seen | None]:
        return self._pending, self._known

    def _base(self, catalog: Catalog) -> Seen:
        for seen in self._seen():
            if seen is not None and seen.version == catalog.version:
                return seen
        raise errors.make("catalog.conflict")

    def _open(self, version: int, database_id: str, body: bytes) -> tuple[Catalog, bytes]:
        if not 0 < version < _MAX_VERSION:
            raise self._error("catalog.format", "version out of range")
        try:
            packed = self._keys.open_blob(_PURPOSE, f"{database_id}:{version}".encode(), body)
        except errors.VerificationError as error:
            raise self._error("catalog.tampered") from error
        text = catalog_text.unpack(packed)
        catalog = Catalog.from_json(text)
        if (catalog.version, catalog.database_id) != (version, database_id):
            raise self._error("catalog.tampered")
        return catalog, text

    def _seal(self, catalog: Catalog, text: bytes) -> bytes:
        context = f"{catalog.database_id}:{catalog.version}".encode()
        return self._keys.seal_blob(_PURPOSE, context, catalog_text.pack(text))


def _is_strange(name: str) -> bool:
    """Whether a table is not one of Louver's own, which a new database may already contain."""
    return not name.rpartition(".")[2].startswith("louver_")


def origin_of(catalog: Catalog) -> str:
    """What join groups of a policy are named after: keys derive from it, so a copy keeps it."""
    return str(catalog.settings.get(ORIGIN, catalog.database_id))
