"""What is said of a scheme."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leak:
    """What a server learns: a level, a word for programs, and a sentence with ``{column}`` and
    ``{table}`` in it.
    """

    level: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme.

    ``representation`` names its stored column in the catalog; ``operations`` maps what it answers
    to what that shows; ``lengths`` is what else shows at rest of types of no fixed length;
    ``ceiling`` is the lowest ceiling under which it may be used.
    """

    name: str
    representation: str
    stored_as: str
    spec: str
    ceiling: str
    at_rest: Leak
    lengths: Leak | None
    operations: dict[str, Leak | None]
    broken_by: str
