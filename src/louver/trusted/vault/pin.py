"""Pins: the last state of a database that the client has seen, stored locally.

The catalog and the ledger are stored on the server, which could return old versions. The pin
records the last version seen and its hash, so that a rollback is detected. A pin file is
authenticated with the key ring, replaced atomically, and only ever advances.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from louver import errors

_FORMAT = 1
_MAX_BYTES = 4 << 20


class Keys(Protocol):
    """The part of a key ring that pins and the catalog use."""

    @property
    def key_id(self) -> str:
        """The public name of the key file."""
        ...

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        """Encrypt and authenticate `plain`, bound to purpose and context."""
        ...

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Undo `seal_blob`; VerificationError if it does not authenticate."""
        ...

    def mac(self, purpose: str, data: bytes) -> bytes:
        """A 32-byte authentication code under a key of this purpose."""
        ...


@dataclass(frozen=True, slots=True)
class PinState:
    """The furthest point of a database's history that this client has seen."""

    version: int = 0
    hash: str = ""
    ledger_length: int = 0
    ledger_hash: str = ""
    epoch: int = 0
    #: for every lake table, by id: the sequence of the last snapshot seen and its root's digest
    lake: dict[str, list[Any]] = field(default_factory=dict)
    #: columns whose sums did not verify, which the server no longer adds: table and column id
    stopped: list[list[int]] = field(default_factory=list)

    def check_catalog(self, version: int, fingerprint: str, previous: str, address: str) -> None:
        """Refuse a catalog that is older than the last one seen, or of another history."""
        forked = (version == self.version and fingerprint != self.hash) or (
            version == self.version + 1 and self.version > 0 and previous != self.hash
        )
        if version < self.version or forked:
            raise errors.make("catalog.rollback", place=address, found=version, seen=self.version)


def state_directory() -> Path:
    """Directory of the pins: $LOUVER_STATE_DIR, $XDG_STATE_HOME/louver or ~/.local/state/louver."""
    own = os.environ.get("LOUVER_STATE_DIR")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_STATE_HOME")
    return (Path(shared) if shared else Path.home() / ".local" / "state") / "louver"


class Pin:
    """The pin of one database; in memory only if there is no `path`."""

    def __init__(self, keys: Keys, database_id: str, path: Path | None) -> None:
        """A pin for the database with this id, in the file at `path`."""
        self._keys = keys
        self._memory = PinState()
        self.database_id = database_id
        self.path = path

    def read(self) -> PinState:
        """The last state seen; all zero if none was."""
        if self.path is None:
            return self._memory
        body = _read(self._keys, self.path, self.database_id)
        if body is None:
            return PinState()
        try:
            return PinState(**_typed(body))
        except (TypeError, AttributeError) as error:
            raise errors.make("pin.format", path=self.path, detail="unknown fields") from error

    def advance_catalog(self, version: int, fingerprint: str) -> None:
        """Record this catalog version, unless a later one has been seen already."""
        with self._locked() as seen:
            if version > seen.version:
                self._write(replace(seen, version=version, hash=fingerprint))

    def advance_ledger(self, length: int, head: str) -> None:
        """Record this length of the ledger, unless a longer one has been seen already."""
        with self._locked() as seen:
            if length > seen.ledger_length:
                self._write(replace(seen, ledger_length=length, ledger_hash=head))

    def claim_epoch(self, attempt: Callable[[int], int]) -> int:
        """Claim an epoch of row ids and record it, excluding other sessions with this pin.

        ``attempt`` receives the highest epoch claimed before, and returns 0 if it fails.
        """
        with self._locked() as seen:
            epoch = attempt(seen.epoch)
            if epoch > seen.epoch:
                self._write(replace(seen, epoch=epoch))
        return epoch

    def stop_sums(self, column: tuple[int, int]) -> None:
        """Record that the server no longer adds a column, given by table and column id."""
        with self._locked() as seen:
            if list(column) not in seen.stopped:
                self._write(replace(seen, stopped=[*seen.stopped, list(column)]))

    def resume_sums(self) -> None:
        """Let the server add every column again, at the user's request."""
        with self._locked() as seen:
            if seen.stopped:
                self._write(replace(seen, stopped=[]))

    def lake_seen(self, table: int) -> tuple[int, str]:
        """The last snapshot seen of a lake table: sequence and root digest; 0 for none."""
        sequence, digest = self.read().lake.get(str(table), [0, ""])
        return int(sequence), str(digest)

    def advance_lake(self, table: int, sequence: int, digest: str) -> None:
        """Record this snapshot of a lake table, unless a later one has been seen already."""
        with self._locked() as seen:
            if sequence > seen.lake.get(str(table), [0])[0]:
                self._write(replace(seen, lake=seen.lake | {str(table): [sequence, digest]}))

    def forget_lake(self, table: int) -> None:
        """Forget a table that was dropped; its id is never used again."""
        with self._locked() as seen:
            if str(table) in seen.lake:
                left = {name: value for name, value in seen.lake.items() if name != str(table)}
                self._write(replace(seen, lake=left))

    @contextmanager
    def _locked(self) -> Iterator[PinState]:
        """The pin, locked so that two sessions of one user do not move it backwards."""
        if self.path is None:
            yield self._memory
            return
        with _lock(self.path.parent):
            yield self.read()

    def _write(self, state: PinState) -> None:
        if self.path is None:
            self._memory = state
        else:
            _write(self._keys, self.path, self.database_id, asdict(state))


