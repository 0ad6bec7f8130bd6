"""Statement forms by what they cost: with few rows and many, one table and 200, 1 client and 16."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from bench import data, isolate, report
from bench.timing import median

FEW, MANY, TABLES, CLIENTS = 2_000, 2_000_000, 200, 16
#: Forms: a name, what is done before and after it (not measured), and the statement. `{n}` is
#: another number each time, `{t}` the table.
FORMS: tuple[tuple[str, str, str, str], ...] = (
    ("SELECT, a plain column = a constant", "", "SELECT count(*) FROM {t} WHERE p = {n}", ""),
    ("SELECT, a plain column = ?", "", "SELECT count(*) FROM {t} WHERE p = ?", ""),
    ("SELECT, an ENC column = a constant", "", "SELECT count(*) FROM {t} WHERE s = {n}", ""),
    ("SELECT, GROUP BY a plain column", "", "SELECT g, sum(s) FROM {t} GROUP BY g", ""),
    ("SELECT, a join with itself by p", "",
     "SELECT count(*) FROM {t} AS a JOIN {t} AS b USING (p) WHERE a.p < 50", ""),
    ("EXECUTE", "PREPARE kept AS SELECT count(*) FROM {t} WHERE p = $1", "EXECUTE kept({n})",
     "DEALLOCATE kept"),
    ("getvariable in a condition", "SET VARIABLE v = {n}",
     "SELECT count(*) FROM {t} WHERE p = getvariable('v')", ""),
    ("a join with a TEMP table", "CREATE TEMP TABLE few AS SELECT range AS p FROM range(5)",
     "SELECT count(*) FROM {t} JOIN few USING (p)", "DROP TABLE few"),
    ("COLLATE in a condition", "", "SELECT count(*) FROM {t} WHERE c = 'V{n}'", ""),
    ("INSERT, one row", "", "INSERT INTO {t} VALUES ({n}, 0, 'v', {n}, 'v')", ""),
    ("INSERT … SELECT, 100 rows", "",
     "INSERT INTO {t} SELECT range, 0, 'v', {n}, 'v' FROM range(100)", ""),
    ("UPDATE, a plain column = a constant", "", "UPDATE {t} SET s = {n} WHERE p = {n}", ""),
    ("DELETE, a plain column = a constant", "", "DELETE FROM {t} WHERE p = -{n}", ""),
    ("MERGE, one row", "",
     "MERGE INTO {t} USING (SELECT {n} AS k) AS n ON p = k WHEN MATCHED THEN UPDATE SET s = 1", ""),
    ("CREATE VIEW and DROP VIEW", "", "CREATE VIEW seen AS SELECT p FROM {t}; DROP VIEW seen", ""),
    ("CREATE TABLE and DROP TABLE", "", "CREATE TABLE one (a INT, b INT{enc}); DROP TABLE one", ""),
    ("ALTER TABLE ADD and DROP COLUMN", "",
     "ALTER TABLE {t} ADD COLUMN z INT; ALTER TABLE {t} DROP COLUMN z", ""),
    ("BEGIN, INSERT, ROLLBACK", "",
     "BEGIN; INSERT INTO {t} VALUES ({n}, 0, 'v', {n}, 'v'); ROLLBACK", ""),
    ("EXPLAIN", "", "EXPLAIN SELECT count(*) FROM {t} WHERE p = {n}", ""),
    ("a question about the schema", "", "SELECT count(*) FROM information_schema.tables", ""),
    ("USE", "", "USE main", ""),
    ("VACUUM", "", "VACUUM", ""),
    ("GROUP BY 1, an ENC column", "", "SELECT s, count(*) FROM {t} GROUP BY 1", ""),
    ("JOIN … USING an ENC column", "",
     "SELECT count(*) FROM {t} AS a JOIN {t} AS b USING (s) WHERE a.p < 50 AND b.p < 50", ""),
    ("count(*) FILTER of an ENC column", "", "SELECT count(*) FILTER (WHERE s = {n}) FROM {t}", ""),
    ("ROLLUP of plain columns", "", "SELECT g, q, sum(s) FROM {t} GROUP BY ROLLUP (g, q)", ""),
    ("DELETE, an ENC column = a constant", "", "DELETE FROM {t} WHERE s = {n}", ""),
    ("CREATE TABLE … AS, 100 rows", "",
     "CREATE TABLE made (p, s{enc}) AS SELECT range, {n} FROM range(100)", "DROP TABLE made"),
    ("DESCRIBE", "", "DESCRIBE {t}", ""),
)  # fmt: skip
TABLE = "CREATE TABLE {t} (p BIGINT, g INT, q TEXT, s BIGINT{enc}, c TEXT{enc_nocase})"
ROWS = "INSERT INTO {t} SELECT i, i % 10, 'v' || i % 50, i % 1000, 'v' || i FROM range({rows}) r(i)"
#: What many clients do at once: each on a table of its own, as a tenant's clients do.
AT_ONCE = (0, 1, 2, 5, 9, 11)


def run(*, quick: bool) -> report.Report:
    """Each size in a process of its own, Louver and plaintext DuckDB in turns."""
    many, tables = (50_000, 20) if quick else (MANY, TABLES)
    section = report.Report("statements", "Statement forms by what they touch")
    few = isolate.run("bench.statements:measured", rows=FEW, tables=1)
    large = isolate.run("bench.statements:measured", rows=many, tables=1)
    wide = isolate.run("bench.statements:measured", rows=FEW, tables=tables)
    grid = report.Grid(
        "Milliseconds of Louver, and of plaintext DuckDB in brackets",
        ["statement", f"{FEW:,} rows", f"{many:,} rows", f"{tables} tables of {FEW:,} rows"], [],
    )  # fmt: skip
    for name, *_ in FORMS:
        grid.rows.append([name, *(_cell(item[name]) for item in (few, large, wide))])
    section.grids.append(grid)
    single, crowd = (isolate.run("bench.statements:at_once", clients=n) for n in (1, CLIENTS))
    grid = report.Grid(
        f"Statements a second, each client on a table of its own of {FEW:,} rows",
        ["statement", "1 client", f"{CLIENTS} clients"], [],
    )  # fmt: skip
    for position in AT_ONCE:
        name = FORMS[position][0]
        grid.rows.append([name, *(report.number(item[name]) for item in (single, crowd))])
    section.grids.append(grid)
    section.notes.append(
        "Profile `sealed`, a database file, the median of five. Two columns of five are ENC. The "
        "clients are threads of one process: what they do in Python happens one after the other. A "
        "statement that ends with `catalog.conflict`, as another client was faster, is not counted."
    )
    return section


def _cell(pair: list[float]) -> str:
    return f"{report.number(pair[0])} ({report.number(pair[1])})"


def _connected(folder: Path, keys: Path) -> Any:
    import louver

    return louver.connect(f"duckdb:///{folder}/louver.duckdb", keys=keys, profile="sealed")


def _filled(run: Callable[[str], object], ours: bool, name: str, rows: int) -> None:
    words = {"t": name, "rows": rows}
    words |= {"enc": " ENC" if ours else "", "enc_nocase": " COLLATE NOCASE" + " ENC" * ours}
    if ours:
        words["enc_nocase"] = " ENC COLLATE NOCASE"
    run(TABLE.format(**words))
    run(ROWS.format(**words))


def measured(rows: int, tables: int) -> dict[str, list[float]]:
    """Milliseconds of every form, of Louver and of plaintext DuckDB."""
    from louver.trusted.client.connect import make_keys

    results: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.state(folder)
        make_keys(folder / "key")
        plain = duckdb.connect(str(folder / "plain.duckdb"))
        with _connected(folder, folder / "key") as con:
            sides: tuple[Callable[..., Any], ...] = (con.execute, plain.execute)
            for side in sides:
                ours = side is sides[0]
                for position in range(tables):
                    _filled(side, ours, f"t{position}", rows)
            for form, before, sql, after in FORMS:
                results[form] = [_timed(s, s is sides[0], before, sql, after) for s in sides]
        plain.close()
    return results


def _timed(run: Callable[..., Any], ours: bool, before: str, sql: str, after: str) -> float:
    """The median of five in milliseconds."""
    times = []
    for number in range(1, 7):
        words = {"t": "t0", "n": number * 7, "enc": " ENC" if ours else ""}
        if before:
            run(before.format(**words))
        text, given = sql.format(**words), [number * 7] if "?" in sql else []
        begun = time.perf_counter()
        done = run(text, given) if given else run(text)
        if text.startswith(("SELECT", "EXECUTE", "EXPLAIN", "DESCRIBE")):
            done.fetchall()
        times.append((time.perf_counter() - begun) * 1000)
        if after:
            run(after.format(**words))
    return median(times[1:])


def at_once(clients: int) -> dict[str, float]:
    """Statements a second of so many clients, by form."""
    from louver.trusted.client.connect import make_keys

    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.state(folder)
        make_keys(folder / "key")
        with _connected(folder, folder / "key") as con:
            for position in range(clients):
                _filled(con.execute, True, f"t{position}", FEW)
        for position in AT_ONCE:
            form, before, sql, _ = FORMS[position]
            results[form] = _together(folder, clients, before, sql)
    return results


def _together(folder: Path, clients: int, before: str, sql: str, seconds: float = 3.0) -> float:
    counts, ready = [0] * clients, threading.Barrier(clients + 1)

    def client(position: int) -> None:
        with _connected(folder, folder / "key") as con:
            words = {"t": f"t{position}", "n": 7, "enc": " ENC"}
            if before:
                con.execute(before.format(**words))
            ready.wait()
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                given = [words["n"]] if "?" in sql else None
                words["n"] = words["n"] + 1
                try:
                    con.execute(sql.format(**words), given)
                except con.OperationalError:
                    continue
                counts[position] += 1

    threads = [threading.Thread(target=client, args=(position,)) for position in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds
