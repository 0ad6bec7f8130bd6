"""`louver demo`: encrypt, query and compare, printing every step."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.commands import leakage
from louver.trusted.apps.commands.attack import stored_rows
from louver.trusted.apps.commands.inspect import view
from louver.trusted.apps.demo import flights
from louver.trusted.apps.demo_console import Console
from louver.trusted.client.connect import make_keys, open_session
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.inside import context_of
from louver.trusted.client.relation import Relation
from louver.trusted.executor.progress import bar
from louver.wire.messages import Statement
from louver.wire.tap import Tap

_LISTED = re.compile(r"IN \(\$1(?:, \$\d+)*\)")
_STEPS = ("parse", "analyse", "rewrite", "bind", "keep", "server", "open", "finish")


class Plain(Protocol):
    """The same tables in plain, on this machine, for the right answers."""

    name: str

    def load(self, table: flights.Table, rows: pa.Table) -> None:
        """Make a table with these rows."""

    def answer(self, sql: str) -> tuple[list[str], list[str], list[Any]]:
        """Names, types and rows of a query."""

    def change(self, sql: str) -> None:
        """Run a change."""

    def close(self) -> None:
        """Forget the tables."""


class PlainDuckDB:
    """DuckDB, for databases of its language."""

    name = "plaintext DuckDB"

    def __init__(self) -> None:
        """With no table yet."""
        self._connection = duckdb.connect(":memory:")

    def load(self, table: flights.Table, rows: pa.Table) -> None:
        """See `Plain`."""
        self._connection.execute(table.plain)
        self._connection.register("incoming", rows)
        self._connection.execute(f"INSERT INTO {table.name} SELECT * FROM incoming")
        self._connection.unregister("incoming")

    def answer(self, sql: str) -> tuple[list[str], list[str], list[Any]]:
        """See `Plain`."""
        theirs = self._connection.execute(sql)
        described = theirs.description or []
        names, types = [c[0] for c in described], [str(c[1]) for c in described]
        return names, types, theirs.fetchall()

    def change(self, sql: str) -> None:
        """See `Plain`."""
        self._connection.execute(sql)

    def close(self) -> None:
        """See `Plain`."""
        self._connection.close()


class Demonstration:
    """Creates the databases, runs the queries, compares the answers, and prints every step."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int, url: str = "") -> None:
        self._rows = rows
        self._url = url or f"duckdb:///{directory}/cloud.duckdb"
        self._console = Console(quiet=quiet)
        self._plain: Plain = self._plain_twin()
        self._keys = str(directory / "demo.louverkey")
        make_keys(self._keys, "the key of louver demo")
        self._tap, self._connection = _connect(self._url, self._keys)

    def _plain_twin(self) -> Plain:
        return PlainDuckDB()

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        try:
            loads, queries = [self._load(flights.FLIGHTS)], []
            for number, query in enumerate(flights.QUERIES, 1):
                if number == flights.SHARED_FROM:
                    refusal = self._refusal()
                    loads.append(self._load(flights.WINTER))
                queries.append(self._query(number, query))
            self._ledger()
            facts = leakage.facts(self._connection, None)
        finally:
            self._connection.close()
            self._plain.close()
        return {"loads": loads, "queries": queries, "refused": refusal, "facts": facts}

    def _load(self, table: flights.Table) -> dict[str, Any]:
        """Encrypt one table, and print what the server stores of it."""
        self._console.title(table.title)
        rows = flights.data(self._rows)[table.name]
        self._console.say(table.enc, "cyan")
        self._connection.execute(table.enc)
        start = time.perf_counter()
        with bar() as progress:
            self._connection.load(table.name, rows, progress=progress)
        spent = time.perf_counter() - start
        self._plain.load(table, rows)
        self._console.say(f"  {rows.num_rows:,} rows encrypted and loaded in {spent:.1f} s\n")
        self._server_contents(table.name)
        return {"table": table.name, "rows": rows.num_rows, "seconds": round(spent, 2)}

    def _server_contents(self, name: str) -> None:
        self._console.title(f"What the server stores of {name}")
        stored = stored_rows(self._connection)
        for table in stored.tables():
            if table.name == name:
                for line in view(stored, table, 1, 16):
                    self._console.say("  " + line)
        self._console.say("")
        self._tap.records.clear()

    def _query(self, number: int, query: flights.Query) -> dict[str, Any]:
        self._console.title(f"{number}. {query.title}")
        self._console.fill(query.why)
        for statement in query.before:
            self._console.say("you declare", "dim")
            self._console.code(statement)
            self._connection.execute(statement)
        self._console.say("you write", "dim")
        self._console.code(query.sql)
        known = set(context_of(self._connection).ledger.facts())
        self._tap.records.clear()
        start = time.perf_counter()
        relation = self._connection.sql(query.sql)
        self._plan(relation)
        relation.execute()
        spent_ms = (time.perf_counter() - start) * 1000
        self._sent(relation)
        new = [f for f in context_of(self._connection).ledger.facts() if f not in known]
        self._console.say("and learns", "dim")
        for fact in dict.fromkeys((fact.level, fact.text) for fact in new):
            self._fact(*fact)
        if not new:
            self._console.say("  no new fact; the ledger counts one more condition")
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

    def _plan(self, relation: Relation) -> None:
        """Print which layers would open, and how much the server would send."""
        plan = json.loads(relation.explain(format="json"))
        for layer in plan["layers"]:
            self._console.say(f"  opens the {layer['layer']} layer of {layer['column']}", "yellow")
        rows = sum(server["expected_rows"] for server in plan["servers"])
        size = sum(server["expected_bytes"] for server in plan["servers"])
        self._console.say(f"  expects about {rows:,} rows, {size / 1000:,.0f} kB from the server")

    def _fact(self, level: str, text: str) -> None:
        """Print a fact; one that shows order or values has a sign of its own."""
        sign = "!" if level in leakage.SEVERE else "+"
        self._console.fill(f"{text} [{level}]", f"  {sign} ", "    ")

    def _refusal(self) -> dict[str, object]:
        """A statement that a ceiling forbids: nothing is sent."""
        self._console.title("A statement that a ceiling forbids")
        self._console.fill(
            "With local_processing off, a query that needs more than a ceiling allows is refused "
            "before anything is sent, and the error names the lowest sufficient ceiling."
        )
        self._connection.execute("SET local_processing = off")
        self._console.say("you write", "dim")
        self._console.code(flights.REFUSED)
        try:
            self._connection.execute(flights.REFUSED)
        except errors.LeakageRefused as error:
            refusal = error.as_dict()
            for line in str(error).splitlines():
                self._console.fill(line.strip(), "  ", "    ")
        else:
            raise errors.make("internal", detail="a ceiling was not enforced")
        self._connection.execute("SET local_processing = on")
        self._console.say("")
        return refusal

    def _sent(self, relation: Relation) -> None:
        """Print the statements of this query as sent, with their constants."""
        self._console.say("the server got", "dim")
        # A query in two steps is one text; its second step reads row ids of any number.
        wanted = {part for text in relation.remote_sql() for part in text.split(";\n")}
        sent = [m for m in self._tap.sent() if isinstance(m, Statement)]
        for statement in sent:
            if _LISTED.sub("IN ($1)", statement.sql) not in wanted:
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
        """Compare values and types with the plaintext's; a difference ends the demonstration."""
        names, types, expected = self._plain.answer(query.sql)
        mine = relation.fetchall()
        self._console.equal(
            (names, types, expected) == (relation.columns, relation.types, mine),
            f": {len(mine)} rows and {len(names)} columns compared, value for value",
            whose=self._plain.name,
        )
        return mine

    def _ledger(self) -> None:
        self._console.title("The ledger: everything that the server has learned")
        for line in leakage.sentences(self._connection, width=self._console.width):
            self._console.say(line)
        self._console.say("")
        self._console.fill(
            "Read the lines with !: an order that is revealed is close to the values where these "
            "are well known, and with sdb, computing on the server costs the values themselves. "
            "This is why sealed is the default, and why louver attack exists."
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
