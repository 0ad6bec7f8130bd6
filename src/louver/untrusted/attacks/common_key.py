"""The common-key attack: find products of stored columns in which every row has the same key.

A ciphertext is v / (m·g^(r·x)). A materialized term is a product of ciphertexts and a power of the
ones, g^(-r·p·x_S) up to a factor; for a query to work, some product of terms and columns must have
a key without r, the same for all rows, and then the quotient of two rows is the quotient of the
values. The attacker need not know which: the quotients of the wrong ones are not small fractions,
so all are tried. Jacobi symbols show which columns a term was made of (`attribution`).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from louver.untrusted.attacks.rational import invert_all, reconstruct

Numbers = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Combination:
    """A materialized term, with columns multiplied to it and columns under it.

    `attribution` adds the columns that the term itself is made of to ``above``.
    """

    above: tuple[str, ...]
    below: tuple[str, ...]
    term: str


@dataclass(frozen=True, slots=True)
class Found:
    """A combination and the values it reveals, by row.

    ``values`` are whole numbers in the ratios of the values. If a column is under the term these
    would be unbounded, and there are ``ratios`` instead, fractions of the first row's.
    """

    combination: Combination
    values: tuple[int | None, ...] = ()
    ratios: tuple[Fraction | None, ...] = ()


def combinations(columns: Sequence[str], terms: Sequence[str]) -> Iterator[Combination]:
    """The combinations to try, the simplest first: a term alone (SUM, GROUP BY, joins,
    comparisons), with a column, over a column (sums of columns and constants), with two columns.
    """
    for term in terms:
        yield Combination((), (), term)
    for name, term in itertools.product(columns, terms):
        yield Combination((name,), (), term)
        yield Combination((), (name,), term)
    pairs = itertools.combinations_with_replacement(columns, 2)
    for pair, term in itertools.product(list(pairs), terms):
        yield Combination(pair, (), term)
    for (above, below), term in itertools.product(itertools.permutations(columns, 2), terms):
        yield Combination((above,), (below,), term)


def search(
    columns: Numbers,
    tried: Iterator[Combination],
    modulus: int,
    budget_s: float = 60.0,
) -> tuple[list[Found], int, bool]:
    """All combinations with a common key; the number tried, and whether all were tried."""
    deadline = time.monotonic() + budget_s
    products: list[Found] = []
    count = 0
    for combination in tried:
        if time.monotonic() > deadline:
            return products, count, False
        count += 1
        if _is_common(columns, combination, modulus):
            products.append(_opened(columns, combination, modulus))
    return products, count, True


def _is_common(columns: Numbers, tried: Combination, modulus: int) -> bool:
    """Decided by two quotients of rows that are small beyond chance."""
    rows = _usable(columns, tried)
    first = next(rows, None)
    if first is None:
        return False
    above, below = _product(columns, tried, first, modulus)
    checked = 0
    for row in rows:
        other_above, other_below = _product(columns, tried, row, modulus)
        divisor = above * other_below % modulus
        ratio = other_above * below * pow(divisor, -1, modulus) % modulus
        if reconstruct(ratio, modulus) is None:
            return False
        checked += 1
        if checked == 2:
            return True
    return checked > 0


def _usable(columns: Numbers, tried: Combination) -> Iterator[int]:
    """Rows in which no factor is zero or NULL."""
    names = (*tried.above, *tried.below, tried.term)
    count = len(columns[tried.term])
    return (row for row in range(count) if all(columns[name][row] > 0 for name in names))


def _product(columns: Numbers, tried: Combination, row: int, modulus: int) -> tuple[int, int]:
    above = columns[tried.term][row]
    for name in tried.above:
        above = above * columns[name][row] % modulus
    below = 1
    for name in tried.below:
        below = below * columns[name][row] % modulus
    return above, below


def _opened(columns: Numbers, tried: Combination, modulus: int) -> Found:
    """All rows in their ratios; zeros are zeros, NULLs are NULLs."""
    from louver._rust import attack

    rows = list(_usable(columns, tried))
    pairs = [_product(columns, tried, row, modulus) for row in rows]
    inverses = invert_all([below for _, below in pairs], modulus)
    known = {r: a * i % modulus for r, (a, _), i in zip(rows, pairs, inverses, strict=True)}
    size = (modulus.bit_length() + 7) // 8
    residues: list[int | None] = []
    for row in range(len(columns[tried.term])):
        zero = any(columns[name][row] == 0 for name in (*tried.above, tried.term))
        residues.append(0 if zero else known.get(row))
    if tried.below:
        base = pow(known[rows[0]], -1, modulus)
        return Found(tried, ratios=tuple(_ratio(v, base, modulus) for v in residues))
    column = pa.array([None if v is None else v.to_bytes(size, "big") for v in residues])
    values = attack.common_key(column.cast(pa.binary()), modulus.to_bytes(size, "big"))
    return Found(tried, tuple(values))


def _ratio(residue: int | None, base: int, modulus: int) -> Fraction | None:
    if not residue:
        return None if residue is None else Fraction(0)
    return reconstruct(residue * base % modulus, modulus)
