"""Rational reconstruction: from a quotient modulo n to the two small numbers it is made of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

#: A random residue is a quotient of two numbers this short only with a probability of 2^-128.
SURPLUS_BITS = 128


def reconstruct(residue: int, modulus: int) -> Fraction | None:
    """The fraction a/b with a = b·residue modulo n that is small beyond chance, or None.

    The remainders of Euclid's algorithm on (n, residue) contain it, where they are first below √n;
    numerator and denominator may differ in size, so the shortest of the pairs is taken.
    """
    most_bits = modulus.bit_length() - SURPLUS_BITS
    old, new = modulus, residue % modulus
    old_factor, factor = 0, 1
    best: Fraction | None = None
    best_bits = most_bits
    while new:
        bits = new.bit_length() + factor.bit_length()
        if bits < best_bits:
            best, best_bits = Fraction(new, factor), bits
        elif best is not None:
            break
        quotient = old // new
        old, new = new, old - quotient * new
        old_factor, factor = factor, old_factor - quotient * factor
    return best


def invert_all(values: Sequence[int], modulus: int) -> list[int]:
    """The inverses of many values at the cost of one inversion."""
    running = [1]
    for value in values:
        running.append(running[-1] * value % modulus)
    inverse = pow(running[-1], -1, modulus)
    inverses = [0] * len(values)
    for position in range(len(values) - 1, -1, -1):
        inverses[position] = inverse * running[position] % modulus
        inverse = inverse * values[position] % modulus
    return inverses


def primitive(values: Iterable[Fraction | None]) -> list[int | None]:
    """Fractions as whole numbers in the same ratios, in lowest terms."""
    listed = list(values)
    some = [value for value in listed if value]
    denominator = math.lcm(*(value.denominator for value in some))
    whole = [None if value is None else int(value * denominator) for value in listed]
    divisor = math.gcd(*(value for value in whole if value))
    return [None if v is None else v // divisor if divisor else v for v in whole]


def jacobi(value: int, modulus: int) -> int:
    """The Jacobi symbol: 1, -1, or 0 if the two share a factor."""
    value %= modulus
    sign = 1
    while value:
        twos = (value & -value).bit_length() - 1
        value >>= twos
        if twos & 1 and modulus & 7 in (3, 5):
            sign = -sign
        if value & 3 == 3 and modulus & 3 == 3:
            sign = -sign
        value, modulus = modulus % value, value
    return sign if modulus == 1 else 0
