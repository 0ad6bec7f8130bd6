"""What crosses in PostgreSQL's language does not depend on what is encrypted."""

from __future__ import annotations

import pytest

from tests.generated import SEED, SOAK
from tests.local_postgres import worlds

SESSIONS = 1 if SOAK == 1 else 10 * SOAK
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_worlds_look_the_same(profile: str) -> None:
    ran = 0
    for session in range(SESSIONS):
        differences, count = worlds.play(profile, SEED + session, 40)
        assert not differences, "\n".join(differences)
        ran += count
    assert ran > 15 * SESSIONS


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_statements_that_come_again_look_the_same(profile: str) -> None:
    ran = 0
    for session in range(SESSIONS):
        differences, count = worlds.play_again(profile, SEED + session, 60)
        assert not differences, "\n".join(differences)
        ran += count
    assert ran > 30 * SESSIONS
