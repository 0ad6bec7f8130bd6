"""How many cases a generated test draws: few and always the same in `make test`, more and others in
`make soak`, which sets LOUVER_SOAK to the factor.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

Step = TypeVar("Step")

SOAK = int(os.environ.get("LOUVER_SOAK", "1"))
#: The environment variable that says that all tests run, and not some that are named.
WHOLE = "LOUVER_WHOLE"
#: What is many and alike runs in so many parts, one at each commit.
PARTS = 6
#: A test of so many cases or more runs in parts.
MANY = 3
#: Folders of which all runs at each commit: what servers see, and what the project looks like.
ALWAYS = {"blindness", "observer", "house"}
#: Hypothesis has a seed of its own; this one is for tests that draw by themselves.
SEED = int(os.environ.get("LOUVER_SEED", "0"))


def cases(count: int) -> int:
    """So many in `make test`, a multiple of it in `make soak`."""
    return count * SOAK


def generator(name: str) -> Random:
    """Random numbers for one test: the same in every run of `make test`."""
    return Random(f"{name} {SEED}")


def is_due(number: int, parts: int = PARTS) -> bool:
    """Whether one of many that are alike runs at this commit; in `make soak`, always."""
    return SOAK > 1 or number % parts == _commit() % parts


def not_due(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """What a run of all tests leaves out at this commit: of tests that have three cases or more, or
    the mark `in_turn`, all but one case in six; but for what shows that servers stay blind. Of
    fewer cases than six, one runs. Where tests are named, all of them run.
    """
    if WHOLE not in os.environ:
        return []
    count, number = Counter(map(_test, items)), Counter[tuple[Path, str]]()
    results = list[pytest.Item]()
    for item in items:
        test, marked = _test(item), item.get_closest_marker("in_turn")
        if marked or (count[test] >= MANY and not ALWAYS & {*item.path.parts}):
            parts = PARTS if marked else min(PARTS, count[test])
            results += [] if is_due(number[test], parts) else [item]
            number[test] += 1
    return results


def _test(item: pytest.Item) -> tuple[Path, str]:
    return item.path, item.name.partition("[")[0]


@functools.cache
def _commit() -> int:
    """The commit chooses, so that each runs at about one commit in so many, and CI runs what its
    author ran; outside of a repository, always the first.
    """
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout.strip() or "0", 16)


def fewest(steps: Sequence[Step], differs: Callable[[Sequence[Step]], bool]) -> list[Step]:
    """The steps, of which the last one always stays, without those that it differs without."""
    left = list(steps)
    size = max(len(left) // 2, 1)
    while True:
        index = 0
        while index < len(left) - 1:
            fewer = left[:index] + left[min(index + size, len(left) - 1) :]
            if differs(fewer):
                left = fewer
            else:
                index += size
        if size == 1:
            return left
        size //= 2
