"""The proof of the ledger over sessions that hypothesis makes: see test_observer for what it is.

Statements may be refused; whatever happens, the server must see nothing that the ledger does not
state, and the ledger must state nothing that the server was not shown. Timing, memory, message
sizes and knowledge from elsewhere are not tried.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from louver.trusted.executor.policy import Policy
from tests.generated import cases
from tests.observer.judge import Judge
from tests.observer.recorder import Recorder
from tests.observer.sessions import sessions

PROFILES = ("cryptdb", "mixed", "sealed", "sdb")
MIXED = """
[staff]
name = {join = "names"}
salary = {join = "money"}
born = {order = "ore", scheme = "sealed", may_reveal = "order"}
[dept]
head = {join = "names"}
budget = {join = "money"}
"""


@pytest.mark.parametrize("profile", PROFILES)
@settings(
    max_examples=cases(8),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(statements=sessions())
def test_the_ledger_is_true(profile: str, key_file: Path, statements: list[str]) -> None:
    policy = Policy.parse(tomllib.loads(MIXED), "mixed", "cryptdb") if profile == "mixed" else None
    recorder = Recorder(key_file, profile, policy=policy)
    try:
        for sql in statements:
            recorder.attempt(sql)
        judge = Judge(recorder)
        verdict = judge.verdict()
        assert not verdict.violations, "\n".join(map(str, verdict.violations))
        vain = judge.in_vain(verdict)
        assert not vain, "\n".join(map(str, vain))
    finally:
        recorder.close()
