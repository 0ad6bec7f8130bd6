"""The row numbers that a table has, as runs of consecutive ones: exact, or unknown.

Masks of a sum over all rows cancel within a run, so that the answer need not say which rows were
added. Where deletes leave more runs than are worth keeping, nothing is said instead.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa

from louver.trusted.vault.catalog import Table

MOST = 1_000
"""Runs that are kept; of a table in more pieces none are known."""


def append(table: Table, first: int, count: int) -> None:
    """Take in ``count`` rows from ``first`` on, which the table did not have."""
    if not table.runs_known or not count:
        return
    runs = table.runs
    place = bisect_left(runs, [first, 0])
    if place and sum(runs[place - 1]) == first:
        runs[place - 1][1] += count
        place -= 1
    else:
        runs.insert(place, [first, count])
    following = place + 1
    if following < len(runs) and sum(runs[place]) == runs[following][0]:
        runs[place][1] += runs.pop(following)[1]
    _bound(table)


def remove(table: Table, row_ids: pa.Array) -> None:
    """Take rows out. ``table.row_count`` is already without them."""
    if not table.row_count:
        table.runs, table.runs_known = [], True
        return
    if not table.runs_known:
        return
    gone = np.unique(row_ids.to_numpy(zero_copy_only=False))
    starts = np.array([run[0] for run in table.runs], np.int64)
    ends = starts + np.array([run[1] for run in table.runs], np.int64)
    places = np.searchsorted(starts, gone, "right") - 1
    if len(gone) != len(row_ids) or np.any(places < 0) or np.any(gone >= ends[places]):
        table.runs, table.runs_known = [], False
        return
    # Within a run, what lies between the rows that go begins behind one and ends before the next.
    starts = np.sort(np.concatenate([starts, gone + 1]))
    counts = np.sort(np.concatenate([ends, gone])) - starts
    left = counts > 0
    if int(left.sum()) > MOST:
        table.runs, table.runs_known = [], False
        return
    table.runs = [[int(s), int(c)] for s, c in zip(starts[left], counts[left], strict=True)]


def _bound(table: Table) -> None:
    if len(table.runs) > MOST:
        table.runs, table.runs_known = [], False
