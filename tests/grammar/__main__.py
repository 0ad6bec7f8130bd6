"""Long runs: ``python -m tests.grammar --statements 10000 --profile cryptdb --seed 7``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests import shared
from tests.grammar.runner import Report, play, shown, shrunk
from tests.grammar.session import PROFILES, Session
from tests.grammar.writers import Writers

LENGTH = 60
"""Statements of one session."""


def said(line: object) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run sessions one after the other and print what differs; the status tells whether any did."""
    parser = argparse.ArgumentParser(prog="python -m tests.grammar", description=__doc__)
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--profile", choices=PROFILES, default="sealed")
    parser.add_argument("--seed", type=int, default=0, help="of the first session")
    parser.add_argument("--length", type=int, default=LENGTH, help="statements of a session")
    parser.add_argument("--writers", action="store_true", help="changes by several connections")
    parser.add_argument("--shrink", action="store_true", help="drop statements from what differs")
    parser.add_argument("--refused", action="store_true", help="print what Louver refuses")
    parser.add_argument("--show", action="store_true", help="print all statements")
    chosen = parser.parse_args()
    shared.one_thread()
    report, begun, seed = Report(), time.monotonic(), chosen.seed
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared.make(folder)
        os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
        keys = folder / "test.louverkey"
        while report.statements < chosen.statements:
            given = folder / str(seed), keys, chosen.profile, str(seed), chosen.length
            played = play(*given, Writers if chosen.writers else Session)
            report.add(played.report)
            if chosen.show:
                for step in played.steps:
                    said(f"{step.kind} | {shown(step)}")
            for refusal in played.report.refusals if chosen.refused else ():
                said(refusal)
            for difference in played.report.differences:
                said(difference)
            if chosen.shrink and played.report.differences:
                for step in shrunk(folder / f"{seed}s", keys, played):
                    said(f"    {shown(step)}; {list(step.parameters) or ''}")
            seed += 1
    differences, report.differences = report.differences, []
    said("\n".join(report.lines()[:-1]))
    said(f"{len(differences)} differences in {time.monotonic() - begun:.1f} s")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
