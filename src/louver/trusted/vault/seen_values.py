"""The list of distinct values seen in a column: its limit, and its form of fixed length."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

MOST_SEEN = 32
"""The most distinct values counted in a column."""
MANY = "*"
"""The entry that replaces a longer list."""
_DIGITS = 15


def padded(marks: Sequence[str], seed: int) -> list[str]:
    """The list, padded to a fixed number of marks; otherwise its length would reveal new values.

    ``seed`` is the column's id: the padding of one column is always the same.
    """
    known = [f"{MANY}{'0' * _DIGITS}"] if list(marks) == [MANY] else list(marks)
    digits = hashlib.shake_256(str(seed).encode()).hexdigest(8 * MOST_SEEN)
    spare = range(0, 16 * (MOST_SEEN - len(known)), 16)
    return [*known, *("-" + digits[at : at + _DIGITS] for at in spare)]


def unpadded(marks: Sequence[str]) -> list[str]:
    """The list of `padded`."""
    if any(mark.startswith(MANY) for mark in marks):
        return [MANY]
    return [mark for mark in marks if not mark.startswith("-")]
