"""A sequence as a local engine describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SequenceState:
    """A sequence: how it is declared, and the last value that was drawn of it."""

    schema: str
    name: str
    temporary: bool
    start: int
    increment: int
    low: int
    high: int
    cycle: bool
    last: int | None
    sql: str
