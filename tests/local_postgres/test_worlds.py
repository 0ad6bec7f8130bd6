"""What crosses in PostgreSQL's language does not depend on what is encrypted."""

from __future__ import annotations

import pytest

from louver.trusted.executor.postgres import pseudonyms
from tests.generated import SEED, SOAK
from tests.local_postgres import worlds
from tests.local_postgres.world_again import again
from tests.local_postgres.world_free import free
from tests.local_postgres.world_statements import Statements
from tests.local_postgres.world_values import rendered

SESSIONS = 1 if SOAK == 1 else 10 * SOAK
LENGTH = 50
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("draw", [Statements, free, again], ids=["ordered", "free", "again"])
@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_worlds_look_the_same(profile: str, draw: worlds.Draw) -> None:
    ran = 0
    for session in range(SESSIONS):
        played = worlds.play(profile, SEED + session, LENGTH, draw)
        assert not played.differences, "\n".join(played.differences)
        ran += played.ran
    assert ran > LENGTH // 2 * SESSIONS


@pytest.mark.parametrize("fault", ["", "lengths of payloads", "values in texts"])
def test_a_fault_would_be_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "lengths of payloads":
        monkeypatch.setattr(pseudonyms, "_STEP_BYTES", 1)
    with worlds.both("sealed", fault) as pair:
        crossed = list[object]()
        for world in pair:
            for text in (
                "CREATE TABLE t (p integer, ⟨name⟩0 text ENC)",
                "NOTIFY ⟨name⟩channel, ⟨payload 0⟩", "SELECT pg_advisory_lock(⟨number 3⟩)",
            ):  # fmt: skip
                assert world.run(text) in (1, -1)
            if fault == "values in texts":
                world.run(rendered("INSERT INTO t (p) VALUES (⟨integer 3⟩)", world.number))
            crossed.append(world.crossed())
    assert (crossed[0] != crossed[1]) == bool(fault)
