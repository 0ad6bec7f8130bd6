"""The common-key attack: find products of stored columns in which every row has the same key.

A ciphertext is v / (m·g^(r·x)), and a kept power of the ones is g^(−r·p·x_S) up to a factor. For
the right power the product of both has a key without r, the same for all rows, and the quotient of
two rows is the quotient of the values. The attacker need not know which power belongs to which
column: the quotients of the wrong ones are not small fractions, so all are tried.
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
    """Columns whose product, over the product of others, came under one key.

    ``above`` and ``below`` name stored columns; ``power`` is the kept power that did it.
    """

    above: tuple[str, ...]
    below: tuple[str, ...]
    power: str


@dataclass(frozen=True, slots=True)
class Found:
    """A combination and what it tells: whole numbers in the ratios of the values, by row."""

    combination: Combination
    values: tuple[int | None, ...]
    #: the same as fractions of the first row's; kept where one column stands over another
    ratios: tuple[Fraction | None, ...] = ()


def combinations(
    shares: Sequence[str], helpers: Sequence[str], powers: Sequence[str]
) -> Iterator[Combination]:
    """What is tried, the simplest first: one column (SUM, GROUP BY, joins), two columns multiplied
    (comparisons, SUM of products), one over another (sums of columns and constants).
    """
    every = [*shares, *helpers]
    for name, power in itertools.product(every, powers):
        yield Combination((name,), (), power)
    for (one, two), power in itertools.product(
        itertools.combinations_with_replacement(every, 2), powers
    ):
        yield Combination((one, two), (), power)
    for (above, below), power in itertools.product(itertools.permutations(every, 2), powers):
        yield Combination((above,), (below,), power)


def search(
    columns: Numbers,
    tried: Iterator[Combination],
    modulus: int,
    budget_s: float = 60.0,
) -> tuple[list[Found], int, bool]:
    """Every combination that has a common key; how many were tried, and whether all were."""
    deadline = time.monotonic() + budget_s
    found: list[Found] = []
    count = 0
    for combination in tried:
        if time.monotonic() > deadline:
            return found, count, False
        count += 1
        if _is_common(columns, combination, modulus):
            found.append(_opened(columns, combination, modulus))
    return found, count, True


def _is_common(columns: Numbers, tried: Combination, modulus: int) -> bool:
    """Two quotients of rows that are small beyond chance settle it."""
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
    names = (*tried.above, *tried.below, tried.power)
    count = len(columns[tried.power])
    return (row for row in range(count) if all(columns[name][row] > 0 for name in names))


def _product(columns: Numbers, tried: Combination, row: int, modulus: int) -> tuple[int, int]:
    above = columns[tried.power][row]
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
    for row in range(len(columns[tried.power])):
        zero = any(columns[name][row] == 0 for name in tried.above)
        residues.append(0 if zero else known.get(row))
    column = pa.array([None if v is None else v.to_bytes(size, "big") for v in residues])
    values = tuple(attack.common_key(column.cast(pa.binary()), modulus.to_bytes(size, "big")))
    if not tried.below:
        return Found(tried, values)
    base = pow(known[rows[0]], -1, modulus)
    ratios = [None if not v else reconstruct(v * base % modulus, modulus) for v in residues]
    return Found(tried, values, tuple(ratios))
