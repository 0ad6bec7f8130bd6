"""The levels of what a server may end up knowing of a column, lowest first."""

from __future__ import annotations

LEVELS = ("size", "access", "equality", "order", "plaintext")


def allows(ceiling: str, level: str) -> bool:
    """Whether a column with this ceiling may reveal this level."""
    return LEVELS.index(level) <= LEVELS.index(ceiling)


def highest(levels: list[str]) -> str:
    """The highest of some levels; ``size`` where there are none."""
    return max(levels, key=LEVELS.index, default="size")
