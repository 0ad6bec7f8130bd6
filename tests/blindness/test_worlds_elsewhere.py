"""The same of secret shares, of lakes, and of private questions to providers (tests/worlds)."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.trusted.vault.keyring import KeyRing
from tests.generated import SEED, SOAK
from tests.worlds import providers
from tests.worlds.runner import Report, run


@pytest.mark.parametrize(("profile", "sessions"), [("lake", 1), *([("sdb", 1)] * (SOAK > 1))])
def test_worlds_look_the_same(profile: str, sessions: int, key_file: Path) -> None:
    ring, report = KeyRing.open(key_file), Report()
    for seed in range(sessions * SOAK):
        report.add(run(ring, profile, str(SEED + seed), 40).report)
    assert not report.differences, "\n".join(report.lines())


@pytest.mark.parametrize("parties", [2, 3])
def test_questions_look_the_same(parties: int, tmp_path: Path) -> None:
    report = Report()
    for seed in range(SOAK):
        report.add(providers.run(tmp_path / str(seed), f"{parties}:{SEED + seed}", 25, parties))
    assert not report.differences, "\n".join(report.lines())
    assert report.ran["question"] > 10
