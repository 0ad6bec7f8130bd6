"""Attribution: which columns a materialized term is made of, by their Jacobi symbols.

A stored value shows its Jacobi symbol, up to one sign per column and, if g is not a square, one
sign per row, which every column of ones shows by itself. If the values behind a term are known up
to one factor, their symbols, row by row, are those of the columns that were multiplied.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from louver.untrusted.attacks.common_key import Found, Numbers
from louver.untrusted.attacks.rational import jacobi

SAMPLE_ROWS = 96
"""A wrong product passes with a probability of 2^-95."""

RANDOM = "R"
"""The name of a term's random factor, for any helper."""

_VALUE_BITS, _SPARE_BITS = 64, 40


class Symbols:
    """The Jacobi symbols of the stored columns, computed on demand."""

    def __init__(self, columns: Numbers, modulus: int) -> None:
        self._columns = columns
        self._modulus = modulus
        self._known: dict[tuple[str, int], int] = {}

    def of(self, name: str, row: int) -> int:
        """The symbol of one stored value; 0 for NULL and zero."""
        cell = (name, row)
        if cell not in self._known:
            value = self._columns[name][row]
            self._known[cell] = jacobi(value, self._modulus) if value > 0 else 0
        return self._known[cell]

    def value(self, number: int) -> int:
        """The symbol of a recovered number."""
        return jacobi(number, self._modulus)


def attributed(
    product: Found, symbols: Symbols, shares: Sequence[str], helpers: Sequence[str]
) -> Found:
    """The combinations with all data columns above, those of the term too, and `RANDOM` if the
    values are too long to be values: then the random helper is among their factors. Ones are left
    out.
    """
    tried = product.combination
    # A quotient's symbol is that of the product.
    numbers = product.values or tuple(
        r.numerator * r.denominator if r else None for r in product.ratios
    )
    known = [(row, int(number)) for row, number in enumerate(numbers) if number][:SAMPLE_ROWS]
    if len(known) < 2:
        return product
    rows = [row for row, _ in known]
    wanted = [symbols.value(number) for _, number in known]
    for name in (*tried.above, *tried.below):
        wanted = [w * symbols.of(name, row) for w, row in zip(wanted, rows, strict=True)]
    for made_of in _products(shares, helpers):
        if _agree(made_of, symbols, rows, wanted):
            data = [name for name in (*tried.above, *made_of) if name in shares]
            bits = max(abs(value or 0).bit_length() for value in (0, *product.values))
            random = bits > _VALUE_BITS * len(data) + _SPARE_BITS
            above = (*sorted(data), *([RANDOM] if random else []))
            return replace(product, combination=replace(tried, above=above))
    return product


def _agree(
    made_of: Sequence[str], symbols: Symbols, rows: Sequence[int], wanted: Sequence[int]
) -> bool:
    seen = 0
    for row, symbol in zip(rows, wanted, strict=True):
        for name in made_of:
            symbol *= symbols.of(name, row)
        if symbol and seen and symbol != seen:
            return False
        seen = seen or symbol
    return True


def _products(shares: Sequence[str], helpers: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The fewest factors first; helpers represent themselves and the sign of a row."""
    products = [
        (*data, *more)
        for many in range(3)
        for data in itertools.combinations(shares, many)
        for size in range(len(helpers) + 1)
        for more in itertools.combinations(helpers, size)
    ]
    yield from sorted(products, key=len)
