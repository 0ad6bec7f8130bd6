"""TPC-H with every column ENC beside plaintext PostgreSQL, which has the same indexes."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import isolate, report
from bench.postgres import sides
from louver import errors
from tests.tpc import harness, sources

POLICY = "mixed"
#: Of correlated subqueries; without them plaintext PostgreSQL takes hours at SF 1.
INDEXES = ("lineitem (l_partkey, l_suppkey)", "partsupp (ps_suppkey)", "lineitem (l_orderkey)")
#: So many times longer a first run of Louver's may take.
OPENING_TIMES = 6
_TYPES = {"VARCHAR": "text"}
_BATCH_ROWS = 100_000
_CANCELED = "57014"
Measured = dict[str, Any]


def grids(section: report.Report, scale: float, limit_s: float, runs: int) -> None:
    """Add a line and the tables of one scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "generated.duckdb")
        isolate.run("bench.tpc.experiment:generate", name="tpch", scale=scale, path=path)
        figures = isolate.run("bench.postgres.tpch:measured", path=path, limit_s=limit_s, runs=runs)
    done = [item for item in figures["queries"] if "ms" in item["ours"] and "ms" in item["plain"]]
    if done:
        section.lines.append(
            report.Line(
                f"TPC-H SF {scale:g}: median of {len(done)} queries' ratios",
                statistics.median(item["ours"]["ms"] / item["plain"]["ms"] for item in done),
                "times plaintext's time", "plaintext PostgreSQL", 1.0, peak_mib=figures["peak_mib"],
            )
        )  # fmt: skip
    section.grids += [_queries(scale, figures), _load(scale, figures)]


def measured(path: str, limit_s: float, runs: int) -> Measured:
    """The load, table by table, and of each query and side its times or why there are none."""
    loaded: list[Measured] = []
    with (
        sources.opened(sources.TPCH, path, read_only=True) as generated,
        sides.opened("cryptdb", str(sources.policy(POLICY))) as pair,
    ):
        plain, ours = pair.plain.with_types(), pair.ours.con
        for name, columns in sources.tables(generated).items():
            loaded.append(_loaded(generated, pair, name, columns))
        start = time.perf_counter()
        for index in INDEXES:
            pair.ours.execute(f"CREATE INDEX ON {index}")
        middle = time.perf_counter()
        for index in INDEXES:
            plain.execute(f"CREATE INDEX ON {index}")
        plain.execute("ANALYZE")
        indexed = {"ours_s": middle - start, "plain_s": time.perf_counter() - middle}
        # Louver's first runs open layers, which is more work than any query.
        for con, times in ((plain, 1), (ours, OPENING_TIMES)):
            con.execute(f"SET statement_timeout = '{round(times * limit_s * 1000)}ms'")
        texts = sources.queries(generated, sources.TPCH)
        queries = [_compared(pair, number, sql) for number, sql in texts.items()]
        # The first runs opened layers, each of which leaves a second version of every row.
        for side in pair.both():
            side.execute("SET statement_timeout = 0")
            side.execute("VACUUM (FULL, ANALYZE)")
            side.execute(f"SET statement_timeout = '{round(limit_s * 1000)}ms'")
        for item in queries:
            _again(pair, texts[item["number"]], item, runs)
    return {"load": loaded, "index": indexed, "queries": queries, "limit_s": limit_s}


def _loaded(generated: Any, pair: sides.Sides, name: str, columns: Any) -> Measured:
    for side, enc in ((pair.ours, " ENC"), (pair.plain, "")):
        items = (f"{column} {_TYPES.get(type_, type_)}{enc}" for column, type_ in columns)
        side.execute(f"CREATE TABLE {name} ({', '.join(items)})")
    start = time.perf_counter()
    reader = generated.execute(f'FROM "{name}"').to_arrow_reader(_BATCH_ROWS)
    rows = pair.ours.con.load(name, reader)
    middle = time.perf_counter()
    table = sources.rows_of(generated, name)
    pair.plain.with_types().fill(name, table.column_names, table)
    end = time.perf_counter()
    return {"table": name, "rows": rows, "ours_s": middle - start, "plain_s": end - middle}


