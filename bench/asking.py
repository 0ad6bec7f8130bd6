"""One statement, timed step by step, and its answer compared with plaintext DuckDB's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb
import pyarrow as pa

from bench.timing import median
from louver.trusted.client.inside import context_of


@dataclass(slots=True)
class Asked:
    """Milliseconds of a statement, in all and by step, and what the server sent back."""

    total_ms: float
    steps_ms: dict[str, float]
    received_bytes: int = 0
    rows: int = 0

    @property
    def server_ms(self) -> float:
        """What the machine out there worked, what it computes to keep included."""
        return self.steps_ms.get("server", 0.0) + self.steps_ms.get("keep", 0.0)

    @property
    def client_ms(self) -> float:
        """All the rest: parse, analyse, rewrite, bind, open, finish."""
        return self.total_ms - self.server_ms


class WrongAnswer(AssertionError):
    """Louver and plaintext DuckDB differ: no time of it means anything."""


def ask(con: Any, sql: str) -> tuple[Asked, pa.Table]:
    """Run a query on Louver."""
    traffic = context_of(con).engine.traffic
    before, start = traffic.bytes_in, time.perf_counter()
    cursor = con.execute(sql)
    rows = cursor.arrow()
    total = (time.perf_counter() - start) * 1000
    steps = cursor.times_ms
    return Asked(total, steps, traffic.bytes_in - before, rows.num_rows), rows


def checked(con: Any, peer: duckdb.DuckDBPyConnection, sql: str) -> Asked:
    """The same, and the answer must be plaintext DuckDB's."""
    questions, rows = ask(con, sql)
    wanted = peer.execute(sql).to_arrow_table()
    if _sorted(rows) != _sorted(wanted):
        raise WrongAnswer(sql)
    return questions


def unkept(con: Any, peer: duckdb.DuckDBPyConnection, sql: str) -> Asked:
    """The same with nothing kept on the server: within a transaction none are stored."""
    con.begin()
    try:
        return checked(con, peer, sql)
    finally:
        con.rollback()


def repeated(con: Any, peer: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> Asked:
    """Texts of one shape; the one whose time is the median."""
    questions = sorted((checked(con, peer, sql) for sql in texts), key=lambda item: item.total_ms)
    return questions[len(questions) // 2]


def plain_ms(peer: duckdb.DuckDBPyConnection, texts: Sequence[str]) -> float:
    """The median of plaintext DuckDB."""

    def time_ms(sql: str) -> float:
        start = time.perf_counter()
        peer.execute(sql).to_arrow_table()
        return (time.perf_counter() - start) * 1000

    for sql in texts:
        time_ms(sql)
    return median([time_ms(sql) for sql in texts])


def as_json(questions: Asked) -> dict[str, Any]:
    """As JSON."""
    return asdict(questions) | {"server_ms": questions.server_ms, "client_ms": questions.client_ms}


def _sorted(rows: pa.Table) -> list[tuple[Any, ...]]:
    values = (tuple(row.values()) for row in rows.to_pylist())
    return sorted(values, key=lambda row: [(value is None, value) for value in row])
