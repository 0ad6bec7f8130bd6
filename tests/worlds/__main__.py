"""Long runs: ``python -m tests.worlds --statements 10000 --profile cryptdb --seed 7``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from louver.trusted.vault.keyring import KeyRing
from tests import shared
from tests.worlds import known_faults, providers
from tests.worlds.mutations import MUTATIONS
from tests.worlds.runner import Report, run, shrunk
from tests.worlds.session import PROFILES

LENGTH = 60
"""Statements of one session."""
KEY = Path(__file__).parents[1] / "golden" / "0.1.0" / "key.txt"
"""One key file for all runs, so that codes are the same again: only nonces differ."""


def said(line: object) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run sessions one after the other and print what differs; the status tells whether any did."""
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description=__doc__)
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--profile", choices=(*PROFILES, "providers"), default="sealed")
    parser.add_argument("--seed", type=int, default=0, help="of the first session")
    parser.add_argument("--length", type=int, default=LENGTH, help="statements of a session")
    parser.add_argument("--shrink", action="store_true", help="drop statements from what differs")
    parser.add_argument("--show", action="store_true", help="print all statements")
    parser.add_argument(
        "--faults", nargs="?", const="", metavar="WORDS",
        help="put faults back into Louver: all, or those whose name has these words",
    )  # fmt: skip
    chosen = parser.parse_args()
    shared.one_thread()
    report, begun = Report(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOUVER_STATE_DIR"] = f"{folder}/state"
        path = Path(folder) / "key"
        shutil.copy(KEY, path)
        path.chmod(0o600)
        ring = KeyRing.open(path)
        if chosen.faults is not None:
            return faults(ring, chosen.faults)
        seed = chosen.seed
        while report.statements < chosen.statements:
            length = min(chosen.length, chosen.statements - report.statements)
            if chosen.profile == "providers":
                report.add(providers.run(Path(folder) / str(seed), str(seed), length))
                seed += 1
                continue
            played = run(ring, chosen.profile, str(seed), length)
            report.add(played.report)
            if chosen.show:
                for step in played.steps:
                    said(f"{step.kind} | {step.rendered(played.values, 0)[0]}")
            for difference in played.report.differences:
                said(difference)
                if chosen.shrink:
                    for step in shrunk(ring, played):
                        said(f"    {step.rendered(played.values, 0)[0]}")
            seed += 1
    differences, report.differences = report.differences, []
    said("\n".join(report.lines()))
    busy = time.process_time()
    said(
        f"{len(differences)} differences in {time.monotonic() - begun:.1f} s,"
        f" {1_000 * busy / max(report.statements, 1):.1f} ms of processors a pair"
    )
    return bool(differences)


def faults(ring: KeyRing, words: str = "", sessions: int = 6) -> int:
    """Put one fault after the other back; the status tells whether any was not found."""
    missed = 0
    for mutation in (m for m in MUTATIONS if words in m.name):
        difference, number = "", 0
        with known_faults.everything(), mutation.fault():
            for seed in range(sessions):
                played = run(ring, mutation.profile, f"m{seed}", LENGTH, mutation.focus)
                number += played.report.statements
                if played.report.differences:
                    difference = str(played.report.differences[0])
                    break
        missed += not difference
        said(f"{mutation.name}: {number} statements: {difference or 'NOT FOUND'}")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
