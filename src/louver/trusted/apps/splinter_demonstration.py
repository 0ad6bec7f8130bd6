"""`louver demo splinter`: two providers of public flights, private questions to both of them, and
beside each answer what either provider saw.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from louver import errors
from louver.trusted.apps import flights, share_inspection, terminal
from louver.trusted.runtime.connect import connect
from louver.trusted.runtime.dbapi import Connection

_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the demonstration: with placeholders, and the secrets that go there."""

    title: str
    why: str
    sql: str
    secrets: tuple[object, ...]


QUESTIONS = (
    Question(
        "The mean price of a month, from one airport to another",
        "An AND of equalities: one point function. Each provider selects, blindly, one record of a "
        "table that it prepared for all months and all pairs of airports.",
        "SELECT avg(price) AS mean_price, count(*) AS flights FROM flights\n"
        "WHERE month = ? AND origin = ? AND dest = ?",
        (3, "JFK", "SFO"),
    ),
    Question(
        "The ten cheapest flights",
        "The record of a pair of airports holds its first ten rows, always ten, padded.",
        "SELECT flight, carrier, day, price FROM flights\n"
        "WHERE origin = ? AND dest = ? ORDER BY price, day, flight LIMIT 10",
        ("LGA", "ATL"),
    ),
    Question(
        "A private interval of days, summed by carrier",
        "Two comparison functions; the sums of all carriers are added up under shares. The bound "
        "on the distance is public, as every literal is.",
        "SELECT carrier, count(*) AS flights, sum(price) AS paid FROM flights\n"
        "WHERE day BETWEEN ? AND ? AND distance > 1000 GROUP BY carrier ORDER BY carrier",
        ("2013-07-03", "2013-07-05"),
    ),
    Question(
        "The dearest flight of some days, in two rounds",
        "A maximum cannot be added up: one round finds the interval among the sorted days, the "
        "next fetches maxima of powers of two of days that cover it.",
        "SELECT max(price) AS dearest, arg_max(flight, price) AS flight FROM flights\n"
        "WHERE origin = ? AND day BETWEEN ? AND ?",
        ("EWR", "2013-12-20", "2013-12-31"),
    ),
    Question(
        "One of several destinations",
        "Three clauses, three point functions at once. Were two of them the same, a dummy would "
        "stand in: the number says nothing.",
        "SELECT dest, min(price) AS cheapest FROM flights\n"
        "WHERE dest IN (?, ?, ?) GROUP BY dest ORDER BY dest",
        ("HNL", "ANC", "HNL"),
    ),
)


