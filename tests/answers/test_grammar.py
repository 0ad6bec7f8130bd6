"""Random statements over all types say the same on Louver and on plaintext DuckDB (tests/grammar).

``LOUVER_SOAK`` multiplies the number of sessions and adds profiles; at 100 they are more than a
hundred thousand statements. ``python -m tests.grammar`` runs more of them and shrinks what differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.generated import SEED, SOAK, fewest
from tests.grammar.runner import Pair, Report, play
from tests.grammar.session import PROFILES, Session, Step

LENGTH = 60
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
SESSIONS = 42 * SOAK if SOAK > 1 else 2
MOST_REFUSED = {"mixed": 0.2}
"""The share of statements that may be refused: a table of which some columns are plain has much
that must not be written to them.
"""


@pytest.mark.parametrize("profile", PROFILES)
def test_random_statements_say_the_same(profile: str, tmp_path: Path, key_file: Path) -> None:
    report = Report()
    for number in range(SESSIONS):
        seed = str(SEED + number)
        report.add(play(tmp_path / seed, key_file, profile, seed, LENGTH).report)
    assert not report.differences, "\n".join(report.lines())
    refused = sum(report.refused.values())
    assert refused <= MOST_REFUSED.get(profile, 0.06) * report.statements, report.lines()
    assert sum(report.failed.values()) <= 0.3 * report.statements, report.lines()


def test_a_difference_is_found(tmp_path: Path, key_file: Path) -> None:
    """Another answer, another name and another kind of error are each told."""
    pair = Pair(tmp_path, key_file, "sealed")
    try:
        duck = pair.run.duck.connection()
        duck.execute("CREATE MACRO m(x) AS 2")
        pair.run.louver.connection().execute("CREATE MACRO m(x) AS 1")
        sorts = []
        for sql in ("SELECT m(1) AS a", "SELECT 1 AS a"):
            _, difference = pair.step(Step("values", sql), Report())
            sorts.append(difference.sort if difference else "")
        assert sorts == ["answer", ""]
    finally:
        pair.close()


def test_a_session_can_be_replayed() -> None:
    """A seed gives the same statements in another process, whose sets have another order."""
    program = "from tests.answers.test_grammar import *; print([texts(p) for p in PROFILES])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True
    )
    assert process.stdout.strip() == repr([texts(profile) for profile in PROFILES])


def texts(profile: str) -> list[str]:
    """The first statements of a session of which every seventh fails."""
    session, steps = Session(profile, "7"), []
    for number in range(80):
        step = session.next()
        steps.append(f"{step.sql} {step.parameters}")
        session.ran(number % 7 != 6)
    return steps


def test_the_fewest_steps_that_differ() -> None:
    assert fewest(list(range(9)), lambda steps: {2, 5} < set(steps)) == [2, 5, 8]
