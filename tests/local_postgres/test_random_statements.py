"""Random statements of PostgreSQL's language give on Louver what they give on plaintext PostgreSQL
(tests/postgres_grammar). ``python -m tests.postgres_grammar`` runs more of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.generated import SEED, SOAK
from tests.postgres_grammar.__main__ import interleaved, play

PROFILES = ("sealed", "cryptdb", "sdb")
SESSIONS = SOAK if SOAK == 1 else 100 * SOAK
pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.mark.parametrize("profile", PROFILES)
def test_random_statements_do_the_same(profile: str) -> None:
    counts: Counter[str] = Counter()
    for session in range(SESSIONS):
        differences = play(profile, SEED + session, 60, counts)
        assert not differences, "\n".join(differences)
    refused = sum(count for name, count in counts.items() if name.startswith("refused"))
    assert refused <= 0.3 * sum(counts.values()), counts


@pytest.mark.parametrize("profile", PROFILES[:2])
def test_clients_that_take_turns_do_the_same(profile: str) -> None:
    counts: Counter[str] = Counter()
    for session in range(SESSIONS):
        differences = interleaved(profile, SEED + session, 60, counts)
        assert not differences, "\n".join(differences)
    refused = sum(count for name, count in counts.items() if name.startswith("refused"))
    assert refused <= 0.3 * sum(counts.values()), counts
