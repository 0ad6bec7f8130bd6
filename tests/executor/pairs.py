"""A session and plaintext DuckDB side by side, for the tests of DDL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver import errors
from louver.trusted.client.connect import opened
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

BITS = 512
Rows = list[tuple[Any, ...]]


class Pair:
    """A session and plaintext DuckDB, given the same statements."""

    def __init__(self, path: Path, key_file: Path, policy: Policy) -> None:
        self.path, self.key_file, self.policy = path, key_file, policy
        self.plain = duckdb.connect()
        self.session = self._open()

    def _open(self) -> Session:
        keys = KeyRing.open(self.key_file)
        return Session(DuckDBEngine(self.path), keys, self.policy, modulus_bits=BITS, opener=opened)

    def reopen(self) -> None:
        self.session.close()
        self.session = self._open()

    def close(self) -> None:
        self.session.close()
        self.plain.close()

    def both(self, *statements: str) -> None:
        """Run each on both; where DuckDB fails, the session must fail with its words."""
        for sql in statements:
            words = sql.replace(" ENC", "")
            failure = self._failure(words)
            if failure is None:
                self.session.execute(sql)
                continue
            with pytest.raises(errors.Error) as found:
                self.session.execute(sql)
            assert first(str(found.value)) == first(failure), sql

    def _failure(self, sql: str) -> str | None:
        """DuckDB's error message, None when it has none."""
        try:
            self.plain.execute(sql)
        except duckdb.Error as error:
            return str(error)
        return None

    def rows(self, sql: str) -> Rows:
        answer = self.session.execute(sql)
        assert answer.rows is not None
        return self.session.python_rows(answer.rows)

    def same(self, sql: str) -> None:
        """A query has one answer on both."""
        wanted = self.plain.execute(sql).fetchall()
        assert sorted(map(repr, self.rows(sql))) == sorted(map(repr, wanted)), sql

    def same_schema(self) -> None:
        for sql in (
            "SHOW TABLES",
            "SELECT table_schema, table_name, column_name, data_type, is_nullable, column_default"
            " FROM information_schema.columns",
            "SELECT table_name, table_type FROM information_schema.tables",
            "SELECT view_name FROM duckdb_views() WHERE NOT internal",
            "SELECT index_name, is_unique FROM duckdb_indexes()",
            "SELECT constraint_type, constraint_column_names FROM duckdb_constraints()",
            "SELECT comment FROM duckdb_columns() WHERE comment IS NOT NULL",
        ):
            self.same(sql)
        for (name,) in self.plain.execute("SHOW TABLES").fetchall():
            self.same(f'DESCRIBE "{name}"')

    def table(self, name: str, schema: str = "main") -> Table:
        found = self.session.context.catalog.table(schema, name)
        assert found is not None
        return found

    def column(self, table: str, name: str) -> Column:
        found = self.table(table).column(name)
        assert found is not None
        return found

    def server_text(self) -> str:
        """All that the server's own schema says."""
        rows = self.session.context.engine.query(
            Statement(
                "SELECT sql FROM duckdb_tables() UNION ALL SELECT sql FROM duckdb_indexes()"
                " UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal"
                " UNION ALL SELECT schema_name FROM duckdb_schemas() WHERE NOT internal"
            )
        )
        return "\n".join(str(row["sql"]) for row in rows.to_pylist())


def first(message: str) -> str:
    """The first line: what failed, without hints and places."""
    return message.split("\n", maxsplit=1)[0]


@pytest.fixture
def open_pair(tmp_path: Path, key_file: Path) -> Iterator[Callable[..., Pair]]:
    opened: list[Pair] = []

    def open_(profile: str = "sealed", rules: dict[str, Any] | None = None) -> Pair:
        policy = Policy.parse(rules or {}, "policy", profile)
        pair = Pair(tmp_path / "server.duckdb", key_file, policy)
        opened.append(pair)
        return pair

    yield open_
    for pair in opened:
        pair.close()


@pytest.fixture
def pair(open_pair: Callable[..., Pair]) -> Pair:
    return open_pair()
