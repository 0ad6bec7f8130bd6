"""One of the two worlds: a session behind a tap, and plaintext DuckDB as the oracle of answers."""

from __future__ import annotations

import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random
from typing import Any

import duckdb

from louver import errors
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.untrusted.engines.engine import Engine
from louver.wire import control
from louver.wire.messages import Statement
from louver.wire.tap import Record, Tap
from tests.local_duckdb import local_duckdb
from tests.worlds.crossing import Crossing
from tests.worlds.values import Value

_ENC = re.compile(
    r"\s+ENC(\s+USING\s+\w+)?(\s+MAY\s+REVEAL\s+\w+)?\b(\s+WITH \(sum = 'masked'\))?", re.IGNORECASE
)
_NAMES = re.compile(r"\b(wage|debt)(?=_\d)")
_OURS = re.compile(
    r"\s*(ALTER TABLE .* ALTER COLUMN .* MAY REVEAL|SET (link|lake)_|EXPORT)",
    re.IGNORECASE | re.DOTALL,
)
_DESCRIBED = ["column_name", "column_type", "null", "key", "default", "extra"]
_SPACE = r"(?:\s|/\*.*?\*/|--[^\n]*\n)"
_EXPLAIN = re.compile(
    rf"\s*EXPLAIN({_SPACE}+ANALYZE\b)?({_SPACE}*\([^)]*\))?", re.IGNORECASE | re.DOTALL
)


@contextmanager
def aligned(seed: str) -> Iterator[None]:
    """Python's secrets are drawn from `seed`, for each module by itself: pseudonyms, stamps,
    samples and names of files are then equal as long as a module draws equally many, in the same
    order, however often another one draws. Nonces are drawn by Rust and are not, nor what other
    threads than this one draw, whose order is not determined.
    """
    before = {n: getattr(secrets, n) for n in ("token_hex", "token_bytes", "randbelow", "randbits")}
    here = threading.get_ident()
    streams: dict[str, Random] = {}

    def draw(name: str, *sizes: int) -> Any:
        if threading.get_ident() != here:
            return before[name](*sizes)
        module = sys._getframe(1).f_globals["__name__"]
        if module not in streams:
            streams[module] = Random(f"{seed} {module}")
        return _DRAWN[name](streams[module], *sizes)

    for name in before:
        setattr(secrets, name, partial(draw, name))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(secrets, name, function)


_DRAWN: dict[str, Any] = {
    "token_hex": lambda dice, n=32: dice.randbytes(n).hex(),
    "token_bytes": lambda dice, n=32: dice.randbytes(n),
    "randbelow": lambda dice, n: dice.randrange(n),
    "randbits": lambda dice, n: dice.getrandbits(n),
}


@dataclass(slots=True)
class Outcome:
    """What one statement did in one world."""

    crossed: list[Any]
    facts: list[str]
    rows: list[str] | None
    error: errors.Error | None

    @property
    def refused(self) -> bool:
        """Whether it was refused without having failed."""
        return self.error is not None


def in_memory() -> Engine:
    """A new database."""
    return DuckDBEngine(":memory:")