def _works(pair: sides.Sides, sql: str) -> dict[str, Callable[[], list[Any]]]:
    """What runs a query on either side."""
    plain = pair.plain.with_types()

    def ours() -> list[Any]:
        rows: list[Any] = pair.ours.con.execute(sql).fetchall()
        return rows

    return {"ours": ours, "plain": lambda: plain.fetchall(sql)}


def _compared(pair: sides.Sides, number: int, sql: str) -> Measured:
    """The first run of both, whose answers are compared."""
    results: Measured = {"number": number, "ours": {}, "plain": {}}
    answers = [_timed(work, results[side]) for side, work in _works(pair, sql).items()]
    if None not in answers and (different := harness.difference(*answers)):
        raise RuntimeError(f"another answer than PostgreSQL's: {number}: {different}")
    return results


def _again(pair: sides.Sides, sql: str, results: Measured, runs: int) -> None:
    """The median of later runs of both."""
    for side, work in _works(pair, sql).items():
        item = results[side]
        if "first_ms" in item:
            later: list[Measured] = [{} for _ in range(runs)]
            for run in later:
                _timed(work, run)
            times = [run["first_ms"] for run in later if "first_ms" in run]
            item |= {"ms": statistics.median(times)} if times else later[0]


def _timed(work: Any, result: Measured) -> Any:
    start = time.perf_counter()
    try:
        rows = work()
    except errors.Error as error:
        result["error"] = str(getattr(error, "sqlstate", "") or error.code)
        return None
    result["first_ms"] = (time.perf_counter() - start) * 1000
    return rows


def _queries(scale: float, figures: Measured) -> report.Grid:
    header = ["query", "Louver: first run ms", "Louver ms", "PostgreSQL ms", "ratio"]
    rows = []
    for item in figures["queries"]:
        ours, plain = item["ours"], item["plain"]
        ratio = (
            f"{report.number(ours['ms'] / plain['ms'])}×" if "ms" in ours and "ms" in plain else ""
        )
        rows.append([
            str(item["number"]), _cell(ours, "first_ms", figures), _cell(ours, "ms", figures),
            _cell(plain, "ms", figures), ratio,
        ])  # fmt: skip
    return report.Grid(f"`{POLICY}`: TPC-H, SF {scale:g}", header, rows)


def _cell(item: Measured, name: str, figures: Measured) -> str:
    if name in item:
        return report.number(item[name])
    if item["error"] == _CANCELED:
        return f"over {figures['limit_s']:g} s"
    return str(item["error"])


def _load(scale: float, figures: Measured) -> report.Grid:
    rows = [
        [
            item["table"], f"{item['rows']:,}", report.number(item["rows"] / item["ours_s"]),
            report.number(item["rows"] / item["plain_s"]),
            f"{report.number(item['ours_s'] / item['plain_s'])}×",
        ]
        for item in figures["load"]
    ]  # fmt: skip
    total = sum(item["rows"] for item in figures["load"])
    both = [sum(item[side] for item in figures["load"]) for side in ("ours_s", "plain_s")]
    rate = [report.number(total / seconds) for seconds in both]
    rows.append(["all", f"{total:,}", *rate, f"{report.number(both[0] / both[1])}×"])
    index = figures["index"]
    rows.append([
        f"{len(INDEXES)} indexes, s", "", report.number(index["ours_s"]),
        report.number(index["plain_s"]), f"{report.number(index['ours_s'] / index['plain_s'])}×",
    ])  # fmt: skip
    header = ["table", "rows", "Louver rows/s", "PostgreSQL rows/s", "ratio of times"]
    return report.Grid(f"`{POLICY}`: TPC-H, SF {scale:g}: load", header, rows)


def scales(default: tuple[float, ...]) -> tuple[float, ...]:
    """Those that the environment says, or else these."""
    from bench.tpc.experiment import VARIABLE

    words = [item for item in os.environ.get(VARIABLE, "").split(",") if item]
    return tuple(map(float, words)) or default
