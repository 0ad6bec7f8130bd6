"""`louver demo postgres`: a PostgreSQL server that is not trusted, started for the demonstration.

The server is a process of its own that runs the PostgreSQL of a Python package. It ends with the
demonstration, also when that is killed.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from louver import errors, extras
from louver.trusted.apps import terminal
from louver.trusted.apps.commands import leakage
from louver.trusted.apps.commands.attack import stored_rows
from louver.trusted.apps.demo import flights
from louver.trusted.apps.demo.database import Demonstration, Plain
from louver.trusted.apps.demo_console import services
from louver.trusted.client.connect import connect
from louver.trusted.client.dbapi import Connection
from louver.trusted.client.inside import session_of
from louver.trusted.client.relation import Relation
from louver.trusted.executor.local.postgres.instances import PostgresInstances
from louver.trusted.planner.sql.dialect import speaking

#: Flights that are encrypted unless --rows says otherwise.
ROWS = 20_000
_SERVER = [sys.executable, "-m", "louver.untrusted.servers.private_postgres"]
_SHOWN_BYTES = 12
_QUERIES = (
    replace(
        flights.QUERIES[0],
        why=flights.QUERIES[0].why.replace("DuckDB on", "a private PostgreSQL on"),
    ),
    flights.QUERIES[1],
    flights.QUERIES[2],
    flights.Query(
        "A sum of numbers that the server cannot read",
        "Sums of encrypted columns are added on the server as masked whole numbers, and unmasked "
        "on your machine.",
        "SELECT origin, count(*) AS flights, sum(arr_delay) AS delay FROM flights\n"
        "WHERE month = 12 GROUP BY origin ORDER BY origin",
    ),
)
_CHANGE = "UPDATE flights SET dest = 'JFK' WHERE dest = 'SFO' AND dep_delay > 60"
_COUNT = "SELECT count(*) AS diverted FROM flights WHERE dest = 'JFK' AND dep_delay > 60"


class PostgresDemonstration:
    """Starts the server, and runs the steps on it."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int) -> None:
        extras.require("demo", "postgres")
        self._directory, self._quiet, self._rows = directory, quiet, rows or ROWS

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        with services(_SERVER) as (server,):
            url = server.announcement["url"]
            steps = _Steps(self._directory, quiet=self._quiet, rows=self._rows, url=url)
            return steps.run()


class PlainPostgres:
    """The PostgreSQL of this machine, which the server is not."""

    name = "plaintext PostgreSQL"

    def __init__(self) -> None:
        """With no table yet."""
        self._databases = PostgresInstances()
        self._connection = self._databases.another(1)

    def load(self, table: flights.Table, rows: pa.Table) -> None:
        """See `Plain`."""
        self._connection.execute(table.plain)
        self._connection.fill(table.name, rows.column_names, rows)

    def answer(self, sql: str) -> tuple[list[str], list[str], list[Any]]:
        """See `Plain`."""
        described, rows = self._connection.fetch_described(sql)
        names, types = [name for name, _ in described], [type_ for _, type_ in described]
        return names, types, self._connection.python_rows(rows)

    def change(self, sql: str) -> None:
        """See `Plain`."""
        self._connection.execute(sql)

    def close(self) -> None:
        """See `Plain`."""
        self._databases.close()


class _Steps(Demonstration):
    """The steps of the demonstration."""

    def _plain_twin(self) -> Plain:
        return PlainPostgres()

    def run(self) -> dict[str, Any]:
        """Run them; their results as plain data."""
        language = speaking(session_of(self._connection).dialect)
        with closing(self._connection), closing(self._plain), language:
            self._introduce()
            loads = [self._load(flights.FLIGHTS)]
            self._explained: list[str] = []
            answers = [self._query(number, query) for number, query in enumerate(_QUERIES, 1)]
            queries = [
                {**answer, "explain": text}
                for answer, text in zip(answers, self._explained, strict=True)
            ]
            change = self._transaction()
            self._ledger()
            facts = leakage.facts(self._connection, None)
        return {"loads": loads, "queries": queries, "transaction": change, "facts": facts}

    def _introduce(self) -> None:
        self._console.title("A PostgreSQL server, as it is")
        self._console.fill(
            "It was started for this demonstration and ends with it. It listens on a Unix socket "
            "in a folder that only you may enter, and has no extension and no function of ours."
        )
        self._console.say(f"  {self._url}\n")

    def _server_contents(self, name: str) -> None:
        """A row that was loaded, and the row that the server has of it."""
        self._console.title(f"A flight, and what the server has of it in {name}")
        names, _, (plain, *_) = self._plain.answer(f"SELECT * FROM {name} LIMIT 1")
        self._console.say("your row", "dim")
        for column, value in zip(names, plain, strict=True):
            self._console.say(f"    {column:<14} {value}")
        self._console.say("the server's row", "dim")
        stored = stored_rows(self._connection)
        for table in stored.tables():
            if table.name != name:
                continue
            for row in stored.rows(table, 1):
                for column, type_ in table.columns:
                    text = _shown(row[column])
                    self._console.say(f"    {column:<14} {type_:<10} {text}")
        self._console.say("")
        self._tap.records.clear()

    def _plan(self, relation: Relation) -> None:
        """EXPLAIN of a query that is about to run, with what it would newly reveal."""
        text = relation.explain(leakage=True)
        self._explained.append(text)
        self._console.say("EXPLAIN (LEAKAGE) says, before anything is sent", "dim")
        for line in text.splitlines():
            indent = "  " + " " * (len(line) - len(line.lstrip()))
            self._console.fill(line.strip(), indent, indent + "    ")

    def _transaction(self) -> dict[str, Any]:
        """A change that another client sees when it is committed, and not before."""
        self._console.title("A transaction, and a second client with the same key")
        seen: list[int] = []
        with connect(self._url, self._keys) as other:
            for statement in ("BEGIN", _CHANGE):
                self._say_and_run("first client", statement)
            seen.append(self._seen(other))
            self._say_and_run("first client", "COMMIT")
            seen.append(self._seen(other))
        self._plain.change(_CHANGE)
        _, _, ((expected,),) = self._plain.answer(_COUNT)
        if seen != [0, expected]:
            raise errors.make("internal", detail="a transaction was seen before its end")
        self._console.equal(True, ", before and after COMMIT", whose=self._plain.name)
        return {"sql": [_CHANGE, _COUNT], "before": seen[0], "after": seen[1]}

    def _say_and_run(self, who: str, statement: str) -> None:
        self._console.say(who, "dim")
        self._console.code(statement)
        self._connection.execute(statement)

    def _seen(self, other: Connection) -> int:
        self._console.say("second client", "dim")
        self._console.code(_COUNT)
        (row,) = other.execute(_COUNT).fetchall()
        self._console.say(f"    {row[0]}")
        return int(row[0])


def _shown(value: object) -> str:
    """A stored value: bytes by their length and first digits."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:_SHOWN_BYTES].hex(' ')} …"
    return "NULL" if value is None else terminal.clean(str(value))
