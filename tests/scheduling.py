"""Which tests share a worker, and which groups begin first.

A file's tests run in one worker, in their order, so that what a module shares is made once. Long
groups begin first, so that no worker is left with one at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Each parameter is a group of its own: little is shared and much is to do.
_APART = (
    "tests/answers/test_slt.py",
    "tests/answers/test_differential.py",
    "tests/planner/test_scans.py",
)
#: What shares a loaded database: the benchmark and the policy.
_TPC = re.compile(r"tests/tpc/test_(?P<file>\w+)\.py::\w+\[(?P<first>\w+)-(?P<policy>\w+)\]")
_FIRST = ("tests/tpc/", *_APART, "tests/lake/", "tests/providers/")


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(test: str) -> str:
    """The group of a test, by its id."""
    match = _TPC.fullmatch(test)
    if match is not None:
        name = match["first"] if match["file"] == "splits" else match["file"]
        return f"{name} {match['policy']}"
    return test if test.startswith(_APART) else test.partition("::")[0]


def ordered(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Groups together, the long ones first."""
    ranks: dict[str, tuple[int, int]] = {}
    for number, item in enumerate(items):
        rank = next((n for n, name in enumerate(_FIRST) if item.nodeid.startswith(name)), 99)
        ranks.setdefault(group(item.nodeid), (rank, number))
    return sorted(items, key=lambda item: ranks[group(item.nodeid)])
