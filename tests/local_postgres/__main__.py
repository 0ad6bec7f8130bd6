"""Long runs of two worlds: ``python -m tests.local_postgres --statements 999 --profile sealed``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import louver
from tests import shared
from tests.local_postgres import worlds
from tests.local_postgres.world_free import free
from tests.local_postgres.world_statements import Statements

LENGTH = 70
"""Statements of one session."""


def main() -> int:
    """Play sessions one after the other; the status tells whether any differed."""
    parser = argparse.ArgumentParser(prog="python -m tests.local_postgres", description=__doc__)
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--profile", default="cryptdb")
    parser.add_argument("--seed", type=int, default=1, help="of the first session")
    parser.add_argument("--free", action="store_true", help="values that have nothing in common")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", louver.LeakageWarning)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOUVER_STATE_DIR"] = f"{folder}/state"
        os.environ[shared.FOLDER] = folder
        shared.make(Path(folder))
        return _played(chosen)


def _played(chosen: argparse.Namespace) -> int:
    begun, seed, different, failed, ran = time.monotonic(), chosen.seed, 0, Counter[str](), 0
    while ran + failed.total() < chosen.statements:
        draw: worlds.Draw = free if chosen.free else Statements
        played = worlds.play(chosen.profile, seed, LENGTH, draw)
        different += bool(played.differences)
        for line in played.differences:
            sys.stdout.write(f"{line[:1500]}\n")
        ran += played.ran
        failed.update(played.failed)
        seed += 1
    for code, count in failed.most_common():
        sys.stdout.write(f"  {code:40} {count}\n")
    seconds = time.monotonic() - begun
    sys.stdout.write(
        f"{ran} ran, {failed.total()} failed, {different} differences, {seconds:.0f} s\n"
    )
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
