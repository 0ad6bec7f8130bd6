"""Two worlds that differ only in what is encrypted look the same to the server (tests/worlds).

``LOUVER_SOAK`` multiplies the number of sessions, and puts back all faults instead of the first;
``python -m tests.worlds`` runs more of them and shrinks what differs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from louver.trusted.vault.keyring import KeyRing
from tests.worlds import pending
from tests.worlds.mutations import MUTATIONS, Mutation
from tests.worlds.runner import Report, run

SOAK = int(os.environ.get("LOUVER_SOAK", "1"))
STATEMENTS = 50
MOST_REFUSED = 0.4
"""A generator of which most is refused finds nothing."""


@pytest.mark.parametrize(("profile", "sessions"), [("sealed", 2), ("cryptdb", 2), ("mixed", 2)])
def test_worlds_look_the_same(profile: str, sessions: int, key_file: Path) -> None:
    ring, report = KeyRing.open(key_file), Report()
    for seed in range(sessions * SOAK):
        report.add(run(ring, profile, str(seed), STATEMENTS).report)
    assert not report.differences, "\n".join(report.lines())
    assert sum(report.refused.values()) <= MOST_REFUSED * report.statements


@pytest.mark.parametrize(
    "mutation", MUTATIONS if SOAK > 1 else MUTATIONS[:1], ids=lambda mutation: mutation.name
)
def test_a_fault_is_found(mutation: Mutation, key_file: Path) -> None:
    ring = KeyRing.open(key_file)
    with pending.everything(), mutation.fault():
        for seed in range(6):
            report = run(ring, mutation.profile, f"m{seed}", STATEMENTS, mutation.focus).report
            if report.differences:
                return
    pytest.fail(f"{mutation.name} was not found")
