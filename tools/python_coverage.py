"""`python -m tools.python_coverage`: run some tests and print the lines of `louver` they execute.

Tracing doubles the time of a test, so the whole suite is not measured. The files below were chosen
for the lines that they execute in a second: together they take less than a minute on two cores.
The figure is a lower bound for the suite. It is measured anew each time; what matters is whether
it falls.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    "test_cli", "test_command", "test_commands", "test_copy", "test_dbapi", "test_ducklake",
    "test_golden", "test_lake_engine", "test_load", "test_migrate", "test_onions", "test_pin",
    "test_policy", "test_prepared_locally", "test_rules", "test_row_id_ranges", "test_tables",
    "test_transactions", "test_transfer",
)  # fmt: skip
LIMIT_S = 300
_PYTEST = (
    "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-warnings",
    "-n", "2", "--dist", "loadscope", "-m", "not alone and not soak",
)  # fmt: skip
_PACKAGE = "src/louver/"


def main() -> int:
    """Measure and print; the exit code is that of the tests."""
    with tempfile.TemporaryDirectory(prefix="louver-coverage-") as folder:
        environment = {
            **os.environ, "COVERAGE_FILE": f"{folder}/data", "RAYON_NUM_THREADS": "1",
            "TMPDIR": folder,
        }  # fmt: skip
        failed = _coverage(environment, "run", *_PYTEST, *map(str, files()))
        if failed:
            return failed
        _coverage(environment, "combine", "-q")
        _coverage(environment, "json", "-q", "-o", f"{folder}/lines.json")
        measured = json.loads(Path(folder, "lines.json").read_text(encoding="utf-8"))
    sys.stdout.write(table(measured["files"]))
    return 0


def files() -> list[Path]:
    """The chosen files, in whichever folder of the tests they are."""
    results = {stem: list((ROOT / "tests").rglob(f"{stem}.py")) for stem in FILES}
    if others := [stem for stem, paths in results.items() if len(paths) != 1]:
        raise SystemExit(f"coverage of Python: not one file of each name: {', '.join(others)}")
    return [paths[0] for paths in results.values()]


def table(measured: dict[str, dict[str, dict[str, int]]]) -> str:
    """A line for each folder of the package, and the total."""
    lines: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, results in measured.items():
        for key in (room(path), "total"):
            lines[key][0] += results["summary"]["covered_lines"]
            lines[key][1] += results["summary"]["num_statements"]
    total = lines.pop("total")
    text = [f"coverage of Python by {len(FILES)} files of tests, a lower bound for the suite\n"]
    text += [
        f"{100 * covered / max(count, 1):6.1f} %  {covered:6} of {count:6} lines  {name}\n"
        for name, (covered, count) in [*sorted(lines.items()), ("total", total)]
    ]
    return "".join(text)


def room(path: str) -> str:
    """`src/louver/trusted/vault/x.py` counts for `trusted/vault`, a file on top for `louver`."""
    parts = path.partition(_PACKAGE)[2].split("/")[:-1]
    return "/".join(parts[:2] if parts[:1] == ["trusted"] else parts[:1]) or "louver"


def _coverage(environment: dict[str, str], *words: str) -> int:
    command = [sys.executable, "-m", "coverage", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=words[0] != "run", timeout=LIMIT_S
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
