"""Run files of DuckDB's own test suite through Louver with every column ENC.

    python -m tests.slt.suite FILE… --policy sealed

Each FILE is a .test file, or a folder of them. Files that name data by relative paths, as many of
DuckDB's do, need ``--root``, the folder that these paths start from. What is printed: each
difference with the statement, DuckDB's answer and Louver's; one line of counts per file; the sums.
The exit code is 1 if there is a difference that is not a refusal, nor comes after one in its file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import louver
from louver.trusted.vault.keyring import KeyRing
from tests.slt import script
from tests.slt.runner import Run
from tests.slt.sides import Side, duck

_SUFFIXES = (".test", ".test_slow", ".test_coverage")


def main(words: Sequence[str] | None = None) -> int:
    """Run files; print what differs."""
    options = _parser().parse_args(words)
    files = [path.resolve() for path in _files(options.files)]
    if options.root is not None:
        os.chdir(options.root)
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="louver-slt-") as name:
        folder = Path(name)
        os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
        KeyRing.create(folder / "suite.louverkey")
        for number, path in enumerate(files):
            totals += _one(path, folder / str(number), folder / "suite.louverkey", options)
    counts = ", ".join(f"{count} {sort}" for sort, count in sorted(totals.items()))
    sys.stdout.write(f"{len(files)} files under {options.policy}: {counts or 'nothing ran'}\n")
    harmless = ("statements", "refused", "after a refusal", "file")
    return 1 if any(sort not in harmless for sort in totals) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.slt.suite", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--policy", default="sealed", choices=("sealed", "cryptdb", "sdb"))
    parser.add_argument("--plain", action="store_true", help="leave the columns as they are")
    parser.add_argument("--root", type=Path, help="the folder that relative paths start from")
    parser.add_argument("--show", type=int, default=20, help="differences printed per file")
    return parser


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in _SUFFIXES)
        else:
            yield path


def _one(path: Path, folder: Path, keys: Path, options: argparse.Namespace) -> Counter[str]:
    def opened(database: Path) -> Any:
        return louver.connect(f"duckdb:///{database}", keys=keys, profile=options.policy)

    run = Run(Side(folder / "louver", opened), Side(folder / "duckdb", duck))
    if options.plain:
        run.declared = str
    try:
        run.run(script.read(path))
    except ValueError as error:
        run.skipped = f"not read: {error}"
    sorts = Counter(
        "after a refusal"
        if difference.after_refusal and difference.sort != "refused"
        else difference.sort
        for difference in run.differences
    )
    for difference in run.differences[: options.show]:
        sys.stdout.write(f"{path.name} {difference}\n")
    skipped = f" (then skipped: {run.skipped})" if run.skipped else ""
    counts = ", ".join(f"{count} {sort}" for sort, count in sorted(sorts.items()))
    sys.stdout.write(f"{path.name}: {run.statements} statements, {counts or 'the same'}{skipped}\n")
    sorts["statements"] = run.statements
    return sorts


if __name__ == "__main__":
    sys.exit(main())
