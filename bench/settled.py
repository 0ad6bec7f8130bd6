"""Columns whose layers are open, scanned by the server beside plaintext; one thread each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from bench import isolate, report
from bench.timing import best

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ROWS = 4_000_000
PLACE = (1, 1, 1)
"""Table, column and generation: which key."""
_ASKED = (
    ("BIGINT = u", "k = $1", "k_eq = $1", "k"),
    ("DATE BETWEEN u AND v, a tenth", "d BETWEEN $1 AND $2", "d_ord BETWEEN $1 AND $2", "d"),
    ("BIGINT BETWEEN u AND v, a tenth", "b BETWEEN $1 AND $2", "b_ord BETWEEN $1 AND $2", "b"),
    ("BIGINT = BIGINT, a join", "", "", "join"),
)


def run(*, quick: bool) -> report.Report:
    """One process for both: the same data, the same statements, in turns."""
    rows = ROWS // 16 if quick else ROWS
    figures = isolate.run("bench.settled:measured", environment=ONE_THREAD, rows=rows)
    section = report.Report("settled", "Open columns scanned by the server, one core")
    for name, *_ in _ASKED:
        section.lines.append(
            report.Line(
                f"count(*) WHERE {name}", figures[f"{name} codes"], "ms", "plaintext DuckDB",
                figures[f"{name} plain"], target_ratio=0.5, peak_mib=figures["peak_mib"],
            )
        )  # fmt: skip
    section.notes.append(
        f"{rows:,} rows in memory, one thread; best of at least seven. Equality codes of BIGINT "
        "and order codes of DATE are BIGINT, order codes of BIGINT are UUID. The server runs no "
        "cryptography: these are DuckDB's own comparisons."
    )
    return section


def measured(rows: int) -> dict[str, float]:
    """Milliseconds of every statement, on codes and on plaintext."""
    con = _filled(rows)
    results: dict[str, float] = {}
    for name, plain, coded, column in _ASKED:
        if column == "join":
            statements = [
                (f"SELECT count(*) FROM t JOIN (FROM t WHERE n % 50 = 0) AS s USING ({key})", ())
                for key in ("k", "k_eq")
            ]
        else:
            statements = [
                (f"SELECT count(*) FROM t WHERE {plain}", _bounds(con, column, column)),
                (f"SELECT count(*) FROM t WHERE {coded}", _bounds(con, column, coded.split()[0])),
            ]
        counts = {con.execute(sql, list(values)).fetchone() for sql, values in statements}
        if len(counts) != 1:
            raise RuntimeError(f"{name}: codes count otherwise than values")
        for kind, (sql, values) in zip(("plain", "codes"), statements, strict=True):
            seconds = best(lambda s=sql, v=values: con.execute(s, list(v)).fetchone(), least=7)
            results[f"{name} {kind}"] = seconds * 1000
    return results


def _filled(rows: int) -> duckdb.DuckDBPyConnection:
    from louver.trusted.vault.keyring import KeyRing

    rng = np.random.default_rng(1)
    keys = pa.array(rng.integers(0, rows // 4, rows))
    days = pa.array(rng.integers(8000, 11000, rows).astype("int32")).cast(pa.date32())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.louverkey"
        KeyRing.create(path)
        ring = KeyRing.open(path)
    ordered = ring.ord_codes(*PLACE, "", "int", -(1 << 63), 64, keys)
    table = pa.table(
        {
            "n": pa.array(range(rows)),
            "k": keys,
            "d": days,
            "b": keys,
            "k_eq": ring.eq_codes(*PLACE, "", "int", keys),
            "d_ord": ring.ord_codes(*PLACE, "", "date", -(1 << 31), 32, days),
            "b_ord": pa.ExtensionArray.from_storage(pa.uuid(), ordered),
        }
    )
    con = duckdb.connect(config={"threads": 1, "arrow_lossless_conversion": True})
    con.register("given", table)
    con.execute("CREATE TABLE t AS SELECT * FROM given")
    con.unregister("given")
    return con


def _bounds(con: duckdb.DuckDBPyConnection, column: str, stored: str) -> tuple[object, ...]:
    """What a column is compared with, as the stored column has it."""
    if column == "k":
        return con.execute(f"SELECT {stored} FROM t WHERE n = 7").fetchone() or ()
    sql = "SELECT arg_min(s, p), arg_max(s, p) FROM"
    ends = [f"(SELECT quantile_disc({column}, {part}) FROM t)" for part in (0.4, 0.5)]
    part = f"(SELECT {stored} AS s, {column} AS p FROM t) WHERE p BETWEEN {ends[0]} AND {ends[1]}"
    return con.execute(f"{sql} {part}").fetchone() or ()
