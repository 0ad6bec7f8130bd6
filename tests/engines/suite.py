"""What every engine is tested by: statements that run on Louver over it and on plain DuckDB."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from louver.trusted import backends
from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from louver.wire.tap import Tap
from tests.engines.table import BACKENDS
from tests.twin import Twin

STAFF = (
    "CREATE TABLE staff (id INTEGER, name VARCHAR ENC MAY REVEAL equality, salary BIGINT ENC"
    " WITH (sum = 'masked'),"
    " born DATE ENC MAY REVEAL order, dept VARCHAR, boss INTEGER ENC MAY REVEAL equality,"
    " rate DECIMAL(8,2) ENC WITH (sum = 'masked'), note VARCHAR ENC)"
)
ROWS = (
    "INSERT INTO staff VALUES"
    " (1, 'ann', 5000, DATE '1980-02-29', 'it', NULL, 1.50, 'canary-7031'),"
    " (2, 'bob', 4200, DATE '1991-07-01', 'it', 1, 0.00, ''),"
    " (3, 'cyd', NULL, DATE '1970-01-01', 'hr', 1, -2.25, NULL),"
    " (4, 'ann', 9223372036854775807, NULL, 'hr', 2, 999999.99, 'x''y'),"
    " (5, NULL, -17, DATE '2001-12-31', NULL, 2, NULL, 'canary-7031'),"
    " (-6, 'Bob', 0, DATE '1991-07-01', '', 3, 1.50, 'Ünïcode')"
)
DEPARTMENTS = (
    "CREATE TABLE depts (code VARCHAR, head VARCHAR ENC MAY REVEAL equality, floor INTEGER)"
)
DEPARTMENT_ROWS = "INSERT INTO depts VALUES ('it', 'ann', 3), ('hr', 'cyd', 1), ('ops', 'zoe', 2)"


def register(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a URL name an engine of `BACKENDS`, until the test ends."""
    modules = BACKENDS.get(kind)
    if modules is not None:
        monkeypatch.setitem(backends.ENGINES, kind, modules)


def url_of(kind: str, path: Path) -> str:
    """The URL of a database of a kind that a path is the name of: a file, or one of a server's."""
    if kind == "postgresql":
        from tests.postgres import servers

        return servers.database_url(f"t_{hashlib.sha256(str(path).encode()).hexdigest()[:24]}")
    return f"{kind}:///{path}"


class EngineTwin(Twin):
    """Louver over one kind of engine, watched, and a DuckDB with the same tables."""

    def __init__(self, kind: str, folder: Path, key_file: Path, profile: str = "sealed") -> None:
        self.url, self.profile = url_of(kind, folder / "cloud.db"), profile
        super().__init__(folder / "cloud.db", key_file, profile, own_errors=True)

    def _open(self) -> None:
        session = open_session(
            self.url, self.key_file, self.profile, tapped=True, language="duckdb"
        )
        self.louver = Connection(session)

    @property
    def tap(self) -> Tap:
        """The recorder between client and server."""
        assert isinstance(self.session.context.engine, Tap)
        return self.session.context.engine

    def remote(self, sql: str) -> str:
        """What the server would be sent for a query."""
        return "\n".join(self.louver.sql(sql).remote_sql())
