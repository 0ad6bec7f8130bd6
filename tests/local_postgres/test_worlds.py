"""What crosses in PostgreSQL's language does not depend on what is encrypted."""

from __future__ import annotations

import pytest

from tests.generated import SEED, SOAK
from tests.local_postgres import worlds
from tests.local_postgres.world_free import free
from tests.local_postgres.world_statements import Statements

SESSIONS = 1 if SOAK == 1 else 10 * SOAK
LENGTH = 50
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("draw", [Statements, free], ids=["ordered", "free"])
@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_worlds_look_the_same(profile: str, draw: worlds.Draw) -> None:
    ran = 0
    for session in range(SESSIONS):
        played = worlds.play(profile, SEED + session, LENGTH, draw)
        assert not played.differences, "\n".join(played.differences)
        ran += played.ran
    assert ran > LENGTH // 2 * SESSIONS
