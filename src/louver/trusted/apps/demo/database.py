"""`louver demo`: encrypt, query and compare, printing every step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import duckdb

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.commands import leakage
from louver.trusted.apps.commands.attack import stored_rows
from louver.trusted.apps.commands.inspect import view
from louver.trusted.apps.demo import flights
from louver.trusted.apps.demo_console import Console
from louver.trusted.client.connect import make_keys, open_session
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.relation import Relation
from louver.trusted.executor.progress import bar
from louver.wire.messages import Statement
from louver.wire.tap import Tap

_STEPS = ("parse", "analyse", "rewrite", "bind", "keep", "server", "open", "finish")
_TABLES = (flights.FLIGHTS, flights.WINTER)


class Demonstration:
    """Creates the databases, runs the queries, compares the answers, and prints every step."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int) -> None:
        self._rows = rows
        self._console = Console(quiet=quiet)
        self._plain = duckdb.connect(":memory:")
        keys = directory / "demo.louverkey"
        make_keys(str(keys), "the key of louver demo")
        self._tap, self._connection = _connect(f"duckdb:///{directory}/cloud.duckdb", str(keys))

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        try:
            loads = self._load()
            self._server_contents()
            queries = [self._query(n, q) for n, q in enumerate(flights.QUERIES, 1)]
            self._ledger()
            facts = leakage.facts(self._connection, None)
        finally:
            self._connection.close()
            self._plain.close()
        return {"loads": loads, "queries": queries, "facts": facts}

    def _load(self) -> list[dict[str, Any]]:
        self._console.title("Encrypting the flights that left New York in 2013")
        data = flights.data(self._rows)
        loads = []
        for table in _TABLES:
            rows = data[table.name]
            self._console.say(table.enc, "cyan")
            self._connection.execute(table.enc)
            start = time.perf_counter()
            with bar() as progress:
                self._connection.load(table.name, rows, progress=progress)
            spent = time.perf_counter() - start
            self._tap.records.clear()
            self._plain.execute(table.plain)
            self._plain.register("incoming", rows)
            self._plain.execute(f"INSERT INTO {table.name} SELECT * FROM incoming")
            self._plain.unregister("incoming")
            self._console.say(f"  {rows.num_rows:,} rows encrypted and loaded in {spent:.1f} s\n")
            loads.append({"table": table.name, "rows": rows.num_rows, "seconds": round(spent, 2)})
        return loads

    def _server_contents(self) -> None:
        self._console.title("What the server stores")
        stored = stored_rows(self._connection)
        for table in stored.tables():
            if not table.own:
                for line in view(stored, table, 1, 16):
                    self._console.say("  " + line)
        self._console.say("")
        self._tap.records.clear()

    def _query(self, number: int, query: flights.Query) -> dict[str, Any]:
        self._console.title(f"{number}. {query.title}")
        self._console.fill(query.why)
        self._console.say("you wrote", "dim")
        self._console.code(query.sql)
        known = set(self._connection.context.ledger.facts())
        start = time.perf_counter()
        relation = self._connection.sql(query.sql).execute()
        spent_ms = (time.perf_counter() - start) * 1000
        self._sent(relation)
        new = [f for f in self._connection.context.ledger.facts() if f not in known]
        self._console.say("and learned", "dim")
        for text in dict.fromkeys(fact.text for fact in new):
            self._console.fill(text, "  + ", "    ")
        if not new:
            self._console.say("  nothing new")
        self._console.say("the answer", "dim")
        self._console.answer(relation)
        times = self._times(relation, spent_ms)
        rows = self._compare(relation, query)
        return {
            "sql": query.sql,
            "remote_sql": relation.remote_sql(),
            "columns": relation.columns,
            "rows": terminal.rows_json(rows),
            "times_ms": times,
            "total_ms": round(spent_ms, 2),
            "equal_to_plaintext": True,
        }

    def _sent(self, relation: Relation) -> None:
        """Print the statements of this query as sent, with their constants."""
        self._console.say("the server got", "dim")
        wanted = relation.remote_sql()
        sent = [m for m in self._tap.sent() if isinstance(m, Statement)]
        for statement in sent:
            if statement.sql not in wanted:
                continue
            self._console.code(statement.sql, "yellow")
            for number, constant in enumerate(statement.constants, 1):
                self._console.say(f"    ${number} = {_short(constant)}")
        materializing = sum("sdb_powers(" in m.sql for m in sent)
        if materializing:
            self._console.say(
                f"  and before it, once for this shape of query, {materializing} statement"
                f"{'' if materializing == 1 else 's'} to materialize terms"
            )
        self._tap.records.clear()

    def _times(self, relation: Relation, spent_ms: float) -> dict[str, float]:
        times = {step: round(relation.times_ms.get(step, 0.0), 2) for step in _STEPS}
        times["bind"] = round(times["bind"], 2)
        names = {"bind": "encrypt constants", "keep": "materialize terms"}
        steps = [f"{names.get(k, k)} {_ms(v)}" for k, v in times.items() if v >= 0.005]
        steps.append(f"ledger and other work {_ms(max(spent_ms - sum(times.values()), 0.0))}")
        self._console.say("time", "dim")
        self._console.fill(", ".join(steps) + f"; total {_ms(spent_ms)}", "  ", "  ")
        return times

    def _compare(self, relation: Relation, query: flights.Query) -> list[Any]:
        """Compare values and types with plaintext DuckDB; a difference ends the demonstration."""
        theirs = self._plain.execute(query.sql)
        names = [column[0] for column in theirs.description or []]
        types = [str(column[1]) for column in theirs.description or []]
        expected, mine = theirs.fetchall(), relation.fetchall()
        self._console.equal(
            (names, types, expected) == (relation.columns, relation.types, mine),
            f": {len(mine)} rows and {len(names)} columns compared, value for value",
        )
        return mine

    def _ledger(self) -> None:
        self._console.title("The ledger: everything that the server has learned")
        for line in leakage.sentences(self._connection, width=self._console.width):
            self._console.say(line)
        self._console.say("")
        self._console.fill(
            "Read the red lines: with sdb, computing on the server costs the secrecy of the values "
            "themselves. This is why sealed is the default, and why louver attack exists."
        )
        self._console.say("")


def _connect(url: str, keys: str) -> tuple[Tap, Connection]:
    session = open_session(url, keys, tapped=True)
    if not isinstance(session.context.engine, Tap):
        raise errors.make("internal", detail="the demonstration has no recorder")
    return session.context.engine, Connection(session)


def _short(constant: object) -> str:
    """A constant in short: bytes by their length and first digits."""
    if isinstance(constant, bytes):
        return f"{len(constant)} bytes {constant[:12].hex(' ')} …"
    return repr(constant)


def _ms(spent: float) -> str:
    return f"{spent / 1000:.1f} s" if spent >= 1000 else f"{spent:.1f} ms"