class Pins:
    """All pins of one key file, and the database seen at each address."""

    def __init__(self, keys: Keys, directory: Path | None = None) -> None:
        """Pins in `directory` (the user's state directory if None)."""
        self._keys = keys
        self.directory = directory or state_directory()

    def pin(self, database_id: str, persistent: bool = True) -> Pin:
        """The pin of a database; not `persistent` for one that ends with this process."""
        name = hashlib.sha256(database_id.encode()).hexdigest()[:32]
        path = self.directory / f"{self._keys.key_id}-{name}.pin"
        return Pin(self._keys, database_id, path if persistent else None)

    def address_path(self, address: str) -> Path:
        """The file that records which database was seen at an address."""
        name = hashlib.sha256(address.encode()).hexdigest()[:32]
        return self.directory / f"{self._keys.key_id}-{name}.place"

    def database_at(self, address: str) -> str | None:
        """The id of the database seen at an address; None if none was seen there."""
        path = self.address_path(address)
        body = _read(self._keys, path, address)
        if body is None:
            return None
        database_id = body.get("database_id")
        if not isinstance(database_id, str):
            raise errors.make("pin.format", path=path, detail="no id")
        return database_id

    def remember(self, address: str, database_id: str) -> None:
        """Record the database at an address, and the address for those who look for copies."""
        if self.database_at(address) == database_id and address in self.addresses_of(database_id):
            return
        with _lock(self.directory):
            path = self.address_path(address)
            _write(self._keys, path, address, {"database_id": database_id})
            known = dict.fromkeys(self._addresses(database_id), "") | {address: ""}
            _write(self._keys, self._copies_path(database_id), database_id, known)

    def addresses_of(self, database_id: str) -> list[str]:
        """The addresses at which a database was seen, where that is still what is remembered."""
        known = self._addresses(database_id)
        return [address for address in known if self.database_at(address) == database_id]

    def _addresses(self, database_id: str) -> list[str]:
        return list(_read(self._keys, self._copies_path(database_id), database_id) or ())

    def _copies_path(self, database_id: str) -> Path:
        name = hashlib.sha256(database_id.encode()).hexdigest()[:32]
        return self.directory / f"{self._keys.key_id}-{name}.places"

    def forget(self, address: str) -> None:
        """Forget what was seen at an address: the user accepts its current content."""
        known = self.database_at(address)
        paths = [self.address_path(address)]
        if known is not None:
            paths.extend(path for path in [self.pin(known).path] if path is not None)
        with _lock(self.directory):
            for path in paths:
                path.unlink(missing_ok=True)


def _read(keys: Keys, path: Path, subject: str) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise errors.make("pin.io", path=path, detail=str(error.strerror)) from error
    try:
        outer = json.loads(text)
        body = outer["body"]
        code = bytes.fromhex(outer["mac"])
        if outer["format"] != _FORMAT or not isinstance(body, str):
            raise ValueError("format")
        inner = json.loads(body)
        if not isinstance(inner, dict):
            raise ValueError("body")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise errors.make("pin.format", path=path, detail="not a pin") from error
    if not hmac.compare_digest(code, _code(keys, subject, body)):
        raise errors.make("pin.format", path=path, detail="its authentication tag does not match")
    return inner


def _typed(body: dict[str, Any]) -> dict[str, Any]:
    """The fields, each with its own type; TypeError or AttributeError otherwise."""
    plain = PinState()
    for name, value in body.items():
        if type(value) is not type(getattr(plain, name)):
            raise TypeError(name)
    for seen in body.get("lake", {}).values():
        if not isinstance(seen, list) or [type(part) for part in seen] != [int, str]:
            raise TypeError("lake")
    return body


def _write(keys: Keys, path: Path, subject: str, state: dict[str, Any]) -> None:
    """Replace the file atomically, so that a crash leaves the old pin or the new one."""
    body = json.dumps(state, separators=(",", ":"))
    outer = {"format": _FORMAT, "body": body, "mac": _code(keys, subject, body).hex()}
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(outer, file)
            file.flush()
            os.fsync(file.fileno())
        # The folder is not synced: after a crash the old pin may return, which is still valid.
        os.replace(fresh, path)
    except OSError as error:
        raise errors.make("pin.io", path=path, detail=str(error.strerror)) from error


def _code(keys: Keys, subject: str, body: str) -> bytes:
    return keys.mac("pin", subject.encode() + b"\0" + body.encode())


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise errors.make("pin.io", path=directory, detail=str(error.strerror)) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_other_file(address: str, known: str) -> bool:
    """Whether two addresses are of files, and not of the same one."""
    path, other = address.partition(":")[2], known.partition(":")[2]
    files = os.path.isfile(path) and os.path.isfile(other)
    return files and not os.path.samefile(path, other)
