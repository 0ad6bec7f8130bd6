"""Louver and its own PostgreSQL driver on plaintext tables: two databases of one private server."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import data
from bench.oltp.sides import PROFILES, ROWS, TABLE
from louver._rust import postgres
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.servers import private_postgres as servers

#: A client of Louver's has up to five connections, and sixteen are at work.
SETTINGS = {"max_connections": "200", "shared_buffers": "256MB", "autovacuum": "on"}
_PLACEHOLDER = re.compile(r"\?")
_RANGE = re.compile(r"range\(([^()]*)\)")


class Plain:
    """The driver alone: statements stay prepared, values are bound, rows come in binary form."""

    def __init__(self, folder: str) -> None:
        self._session = postgres.Session(folder, servers.PORT, servers.USER, "plain")
        self._texts: dict[str, str] = {}
        self._columns: list[list[Any]] = []

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Plain:
        """Run a statement of the benchmarks', whose placeholders are ``?``."""
        text = self._texts.get(sql)
        if text is None:
            text = self._texts[sql] = _translated(sql)
        with translated("plain"):
            ((_, _, arrays),) = self._session.run([(text, values)])
        self._columns = [array.to_pylist() for array in arrays]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement; sums are numeric, which come as text."""
        columns = [[int(v) if _is_number(v) else v for v in column] for column in self._columns]
        return list(zip(*columns, strict=True))

    def close(self) -> None:
        """Let go of the server."""
        self._session.close()


@dataclass(frozen=True, slots=True)
class Sides:
    """A connection to each, and where further ones lead."""

    folder: Path
    server: str
    profile: str
    ours: Any
    plain: Plain

    def both(self) -> tuple[Any, Any]:
        """Louver first."""
        return self.ours, self.plain

    def table(self, name: str, rows: int, *, key: bool) -> None:
        """The same table on both sides; the plain one has an index where Louver's has one."""
        declared = " PRIMARY KEY" if key else ""
        for side in self.both():
            enc = f" ENC{PROFILES[self.profile][1]}" if side is self.ours else ""
            side.execute(TABLE.format(name=name, enc=enc, key=declared))
            side.execute(ROWS.format(name=name, rows=rows))
        if not key:
            self.plain.execute(f"CREATE INDEX ON {name} (id)")

    def another(self, side: Any) -> Any:
        """One more connection to the database of a side."""
        if side is self.ours:
            return _connected(self.folder, self.server, self.profile)
        return Plain(self.server)

    def equal(self, sql: str) -> None:
        """Both sides give the same answer, or no time of them means anything."""
        ours, plain = (side.execute(sql).fetchall() for side in self.both())
        if ours != plain:
            raise RuntimeError(f"another answer than PostgreSQL's: {sql}")


@contextmanager
def opened(profile: str) -> Iterator[Sides]:
    """New databases on a server that ends with them."""
    import louver

    warnings.simplefilter("ignore", louver.LeakageWarning)
    binary = servers.wheel_binaries()
    assert binary is not None  # requirements.lock has it
    with (
        tempfile.TemporaryDirectory() as name,
        servers.started(binary, servers.SETTINGS | SETTINGS) as server,
    ):
        folder, address = Path(name), str(server.folder)
        admin = postgres.Session(address, servers.PORT, servers.USER, "postgres")
        for database in ("louver", "plain"):
            admin.run([(f"CREATE DATABASE {database}", [])])
        admin.close()
        data.state(folder)
        louver.KeyRing.create(folder / "key")
        plain = Plain(address)
        try:
            with _connected(folder, address, profile) as ours:
                yield Sides(folder, address, profile, ours, plain)
        finally:
            plain.close()


def _connected(folder: Path, server: str, profile: str) -> Any:
    import louver

    url = f"postgresql:///louver?host={server}&port={servers.PORT}&user={servers.USER}"
    return louver.connect(url, keys=folder / "key", profile=PROFILES[profile][0], language="duckdb")


def _translated(sql: str) -> str:
    """A statement in PostgreSQL's words; none of them has a question mark in a text."""
    numbers = iter(range(1, len(sql)))
    sql = _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", sql)
    return _RANGE.sub(r"generate_series(0, \1 - 1)", sql)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isdigit()
