"""What crosses in PostgreSQL's language does not depend on what is encrypted."""

from __future__ import annotations

import pytest

from tests.generated import SEED, SOAK
from tests.local_postgres import worlds

SESSIONS = 1 if SOAK == 1 else 10 * SOAK
LENGTH = 50
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_worlds_look_the_same(profile: str) -> None:
    ran = 0
    for session in range(SESSIONS):
        played = worlds.play(profile, SEED + session, LENGTH)
        assert not played.differences, "\n".join(played.differences)
        ran += played.ran
    assert ran > LENGTH // 2 * SESSIONS