class SplinterDemonstration:
    """Starts the providers, asks, shows both sides, compares with plaintext DuckDB."""

    def __init__(self, place: Path, *, quiet: bool, rows: int) -> None:
        self._place, self._quiet, self._rows = place, quiet, rows
        self._width = min(shutil.get_terminal_size((100, 24)).columns, 120)
        self._plain = duckdb.connect(":memory:")

    def run(self) -> dict[str, Any]:
        """All of it; what happened as plain data."""
        data = self._place / "flights.parquet"
        rows = priced(self._rows)
        pq.write_table(rows, data)
        self._plain.execute(f"CREATE VIEW flights AS FROM '{data}'")
        seen = [self._place / name for name in ("first", "second")]
        with provider(data, seen[0]) as first, provider(data, seen[1]) as second:
            self._title("Two providers of the same public data, who do not talk to each other")
            for address in (first, second):
                self._say(f"  louver serve provider --data flights.parquet   → {address}")
            url = f"providers://{first},{second}"
            self._say(f"  {rows.num_rows:,} flights; louver.connect({url!r}), without a key\n")
            with connect(url) as connection:
                asked = [
                    self._ask(connection, n, question, seen)
                    for n, question in enumerate(QUESTIONS, 1)
                ]
                self._title("All that the providers have learned")
                facts = connection.leakage().to_pylist()
                for fact in facts:
                    self._say(textwrap.fill(fact["reveals"], self._width, initial_indent="  ",
                                            subsequent_indent="    "))  # fmt: skip
                self._say("")
        self._plain.close()
        told = [{"question": f["statement"], "reveals": f["reveals"]} for f in facts]
        return {"rows": rows.num_rows, "questions": asked, "facts": told}

    def _ask(
        self, connection: Connection, number: int, question: Question, seen: list[Path]
    ) -> dict[str, Any]:
        self._title(f"{number}. {question.title}")
        self._say(textwrap.fill(question.why, self._width))
        for line in question.sql.splitlines():
            self._say(f"  {line}", "cyan")
        self._say(f"  private: {', '.join(map(repr, question.secrets))}", "green")
        before = [_files(folder) for folder in seen]
        start = time.perf_counter()
        relation = connection.sql(question.sql, question.secrets).execute()
        spent_ms = (time.perf_counter() - start) * 1000
        views = [
            share_inspection.views(sorted(_files(folder) - known))
            for folder, known in zip(seen, before, strict=True)
        ]
        for name, lines in zip(("first", "second"), views, strict=True):
            self._say(f"  the {name} provider saw")
            for line in lines:
                for part in textwrap.wrap(line, self._width - 4, subsequent_indent="  "):
                    self._say(f"    {part}", "yellow")
        for line in relation.text(max_width=self._width - 2).splitlines():
            self._say("  " + line)
        mine = relation.fetchall()
        theirs = self._plain.execute(question.sql, list(question.secrets)).fetchall()
        if not same(mine, theirs):
            raise errors.make("internal", detail="an answer differs from plaintext DuckDB's")
        mark = terminal.styled("equal", "green")
        self._say(f"  {mark} to plaintext DuckDB's answer, {spent_ms:.0f} ms\n")
        return {
            "sql": question.sql, "secrets": [str(secret) for secret in question.secrets],
            "rows": terminal.rows_json(mine), "first_saw": views[0], "second_saw": views[1],
            "ms": round(spent_ms, 1), "equal_to_plaintext": True,
        }  # fmt: skip

    def _title(self, text: str) -> None:
        line = "─" * max(2, self._width - len(text) - 4)
        self._say(terminal.styled(f"── {text} {line}", "bold"))

    def _say(self, text: str, style: str = "") -> None:
        if not self._quiet:
            terminal.out(terminal.styled(text, style) if style else text)


def priced(rows: int) -> pa.Table:
    """The flights with a price in cents, which follows from the flight alone."""
    with duckdb.connect(":memory:") as connection:
        connection.register("flights", flights.raw(rows))
        return connection.execute(
            "SELECT make_date(year::INT, month::INT, day::INT) AS day, month::INT AS month,"
            " carrier, flight::INT AS flight, origin, dest, distance::BIGINT AS distance,"
            " (4900 + distance::BIGINT * 11 + (flight::BIGINT * 7919 + day::BIGINT * 104729)"
            " % 20011)::INT AS price FROM flights ORDER BY 1, sched_dep_time, 3, 4"
        ).to_arrow_table()


def same(mine: list[Any], theirs: list[Any]) -> bool:
    """Whether two answers are equal; a mean may differ in its last bits."""
    if len(mine) != len(theirs):
        return False
    pairs = [
        (a, b)
        for one, other in zip(mine, theirs, strict=True)
        for a, b in zip(one, other, strict=True)
    ]
    return all(
        abs(a - b) <= 1e-12 * abs(b) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in pairs
    )


def _files(folder: Path) -> set[Path]:
    return {path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()


@contextmanager
def provider(data: Path, record: Path) -> Iterator[str]:
    """A provider on a free port of this machine that records what it is sent; its address."""
    command = [sys.executable, "-m", "louver.untrusted.servers.provider"]
    process = subprocess.Popen(  # noqa: S603 - our own program
        [*command, "--data", str(data), "--record", str(record), "--listen", "127.0.0.1:0",
         "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        address = _address(process)
        yield address
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_START_SECONDS)
        if process.stdout:
            process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    """Where a provider listens: it says so when its data is loaded."""
    line = ""
    for line in process.stdout or ():
        told = json.loads(line)
        if told.get("address"):
            return str(told["address"])
        if not told.get("ok", True):
            break
    raise errors.make("internal", detail=f"the provider did not start: {line.strip()}")
