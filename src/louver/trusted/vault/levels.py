"""Leakage levels: what a server may learn about a column, lowest first."""

from __future__ import annotations

LEVELS = ("size", "access", "equality", "order", "plaintext")


def allows(ceiling: str, level: str) -> bool:
    """Whether a column with this ceiling may reveal this level."""
    return LEVELS.index(level) <= LEVELS.index(ceiling)


def highest(levels: list[str]) -> str:
    """The highest of some levels; ``size`` if there are none."""
    return max(levels, key=LEVELS.index, default="size")
