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
from louver.untrusted.attacks.state import State, StoredTable

EQUALITY, ORDER = "q", "o"
"""The first letters of the pseudonyms of the two kinds."""
LEAST_ROWS = 16
"""Fewer closed codes may all be positive by chance."""
TOP = 5
_PSEUDONYM = re.compile(r"([a-z])_[0-9a-f]{12}")
_HALF = {"BIGINT": "0", "UUID": "'80000000-0000-0000-0000-000000000000'::UUID"}


@dataclass(frozen=True, slots=True)
class Sight:
    """A column of codes: what it shows, and the number of rows of each code, in order of codes.

    ``kind`` is the purpose of the codes, "equality" or "order". ``shown`` is the same, or "" if the
    codes look like random numbers; then there are no counts.
    """

    table: StoredTable
    column: str
    kind: str
    shown: str
    rows: int
    nulls: int
    distinct: int
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


def look(state: State) -> Iterator[Sight]:
    """Every column of codes."""
    for table in state.tables():
        if table.name.startswith("louver_"):
            continue
        for name, type_ in table.columns:
            match = _PSEUDONYM.fullmatch(name)
            if match and match[1] in (EQUALITY, ORDER) and type_ in _HALF:
                yield _sight(state, table, name, type_, match[1])


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


def _sight(state: State, table: StoredTable, name: str, type_: str, letter: str) -> Sight:
    facts = state.ask(
        f'SELECT count(*) AS rows, count("{name}") AS known, count(DISTINCT "{name}") AS distinct_,'
        f' count(*) FILTER ("{name}" < {_HALF[type_]}) AS low FROM {table.quoted}'
    ).to_pylist()[0]
    rows, known, distinct = facts["rows"], facts["known"], facts["distinct_"]
    repeats = distinct < known or known < rows
    low = 0 if type_ == "BIGINT" else known
    ordered = letter == ORDER and facts["low"] == low and (repeats or known >= LEAST_ROWS)
    kind = "order" if letter == ORDER else "equality"
    shown = kind if ordered or (letter == EQUALITY and repeats) else ""
    counts = np.zeros(0, dtype=np.int64)
    if shown:
        counted = state.ask(
            f'SELECT count(*) AS n FROM {table.quoted} WHERE "{name}" IS NOT NULL'
            f' GROUP BY "{name}" ORDER BY "{name}"'
        )
        counts = counted.column("n").cast(pa.int64()).to_numpy()
    return Sight(table, name, kind, shown, rows, rows - known, distinct, counts)
