"""The row ids of a table, as ranges of consecutive ids: exact, or unknown.

Masks of a sum over all rows cancel within a range, so the reply need not say which rows were added.
When deletes leave more ranges than are worth storing, they are unknown instead.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa

from louver.trusted.vault.catalog import Table

MOST = 1_000
"""The most ranges stored; a table with more has none recorded."""


def append(table: Table, first: int, count: int) -> None:
    """Add ``count`` new rows from ``first`` on."""
    if not table.runs_known or not count:
        return
    runs = table.runs
    at = bisect_left(runs, [first, 0])
    if at and sum(runs[at - 1]) == first:
        runs[at - 1][1] += count
        at -= 1
    else:
        runs.insert(at, [first, count])
    following = at + 1
    if following < len(runs) and sum(runs[at]) == runs[following][0]:
        runs[at][1] += runs.pop(following)[1]
    _bound(table)


def remove(table: Table, row_ids: pa.Array) -> None:
    """Remove rows. ``table.row_count`` already excludes them."""
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
    # Within a range, what remains starts after a removed row and ends before the next one.
    starts = np.sort(np.concatenate([starts, gone + 1]))
    counts = np.sort(np.concatenate([ends, gone])) - starts
    left = counts > 0
    if int(left.sum()) > MOST:
        table.runs, table.runs_known = [], False
        return
    table.runs = [[int(s), int(c)] for s, c in zip(starts[left], counts[left], strict=True)]


def count(table: Table, row_ids: pa.ChunkedArray) -> None:
    """Take down all rows that a table has."""
    numbers = np.sort(row_ids.to_numpy())
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(numbers))
    pairs = zip(numbers[starts].tolist(), lengths.tolist(), strict=True)
    table.row_count, table.runs_known = len(numbers), True
    table.runs = [[first, length] for first, length in pairs]
    _bound(table)


def _bound(table: Table) -> None:
    if len(table.runs) > MOST:
        table.runs, table.runs_known = [], False
