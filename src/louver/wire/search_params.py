"""The small public numbers of an `Ask`, where a step of a search needs some.

Without any, the shares of a search select rows by their index. All numbers are public: they follow
from the shape, the number of rows and the round alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louver import errors

COUNT = 0
"""Count the rows that match, within the run of rows that a prefix of the index names."""
SAMPLE = 1
"""Gather the rows that match in small tables, by a hash (paper, appendix A)."""
MAX_SLOTS = 1 << 16
MAX_SEEDS = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """How rows are gathered: slots of each table, a seed of 64 bits for each table."""

    slots: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchForm:
    """A step of a search: bits of the index before each share's code; how rows are gathered."""

    prefix_bits: tuple[int, ...]
    sample: Sample | None = None


def count_form(prefix_bits: Sequence[int]) -> tuple[int, ...]:
    """The form of a counting step: for each share, how many first bits of the index it is over."""
    return (COUNT, *prefix_bits)


def sample_form(slots: int, seeds: Sequence[int], prefix_bits: Sequence[int]) -> tuple[int, ...]:
    """The form of a gathering step."""
    return (SAMPLE, slots, len(seeds), *seeds, *prefix_bits)


def read_form(form: Sequence[int], shares: int) -> SearchForm:
    """What a form says of `shares` shares; `provider.share` if it says nothing.

    Raises:
        errors.Error: `provider.share`.
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
