"""The range query of the SDB report and its neighbours, on the scheme sdb."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench import asking, data, isolate, report
from louver.trusted.client.inside import context_of

SELECTIVITY = 0.01
#: Name, text, and how long it may take the first time and later, in seconds.
QUERIES: tuple[tuple[str, str, float | None, float | None], ...] = (
    ("A < q", "SELECT A, B FROM T WHERE A < {q}", 15.0, 0.5),
    ("A < B", "SELECT A, B FROM T WHERE A < B", None, None),
    ("COUNT", "SELECT count(A) FROM T WHERE A < {q}", None, None),
    ("SUM", "SELECT sum(A) FROM T WHERE A < {q}", None, None),
    ("SUM of product", "SELECT sum(B * G) FROM T", None, None),
    ("GROUP BY", "SELECT G, sum(A), count(*) FROM T GROUP BY G", None, None),
    ("join", "SELECT count(*) FROM T JOIN D ON T.G = D.G WHERE A < {q}", None, None),
    ("A < q, opening shares", "SELECT A * 3, B * 3 FROM T WHERE A < {q}", None, None),
)
STEPS = ("parse", "analyse", "rewrite", "bind", "keep", "server", "open", "finish")
PAPER_MS = 44_827 + 2_107


def run(*, quick: bool) -> report.Report:
    """Louver and plaintext DuckDB on one table, side by side in one process."""
    rows = 20_000 if quick else 200_000
    output = isolate.run("bench.ranges:measure", rows=rows)
    title = f"Queries on {rows:,} rows, sdb, 2,048 bits, {output['cores']} cores"
    section = report.Report("range", title)
    for name, _, first_s, again_s in QUERIES:
        for when, target in (("first", first_s), ("again", again_s)):
            item = output["queries"][name]
            section.lines.append(
                report.Line(
                    f"{name}, {when}",
                    item[when]["total_ms"] / 1000,
                    "s",
                    "plaintext DuckDB",
                    item["plain_ms"] / 1000,
                    target=None if quick else target,
                    peak_mib=output["peak_mib"],
                )
            )
    section.lines.append(
        report.Line(
            "A < q, again", output["queries"]["A < q"]["again"]["total_ms"] / 1000, "s",
            "the SDB paper, 80 cores, every time", PAPER_MS / 1000,
        )
    )  # fmt: skip
    section.grids.append(_steps(output))
    section.notes += _notes(output, quick)
    return section


def _steps(results: dict[str, Any]) -> report.Grid:
    rows = []
    for name, *_ in QUERIES:
        for when in ("first", "again"):
            item = results["queries"][name][when]
            cells = [report.number(item["steps_ms"].get(step, 0.0)) for step in STEPS]
            received = report.number(item["received_bytes"] / 1024)
            rows.append([f"{name}, {when}", *cells, str(item["rows"]), received])
    header = ["query", *(f"{step} ms" for step in STEPS), "rows", "KiB received"]
    return report.Grid("Time by step", header, rows)


def _notes(results: dict[str, Any], quick: bool) -> list[str]:
    notes = [
        f"q selects {SELECTIVITY:.0%} of the rows; `again` is the median of five other values of q "
        "(of five runs where there is none). `first` runs with the materialized terms that the "
        "queries above it left on the server: products with powers of its helper column (decision "
        "0003); the step `keep` computes the missing ones.",
        "`SELECT A, B` opens the sealed copies that every sdb column stores (decision 0002); "
        "`SELECT A * 3, B * 3` has no copy to read and opens shares.",
        f"Loading took {results['load_s']:.1f} s "
        f"({results['rows'] / results['load_s']:,.0f} rows/s): "
        "three columns, each as a share and sealed, and three helper columns. The database file "
        f"holds {results['file_mib']:,.0f} MiB then, {results['file_after_mib']:,.0f} MiB after "
        "all "
        "queries with what it keeps; "
        f"plaintext DuckDB's holds {results['plain_file_mib']:,.1f} MiB.",
        "Every answer was compared with plaintext DuckDB's. The peak is that of one process that "
        "is client, server and plaintext peer at once.",
        "The paper's time is Figure 20's (server and client) for 200,000 rows.",
    ]
    return notes + (["A quick run: targets are meant for 200,000 rows."] if quick else [])


def measure(rows: int) -> dict[str, Any]:
    """All queries on both, first and again."""
    import os
    import time

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.table_t(folder / "T.parquet", rows)
        data.table_d(folder / "D.parquet")
        with data.louver(folder, "sdb") as con, data.plain(folder) as peer:
            con.execute("CREATE TABLE T (A INT ENC, B INT ENC, G INT ENC)")
            con.execute("CREATE TABLE D (G INT ENC, W INT ENC)")
            # The primes are found once per key file; that belongs to no load.
            context_of(con).columns.modulus()
            start = time.perf_counter()
            con.load("T", folder / "T.parquet")
            load_s = time.perf_counter() - start
            con.load("D", folder / "D.parquet")
            for table in "TD":
                peer.execute(f"CREATE TABLE {table} AS FROM '{folder}/{table}.parquet'")
            peer.execute("CHECKPOINT")
            before = _mib(folder / "sdb.duckdb")
            queries = {name: _query(con, peer, text) for name, text, *_ in QUERIES}
        return {
            "rows": rows,
            "cores": len(os.sched_getaffinity(0)),
            "load_s": load_s,
            "file_mib": before,
            "file_after_mib": _mib(folder / "sdb.duckdb"),
            "plain_file_mib": _mib(folder / "plain.duckdb"),
            "queries": queries,
        }


def _query(con: Any, peer: Any, text: str) -> dict[str, Any]:
    q = data.below(SELECTIVITY)
    others = [text.format(q=q + step) for step in (-4, -2, 2, 4, 6)]
    first = asking.checked(con, peer, text.format(q=q))
    again = asking.repeated(con, peer, others)
    return {
        "first": asking.as_json(first),
        "again": asking.as_json(again),
        "plain_ms": asking.plain_ms(peer, others),
    }


def _mib(path: Path) -> float:
    """A database with its log."""
    return sum(p.stat().st_size for p in path.parent.glob(path.name + "*")) / 2**20
