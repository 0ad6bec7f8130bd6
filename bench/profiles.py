"""What each profile and ceiling costs, in storage and time, and what the server knows afterwards.

The README shows this table. Every answer is compared with that of plaintext DuckDB.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import duckdb

from bench import isolate, report
from bench.timing import median

ROWS, CUSTOMERS, DAYS, REPEATS = 100_000, 2_000, 730, 7
LEVELS = ("size", "access", "equality", "order", "plaintext")
#: A name, the profile, and the ceiling of every column; none: the profile's own.
VARIANTS = (
    ("plaintext DuckDB", "", ""),
    ("`sealed`, the default", "sealed", ""),
    ("`sealed`, `MAY REVEAL equality`", "sealed", "MAY REVEAL equality"),
    ("`sealed`, `MAY REVEAL order`", "sealed", "MAY REVEAL order"),
    ("`cryptdb` (onions)", "cryptdb", ""),
    ("`sdb` (secret sharing)", "sdb", ""),
)
TABLE = "CREATE TABLE orders (id BIGINT, customer TEXT{0}, day DATE{0}, cents BIGINT{0})"
DATA = (
    f"SELECT i AS id, 'customer ' || (hash(i) % {CUSTOMERS}) AS customer,"
    f" DATE '2024-01-01' + (hash(i + 1) % {DAYS})::INTEGER AS day,"
    " (hash(i + 2) % 1000000)::BIGINT AS cents FROM range({rows}) AS r(i)"
)
#: `{n}` is another number each time.
QUERIES = {
    "one customer": "SELECT day, cents FROM orders WHERE customer = 'customer {n}' ORDER BY ALL",
    "sum of a month": "SELECT sum(cents) FROM orders WHERE day"
    " BETWEEN DATE '2024-02-01' + {n} AND DATE '2024-03-01' + {n}",
    "top customers": "SELECT customer, count(*) AS n FROM orders WHERE id > {n}"
    " GROUP BY customer ORDER BY n DESC, customer LIMIT 5",
}
HEADER = ["columns are", "the server ends up knowing", "stored", "load", *QUERIES]


def run(*, quick: bool) -> report.Report:
    """Each variant in a process of its own."""
    rows = ROWS // 10 if quick else ROWS
    section = report.Report("profiles", "What each profile reveals and costs")
    table = []
    for number, (name, *_) in enumerate(VARIANTS):
        figures = isolate.run("bench.profiles:measured", number=number, rows=rows)
        times = [_shown_ms(figures["queries"][query]) for query in QUERIES]
        stored = f"{figures['bytes'] / rows:,.0f} B/row"
        table.append([name, figures["knows"], stored, _shown_ms(figures["load_ms"]), *times])
    section.grids.append(report.Grid("Profiles and ceilings", HEADER, table))
    section.notes.append(
        f"{rows:,} rows of a customer, a day and an amount, each `ENC`, and a plain number. The "
        "server is a DuckDB file on the same machine. `one customer` selects about "
        f"{rows // CUSTOMERS} rows, `sum of a month` a twenty-fourth, `top customers` groups all. "
        f"Times are medians of {REPEATS} runs with other constants, after a first run, which "
        "opens layers and materializes terms. Stored: the file after a checkpoint."
    )
    return section


def measured(number: int, rows: int) -> dict[str, Any]:
    """Load, run the queries, and compare each answer with plaintext DuckDB's."""
    _, profile, ceiling = VARIANTS[number]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        plain = duckdb.connect(str(folder / "plain.duckdb"))
        plain.execute(TABLE.format(""))
        data = plain.execute(DATA.format(rows=rows)).to_arrow_table()
        start = time.perf_counter()
        plain.execute("INSERT INTO orders SELECT * FROM data")
        load_ms = (time.perf_counter() - start) * 1000
        con: Any = plain
        if profile:
            con = _connected(folder, profile)
            con.execute(TABLE.format(f" ENC {ceiling}"))
            start = time.perf_counter()
            con.load("orders", data)
            load_ms = (time.perf_counter() - start) * 1000
        times = {name: _timed(con, plain, query) for name, query in QUERIES.items()}
        knows = _knows(con) if profile else "everything"
        con.execute("CHECKPOINT")
        con.close()
        file = "cloud" if profile else "plain"
        size_bytes = (folder / f"{file}.duckdb").stat().st_size
    return {"load_ms": load_ms, "queries": times, "bytes": size_bytes, "knows": knows}


def _connected(folder: Path, profile: str) -> Any:
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
    import louver

    warnings.simplefilter("ignore", louver.LeakageWarning)
    louver.KeyRing.create(folder / "bench.louverkey")
    url = f"duckdb:///{folder}/cloud.duckdb"
    return louver.connect(url, keys=folder / "bench.louverkey", profile=profile)


def _timed(con: Any, plain: Any, query: str) -> float:
    """Milliseconds of a query; the first run is not counted."""
    results = []
    for n in range(REPEATS + 1):
        sql = query.format(n=n)
        start = time.perf_counter()
        rows = con.execute(sql).fetchall()
        results.append((time.perf_counter() - start) * 1000)
        if rows != plain.execute(sql).fetchall():
            raise RuntimeError(f"another answer than plaintext DuckDB's: {sql}")
    return median(results[1:])


def _knows(con: Any) -> str:
    """The highest level that the ledger lists for each encrypted column."""
    highest: dict[str, str] = {}
    for fact in con.leakage().arrow().to_pylist():
        for column in fact["columns"]:
            name = column.rpartition(".")[2]
            highest[name] = max(highest.get(name, "size"), fact["level"], key=LEVELS.index)
    levels = {level: [c for c, x in highest.items() if x == level] for level in reversed(LEVELS)}
    return "; ".join(f"{level} of {', '.join(c)}" for level, c in levels.items() if c)


def _shown_ms(spent_ms: float) -> str:
    return f"{spent_ms / 1000:.1f} s" if spent_ms >= 1000 else f"{spent_ms:.0f} ms"
