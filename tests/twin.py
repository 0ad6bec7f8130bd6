"""Louver beside plain DuckDB: each statement runs on both, and both must say the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from louver.trusted.client.dbapi import Connection
from louver.trusted.planner.sql import lexer
from tests.executor.watched import Watched
from tests.slt.outcomes import kind_of, same

Outcome = tuple[object, list[str]]
"""Rows or the kind of error, and the names of the columns."""


class Twin:
    """A watched Louver and a DuckDB with the same tables."""

    def __init__(self, folder: Path, key_file: Path, profile: str = "sealed") -> None:
        self.watched = Watched(folder / "twin.duckdb", key_file, profile)
        self.louver = Connection(self.watched.session)
        self.plain = duckdb.connect()

    def close(self) -> None:
        """End both."""
        self.louver.close()
        self.plain.close()

    def run(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Run a statement on both, of which neither may fail; the rows."""
        rows = self.either(sql, parameters)
        assert not isinstance(rows, str), f"{sql}: {rows}"
        return rows

    def either(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Run a statement on both; the rows, or the word error where both fail."""
        expected, names = outcome(self.plain, plain(sql), parameters)
        found, told = outcome(self.louver, sql, parameters)
        if isinstance(expected, str) and isinstance(found, str):
            return "error"
        ordered = " order by " in sql.lower()
        assert same(expected, found, ordered=ordered), f"{sql}: {found}, but DuckDB: {expected}"
        rows = isinstance(found, list) and bool(told) and told != ["Count"]
        assert not rows or told == names, f"{sql}: {told}, but DuckDB: {names}"
        return found

    def sent(self) -> int:
        """How many messages the server has got."""
        return len(self.watched.tap.sent())


def outcome(connection: Any, sql: str, parameters: Sequence[object]) -> Outcome:
    """The rows and names, or the kind of error. What DuckDB says of a change is no answer."""
    try:
        cursor = connection.execute(sql, list(parameters))
        described = [column[0] for column in cursor.description or ()]
        rows = cursor.fetchall() if described else []
    except Exception as error:  # noqa: BLE001 - every kind of error is an outcome
        return kind_of(error), []
    counts = described in (["Count"], ["Success"])
    return ([] if counts else rows), ([] if counts else described)


def plain(sql: str) -> str:
    """The statement as DuckDB takes it: without ENC."""
    found = lexer.tokens(lexer.split(sql)[0].plain)
    for token in reversed(found):
        if token.text == "ENC":
            sql = sql[: token.start] + sql[token.end + 1 :]
    return sql
