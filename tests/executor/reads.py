"""One statement to a connection and to plaintext DuckDB: the same names, rows and failures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import duckdb

import louver
from tests.slt.outcomes import same

PROFILES = ("sealed", "sdb", "cryptdb")


class Both:
    """A connection and plaintext DuckDB; what is ENC is so on the connection only."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.plain = duckdb.connect()

    def run(self, *statements: str) -> None:
        """Statements that succeed on both."""
        for sql in statements:
            self.plain.execute(_plain(sql))
            self.connection.execute(sql)

    def same(self, sql: str, parameters: Sequence[object] = (), *, ordered: bool = False) -> None:
        """One answer, names of columns included; where DuckDB fails, the connection fails, with
        DuckDB's own kind of error.
        """
        wanted = _answer(self.plain, _plain(sql), parameters)
        found = _answer(self.connection, sql, parameters)
        assert wanted[0] == found[0], f"{sql}\nduckdb: {wanted}\nlouver: {found}"
        if wanted[0] == "error":
            return
        assert same(wanted[1], found[1], ordered), f"{sql}\nduckdb: {wanted}\nlouver: {found}"


def _plain(sql: str) -> str:
    return re.sub(r" ENC\b", "", sql)


def _answer(connection: Any, sql: str, parameters: Sequence[object]) -> tuple[object, object]:
    try:
        cursor = connection.execute(sql, list(parameters))
        names = [item[0] for item in cursor.description or ()]
        return names, cursor.fetchall() if names else []
    except (duckdb.Error, louver.Error) as error:
        if getattr(error, "code", "") == "internal":
            raise
        return "error", str(error)
