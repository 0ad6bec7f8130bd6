"""Two worlds that differ only in what is encrypted look the same to the server (tests/worlds).

``LOUVER_SOAK`` multiplies the number of sessions and adds other profiles.
``python -m tests.worlds`` runs more of them and shrinks what differs; with ``--faults`` it puts
faults back into Louver, one by one, and says which were found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from louver.trusted.vault.keyring import KeyRing
from tests.generated import SEED, SOAK
from tests.worlds.mutations import MUTATIONS, Mutation
from tests.worlds.runner import Report, run
from tests.worlds.session import PROFILES, texts

STATEMENTS = 50
MOST_REFUSED = 0.4
"""A generator of which most is refused finds nothing."""


SESSIONS = {"sealed": 2, "cryptdb": 2, **({"mixed": 2} if SOAK > 1 else {})}


@pytest.mark.parametrize(("profile", "sessions"), SESSIONS.items())
def test_worlds_look_the_same(profile: str, sessions: int, key_file: Path) -> None:
    ring, report = KeyRing.open(key_file), Report()
    for seed in range(sessions * SOAK):
        report.add(run(ring, profile, str(SEED + seed), STATEMENTS).report)
    assert not report.differences, "\n".join(report.lines())
    assert sum(report.refused.values()) <= MOST_REFUSED * report.statements


def test_a_session_can_be_replayed() -> None:
    """A seed gives the same statements in another process, whose sets have another order."""
    program = "from tests.worlds.session import *; print([texts(p, '7', 60) for p in PROFILES])"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True
    )
    assert process.stdout.strip() == repr([texts(profile, "7", 60) for profile in PROFILES])


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.name))
def test_faults_can_be_put_back(mutation: Mutation) -> None:
    """What a mutation replaces is there; whether it is found, `--faults` tells."""
    with mutation.fault():
        pass
