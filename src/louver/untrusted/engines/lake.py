"""The engine of a lake: its control tables (encrypted catalog, ledger and epochs), nothing else.

Rows of a lake are stored in its files, which `louver.untrusted.lake` reads and writes. A
transaction here holds no lock: what it has written so far is repeated with each of its statements,
and finally at commit; if another client was faster, a count differs and nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.untrusted.engines.engine import Prompt, Traffic
from louver.untrusted.engines.stored import no_rows
from louver.untrusted.lake.control import Control, ControlFile
from louver.wire import control as wire
from louver.wire.control import Batch
from louver.wire.messages import Constant, Count, Rows, Statement

if TYPE_CHECKING:
    from louver.untrusted.engines.engine import Engine
    from louver.untrusted.engines.stored import StoredFiles
    from louver.untrusted.lake.http import Service

_HIDDEN = ("key", "secret", "token", "password", "credential")
"""Parts of names of properties whose values must not be in a URL, which others can see."""


class LakeEngine(Prompt):
    """One connection to the control tables of a warehouse."""

    backend = "lake"
    service: Service | None = None
    """The pruning service that stores the tables, if there is one."""

    def __init__(
        self,
        location: str | os.PathLike[str],
        remote: str | None = None,
        authorization: str | None = None,
        certificates: str | None = None,
    ) -> None:
        """Open the tables in the directory `location`, or those behind the service `remote`.

        Args:
            location: a local directory; unused if `remote` is given.
            remote: ``http://host:port`` or ``https://host:port`` of `louver serve prune`.
            authorization: the service's shared secret, if it has one.
            certificates: a PEM file with the trusted authorities; the system's by default.
        """
        if remote is None:
            self._adopt(ControlFile(location))
            return
        from louver.untrusted.lake.http import RemoteControl, Service

        self.service = Service(remote, authorization, certificates)
        self._adopt(RemoteControl(self.service))

    @classmethod
    def over(cls, control: Control) -> LakeEngine:
        """An engine on control tables that are already open."""
        engine = object.__new__(cls)
        engine._adopt(control)
        return engine

    def _adopt(self, control: Control) -> None:
        self._control = control
        #: Whether this connection created the tables.
        self.created = control.created
        #: A stable name of the warehouse.
        self.address = control.address
        self.in_transaction = False
        self.traffic = Traffic()
        self._written: list[Statement] = []
        self._counts: list[int] = []

    def side(self) -> LakeEngine:
        """A second connection; it ends with the first."""
        return LakeEngine.over(self._control)

    def query(self, statement: Statement) -> pa.Table:
        """Run a query and return all of its rows."""
        answer = self._perform(statement)
        if not isinstance(answer, Rows):
            raise errors.make("reply.format", detail="a count instead of rows")
        self.traffic.bytes_in += answer.table.nbytes
        self.traffic.rows_in += answer.table.num_rows
        return answer.table

    def stream(self, statement: Statement) -> pa.RecordBatchReader:
        """Run a query and return its rows; control tables are small."""
        return self.query(statement).to_reader()

    def append(self, table: str, rows: pa.Table | pa.RecordBatchReader) -> None:  # noqa: ARG002
        """Not supported by control tables."""
        raise errors.make("internal", detail=f"a lake takes no rows by SQL, as into {table}")

    def value(self, statement: Statement) -> Constant:
        """The first column of a query's first row; None without rows."""
        table = self.query(statement)
        value = table.column(0)[0].as_py() if table.num_rows and table.num_columns else None
        return cast(Constant, value)

    def table_names(self) -> list[str]:
        """The names of all tables."""
        table = self.query(wire.TABLE_NAMES)
        names = table.column(0).to_pylist() if table.num_columns else [None]
        if not all(isinstance(name, str) for name in names):
            raise errors.make("reply.format", detail="names that are not text")
        return cast(list[str], names)

    def run(self, statement: Statement) -> int:
        """Run a statement; returns the number of affected rows (0 for DDL)."""
        answer = self._perform(statement)
        if not isinstance(answer, Count):
            raise errors.make("reply.format", detail="rows instead of a count")
        if self.in_transaction:
            self._written.append(statement)
            self._counts.append(answer.rows)
        return answer.rows

    def begin(self) -> None:
        """Open a transaction; it locks nothing."""
        if self.in_transaction:
            raise errors.make("internal", detail="a transaction within a transaction")
        self.in_transaction = True

    def commit(self) -> None:
        """Write what the transaction wrote; `catalog.conflict` if another client was faster."""
        statements, counts = tuple(self._written), tuple(self._counts)
        self.rollback()
        if not statements:
            return
        try:
            self._sent(Batch(statements, counts, keep=True))
        except errors.IntegrityError as error:
            raise errors.make("catalog.conflict") from error

    def rollback(self) -> None:
        """Discard what the transaction wrote."""
        if not self.in_transaction:
            raise errors.make("internal", detail="no transaction is open")
        self.in_transaction = False
        self._written.clear()
        self._counts.clear()

    def lost_race(self, error: errors.Error) -> bool:
        """Whether a statement failed only because another connection was faster."""
        return isinstance(error, errors.IntegrityError) or error.code == "catalog.conflict"

    def interrupt(self) -> None:
        """Stop the running statement; may be called from another thread."""
        self._control.interrupt()

    def close(self) -> None:
        """Close the tables and the side connections; may be called twice."""
        self._control.close()

    def _perform(self, statement: Statement) -> Rows | Count:
        if statement.tables:
            raise errors.make("internal", detail="Arrow tables beside a control statement")
        if not self.in_transaction:
            keep = statement.kind != "query"
            return self._sent(Batch((statement,), keep=keep))[-1]
        return self._sent(Batch((*self._written, statement), tuple(self._counts)))[-1]

    def _sent(self, batch: Batch) -> list[Rows | Count]:
        for statement in batch.statements:
            self.traffic.statements += 1
            self.traffic.bytes_out += len(statement.sql.encode())
            for constant in statement.constants:
                sized = isinstance(constant, bytes | str)
                self.traffic.bytes_out += len(constant) if sized else 8  # type: ignore[arg-type]
        return self._control.perform(batch)


