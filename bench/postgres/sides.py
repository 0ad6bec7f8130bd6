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
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.type_names import TypeNames
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.servers import private_postgres as servers

#: A client of Louver's has up to five connections, and sixteen are at work.
SETTINGS = {"max_connections": "200", "shared_buffers": "256MB", "autovacuum": "on"}
_PLACEHOLDER = re.compile(r"\?")
_RANGE = re.compile(r"range\(([^()]*)\)")


class _Texts(dict[str, str]):
    """The benchmarks' statements, which both languages share but for the form of placeholders, in
    PostgreSQL's; none of them has a question mark in a text.
    """

    def __missing__(self, sql: str) -> str:
        numbers = iter(range(1, len(sql)))
        text = _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", sql)
        text = self[sql] = _RANGE.sub(r"generate_series(0, \1 - 1)", text)
        return text


_TEXTS = _Texts()


class Ours:
    """Louver, of whose language PostgreSQL's is the default."""

    def __init__(self, con: Any) -> None:
        """Over an open connection."""
        self.con = con

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement of the benchmarks', whose placeholders are ``?``; returns a cursor."""
        return self.con.execute(_TEXTS[sql], values)

    def close(self) -> None:
        """Close the connection."""
        self.con.close()


class Plain:
    """The driver alone: statements stay prepared, values are bound, rows come in binary form."""

    def __init__(self, folder: str) -> None:
        """Connect to the server whose socket is in the folder."""
        self.session = postgres.Session(folder, servers.PORT, servers.USER, "plain")
        self._columns: list[list[Any]] = []

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Plain:
        """Run a statement of the benchmarks', whose placeholders are ``?``."""
        with translated("plain"):
            ((_, _, arrays),) = self.session.run([(_TEXTS[sql], values)])
        self._columns = [array.to_pylist() for array in arrays]
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement; sums are numeric, which come as text."""
        columns = [[int(v) if _is_number(v) else v for v in column] for column in self._columns]
        return list(zip(*columns, strict=True))

    def with_types(self) -> PostgresConnection:
        """The same session, whose rows are Arrow of all types, and which loads Arrow by COPY."""
        return PostgresConnection(self.session, TypeNames())

    def close(self) -> None:
        """Let go of the server."""
        self.session.close()


@dataclass(frozen=True, slots=True)
class Sides:
    """A connection to each, and where further ones lead."""

    folder: Path
    server: str
    profile: str
    policy: str | None
    ours: Ours
    plain: Plain

    def both(self) -> tuple[Any, Any]:
        """Louver first."""
        return self.ours, self.plain

    def enc(self, side: Any) -> str:
        """What follows a type in CREATE TABLE."""
        return f" ENC{PROFILES[self.profile][1]}" if side is self.ours else ""

    def table(self, name: str, rows: int) -> None:
        """The same table on both sides, with a primary key."""
        for side in self.both():
            side.execute(TABLE.format(name=name, enc=self.enc(side), key=" PRIMARY KEY"))
            side.execute(ROWS.format(name=name, rows=rows))

    def another(self, side: Any) -> Any:
        """One more connection to the database of a side."""
        if side is self.ours:
            return Ours(_connected(self.folder, self.server, self.profile, self.policy))
        return Plain(self.server)

    def equal(self, sql: str) -> None:
        """Both sides give the same answer, or no time of them means anything."""
        ours, plain = (side.execute(sql).fetchall() for side in self.both())
        if ours != plain:
            raise RuntimeError(f"another answer than PostgreSQL's: {sql}")


@contextmanager
def opened(profile: str, policy: str | None = None) -> Iterator[Sides]:
    """New databases on a server that ends with them; a policy's file takes the profile's place."""
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
            with _connected(folder, address, profile, policy) as con:
                yield Sides(folder, address, profile, policy, Ours(con), plain)
        finally:
            plain.close()


def _connected(folder: Path, server: str, profile: str, policy: str | None) -> Any:
    import louver

    url = f"postgresql:///louver?host={server}&port={servers.PORT}&user={servers.USER}"
    named = None if policy else PROFILES[profile][0]
    return louver.connect(url, keys=folder / "key", profile=named, policy=policy)


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and value.isdigit()
