"""Ask private questions, show them with their answers, and compare with plaintext DuckDB."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import duckdb

import louver
from examples.providers import Provider, url


class Asked(Protocol):
    """A query, what it is for, and its private parameters."""

    @property
    def name(self) -> str:
        """Its short name."""

    @property
    def why(self) -> str:
        """What it finds out."""

    @property
    def sql(self) -> str:
        """Its text, with a ? for each private parameter."""

    @property
    def parameters(self) -> tuple[object, ...]:
        """Its private parameters."""


def ask(providers: list[Provider], data: Path, table: str, queries: Iterable[Asked]) -> bool:
    """Ask all of them; whether every answer equals that of plaintext DuckDB on the same file."""
    right = True
    with louver.connect(url(providers)) as con, duckdb.connect() as plain:
        plain.execute(f"CREATE VIEW {table} AS FROM '{data}'")
        for one in queries:
            print(f"\n── {one.name}: {one.why}")
            print("   " + one.sql.replace("\n", "\n   "))
            print(f"   private: {', '.join(map(str, one.parameters))}")
            started = time.perf_counter()
            answer = con.sql(one.sql, list(one.parameters))
            rows = answer.fetchall()
            spent_ms = (time.perf_counter() - started) * 1000
            for line in answer.text().splitlines():
                print("   " + line)
            equal = same(rows, plain.execute(one.sql, list(one.parameters)).fetchall())
            right = right and equal
            word = "equal to" if equal else "NOT EQUAL TO"
            print(f"   {spent_ms:.0f} ms; {word} plaintext DuckDB's answer")
        print("\n── what each provider has learned")
        for fact in con.leakage().to_pylist():
            print(f"   {fact['reveals']}")
    return right


def same(first: list[Any], second: list[Any]) -> bool:
    """Whether two answers are equal; the last bits of a mean depend on the order of summing."""
    if len(first) != len(second):
        return False
    return all(
        math.isclose(a, b, rel_tol=1e-12)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )
