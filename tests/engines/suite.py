"""What every engine is tested by: statements that run on Louver over it and on plain DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from louver.trusted.client.connect import open_session
from louver.trusted.client.dbapi import Connection
from louver.wire.tap import Tap
from tests.slt.outcomes import same
from tests.twin import Twin, outcome

ENGINES = {
    "duckdb": None,
    "sqlite": ("tests.toy.backend", "tests.toy.engine"),
}
"""Where the engines are that the product does not have."""
_ENC = re.compile(r"\s+ENC\b(\s+USING\s+\w+)?(\s+MAY\s+REVEAL\s+\w+)?")
STAFF = (
    "CREATE TABLE staff (id INTEGER, name VARCHAR ENC MAY REVEAL equality, salary BIGINT ENC,"
    " born DATE ENC MAY REVEAL order, dept VARCHAR, boss INTEGER ENC MAY REVEAL equality,"
    " rate DECIMAL(8,2) ENC, note VARCHAR ENC)"
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


class EngineTwin(Twin):
    """Louver over one kind of engine, watched, and a DuckDB with the same tables."""

    def __init__(self, kind: str, folder: Path, key_file: Path, profile: str = "sealed") -> None:
        self.kind, self.key_file = kind, key_file
        self.url = f"{kind}:////{folder}/cloud.db"
        self.profile = profile
        self.plain = duckdb.connect()
        self._open()

    def _open(self) -> None:
        self.session = open_session(self.url, self.key_file, self.profile, tapped=True)
        self.louver = Connection(self.session)

    @property
    def tap(self) -> Tap:
        """The recorder between client and server."""
        assert isinstance(self.session.context.engine, Tap)
        return self.session.context.engine

    def reconnect(self) -> None:
        """Another client of the same database."""
        self.louver.close()
        self._open()

    def either(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Run a statement on both; the rows, or the word error where both fail."""
        expected, names = outcome(self.plain, _ENC.sub("", sql), parameters)
        found, told = outcome(self.louver, sql, parameters)
        if isinstance(expected, str) and isinstance(found, str):
            return "error"
        ordered = " order by " in sql.lower()
        assert same(expected, found, ordered=ordered), f"{sql}: {found}, but DuckDB: {expected}"
        rows = isinstance(found, list) and bool(told) and told != ["Count"]
        assert not rows or told == names, f"{sql}: {told}, but DuckDB: {names}"
        return found

    def remote(self, sql: str) -> str:
        """What the server would be sent for a query."""
        return "\n".join(self.louver.sql(sql).remote_sql())
