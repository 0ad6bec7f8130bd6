"""How many cases a generated test draws: few and always the same in `make test`, more and others in
`make soak`, which sets LOUVER_SOAK to the factor.
"""

from __future__ import annotations

import os
from random import Random

SOAK = int(os.environ.get("LOUVER_SOAK", "1"))
#: Hypothesis has a seed of its own; this one is for tests that draw by themselves.
SEED = int(os.environ.get("LOUVER_SEED", "0"))


def cases(count: int) -> int:
    """So many in `make test`, a multiple of it in `make soak`."""
    return count * SOAK


def generator(name: str) -> Random:
    """Random numbers for one test: the same in every run of `make test`."""
    return Random(f"{name} {SEED}")
