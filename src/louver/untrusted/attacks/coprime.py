"""Further conclusions from common-key products: dividing out the random helper; coprime pairs.

A comparison leaves R·A, R·B or R·1 under common keys. R·A over R·1 is A. R·A over R·B is A/B, a
fraction in lowest terms, which shows both values at once if they have no common divisor.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from louver.untrusted.attacks.attribution import RANDOM
from louver.untrusted.attacks.common_key import Found
from louver.untrusted.attacks.rational import primitive

Values = Mapping[str, Sequence[int | None]]
_LEAST_ROWS = 3
_SUM = "sum with a constant"


@dataclass(frozen=True, slots=True)
class Recovered:
    """Values of one stored column, in their ratios or exact up to sign, and by which attack.

    ``exact`` values are those of coprime pairs; the others hold up to one common factor.
    """

    column: str
    how: str
    values: tuple[int | None, ...]
    exact: bool = False


def conclude(products: Sequence[Found], shares: Sequence[str]) -> list[Recovered]:
    """Every data column that the attributed combinations reveal."""
    recovered: list[Recovered] = []
    for product in products:
        match product.combination.above, product.combination.below:
            case (column,), () if column in shares:
                recovered.append(Recovered(column, "common key", product.values))
            case (column,), (below,) if column in shares and below in shares:
                recovered += _sums(column, below, product.ratios)
            case (column,), (_,) if column in shares:
                recovered.append(Recovered(column, _SUM, tuple(primitive(product.ratios))))
            case (), (column,) if column in shares:
                recovered.append(Recovered(column, _SUM, _inverted(product)))
    recovered += _comparisons(products)
    return recovered + _chained(products, shares, recovered)


def _chained(
    products: Sequence[Found], shares: Sequence[str], recovered: Sequence[Recovered]
) -> list[Recovered]:
    """Updates compose: from a product or quotient with one known column the other follows, and so
    on; the random helper is a column like any other.
    """
    known = {entry.column: entry.values for entry in recovered if not entry.exact}
    for alone in products:
        if len(alone.combination.above) == 1 and not alone.combination.below:
            known.setdefault(alone.combination.above[0], alone.values)
    fresh: list[Recovered] = []
    while True:
        before = len(known)
        for product in products:
            for column, values in _further(product, known):
                known[column] = values
                if column in shares:
                    how = "combination with a column that was opened"
                    fresh.append(Recovered(column, how, values))
        if len(known) == before:
            return fresh


def _inverted(product: Found) -> tuple[int | None, ...]:
    return tuple(primitive(1 / ratio if ratio else None for ratio in product.ratios))


def _further(product: Found, known: Values) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """What one combination reveals of a column that is not known yet."""
    match product.combination.above, product.combination.below:
        case (left, right), () if left != right:
            for column, other in ((left, right), (right, left)):
                if other in known and column not in known:
                    yield column, tuple(primitive(_quotients(product.values, known[other])))
        case (left,), (right,):
            pairs = list(zip(product.ratios, known.get(left, ()), strict=False))
            if pairs and right not in known:
                yield (
                    right,
                    tuple(primitive(None if not r or v is None else v / r for r, v in pairs)),
                )
            pairs = list(zip(product.ratios, known.get(right, ()), strict=False))
            if pairs and left not in known:
                yield (
                    left,
                    tuple(primitive(None if r is None or v is None else v * r for r, v in pairs)),
                )


def _comparisons(products: Sequence[Found]) -> list[Recovered]:
    """Products blinded by the random helper, divided by each other."""
    recovered: list[Recovered] = []
    plain = [product for product in products if not product.combination.below]
    blinded = {product.combination.above: product.values for product in plain}
    alone = blinded.get((RANDOM,))
    mine = {
        above[0]: values
        for above, values in blinded.items()
        if len(above) == 2 and above[1] == RANDOM
    }
    for name, values in mine.items():
        if alone is not None:
            quotients = tuple(primitive(_quotients(values, alone)))
            recovered.append(Recovered(name, "comparison with a constant", quotients))
    for left, right in itertools.combinations(mine, 2):
        fractions = _quotients(mine[left], mine[right])
        recovered += _split(left, right, fractions, "coprime pairs of a comparison")
    return recovered


def _quotients(above: Sequence[int | None], below: Sequence[int | None]) -> list[Fraction | None]:
    # 0 over 0 reveals nothing: the other factor may be anything.
    return [
        None if a is None or not b else Fraction(a, b) for a, b in zip(above, below, strict=True)
    ]


def _sums(left: str, right: str, ratios: Sequence[Fraction | None]) -> list[Recovered]:
    """From (aᵢ/bᵢ)·(b₀/a₀): what numerators share pairwise is usually b₀, and denominators a₀;
    without these each row is aᵢ/bᵢ.
    """
    some = [ratio for ratio in ratios if ratio]
    if len(some) < _LEAST_ROWS:
        return []
    first = Fraction(
        _most_common_divisor([abs(ratio.numerator) for ratio in some]),
        _most_common_divisor([ratio.denominator for ratio in some]),
    )
    quotients = [None if ratio is None else ratio / first for ratio in ratios]
    return _split(left, right, quotients, "coprime pairs of a sum")


def _most_common_divisor(numbers: Sequence[int]) -> int:
    pairs = itertools.pairwise(numbers)
    return Counter(math.gcd(entry, two) for entry, two in pairs).most_common(1)[0][0]


def _split(
    left: str, right: str, quotients: Sequence[Fraction | None], how: str
) -> list[Recovered]:
    above = tuple(None if q is None else q.numerator for q in quotients)
    below = tuple(None if q is None else q.denominator for q in quotients)
    return [Recovered(left, how, above, True), Recovered(right, how, below, True)]
