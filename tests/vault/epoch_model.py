"""A model of clients, machines and a server that replays any state it ever saw.

The machine runs real sessions on real files. `Witness` is told of every row that was sealed, also
of those that were rolled back, takes the pads out of the ciphertexts, as who knows the values can,
and tries every sealed value wherever another history has a row of the same id.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa

from louver import errors
from louver.trusted.executor.columns import Columns
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.trusted.vault.schemes import eq
from louver.trusted.vault.schemes import ord as order
from louver.untrusted.engines.duckdb import DuckDBEngine

TABLE = (
    "CREATE TABLE t (id INT, v BIGINT ENC WITH (sum = 'masked'), s TEXT ENC,"
    " p BIGINT ENC USING sdb)"
)
_LIMB = 60
Place = tuple[int, int, int]


class PadTwiceError(BaseException):
    """Two rows share a pad."""


class AcceptedError(BaseException):
    """A sealed value opens as genuine in another row."""


@dataclass(slots=True)
class Sealed:
    """One sealed value: where it belongs, and what its history knew."""

    address: Place
    row_id: int
    epochs: Epochs
    blob: bytes


@dataclass(slots=True)
class Witness:
    """Knows every ciphertext that left a client, and the value behind it."""

    keys: KeyRing
    pads: dict[tuple[Any, ...], str] = field(default_factory=dict)
    sealed: dict[tuple[Place, int], list[Sealed]] = field(default_factory=dict)
    rows: int = 0
    looks_at_pads: bool = True

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within it, all rows are seen."""
        original = Columns.seal

        def seal(columns: Columns, table: Table, rows: pa.Table, row_ids: pa.Array) -> pa.Table:
            result = original(columns, table, rows, row_ids)
            self.see(columns, table, rows, result)
            return result

        with mock.patch.object(Columns, "seal", seal):
            yield

    def see(self, columns: Columns, table: Table, rows: pa.Table, result: pa.Table) -> None:
        """Take in rows and what was made of them."""
        row_ids = result.column("row_id").to_pylist()
        self.rows += len(row_ids)
        for column in table.columns:
            if not column.encrypted:
                continue
            values = rows.column(column.name).combine_chunks()
            held = {
                name: result.column(stored).to_pylist() for name, stored in column.stored.items()
            }
            address = (table.id, column.id, column.generation)
            for at, row_id in enumerate(row_ids):
                parts = {name: cells[at] for name, cells in held.items()}
                self._pads(address, row_id, parts, values[at].as_py())
                known = self.sealed.setdefault((address, row_id), [])
                self._try(known, fresh := self._sealed(columns, address, row_id, parts["rnd"]))
                known.append(fresh)
            self._codes(columns, table, column, values, result)
        self._shares(columns, table, rows, result)

    def _sealed(self, columns: Columns, address: Place, row_id: int, blob: bytes) -> Sealed:
        return Sealed(address, row_id, columns.catalog.epochs, blob)

    def _try(self, known: list[Sealed], fresh: Sealed) -> None:
        """Values of one row id, each in the history of the other."""
        for other in known:
            for value, epochs in ((other, fresh.epochs), (fresh, other.epochs)):
                self._refused(value, value.row_id, epochs)
        # And in the neighbouring row of its own.
        self._refused(fresh, fresh.row_id + 1, fresh.epochs)

    def _refused(self, value: Sealed, row_id: int, epochs: Epochs) -> None:
        # Of which type a value was sealed is found out after it has authenticated.
        cells, rows = pa.array([value.blob], pa.binary()), pa.array([row_id], pa.int64())
        try:
            self.keys.of(epochs).open_column(*value.address, cells, rows, pa.int64())
        except errors.VerificationError as error:
            if "was not sealed as" not in error.detail:
                return
        raise AcceptedError(f"the value of row {value.row_id} opens in row {row_id}")

    def _pad(self, kind: str, key: object, pad: object, row_id: int) -> None:
        name = (kind, key, pad)
        if name in self.pads and self.looks_at_pads:
            raise PadTwiceError(f"{kind}: row {row_id} shares its pad with {self.pads[name]}")
        self.pads[name] = f"row {row_id}"

    def _pads(self, address: Place, row_id: int, parts: dict[str, Any], value: Any) -> None:
        self._pad("nonce", address, parts["rnd"][:13], row_id)
        if "sum" in parts:
            number = parts["sum"] + (parts["sum_high"] << _LIMB) - (value or 0)
            self._pad("sum", address, number % (1 << 2 * _LIMB), row_id)
            flag = (parts["sum_count"] - (value is not None)) % (1 << _LIMB)
            self._pad("flag", address, flag, row_id)
        if "text" in parts:
            # Equal texts would have equal filters, and longer ones of like texts like ones.
            head = parts["text"][1:9] if parts["text"][0] == 2 else b""
            self._pad("salt", address, (head, row_id), row_id)

    def _codes(
        self, columns: Columns, table: Table, column: Column, values: pa.Array, result: pa.Table
    ) -> None:
        address = (table.id, column.id, column.generation)
        for onion in ("eq", "ord"):
            if onion not in column.stored or column.layers.get(onion) != "closed":
                continue
            bare = {"eq": eq, "ord": order}[onion].codes(columns.keyring, table, column, values)
            codes, closed = _numbers(bare), _numbers(result.column(column.stored[onion]))
            row_ids = result.column("row_id").to_pylist()
            for row_id, code, hidden in zip(row_ids, codes, closed, strict=True):
                self._pad(onion, address, code ^ hidden, row_id)

    def _shares(self, columns: Columns, table: Table, rows: pa.Table, result: pa.Table) -> None:
        modulus = int.from_bytes(columns.modulus(), "big") if table.helper_one else 0
        row_ids = result.column("row_id").to_pylist()
        shares = [(c, c.stored["sdb"]) for c in table.columns if "sdb" in c.stored]
        for column, stored in shares:
            values = rows.column(column.name).to_pylist()
            cells = result.column(stored).to_pylist()
            for row_id, value, cell in zip(row_ids, values, cells, strict=True):
                if value:
                    item = int.from_bytes(cell, "big") * pow(value, -1, modulus) % modulus
                    self._pad("sdb", (table.id, column.id, column.generation), item, row_id)
        for name in (table.helper_one, table.helper_unit) if shares else ():
            for row_id, cell in zip(row_ids, result.column(name).to_pylist(), strict=True):
                self._pad("one", (table.id, name == table.helper_one), cell, row_id)


