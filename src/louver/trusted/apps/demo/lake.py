"""`louver demo lake`: an encrypted Iceberg table, what it shows without the key, and queries
through a pruning service in a separate process.
"""

from __future__ import annotations

import textwrap
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from louver import errors, extras
from louver.trusted.apps import terminal
from louver.trusted.apps.commands import leakage
from louver.trusted.apps.demo import flights
from louver.trusted.apps.demo_console import Console, service, services
from louver.trusted.client.connect import connect, make_keys
from louver.trusted.client.dbapi import Connection

ROWS_PER_FILE = 5_000
_TABLE = """CREATE TABLE flights (
    day DATE, carrier VARCHAR, origin VARCHAR, dest VARCHAR, tailnum VARCHAR,
    dep_delay BIGINT, distance BIGINT)"""
QUERIES = (
    flights.Query(
        "A range of days",
        "The files are sorted by day. The token reveals neither which days nor how many.",
        "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM flights\n"
        "WHERE day BETWEEN DATE '2013-07-03' AND DATE '2013-07-05'\n"
        "GROUP BY carrier ORDER BY carrier LIMIT 5",
    ),
    flights.Query(
        "Several conditions, joined by AND, OR and NOT",
        "Each column has its own index under its own keys; the service combines their matches.",
        "SELECT count(*) AS flights, max(distance) AS farthest FROM flights\n"
        "WHERE (day < DATE '2013-01-15' OR day = DATE '2013-12-24') AND NOT dep_delay < 600",
    ),
    flights.Query(
        "A condition that skips nothing",
        "Every file contains these destinations, so all are fetched, but only three columns.",
        "SELECT dest, count(*) AS flights FROM flights WHERE dest IN ('ANC', 'HNL')\n"
        "AND distance > 3000 GROUP BY dest ORDER BY dest",
    ),
)


