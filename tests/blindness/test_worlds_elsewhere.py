"""The same of secret shares, of lakes, and of private questions to providers (tests/worlds)."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.trusted.vault.keyring import KeyRing
from tests.generated import SEED, SOAK
from tests.postgres import servers
from tests.worlds import providers
from tests.worlds.runner import Report, run


@pytest.mark.parametrize(("profile", "sessions"), [("lake", 1), *([("sdb", 1)] * (SOAK > 1))])
def test_worlds_look_the_same(profile: str, sessions: int, key_file: Path) -> None:
    ring, report = KeyRing.open(key_file), Report()
    for seed in range(sessions * SOAK):
        report.add(run(ring, profile, str(SEED + seed), 40).report)
    assert not report.differences, "\n".join(report.lines())


@pytest.mark.parametrize(("profile", "seeds"), [("sealed", (2, 3)), ("cryptdb", (1, 2))])
def test_worlds_look_the_same_to_a_database_server(
    profile: str, seeds: tuple[int, ...], key_file: Path
) -> None:
    """Few sessions, always the same: the order in which a server's index gives rows that are looked
    up by tags goes by the tags, and the bounds of columns widen where the worlds' values lie
    (THREAT_MODEL.md), which the worlds of other seeds do not have alike.
    """
    ring, report = KeyRing.open(key_file), Report()
    for seed in seeds:
        number = f"{seed} of a server"
        report.add(run(ring, profile, number, 40, server=servers.new_engine).report)
    assert not report.differences, "\n".join(report.lines())
    assert sum(report.ran.values()) > 40


@pytest.mark.parametrize("parties", [2, 3])
def test_questions_look_the_same(parties: int, tmp_path: Path) -> None:
    report = Report()
    for seed in range(SOAK):
        report.add(providers.run(tmp_path / str(seed), f"{parties}:{SEED + seed}", 25, parties))
    assert not report.differences, "\n".join(report.lines())
    assert report.ran["question"] > 10
