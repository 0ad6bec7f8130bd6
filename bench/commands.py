"""The time of one command of the command line, from its start to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import report
from bench.timing import median

TARGET_S = 0.4
_ROWS = 300_000
_PEER = "import duckdb; duckdb.connect({file!r}).sql({sql!r}).show()"
_PEER_CSV = "import duckdb; duckdb.connect({file!r}).sql({sql!r}).to_csv('/dev/stdout')"


def run(*, quick: bool) -> report.Report:
    """`louver "select 1"` and 300,000 rows as CSV, beside DuckDB through Python."""
    count, rows = (3, _ROWS // 10) if quick else (15, _ROWS)
    section = report.Report("commands", "One command of the command line")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ, "LOUVER_KEYS": str(folder / "keys"),
            "LOUVER_URL": f"duckdb:///{folder}/cloud.duckdb", "LOUVER_STATE_DIR": str(folder),
        }  # fmt: skip
        louver = [sys.executable, "-m", "louver.trusted.apps.cli"]
        subprocess.run(
            [*louver, "key", "new", str(folder / "keys")], check=True, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        many = f"SELECT range AS a, 'x' || range AS b, range * 1.5 AS c FROM range({rows})"
        file = str(folder / "plain.duckdb")
        for what, ours, code, target in (
            ('louver "select 1"', ["select 1"], _PEER.format(file=file, sql="select 1"), TARGET_S),
            (f"{rows:,} rows as CSV", ["--csv", many], _PEER_CSV.format(file=file, sql=many), None),
        ):
            mine = [_seconds([*louver, *ours], environment) for _ in range(count)]
            theirs = [_seconds([sys.executable, "-c", code], environment) for _ in range(count)]
            section.lines.append(
                report.Line(what, median(mine), "s", "DuckDB through Python", median(theirs),
                            target=target)
            )  # fmt: skip
    section.notes.append(
        f"Medians of {count} processes each, from their start to their end. Both start Python and "
        "import DuckDB; Louver also imports Arrow and a parser of SQL, opens the key file, and "
        "reads the catalog, the ledger and the pinned version of the database."
    )
    return section


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
