"""Random changes by several connections do the same on Louver and on plaintext DuckDB
(tests/grammar/writers.py): every form of change, tables with keys, transactions, definitions.

``LOUVER_SOAK`` makes a few hundred statements many: at 10, as `make soak` has it, 200,000.
``python -m tests.grammar --writers`` runs more of them and shrinks what differs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generated import SEED, SOAK
from tests.grammar.runner import Report, play
from tests.grammar.session import PROFILES, Step
from tests.grammar.writers import Writers

STATEMENTS = (300 if SOAK == 1 else 20_000 * SOAK) // len(PROFILES)
LENGTH = 50
MOST_CONFLICTS = 0.06
"""The share of statements that may be outrun where plaintext DuckDB's are not."""
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("profile", PROFILES)
def test_random_changes_do_the_same(profile: str, tmp_path: Path, key_file: Path) -> None:
    report, number = Report(), SEED
    while report.statements < STATEMENTS:
        seed = str(number)
        report.add(play(tmp_path / seed, key_file, profile, seed, LENGTH, Writers).report)
        number += 1
    assert not report.differences, "\n".join(report.lines())
    outrun = sum(n for name, n in report.conflicts.items() if name != "of both")
    assert outrun <= max(3, MOST_CONFLICTS * report.statements), report.lines()
    assert sum(report.failed.values()) <= 0.3 * report.statements, report.lines()
    assert sum(report.refused.values()) <= 0.25 * report.statements, report.lines()


def test_writers_come_from_their_seed() -> None:
    """A seed gives the same statements again, as long as the same ones of them fail."""
    first = steps("7")
    assert repr(first) == repr(steps("7"))
    assert repr(first) != repr(steps("8"))
    assert {step.connection for step in first} >= {"", "second"}
    assert any(step.inside for step in first)


def steps(seed: str) -> list[Step]:
    """The first statements of a session of which every ninth fails."""
    session, given = Writers("sealed", seed), []
    for number in range(200):
        given.append(session.next())
        session.ran(number % 9 != 8)
    return given