def open_url(url: str) -> LakeEngine:
    """The control tables of a lake.

    ``lake:///directory`` is embedded; its query may name the location of the files and another
    Iceberg catalog (``?warehouse=s3://bucket/place&catalog=rest&uri=…``). ``lake+http://host:port``
    is a pruning service; its shared secret and the trusted authorities come from files that the
    environment names, since a URL is visible to others.
    """
    if fold(url.partition("://")[0]) == "lake":
        return LakeEngine(located(url)[0])
    from louver.untrusted.addresses import read_secret

    secret = os.environ.get("LOUVER_AUTHORIZATION")
    authorization = read_secret(secret) if secret else None
    return LakeEngine("", url, authorization, os.environ.get("LOUVER_CERTIFICATES") or None)


def place_of_url(url: str) -> str:
    """The stable name of the lake at a URL, as its engine gives it."""
    if fold(url.partition("://")[0]) != "lake":
        return url.rstrip("/")
    return "lake:" + str(Path(located(url)[0]).absolute())


def require_database(url: str) -> None:
    """Nothing to check: a lake may be in any directory."""


@contextmanager
def stored_at(url: str) -> Iterator[StoredFiles]:
    """The files of a lake, read without a key."""
    from louver.untrusted.lake.stored import WarehouseFiles

    yield WarehouseFiles(*located(url))


def stored_of(engine: Engine) -> StoredFiles:
    """Not through control tables: a connection of a lake does not carry its files."""
    raise no_rows(engine.backend)


def located(url: str) -> tuple[str, dict[str, str]]:
    """The directory of a ``lake://`` URL, and its properties."""
    parts = urlsplit(url)
    name = unquote(parts.path[1:])
    if parts.netloc:
        raise errors.make("url.format", detail="lake:///directory does not take a host")
    if not name or "\0" in name:
        raise errors.make("url.format", detail="a directory must follow lake:///")
    if Path(name).is_file():
        raise errors.make("url.format", detail=f"{name} is a file; a lake is a directory")
    properties = dict(parse_qsl(parts.query, keep_blank_values=True))
    for key in properties:
        if any(word in fold(key) for word in _HIDDEN):
            raise errors.make(
                "url.format",
                detail=f"{key} in a URL would be seen by others; set it in the environment",
            )
    return name.rstrip("/") or "/", properties
