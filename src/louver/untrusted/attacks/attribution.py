"""Which columns a kept term is made of: their Jacobi symbols tell.

At rest each value shows its Jacobi symbol, up to one sign per column; those of ones are therefore
all alike. Where the values behind a term are known up to one factor, their symbols, row by row,
are those of the columns that were multiplied, again up to one sign.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from louver.untrusted.attacks.common_key import Found, Numbers
from louver.untrusted.attacks.rational import jacobi

SAMPLE_ROWS = 96
"""A wrong product passes by a chance of 2^-95."""


class Symbols:
    """The Jacobi symbols of the stored columns, computed when first asked for."""

    def __init__(self, columns: Numbers, modulus: int) -> None:
        self._columns = columns
        self._modulus = modulus
        self._known: dict[tuple[str, int], int] = {}

    def of(self, name: str, row: int) -> int:
        """The symbol of one stored value; 0 for NULL and zero."""
        place = (name, row)
        if place not in self._known:
            value = self._columns[name][row]
            self._known[place] = jacobi(value, self._modulus) if value > 0 else 0
        return self._known[place]

    def ones(self, names: Sequence[str]) -> list[str]:
        """The columns that hold ones: their symbols are all alike."""
        found = []
        for name in names:
            seen = {self.of(name, row) for row in range(len(self._columns[name]))[:SAMPLE_ROWS]}
            if len(seen - {0}) == 1:
                found.append(name)
        return found

    def value(self, number: int) -> int:
        """The symbol of a number that was recovered."""
        return jacobi(number, self._modulus)


def attributed(found: Found, symbols: Symbols, candidates: Sequence[str]) -> Found:
    """The same with the term's own columns among those above, where they can be told."""
    tried = found.combination
    rows = [row for row, value in enumerate(found.values) if value][:SAMPLE_ROWS]
    if len(rows) < 2:
        return found
    wanted = [symbols.value(found.values[row] or 0) for row in rows]
    for name in (*tried.above, *tried.below):
        wanted = [w * symbols.of(name, row) for w, row in zip(wanted, rows, strict=True)]
    for made_of in _products(candidates):
        signs = set()
        for row, symbol in zip(rows, wanted, strict=True):
            for name in made_of:
                symbol *= symbols.of(name, row)
            signs.add(symbol)
            if len(signs - {0}) > 1:
                break
        if len(signs - {0}) == 1:
            above = tuple(sorted((*tried.above, *made_of)))
            return replace(found, combination=replace(tried, above=above))
    return found


def _products(candidates: Sequence[str]) -> Iterator[tuple[str, ...]]:
    yield ()
    for size in (1, 2):
        yield from itertools.combinations(candidates, size)
