"""TPC-H's query 6 on lakes: Figures 6.24 and 6.25, Table 6.4. Unmodified, with SUM and DECIMAL."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import data, isolate, report
from bench.lake import index, ours, paper, peer, q6, tables
from bench.lake.index import Spec
from bench.timing import median

SCALES, QUICK_SCALES = (1, 2, 4, 8, 16), (0.01, 0.02)
READ_SCALE, QUICK_READ_SCALE = 1.0, 0.01
DEFAULT = Spec()
Told = dict[str, Any]


def run(*, quick: bool) -> report.Report:
    """The section `lake-tpch`."""
    section = report.Report("lake-tpch", "The lake: TPC-H query 6, unmodified")
    scales = QUICK_SCALES if quick else SCALES
    planned = _planned(scales, quick)
    scale = QUICK_READ_SCALE if quick else READ_SCALE
    read = {rows: _read(scale, rows) for rows in (q6.ROWS, q6.NORMAL_ROWS)}
    for scale_factor, figures in planned.items():
        mine, theirs = figures["lake"]["plan_s"][0], median(figures["plain"]["seconds"])
        section.lines.append(
            report.Line(f"SF {scale_factor:g}, files of 250 rows: plan query 6, one core", mine,
                        "s", "DuckDB-Iceberg, plaintext", theirs, target_ratio=1.0,
                        peak_mib=figures["lake"]["peak_mib"],
                        peer_peak_mib=figures["plain"]["peak_mib"])
        )  # fmt: skip
    for rows, item in read.items():
        for when in ("first", "again"):
            section.lines.append(
                report.Line(f"SF {scale:g}, files of {rows:,} rows: run query 6, {when}",
                            item["lake"][f"{when}_s"], "s", "DuckDB-Iceberg, plaintext",
                            item["plain"][f"{when}_s"], peak_mib=item["lake"]["peak_mib"],
                            peer_peak_mib=item["plain"]["peak_mib"])
            )  # fmt: skip
    section.grids = [_table(planned), _whole(scale, read)]
    section.plots = [_plot(planned)]
    section.notes = _notes()
    return section


def plan_plain(*, metadata: str, repeats: int) -> Told:
    """Seconds of planning query 6 on a plaintext table, one core."""
    index.one_core()
    con = peer.connect(1)
    statement = "EXPLAIN " + q6.QUERY.format(table=f"iceberg_scan('{metadata}')")
    con.execute(statement).fetchall()
    return {"seconds": [_seconds(con, statement) for _ in range(repeats)]}


def run_plain(*, metadata: str, repeats: int) -> Told:
    """Seconds of query 6 on a plaintext table, all cores; its answer."""
    con = peer.connect(index.cores())
    statement = q6.QUERY.format(table=f"iceberg_scan('{metadata}')")
    first = _seconds(con, statement)
    again = median([_seconds(con, statement) for _ in range(repeats)])
    answer = con.execute(statement).fetchall()
    return {"first_s": first, "again_s": again, "answer": str(answer)}


def run_lake(*, folder: str, source: str, rows: int, repeats: int) -> Told:
    """The same on an encrypted lake, and how long it took to fill."""
    import louver

    folder_path = Path(folder)
    folder_path.mkdir()
    data.state(folder_path)
    key = folder_path / "lake.louverkey"
    louver.KeyRing.create(key)
    with louver.connect(f"lake:///{folder_path}/warehouse", keys=key) as con:
        start = time.perf_counter()
        fill(con, source, rows)
        load_s = time.perf_counter() - start
    size = sum(
        path.stat().st_size for path in (folder_path / "warehouse").rglob("*") if path.is_file()
    )
    with louver.connect(f"lake:///{folder_path}/warehouse", keys=key) as con:
        statement = q6.QUERY.format(table="lineitem")
        first = _seconds(con, statement)
        again = median([_seconds(con, statement) for _ in range(repeats)])
        cursor = con.execute(statement)
        answer, steps = cursor.fetchall(), cursor.times_ms
        (fetched,) = con.lake.fetched()
    return {"load_s": load_s, "bytes": size, "first_s": first, "again_s": again,
            "answer": str(answer), "steps_ms": dict(steps), "kept": fetched.files_kept,
            "fetched_bytes": fetched.fetched_bytes}  # fmt: skip


def fill(con: Any, source: str, rows: int) -> None:
    """The table lineitem from Parquet, in files of so many rows."""
    with peer.connect(1, "tpch") as schema:
        figures = schema.execute(f"DESCRIBE FROM '{source}'").fetchall()
    columns = ", ".join(f"{name} {kind} ENC" for name, kind, *_ in figures)
    con.execute(f"SET lake_rows_per_file = {rows}")
    con.execute(f"CREATE TABLE lineitem ({columns})")
    con.load("lineitem", source)


def _planned(scales: tuple[float, ...], quick: bool) -> dict[float, Told]:
    """Plan at every scale; the smaller ones are the first files of the largest."""
    files = q6.generated(scales[-1])
    results = {}
    for scale in scales:
        part = files.first(round(len(files) * scale / scales[-1]))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table = tables.write(folder / "plain", part.plain())
            results[scale] = {
                "files": len(part),
                "hit": int(part.hit().sum()),
                "plain": isolate.run("bench.lake.tpch:plan_plain", metadata=str(table.metadata),
                                     repeats=3 if quick else 9),
                "lake": _plan_lake(folder, part, quick),
            }  # fmt: skip
    return results


def _plan_lake(folder: Path, part: q6.Files, quick: bool) -> Told:
    columns = dict(enumerate(part.bounds.values(), 1))
    result = ours.build(folder, columns, DEFAULT)
    questions = {str(c): q6.CONDITIONS[name] for c, name in enumerate(part.bounds, 1)}
    figures: Told = isolate.run(
        "bench.lake.ours:measure", folder=str(folder), spec=asdict(DEFAULT), queries=[questions],
        repeats=3 if quick else 9, threads=1,
    )  # fmt: skip
    return result | figures


def _read(scale: float, rows: int) -> Told:
    """Run query 6 to its end at one scale, in files of so many rows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "lineitem.parquet"
        q6.data(scale, source)
        start = time.perf_counter()
        table = q6.write_plain(folder / "plain", source, rows)
        plain_load_s = time.perf_counter() - start
        size = sum(p.stat().st_size for p in (folder / "plain").rglob("*") if p.is_file())
        plain = isolate.run("bench.lake.tpch:run_plain", metadata=str(table.metadata), repeats=3)
        lake = isolate.run(
            "bench.lake.tpch:run_lake", folder=str(folder / "lake"), source=str(source),
            rows=rows, repeats=3,
        )  # fmt: skip
    if plain["answer"] != lake["answer"]:
        raise AssertionError(f"query 6 is {lake['answer']}, but {plain['answer']} in the clear")
    return {"plain": plain | {"load_s": plain_load_s, "bytes": size}, "lake": lake,
            "files": len(table.names)}  # fmt: skip


