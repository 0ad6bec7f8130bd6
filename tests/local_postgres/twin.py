"""Louver beside plaintext PostgreSQL: a statement runs on both, and the outcomes are compared."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import louver
from louver import errors
from louver._rust import postgres
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.type_names import TypeNames
from tests import shared
from tests.postgres import servers
from tests.twin import _ENC, Row

_numbers = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What a statement returned, or its error."""

    rows: list[Row] | None
    columns: list[tuple[str, str]] | None = None
    affected: int = -1
    error: errors.Error | None = None

    @property
    def state(self) -> str:
        """The SQLSTATE of the error, or Louver's code; "" of none."""
        return str(getattr(self.error, "sqlstate", "") or getattr(self.error, "code", ""))


def plain_text(sql: str) -> str:
    """A statement without ENC and what belongs to it."""
    return _ENC.sub(lambda match: match[1] or "", sql)


class PostgresTwin:
    """A session of Louver's over a database of the shared server, and a plain one over another."""

    def __init__(
        self,
        profile: str | None = "cryptdb",
        policy: str | None = None,
        *,
        beside: PostgresTwin | None = None,
        patience_ms: int | None = None,
    ) -> None:
        """Of new databases, or of those of another twin. ``patience_ms``: how long Louver waits for
        a lock, where the one who holds it does nothing meanwhile.
        """
        server = servers.shared()
        self._options = "" if patience_ms is None else f"lock_timeout={patience_ms}"
        self._policy = policy
        self._profile = profile if policy is None else None
        if beside is None:
            self._number = next(_numbers)
            self.url = servers.database_url(f"twin_{self._number}")
            servers.database_url(f"plain_{self._number}")
        else:
            self._number, self.url = beside._number, beside.url
        self._open()
        database = f"plain_{self._number}"
        raw = postgres.Session(str(server.folder), servers.PORT, servers.USER, database)
        raw.keep_no_statements()
        self.plain = PostgresConnection(raw, TypeNames())
        for setting in ("TimeZone = 'UTC'",):
            self.plain.execute(f"SET {setting}")
            self.louver.execute(f"SET {setting}")

    def _open(self) -> None:
        joint = ("&" if "?" in self.url else "?") if self._options else ""
        url = f"{self.url}{joint}{self._options}"
        self.louver: Any = louver.connect(
            url, str(shared.key_file()), self._profile, self._policy, language="postgres"
        )
        self.louver.execute("SET TimeZone = 'UTC'")

    def close(self) -> None:
        """End both."""
        self.louver.close()
        self.plain.close()

    def on_plain(self, sql: str, parameters: Sequence[object] = ()) -> Outcome:
        """What plaintext PostgreSQL says."""
        try:
            tag, columns, _ = reply = self.plain.run(plain_text(sql), list(parameters))
            count = tag.rpartition(" ")[2]
            affected = int(count) if count.isdecimal() else -1
            if not columns:
                return Outcome(None, None, affected)
            rows = self.plain.python_rows(self.plain.table(reply))
            if not count.isdecimal():
                affected = len(rows)  # as psycopg counts the rows of SHOW
            return Outcome(rows, self.plain.described(columns), affected)
        except errors.Error as error:
            return Outcome(None, error=error)

    def on_louver(self, sql: str, parameters: Sequence[object] = ()) -> Outcome:
        """What Louver says."""
        try:
            cursor = self.louver.execute(sql, list(parameters))
            if cursor.description is None:
                return Outcome(None, None, cursor.rowcount)
            columns = [(str(item[0]), str(item[1])) for item in cursor.description]
            return Outcome(cursor.fetchall(), columns, cursor.rowcount)
        except errors.Error as error:
            return Outcome(None, error=error)

    def both(self, sql: str, parameters: Sequence[object] = ()) -> tuple[Outcome, Outcome]:
        """Run a statement on both."""
        return self.on_plain(sql, parameters), self.on_louver(sql, parameters)

    def differs(self, sql: str, parameters: Sequence[object] = (), *, ordered: bool = False) -> str:
        """How the outcomes differ; "" where they do not."""
        return difference(*self.both(sql, parameters), ordered=ordered)

    @property
    def within(self) -> bool:
        """Whether plaintext is in a transaction, be it a failed one."""
        return self.plain.raw.state() != "idle"

    def reopen(self) -> None:
        """Another session of Louver's."""
        self.louver.close()
        self._open()

    def refused_or_differs(
        self, sql: str, refusals: Sequence[str], parameters: Sequence[object] = ()
    ) -> tuple[str, str]:
        """How the outcomes differ, and Louver's code where it refused; then plaintext's change is
        undone as well.
        """
        own = self.on_louver(sql, parameters)
        code = str(getattr(own.error, "code", ""))
        if own.error is not None and code.startswith(tuple(refusals)):
            with self.plain.undone():
                self.on_plain(sql, parameters)
            if self.within:
                # Any error ends a transaction.
                self.on_plain("SELECT 1 / 0")
            return "", code
        # Of equal numbers any one stands for a group, with the scale that it has.
        groups = any(word in sql for word in ("GROUP BY", "DISTINCT", "UNION"))
        plain = self.on_plain(sql, parameters)
        if _are_of_rows(sql, plain, own):
            return "", ""
        return difference(plain, own, scales=not groups), ""

    def run(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement, about which both must say the same."""
        outcome = self.differs(sql, parameters, ordered="ORDER BY" in sql)
        assert not outcome, f"{sql}: {outcome}"


def difference(plain: Outcome, own: Outcome, *, ordered: bool = False, scales: bool = True) -> str:
    """How two outcomes differ; "" where they do not. Numbers are the same only with the same
    digits behind the point where ``scales`` count.
    """
    if plain.error or own.error:
        # Of what is wrong with the rows of a change, either may be met first.
        of_rows = {plain.state[:2], own.state[:2]} <= {"22", "23"}
        same = plain.state == own.state or (of_rows and "23" in (plain.state[:2], own.state[:2]))
        return "" if same else f"{plain.error or plain.rows!r} | {own.error or own.rows!r}"
    first, second = (plain.rows or [], own.rows or [])
    if not scales:
        first, second = (list(map(_without_scales, rows)) for rows in (first, second))
    if not ordered:
        same = Counter(map(repr, first)) == Counter(map(repr, second))
    else:
        same = repr(first) == repr(second)
    if not same or (plain.rows is None) != (own.rows is None):
        return f"{plain.rows!r} | {own.rows!r}"
    if plain.columns != own.columns:
        return f"{plain.columns!r} | {own.columns!r}"
    return "" if plain.affected == own.affected else f"{plain.affected} | {own.affected}"


def _are_of_rows(sql: str, plain: Outcome, own: Outcome) -> bool:
    """Whether two errors are of rows of which either may be met first: a change by a query has them
    in no order, and EXISTS reads them up to the first that it asks for; and PostgreSQL locks the
    row that an upsert meets before it says what is wrong with the new one, so that of a row which
    others have changed it says 40001.
    """
    by_query = sql.startswith(("INSERT", "UPDATE", "MERGE")) and "SELECT" in sql
    if by_query and {plain.state[:2], own.state[:2]} <= {"22", "23"}:
        return True
    states = {plain.state[:2], own.state[:2]}
    if "EXISTS" in sql and states <= {"22", ""} and len(states) == 2:
        return True
    return "ON CONFLICT" in sql and plain.state == "40001" and own.state[:2] in ("22", "23")


def _without_scales(row: Sequence[object]) -> tuple[object, ...]:
    return tuple(v.normalize() if isinstance(v, Decimal) and v.is_finite() else v for v in row)
