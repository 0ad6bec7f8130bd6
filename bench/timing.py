"""Clocks: the best of several runs for kernels, the median for statements."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

Clock = Callable[[], float]


def seconds(work: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """How long one call takes."""
    start = clock()
    work()
    return clock() - start


def best(
    work: Callable[[], Any],
    *,
    budget_s: float = 0.8,
    least: int = 3,
    clock: Clock = time.perf_counter,
) -> float:
    """The shortest of as many calls as fit: the one that other load disturbed least."""
    work()
    results: list[float] = []
    while len(results) < least or sum(results) < budget_s:
        results.append(seconds(work, clock))
    return min(results)


def median(values: Sequence[float]) -> float:
    """The middle value."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
