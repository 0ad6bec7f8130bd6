"""What is said of a scheme, and every sentence of leakage that there is.

A scheme's row is the one place of its sentences: the planner, the ledger, EXPLAIN and the docs
find them here by name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leak:
    """What a server learns: a level, a name for programs, and a sentence with ``{column}`` and
    ``{table}`` in it.

    The name is the kind of fact, and after a slash which of its sentences. ``counted`` tells that
    each further condition shows more, because it divides the rows anew: these are counted.
    """

    level: str
    name: str
    text: str
    counted: bool = False

    @property
    def kind(self) -> str:
        """A word for programs."""
        return self.name.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One scheme.

    ``representation`` names its stored column in the catalog; ``operations`` maps what it answers
    to what that shows; ``lengths`` is what else shows at rest of types of no fixed length;
    ``ceiling`` is the lowest ceiling under which it may be used; ``more`` are sentences that say
    the same of special columns.
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
    more: tuple[Leak, ...] = ()

    def leaks(self) -> list[Leak]:
        """All that the row says, each once."""
        said = (self.at_rest, self.lengths, *self.operations.values(), *self.more)
        return list(dict.fromkeys(leak for leak in said if leak is not None))


#: What every scheme shows whose values are read, or added up, row by row.
ROWS = Leak(
    "access",
    "rows",
    "the server can tell which rows of {table} a query read ({column})",
    counted=True,
)

_LEAKS: dict[str, Leak] = {}


def publish(scheme: Scheme) -> None:
    """Make the sentences of a row known by their names."""
    for leak in scheme.leaks():
        if _LEAKS.setdefault(leak.name, leak) != leak:
            raise ValueError(f"two sentences are called {leak.name}")


def leak(name: str) -> Leak:
    """The sentence of this name."""
    return _LEAKS[name]
