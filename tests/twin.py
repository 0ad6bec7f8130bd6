"""Louver beside plaintext DuckDB: each statement runs on both, and the outcomes are compared.

This is the only place where the tests do so. A test takes the fixture `open_twin`, or puts
plaintext DuckDB beside a connection of its own with `Twin.beside`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver import errors
from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.catalog import Column, Table
from louver.wire.messages import Statement
from louver.wire.tap import Tap
from tests.inside import session_of
from tests.recorded import RecordedSession

Row = tuple[Any, ...]

PROFILES = ("sealed", "sdb", "cryptdb")

MODULUS_BITS = 512
"""Shorter than the product's own, for speed."""

#: What DESCRIBE gives (tests/executor/test_described.py tests its last column).
_DESCRIBED = [
    (name, "VARCHAR") for name in ("column_name", "column_type", "null", "key", "default", "extra")
]
_ENC = re.compile(
    r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|\s+ENC\b(?:\s+USING\s+\w+)?(?:\s+MAY\s+REVEAL\s+\w+)?"""
    r"""(?:\s+WITH\s*\(\w+\s*=[^()]*\))?"""
)


@dataclass(frozen=True)
class Outcome:
    """What a statement returned, or its error."""

    rows: list[Row]
    #: names and types; None for a statement without rows
    columns: list[tuple[str, str]] | None
    #: rows that a change touched; -1 where that is not known
    affected: int = -1
    error: Exception | None = None

    @property
    def compared(self) -> object:
        """The rows, or the kind of error."""
        return self.rows if self.error is None else kind_of(self.error).removesuffix(".aborted")

    @property
    def code(self) -> str:
        """Louver's code of the error."""
        return str(getattr(self.error, "code", ""))


class Twin:
    """A Louver connection and plaintext DuckDB with the same tables.

    With ``own_errors``, where DuckDB fails Louver may fail with an error of its own instead.
    """

    def __init__(
        self,
        path: Path | str,
        key_file: Path,
        policy: Policy | str = "sealed",
        *,
        modulus_bits: int = MODULUS_BITS,
        own_errors: bool = False,
    ) -> None:
        self.own_errors = own_errors
        self.path, self.key_file = path, key_file
        self._policy, self._modulus_bits = policy, modulus_bits
        self.plain = duckdb.connect()
        self._open()

    def _open(self) -> None:
        self.recorded = RecordedSession(
            self.path, self.key_file, self._policy, modulus_bits=self._modulus_bits
        )
        self.louver: Any = Connection(self.recorded.session)

    @classmethod
    def beside(cls, connection: Any, *, own_errors: bool = False) -> Twin:
        """A twin of a connection that the caller opened and closes."""
        twin = cls.__new__(cls)
        twin.own_errors = own_errors
        twin.louver, twin.plain = connection, duckdb.connect()
        return twin

    @property
    def session(self) -> Session:
        session: Session = session_of(self.louver)
        return session

    @property
    def tap(self) -> Tap:
        return self.recorded.tap

    def reopen(self) -> None:
        """Open Louver's side again; plaintext DuckDB stays."""
        self.louver.close()
        self._open()

    def close(self) -> None:
        self.louver.close()
        self.plain.close()

    # -- statements on both ---------------------------------------------------------------------

    def run(
        self, sql: str, parameters: Sequence[object] = (), *, ordered: bool | None = None
    ) -> list[Row]:
        """Run a statement on both, of which neither may fail; the rows."""
        outcome = self._compare(sql, parameters, ordered)
        if outcome.error is not None:
            raise AssertionError(f"{sql}: {outcome.error}") from outcome.error
        return outcome.rows

    def fill(self, *statements: str) -> None:
        """Run statements that succeed on both."""
        for sql in statements:
            self.run(sql)

    def either(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        ordered: bool | None = None,
        only_rows: bool = False,
    ) -> list[Row] | None:
        """Run a statement on both; the rows, or None where both fail with one kind of error."""
        outcome = self._compare(sql, parameters, ordered, only_rows)
        return outcome.rows if outcome.error is None else None

    def both(self, *statements: str, ordered: bool | None = None) -> None:
        """Run each statement on both; where DuckDB fails, Louver fails with DuckDB's message."""
        for sql in statements:
            expected = outcome_of(self.plain, plain_sql(sql))
            actual = outcome_of(self.louver, sql)
            require_same(sql, expected, actual, ordered)
            if expected.error is not None and actual.code != "transaction.aborted":
                assert first_line(actual.error) == first_line(expected.error), sql

    def fails(self, sql: str, parameters: Sequence[object] = ()) -> errors.Error:
        """Run a statement that both refuse, each for its own reason; Louver's error."""
        with pytest.raises(duckdb.Error):
            self.plain.execute(plain_sql(sql), list(parameters))
        with pytest.raises(errors.Error) as caught:
            self.louver.execute(sql, list(parameters))
        return caught.value

    def same_schema(self) -> None:
        """What the system tables say of tables, columns, views, indexes and constraints."""
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
            self.run(sql)
        for (name,) in self.plain.execute("SHOW TABLES").fetchall():
            self.run(f'DESCRIBE "{name}"')

    def _compare(
        self,
        sql: str,
        parameters: Sequence[object],
        ordered: bool | None,
        only_rows: bool = False,
    ) -> Outcome:
        expected = outcome_of(self.plain, plain_sql(sql), parameters)
        actual = outcome_of(self.louver, sql, parameters)
        own = self.own_errors and not actual.code.startswith("duckdb.")
        if expected.error is not None and own:
            only_rows = True
        require_same(sql, expected, actual, ordered, only_rows=only_rows)
        return actual

    # -- one side alone -------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Louver's answer alone."""
        return list(self.louver.execute(sql, list(parameters)).fetchall())

    def duckdb_fails(self, sql: str) -> bool:
        """Whether plaintext DuckDB refuses a statement, which Louver's side does not get."""
        return outcome_of(self.plain, plain_sql(sql)).error is not None

    def table(self, name: str, schema: str = "main") -> Table:
        table = self.session.context.catalog.table(schema, name)
        assert table is not None
        return table

    def column(self, table: str, name: str) -> Column:
        column = self.table(table).column(name)
        assert column is not None
        return column

    def sent(self) -> int:
        """The number of messages that the server has received."""
        return len(self.tap.sent())

    def server_text(self) -> str:
        """The server's own schema: its tables, indexes, views and schemas."""
        rows = self.session.context.engine.query(
            Statement(
                "SELECT sql FROM duckdb_tables() UNION ALL SELECT sql FROM duckdb_indexes()"
                " UNION ALL SELECT sql FROM duckdb_views() WHERE NOT internal"
                " UNION ALL SELECT schema_name FROM duckdb_schemas() WHERE NOT internal"
            )
        )
        return "\n".join(str(row["sql"]) for row in rows.to_pylist())


def outcome_of(connection: Any, sql: str, parameters: Sequence[object] = ()) -> Outcome:
    """Run a statement on one side. DuckDB's report of a change counts as no rows."""
    try:
        cursor = connection.execute(sql, list(parameters))
        columns = [(item[0], str(item[1])) for item in cursor.description or ()]
        if not columns:
            return Outcome([], None, getattr(cursor, "rowcount", -1))
        rows = cursor.fetchall()
    except Exception as error:  # noqa: BLE001 - every kind of error is an outcome
        return Outcome([], None, error=error)
    if columns == _DESCRIBED and sql.lstrip()[:4].upper() == "DESC":
        # In its last column, which DuckDB leaves NULL, Louver says what ENC is.
        rows = [(*row[:5], None) for row in rows]
    if isinstance(connection, duckdb.DuckDBPyConnection):
        if columns == [("Count", "BIGINT")] and not sql.lstrip().upper().startswith("SELECT"):
            return Outcome([], None, rows[0][0] if rows else -1)
        if columns == [("Success", "BOOLEAN")]:
            return Outcome([], None)
    return Outcome(rows, columns)


def require_same(
    sql: str,
    expected: Outcome,
    actual: Outcome,
    ordered: bool | None = None,
    *,
    only_rows: bool = False,
    exact: bool = True,
) -> None:
    """Fail unless values, types, names, counts of changed rows and kinds of error are equal. Rows
    are compared as a multiset, unless the query orders them. With ``only_rows``, names, types
    and kinds of error are not compared.
    """
    if isinstance(actual.error, errors.InternalError):
        raise actual.error
    if ordered is None:
        ordered = " order by " in sql.lower()
    shown = f"{sql}\nduckdb: {expected}\nlouver: {actual}"
    assert (expected.error is None) == (actual.error is None), shown
    if expected.error is not None and only_rows:
        return
    assert same(expected.compared, actual.compared, ordered, exact=exact), shown
    assert only_rows or expected.columns == actual.columns, shown
    assert expected.affected == actual.affected, shown


def kind_of(error: Exception) -> str:
    """DuckDB's own kind of error, of DuckDB's or of Louver's exception."""
    code = getattr(error, "code", None)
    if code is None:
        return "error " + type(error).__name__.removesuffix("Exception").lower()
    return "error " + str(code).removeprefix("duckdb.").replace("_", "")


def same(expected: object, actual: object, ordered: bool, *, exact: bool = False) -> bool:
    """Whether two results are equal: multisets unless the query orders its rows. Unless ``exact``,
    floats are compared by 12 digits: sums depend on the order of their terms, in DuckDB too.
    """
    if isinstance(expected, str) or isinstance(actual, str):
        return expected == actual
    left, right = _texts(expected, exact), _texts(actual, exact)
    return left == right if ordered else sorted(left) == sorted(right)


def _texts(rows: Any, exact: bool) -> list[str]:
    return [repr(row if exact else tuple(map(_rounded, row))) for row in rows]


def _rounded(value: object) -> object:
    return f"{value:.12g}" if isinstance(value, float) and math.isfinite(value) else value


def first_line(error: object) -> str:
    """The first line of an error's message: what failed, without hints and positions."""
    return str(error).split("\n", maxsplit=1)[0]


def plain_sql(sql: str) -> str:
    """The statement as DuckDB takes it: without ENC and what follows it."""
    return _ENC.sub(lambda match: match[1] or "", sql)
