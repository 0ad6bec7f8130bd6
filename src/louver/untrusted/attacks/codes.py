"""What a server learns from its columns of equality and order codes, and how it exploits that.

Columns of codes have pseudonyms, a letter and twelve digits, and type BIGINT or UUID. The letter
distinguishes equality from order, as do the operations that the server is asked for. While a layer
is closed every code is random: none repeats, no NULL shows, half of the narrow ones are negative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from louver.untrusted.attacks import histograms
from louver.untrusted.attacks.histograms import Counts, Guesses
from louver.untrusted.engines.stored import Histogram, StoredRows, StoredTable

EQUALITY, ORDER = "q", "o"
"""The first letters of the pseudonyms of the two kinds."""
LEAST_ROWS = 16
"""Fewer closed codes may all be positive by chance."""
TOP = 5
_PSEUDONYM = re.compile(r"([a-z])_[0-9a-f]{12}")
_CODES = (pa.types.is_int64, pa.types.is_binary, pa.types.is_string)
"""The Arrow types of narrow codes, and of wide ones as bytes or digits."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A column of codes: what it shows, its codes in order, and the number of rows of each.

    ``kind`` is the purpose of the codes, "equality" or "order". ``shown`` is the same, or "" if the
    codes look like random numbers; then there are neither codes nor counts.
    """

    table: StoredTable
    column: str
    kind: str
    shown: str
    rows: int
    nulls: int
    distinct: int
    codes: pa.Array
    counts: Counts

    @property
    def top(self) -> list[int]:
        """The numbers of rows of the most frequent codes."""
        return [int(count) for count in -np.sort(-self.counts)[:TOP]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attack's guesses, and the highest ceiling that prevents it."""

    attack: str
    guesses: Guesses
    prevented_by: str


def look(stored: StoredRows) -> Iterator[Sight]:
    """Every column of codes."""
    for table in stored.tables():
        for name, _ in [] if table.own else table.columns:
            match = _PSEUDONYM.fullmatch(name)
            if match and match[1] in (EQUALITY, ORDER):
                histogram = stored.histogram(table, name)
                if any(holds(histogram.values.type) for holds in _CODES):
                    yield _sight(table, name, histogram, match[1])


def attempts(sight: Sight, values: Counts) -> list[Attempt]:
    """Every attack that the codes permit. `values` are the counts of the values in the adversary's
    own table, in ascending order of the values.
    """
    if not sight.shown or not len(values):
        return []
    results = [Attempt("frequency analysis", histograms.frequency(sight.counts, values), "access")]
    if sight.shown == "order":
        if histograms.is_dense(sight.counts, values):
            guesses = histograms.sorting(sight.counts, values)
            results.append(Attempt("sorting", guesses, "equality"))
        guesses = histograms.cumulative(sight.counts, values)
        results.append(Attempt("cumulative frequencies", guesses, "equality"))
    return results


def _sight(table: StoredTable, name: str, histogram: Histogram, letter: str) -> Sight:
    known, distinct = int(histogram.counts.sum()), len(histogram.values)
    repeats = distinct < known or histogram.nulls > 0
    ordered = letter == ORDER and _lower(histogram.values) and (repeats or known >= LEAST_ROWS)
    kind = "order" if letter == ORDER else "equality"
    shown = kind if ordered or (letter == EQUALITY and repeats) else ""
    rows = known + histogram.nulls
    seen = slice(None) if shown else slice(0)
    return Sight(
        table, name, kind, shown, rows, histogram.nulls, distinct,
        histogram.values[seen], histogram.counts[seen],
    )  # fmt: skip


def _lower(codes: pa.Array) -> bool:
    """Whether ascending codes have no highest bit, as those of an order have none."""
    if not len(codes):
        return True
    if pa.types.is_int64(codes.type):
        return bool(codes[0].as_py() >= 0)
    highest: str | bytes = codes[-1].as_py()
    if isinstance(highest, str):
        return highest < "8"
    return highest < b"\x80"