class LakeDemonstration:
    """Writes the table, opens it without the key, queries it through the service, compares."""

    def __init__(self, directory: Path, *, quiet: bool, rows: int) -> None:
        self._directory, self._rows = directory, rows
        self._console = Console(quiet=quiet)
        self._keys = str(directory / "demo.louverkey")
        self._plain = duckdb.connect(":memory:")
        make_keys(self._keys, "the key of louver demo lake")

    def run(self) -> dict[str, Any]:
        """Run the demonstration; its results as plain data."""
        outcome: dict[str, Any] = {"load": self._write(), "stranger": self._stranger()}
        warehouse = f"{self._directory}/warehouse"
        with services(service("prune", warehouse)) as (pruner,):
            url = pruner.announcement["url"]
            self._console.title("The pruning service, a process without the key")
            self._console.say(f"  louver serve prune {warehouse}   → {url}\n")
            with connect(f"lake+{url}", self._keys) as connection:
                queries = [self._query(connection, n, q) for n, q in enumerate(QUERIES, 1)]
                self._console.title("The ledger: everything that the server has learned")
                for line in leakage.sentences(connection, width=self._console.width):
                    self._console.say(line)
                shares = {
                    column: round(share, 3)
                    for (_, column), share in connection.lake.opened().items()
                }
                for column, share in shares.items():
                    self._console.say(
                        f"  of the index of {column}, {share:.1%} of the bits are open"
                    )
                self._console.say("")
                facts = leakage.facts(connection, None)
        self._plain.close()
        return {**outcome, "queries": queries, "opened": shares, "facts": facts}

    def _write(self) -> dict[str, Any]:
        self._console.title(
            "Encrypting the flights that left New York in 2013, as an Iceberg table"
        )
        rows = days(self._rows)
        self._console.code(_TABLE)
        self._plain.execute(_TABLE)
        self._plain.register("incoming", rows)
        self._plain.execute("INSERT INTO flights SELECT * FROM incoming")
        start = time.perf_counter()
        with connect(f"lake:///{self._directory}/warehouse", self._keys) as connection:
            connection.execute(f"SET lake_rows_per_file = {ROWS_PER_FILE}")
            connection.execute(_TABLE)
            connection.load("flights", rows)
            files = connection.lake.history("flights").to_pylist()[-1]["files"]
        spent = time.perf_counter() - start
        self._console.say(
            f"  {rows.num_rows:,} rows encrypted into {files} files in {spent:.1f} s\n"
        )
        return {"rows": rows.num_rows, "files": files, "seconds": round(spent, 2)}

    def _stranger(self) -> dict[str, Any]:
        """Open the table with DuckDB's Iceberg extension, without the key."""
        self._console.title("The same table in plain DuckDB")
        (metadata,) = sorted(self._directory.glob("warehouse/louver/*/metadata/*.metadata.json"))[
            -1:
        ]
        with duckdb.connect(":memory:") as stranger:
            for name in ("avro", "iceberg"):
                stranger.execute(f"LOAD '{extension(name)}'")
            sql = f"FROM iceberg_metadata('{metadata}') LIMIT 1"
            entries = stranger.execute(sql).to_arrow_table().to_pylist()
            self._console.code("SELECT * FROM iceberg_metadata('…') LIMIT 1")
            for name, value in entries[0].items():
                self._console.say(f"    {name} = {value}")
            sql = f"SELECT * FROM iceberg_scan('{metadata}')"
            names = [row[0] for row in stranger.execute(f"DESCRIBE {sql}").fetchall()]
            self._console.say(f"  its columns: {', '.join(names)}")
            self._console.code("SELECT * FROM iceberg_scan('…')")
            try:
                stranger.execute(sql).fetchone()
            except duckdb.Error as error:
                refusal = str(error).partition("\n")[0]
            else:
                raise errors.make("internal", detail="plain DuckDB could read the table")
            for line in textwrap.wrap(refusal, self._console.width - 4):
                self._console.say(f"    {line}", "red")
        self._console.say("")
        return {"columns": names, "error": refusal}

    def _query(self, connection: Connection, number: int, query: flights.Query) -> dict[str, Any]:
        self._console.title(f"{number}. {query.title}")
        self._console.fill(query.why)
        self._console.code(query.sql)
        start = time.perf_counter()
        relation = connection.sql(query.sql).execute()
        spent_ms = (time.perf_counter() - start) * 1000
        for text in relation.remote_sql():
            self._console.say(f"  the service got: {text}", "yellow")
        fetched = connection.lake.fetched()[-1]
        self._console.say(
            f"  files kept {fetched.files_kept} of {fetched.files_total}, "
            f"{fetched.fetched_bytes:,} bytes fetched, "
            f"all files have {fetched.total_bytes:,} bytes, {spent_ms:.0f} ms"
        )
        self._console.answer(relation)
        mine, theirs = relation.fetchall(), self._plain.execute(query.sql).fetchall()
        self._console.equal(mine == theirs)
        return {
            "sql": query.sql,
            "remote": relation.remote_sql(),
            "files_kept": fetched.files_kept,
            "files_total": fetched.files_total,
            "bytes_fetched": fetched.fetched_bytes,
            "ms": round(spent_ms, 1),
            "rows": terminal.rows_json(mine),
            "equal_to_plaintext": True,
        }


def days(rows: int) -> pa.Table:
    """The flights in order of departure."""
    with duckdb.connect(":memory:") as connection:
        connection.register("flights", flights.raw(rows))
        return connection.execute(
            "SELECT make_date(year::INT, month::INT, day::INT) AS day, carrier, origin, dest,"
            " tailnum, dep_delay::BIGINT AS dep_delay, distance::BIGINT AS distance"
            " FROM flights ORDER BY day, sched_dep_time, carrier, flight"
        ).to_arrow_table()


def extension(name: str) -> str:
    """The path of one of DuckDB's extensions, which are installed as Python packages."""
    spec = find_spec(f"duckdb_extension_{name}")
    locations = spec.submodule_search_locations if spec is not None else None
    for location in locations or ():
        for path in Path(location).rglob(f"{name}.duckdb_extension"):
            return str(path)
    raise extras.missing(f"duckdb_extension_{name}")
