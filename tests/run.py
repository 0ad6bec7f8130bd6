"""`python -m tests.run [TEST …]`: all tests, or some, two at a time; what measures, by itself.

`--soak` is `make soak`: everything, also what `make test` leaves out (the mark `soak`), with many
times the generated cases, drawn anew. It ends with a line that says what `make test` would not
have found.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests import durations
from tests.generated import WHOLE

#: A file that takes longer is named.
BUDGET_S = 20.0
WORKERS = 2
_NO_TESTS = 5
_SHARED_MEMORY = "/dev/shm"
_ENOUGH_BYTES = 4 << 30


@dataclass(slots=True)
class Outcome:
    """What runs of pytest came to."""

    code: int = 0
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    failed: list[str] = field(default_factory=list)


def main(words: list[str] | None = None) -> int:
    """Run; the exit code is 0 if no test failed and some ran."""
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="a path or a test's id; all if none"
    )
    parser.add_argument("--soak", action="store_true", help="everything, and more generated cases")
    parser.add_argument("--factor", type=int, default=10, help="of generated cases in a soak")
    parser.add_argument("--seed", type=int, help="of a soak that is to be repeated")
    options, others = parser.parse_known_args(words)
    tests = [*options.tests, *others]
    started = time.monotonic()
    if options.soak:
        seed = secrets.randbits(32) if options.seed is None else options.seed
        outcome = soak(tests, options.factor, seed)
    else:
        outcome = run(tests)
    report(outcome, time.monotonic() - started)
    return outcome.code


def run(tests: list[str], marks: str = "not soak", **environment: str) -> Outcome:
    """First what may run beside others, then what must run alone."""
    outcome = Outcome()
    beside = ("-n", str(WORKERS), "--dist", "loadscope", "--no-loadscope-reorder")
    # The workers are as many as there are cores: one thread each for what runs in many.
    environment |= {} if tests else {WHOLE: "1"}
    one_thread = {"RAYON_NUM_THREADS": "1"} | environment
    empty = 0
    for alone, options, given in (("not alone", beside, one_thread), ("alone", (), environment)):
        chosen = " and ".join(part for part in (alone, marks) if part)
        code = _pytest([*options, "-m", chosen, *tests], given, outcome)
        if code == _NO_TESTS:
            empty += 1
        outcome.code = outcome.code or (0 if code == _NO_TESTS else code)
        if code == 2:  # interrupted, or not collected: the rest would say the same
            break
    if empty == 2:
        sys.stderr.write("tests: none of these is a test\n")
        outcome.code = _NO_TESTS
    return outcome


def soak(tests: list[str], factor: int, seed: int) -> Outcome:
    """Everything; then what failed once more, as `make test` would have run it."""
    sys.stdout.write(f"soak: seed {seed}, {factor} times the cases of `make test`\n")
    sys.stdout.flush()
    environment = {"LOUVER_SOAK": str(factor), "LOUVER_SEED": str(seed)}
    outcome = run([*tests, f"--hypothesis-seed={seed}"], marks="", **environment)
    known = set(run(sorted(set(outcome.failed))).failed) if outcome.failed else set()
    new = [test for test in outcome.failed if test not in known]
    sys.stdout.write(
        f"soak: seed {seed}, factor {factor}: {len(outcome.failed)} failed; `make test` would not "
        f"have found: {', '.join(new) or 'nothing'}\n"
    )
    return outcome


def report(outcome: Outcome, total_s: float) -> None:
    """The seconds of every file that took more than one; files above the budget are named."""
    files = sorted(outcome.seconds.items(), key=lambda item: -item[1])
    sys.stdout.write("\nseconds per file\n")
    for name, seconds in files:
        if seconds >= 1:
            over = f"  above its budget of {BUDGET_S:.0f} s" if seconds > BUDGET_S else ""
            sys.stdout.write(f"{seconds:8.1f}  {name}{over}\n")
    sys.stdout.write(
        f"{sum(outcome.seconds.values()):8.1f}  in {len(files)} files; {total_s:.0f} s passed\n"
    )


def _memory() -> str | None:
    """A folder in memory, where there is room: a tenth of the time goes into syncing small files
    to the disk otherwise.
    """
    with suppress(OSError):
        if shutil.disk_usage(_SHARED_MEMORY).free > _ENOUGH_BYTES:
            return _SHARED_MEMORY
    return None


def _pytest(options: list[str], environment: dict[str, str], outcome: Outcome) -> int:
    """Run pytest once; its durations and failures are added to the outcome."""
    with tempfile.TemporaryDirectory(dir=_memory(), prefix="louver-") as folder:
        path = Path(folder) / "durations.jsonl"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            env={**os.environ, "TMPDIR": folder, durations.FILE: str(path), **environment},
            check=False,
        )
        for entry in durations.read(path):
            outcome.seconds[entry.file] += entry.seconds
            if entry.failed:
                outcome.failed.append(entry.test)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