def _table(planned: dict[float, Told]) -> report.Grid:
    rows = []
    for scale, figures in planned.items():
        mine, theirs = figures["lake"]["plan_s"][0], median(figures["plain"]["seconds"])
        said = paper.TABLE_6_4.get(int(scale) if scale >= 1 else 0)
        rows.append([
            f"{scale:g}", f"{figures['files']:,}", f"{figures['hit']:,}",
            f"{figures['lake']['kept'][0]:,}", report.number(theirs), report.number(mine),
            f"{report.number(mine / theirs)}×",
            *([f"{said[0]:g}", f"{said[1]:g}", f"{said[1] / said[0]:.2f}×"] if said else [""] * 3),
        ])  # fmt: skip
    header = ["scale", "files", "hit", "kept", "DuckDB s", "Louver s", "ratio",
              "thesis: DuckDB s", "thesis: BF-EDS s", "thesis: ratio"]  # fmt: skip
    return report.Grid("Figure 6.25 and Table 6.4: planning query 6, 250 rows a file", header, rows)


def _whole(scale: float, read: dict[int, Told]) -> report.Grid:
    rows = [
        [
            f"{per:,}", f"{figures['files']:,}", report.number(figures["plain"]["again_s"]),
            report.number(figures["lake"]["again_s"]),
            f"{report.number(figures['lake']['again_s'] / figures['plain']['again_s'])}×",
            report.number(figures["plain"]["load_s"]), report.number(figures["lake"]["load_s"]),
            report.number(figures["plain"]["bytes"] / 2**20),
            report.number(figures["lake"]["bytes"] / 2**20),
            report.number(figures["lake"]["fetched_bytes"] / 2**20),
            *(report.number(figures["lake"]["steps_ms"].get(s, 0.0)) for s in ("server", "finish")),
        ]
        for per, figures in read.items()
    ]  # fmt: skip
    header = ["rows per file", "files", "DuckDB s", "Louver s", "ratio", "written plain s",
              "loaded s", "plain MiB", "lake MiB", "fetched MiB", "choose and fetch ms",
              "open and finish ms"]  # fmt: skip
    return report.Grid(f"Query 6 to its end, SF {scale:g}, all cores", header, rows)


def _plot(planned: dict[float, Told]) -> report.Plot:
    series = {
        "DuckDB-Iceberg": [(s, median(t["plain"]["seconds"])) for s, t in planned.items()],
        "Louver": [(s, t["lake"]["plan_s"][0]) for s, t in planned.items()],
        "the paper's DuckDB-Iceberg": [(float(s), v[0]) for s, v in paper.TABLE_6_4.items()],
        "the paper's BF-EDS": [(float(s), v[1]) for s, v in paper.TABLE_6_4.items()],
    }
    return report.Plot("lake-25", "Figure 6.25: planning query 6", "scale factor", "s", series)


def _seconds(con: Any, statement: str) -> float:
    start = time.perf_counter()
    con.execute(statement).fetchall()
    return time.perf_counter() - start


def _notes() -> list[str]:
    return [
        "The query is TPC-H's own, with SUM, DECIMAL and DATE (the thesis: COUNT over integers, "
        "reading no data; its times are for that). The answer of the encrypted lake is compared "
        "with that of the plaintext table.",
        "Planning: lineitem's bounds of every 250 rows in the order of the generator, at the "
        "largest scale; smaller scales are its first files, for the three columns do not depend "
        "on the scale. A file of 250 rows holds orders of all years, so nearly every file is hit: "
        "this measures overhead, not skipping. DuckDB's manifests bear bounds of these three "
        "columns only; data files are missing. Ours sweeps three indexes.",
        "To the end: all 16 columns, zstd on both sides; the plaintext files are written by "
        "pyarrow. Nothing of the data is sorted. DuckDB reads Parquet on all cores.",
    ]
