"""Attacks on codes that show equality or order, from histograms alone.

Naveed, Kamara and Wright, "Inference Attacks on Property-Preserving Encrypted Databases", CCS 2015;
the cumulative attack as a matching without crossings, after Grubbs, Sekniqi, Bindschaedler, Naveed
and Ristenpart, "Leakage-Abuse Attacks against Order-Revealing Encryption", IEEE S&P 2017.

Every attack gets two arrays of counts: the rows of each code, and the rows of each value in a table
of the adversary's own; for the attacks on order both in ascending order. It returns for every code
the index of the guessed value, or -1. The codes themselves are not used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Guesses = npt.NDArray[np.int64]

CELL_LIMIT = 1 << 26
"""Cells, codes times values, that `cumulative` computes: two bit tables of this size in memory."""

_SPREAD = 4.0
"""The number of standard errors by which the ranks of one value may differ in two samples."""


def frequency(codes: Counts, values: Counts) -> Guesses:
    """Match the most frequent code with the most frequent value, and so on.

    This is frequency analysis, and also the l2-optimisation: to minimise the sum of
    (f_i - g_π(i))² over all assignments π is to maximise the sum of f_i·g_π(i), since the squares
    themselves do not depend on π, and by the rearrangement inequality that sum is greatest if both
    are sorted alike. Missing codes or values count as frequency 0 and come last. So sorting
    replaces the assignment problem: O(n log n). Ties are broken by position.
    """
    guesses = np.full(len(codes), -1, dtype=np.int64)
    count = min(len(codes), len(values))
    by_code = np.argsort(-np.asarray(codes, dtype=np.int64), kind="stable")[:count]
    by_value = np.argsort(-np.asarray(values, dtype=np.int64), kind="stable")[:count]
    guesses[by_code] = by_value
    return guesses


def is_dense(codes: Counts, values: Counts) -> bool:
    """Whether every value that the adversary knows occurs: then ranks are values."""
    return len(codes) == len(values) > 0


def sorting(codes: Counts, values: Counts) -> Guesses:
    """Match the smallest code with the smallest value, and so on. Exact on a dense column; on
    others it guesses nothing.
    """
    if not is_dense(codes, values):
        return np.full(len(codes), -1, dtype=np.int64)
    return np.arange(len(codes), dtype=np.int64)


def cumulative(codes: Counts, values: Counts, cell_limit: int = CELL_LIMIT) -> Guesses:
    """The non-crossing matching that fits frequencies and cumulative frequencies best.

    The weight of a code and a value is min(f, g), the frequency that they share, times a bell curve
    of the difference of their mid ranks in units of its standard error, a few of them wide. Dynamic
    programming over code i and value j, `best[i, j] = max(best[i-1, j], best[i, j-1],
    best[i-1, j-1] + w)`; a row is one running maximum. O(codes · values) time, two bits per cell.
    Above ``cell_limit`` cells each code gets the value of the same mid rank, also non-crossing.
    """
    size = len(codes) * len(values)
    if not size or not codes.sum() or not values.sum():
        return np.full(len(codes), -1, dtype=np.int64)
    f, g = codes / codes.sum(), values / values.sum()
    code_ranks, value_ranks = np.cumsum(f) - f / 2, np.cumsum(g) - g / 2
    if size > cell_limit:
        return _of_same_rank(code_ranks, value_ranks)
    chance = 1 / codes.sum() + 1 / values.sum()
    spread = _SPREAD * np.sqrt(chance * (code_ranks * (1 - code_ranks) + chance))
    best = np.zeros(len(g) + 1)
    matched = np.zeros((len(f), len(g)), dtype=bool)
    skipped = np.zeros((len(f), len(g)), dtype=bool)
    for rank in range(len(f)):
        far = (code_ranks[rank] - value_ranks) / spread[rank]
        with_this = best[:-1] + np.minimum(f[rank], g) * np.exp(-0.5 * far * far)
        matched[rank] = with_this > best[1:]
        row = np.maximum(with_this, best[1:])
        best[1:] = np.maximum.accumulate(row)
        skipped[rank] = best[1:] > row
    return _traced(matched, skipped)


def _traced(matched: npt.NDArray[np.bool_], skipped: npt.NDArray[np.bool_]) -> Guesses:
    """The matching, traced back from the last cell."""
    guesses = np.full(len(matched), -1, dtype=np.int64)
    code, value = matched.shape[0] - 1, matched.shape[1] - 1
    while code >= 0 and value >= 0:
        if skipped[code, value]:
            value -= 1
        elif matched[code, value]:
            guesses[code] = value
            code, value = code - 1, value - 1
        else:
            code -= 1
    return guesses


def _of_same_rank(
    code_ranks: npt.NDArray[np.float64], value_ranks: npt.NDArray[np.float64]
) -> Guesses:
    edges = (value_ranks[1:] + value_ranks[:-1]) / 2
    return np.searchsorted(edges, code_ranks).astype(np.int64)
