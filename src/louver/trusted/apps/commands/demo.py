"""Encrypt real data and query it step by step, showing everything that the server sees.

Encrypts the 336,776 flights that left New York in 2013 into a database in a temporary folder, runs
queries, and compares every answer with plaintext DuckDB. `louver demo lake` does the same with an
encrypted Iceberg table that a separate process prunes by token. `louver demo splinter` sends
private questions to two providers of public flights and shows what each provider saw. `louver demo
postgres` starts a PostgreSQL server of its own, shows what it stores and learns, and stops it.
`louver demo wire` puts the front door before such a server: psql beside the server's rows.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from louver import errors
from louver.trusted.apps import terminal


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "what", nargs="?", choices=("database", "lake", "splinter", "postgres", "wire"),
        default="database",
        help="database (the default); lake: an Iceberg table behind a pruning service; "
        "splinter: private questions to two providers of public data; "
        "postgres: a PostgreSQL server that is started for it; "
        "wire: psql before such a server, through the front door",
    )  # fmt: skip
    parser.add_argument(
        "--keep",
        metavar="DIR",
        help="keep key file and database in this folder, which must not exist",
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=0,
        metavar="N",
        help="use only N flights (default: all; with postgres, 20,000)",
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.apps.demo.database import Demonstration
    from louver.trusted.apps.demo.lake import LakeDemonstration
    from louver.trusted.apps.demo.postgres import PostgresDemonstration
    from louver.trusted.apps.demo.splinter import SplinterDemonstration
    from louver.trusted.apps.demo.wire import WireDemonstration

    # The demonstration prints leakage itself.
    warnings.simplefilter("ignore", errors.LeakageWarning)
    start = time.perf_counter()
    kinds: dict[str, Any] = {
        "database": Demonstration, "lake": LakeDemonstration, "splinter": SplinterDemonstration,
        "postgres": PostgresDemonstration, "wire": WireDemonstration,
    }  # fmt: skip
    if options.keep and options.what in ("postgres", "wire"):
        raise errors.make("usage", detail="--keep has no use here: the server's data ends with it")
    kind = kinds[options.what]
    with folder(options.keep) as directory:
        outcome = kind(directory, quiet=options.json, rows=options.rows).run()
    spent = time.perf_counter() - start
    if options.json:
        terminal.out_json({"ok": True, "seconds": round(spent, 1), **outcome})
        return 0
    terminal.out(f"The demonstration took {spent:.0f} s.")
    if options.what == "database":
        farewell(options.keep)
    elif options.what == "postgres":
        terminal.out("docs/guides/postgres.md: the same on a PostgreSQL server of yours")
    elif options.what == "wire":
        terminal.out("docs/guides/front-door.md: the same with clients and a server of yours")
    elif options.keep and options.what == "lake":
        url = f"lake:///{options.keep}/warehouse"
        terminal.out(f"louver -u {url} -k {options.keep}/demo.louverkey sql: a shell on the table")
    elif options.keep:
        terminal.out(f"louver inspect --share {options.keep}/first/*: what one provider received")
    return 0


@contextmanager
def folder(keep: str | None) -> Iterator[Path]:
    """The folder of key and database. A temporary database has a temporary state directory."""
    if keep is not None:
        directory = Path(keep).expanduser()
        if directory.exists():
            raise errors.make("file.exists", path=str(directory))
        directory.mkdir(mode=0o700, parents=True)
        yield directory
        return
    before = os.environ.get("LOUVER_STATE_DIR")
    with tempfile.TemporaryDirectory(prefix="louver-demo-") as name:
        os.environ["LOUVER_STATE_DIR"] = str(Path(name) / "state")
        try:
            yield Path(name)
        finally:
            os.environ.pop("LOUVER_STATE_DIR")
            if before is not None:
                os.environ["LOUVER_STATE_DIR"] = before


def farewell(keep: str | None) -> None:
    """Print what to try next."""
    lines: list[Any] = [terminal.styled("Where to go next", "bold")]
    if keep:
        common = f"-u duckdb:///{keep}/cloud.duckdb -k {keep}/demo.louverkey"
        lines += [
            f"  louver {common} sql        a shell on this database",
            f"  louver {common} attack     what an adversary recovers from it",
            f"  louver -u duckdb:///{keep}/cloud.duckdb inspect     its bytes, without the key",
        ]
    else:
        lines += [
            "  louver demo --keep DIR     the same, but keep key and database, to try",
            "                             louver sql, louver inspect, louver attack",
        ]
    lines += [
        "  louver demo postgres       the same on a PostgreSQL server, which it brings along",
        "  louver key new my.louverkey, then docs/start.md: use your own data",
        "  docs/concepts/leakage.md and docs/attacks.md: what the ledger means",
    ]
    for line in lines:
        terminal.out(line)