def _numbers(codes: pa.Array | pa.ChunkedArray) -> list[int]:
    """Codes as unsigned numbers; NULL is 0."""
    numbers = []
    for code in codes.to_pylist():
        match code:
            case None:
                numbers.append(0)
            case int():
                numbers.append(code % (1 << 64))
            case bytes():
                numbers.append(int.from_bytes(code, "big"))
            case _:
                numbers.append(int.from_bytes(code.bytes, "big"))
    return numbers


class World:
    """Machines with their state directories, and a server with one or more files."""

    def __init__(self, folder: Path, key_file: Path, start: dict[str, bytes] | None = None) -> None:
        """``start`` is a state of a file that has the table already."""
        self.folder, self.keys = folder, KeyRing.open(key_file)
        self.witness = Witness(self.keys)
        self.machines = [self._machine()]
        self.files: list[Path] = []
        self.states: list[dict[str, bytes]] = []
        self.sessions: dict[tuple[int, int], Session] = {}
        if start is not None:
            self.fork_of(start)

    def _machine(self) -> Path:
        machine = self.folder / f"machine{len(list(self.folder.glob('machine*')))}"
        machine.mkdir()
        return machine

    def clone(self, machine: int) -> int:
        """Another machine with a copy of this one's state directory."""
        folder = self._machine()
        shutil.copytree(self.machines[machine], folder, dirs_exist_ok=True)
        self.machines.append(folder)
        return len(self.machines) - 1

    def arrive(self) -> int:
        """Another machine that has seen nothing."""
        self.machines.append(self._machine())
        return len(self.machines) - 1

    def fork_of(self, state: dict[str, bytes]) -> int:
        """Another file of the server, which begins with some state."""
        path = self.folder / f"cloud{len(self.files)}.duckdb"
        self.files.append(path)
        _put(path, state)
        self.states.append(state)
        return len(self.files) - 1

    def replay(self, file: int, state: dict[str, bytes]) -> None:
        """The server puts an old state in place; sessions on the file end."""
        for key in [key for key in self.sessions if key[1] == file]:
            self.close(key)
        _put(self.files[file], state)

    def session(self, machine: int, file: int, accept: bool) -> Session | None:
        """A session of a machine on a file, perhaps the one that is open; None if it is refused."""
        key = (machine, file)
        if key in self.sessions:
            return self.sessions[key]
        with mock.patch.dict(os.environ, {"LOUVER_STATE_DIR": str(self.machines[machine])}):
            with suppress(errors.VerificationError):
                self.sessions[key] = self._open(file)
                return self.sessions[key]
            if not accept:
                return None
            Pins(self.keys).forget("duckdb:" + str(self.files[file].resolve()))
            # What was seen of the same database elsewhere is not forgotten.
            with suppress(errors.VerificationError):
                self.sessions[key] = self._open(file)
        return self.sessions.get(key)

    def _open(self, file: int) -> Session:
        engine = DuckDBEngine(self.files[file])
        try:
            session = Session(engine, self.keys, Policy("cryptdb"), modulus_bits=256)
        except BaseException:
            engine.close()
            raise
        # A slow link, so that all that ceilings allow goes to the server.
        session.execute("SET link_bandwidth = '1KB/s'; SET link_latency = '0.01ms'")
        return session

    def run(self, key: tuple[int, int], sql: str) -> list[tuple[Any, ...]] | None:
        """Run a statement; None if the client refuses what the server shows it, or lost a race."""
        session = self.sessions[key]
        try:
            with self.witness.watching():
                answer = session.execute(sql)
        except errors.Error as error:
            if error.code.split(".")[0] not in ("catalog", "ledger", "transaction"):
                raise
            self.close(key)
            return None
        finally:
            self.states.append(_state(self.files[key[1]]))
        return None if answer.rows is None else session.python_rows(answer.rows)

    def close(self, key: tuple[int, int]) -> None:
        """End a session."""
        self.sessions.pop(key).close()

    def end(self) -> None:
        """End all sessions."""
        for key in list(self.sessions):
            self.close(key)


def _state(path: Path) -> dict[str, bytes]:
    """What a server's disk holds of a file: DuckDB's own, and its log."""
    files = {"": path, ".wal": path.with_name(path.name + ".wal")}
    return {name: file.read_bytes() for name, file in files.items() if file.exists()}


def _put(path: Path, state: dict[str, bytes]) -> None:
    for name in ("", ".wal"):
        file = path.with_name(path.name + name)
        file.unlink(missing_ok=True)
        if name in state:
            file.write_bytes(state[name])


def first_state(folder: Path, key_file: Path, sql: Callable[[int], str]) -> dict[str, bytes]:
    """A file with the table and some rows, as the server first has it."""
    folder.mkdir()
    world = World(folder, key_file)
    world.files.append(folder / "cloud.duckdb")
    world.session(0, 0, accept=False)
    for text in (TABLE, sql(1), sql(2)):
        world.run((0, 0), text)
    world.end()
    return _state(world.files[0])
