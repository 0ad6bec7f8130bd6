"""The small public numbers of an `Ask`, for steps of a search that need some.

Without any, the shares of a search select rows by their index. All numbers are public: they depend
only on the shape, the number of rows and the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louver import errors

COUNT = 0
"""Count the matching rows within the range of rows that a prefix of the index denotes."""
SAMPLE = 1
"""Sample the matching rows into small tables, by a hash (paper, appendix A)."""
MAX_SLOTS = 1 << 16
MAX_SEEDS = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """How rows are sampled: slots of each table, and a 64-bit seed for each table."""

    slots: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchForm:
    """A step of a search: bits of the index before each share's code; how rows are sampled."""

    prefix_bits: tuple[int, ...]
    sample: Sample | None = None


def count_form(prefix_bits: Sequence[int]) -> tuple[int, ...]:
    """The form of a counting step: for each share, the number of leading index bits it covers."""
    return (COUNT, *prefix_bits)


def sample_form(slots: int, seeds: Sequence[int], prefix_bits: Sequence[int]) -> tuple[int, ...]:
    """The form of a sampling step."""
    return (SAMPLE, slots, len(seeds), *seeds, *prefix_bits)


def read_form(form: Sequence[int], shares: int) -> SearchForm:
    """Decode a form for `shares` shares.

    Raises:
        errors.Error: `provider.share` for any other form.
    """
    kind, *rest = form or (None,)
    if kind == COUNT and len(rest) == shares:
        return SearchForm(tuple(rest))
    if kind == SAMPLE and len(rest) >= 2:
        slots, seeds = rest[0], rest[1]
        fits = 1 <= slots <= MAX_SLOTS and 1 <= seeds <= MAX_SEEDS
        if fits and len(rest) == 2 + seeds + shares:
            sample = Sample(slots, tuple(rest[2 : 2 + seeds]))
            return SearchForm(tuple(rest[2 + seeds :]), sample)
    raise errors.make("provider.share", detail="the form of its step is unknown")