class World:
    """A session over a new database, with what crosses, and its oracle."""

    def __init__(
        self,
        ring: KeyRing,
        profile: str,
        seed: str,
        attached: bool = False,
        server: Callable[[], Engine] = in_memory,
    ) -> None:
        self._seed, self._statements = seed, 0
        self._server = server
        self.records: list[Record] = []
        self.crossing = Crossing()
        self.policy = Policy({"mixed": "sealed"}.get(profile, profile))
        self.ring = ring
        self._facts: list[str] = []
        self.oracle = duckdb.connect()
        # A prepared statement keeps a plan by the statistics that its tables had then, and is
        # wrong when these are others.
        self.oracle.execute("SET disabled_optimizers = 'statistics_propagation'")
        self.other: Session | None = None
        with aligned(seed):
            self.session = self._session()
            if attached:
                self.other = self._session()
                self.session.context.attached["other"] = self.other.context
                self.oracle.execute("ATTACH ':memory:' AS other")

    def _session(self) -> Session:
        tap = Tap(self._server(), self.records)
        session = Session(tap, self.ring, self.policy, modulus_bits=512, language="duckdb")
        local_duckdb(session.context.local)._converter = _converter()
        return session

    def run(self, text: str, parameters: list[Value], other: bool = False) -> Outcome:
        """Run a statement; `other` on the attached connection itself."""
        session = self.other if other and self.other else self.session
        before = len(self.records)
        error, rows = None, None
        self._statements += 1
        with aligned(f"{self._seed} {self._statements}"):
            try:
                answer = session.execute(text, parameters or None)
                if answer.rows is not None:
                    rows = shown(session.python_rows(answer.rows), answer.rows.column_names)
            except errors.Error as caught:
                error = caught
        new = self.records[before:]
        if any(_is_told(record) for record in new):
            self._facts = [
                self.said(repr(replace(fact, condition="")))  # a sealed fingerprint of the literals
                for context in (self.session.context, *self.session.context.attached.values())
                for fact in context.ledger.facts()
            ]
        return Outcome(self.seen(new), self._facts, rows, error)

    def seen(self, records: list[Record]) -> list[Any]:
        """What crossed, as it can be compared."""
        return self.crossing.seen(records)

    def said(self, fact: str) -> str:
        """A fact of the ledger; names of ENC columns are the worlds' own."""
        return _NAMES.sub("wage", fact)

    def expected(self, text: str, parameters: list[Value], other: bool = False) -> Any:
        """What plaintext DuckDB answers: rows, None for what returns none, or its error."""
        if _OURS.match(text):
            return None
        explained = _EXPLAIN.match(text) is not None
        text = _EXPLAIN.sub("EXPLAIN ", text, count=1) if explained else text
        try:
            if other:
                self.oracle.execute("USE other")
            try:
                done = self.oracle.execute(_ENC.sub("", text), parameters or None)
                return None if explained else shown(done.fetchall())
            finally:
                if other:
                    self.oracle.execute("USE memory")
        except duckdb.Error as error:
            return error

    def undo(self) -> None:
        """End a transaction everywhere."""
        if self.session.in_transaction:
            self.run("ROLLBACK", [])
        try:
            self.oracle.execute("ROLLBACK")
        except duckdb.Error:
            return

    def stored_orders(self) -> list[Any]:
        """How the server can sort the rows of every column whose order layer is open."""
        orders = []
        for table in self.session.context.catalog.tables.values():
            for column in table.columns:
                if column.layers.get("ord") != "open":
                    continue
                name = column.stored["ord"]
                sql = f"SELECT row_id, rank() OVER (ORDER BY {name}) AS n FROM {table.local_name}"
                engine: Any = self.session.context.engine
                rows = engine.engine.query(Statement(sql))
                orders.append((table.local_name, name, sorted(map(str, rows.to_pylist()))))
        return orders

    def close(self) -> None:
        """End the session."""
        for context in (self.session.context, *self.session.context.attached.values()):
            local_duckdb(context.local)._converter = None
        self.session.close()
        self.oracle.close()


@cache
def _converter() -> duckdb.DuckDBPyConnection:
    """What makes Python values of rows; one for all sessions, for a DuckDB takes long to begin."""
    return duckdb.connect(":memory:")


def _is_told(record: Any) -> bool:
    """Whether a message adds to the ledger."""
    message = getattr(record, "message", None)
    return isinstance(message, Statement) and message.sql == control.LEDGER_APPEND


def shown(rows: list[tuple[Any, ...]], names: Sequence[str] = ()) -> list[str]:
    """Rows as a multiset. In the last column of DESCRIBE, which is NULL in DuckDB, Louver writes
    what ENC is.
    """
    if list(names) == _DESCRIBED:
        rows = [(*row[:-1], None) for row in rows]
    return sorted(map(repr, rows))
