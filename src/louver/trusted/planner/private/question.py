"""A private question: what the providers learn, what stays local, how the answer is computed.

The public part is a `Shape`; the private part is a list of `Clause`, one of which a row must match
(Splinter, section 4). A `Shape` and `finish` never contain a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from louver.wire.questions import Shape

PARTIALS = "louver_partials"
"""The table over which `finish` runs."""
MERGED = "m"
"""The alias in `finish` for the partial results merged over all parts."""


class Condition(StrEnum):
    """The class of a condition (Splinter, section 5.1)."""

    SINGLE = "single"
    INTERVAL = "interval"
    DISJOINT = "disjoint"


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A constant that no provider learns.

    The local engine evaluates ``SELECT {sql}`` with ``parameters`` bound to ``$1``, ``$2``, … to
    one value of the type of the compared expression, already rounded for the comparison
    (``x < 5.5`` over integers has the end 5). NULL means that the clause matches nothing, so that a
    dummy replaces it.
    """

    sql: str
    parameters: tuple[object, ...] = ()

    def __repr__(self) -> str:
        return "Secret(...)"


@dataclass(frozen=True, slots=True)
class End:
    """One end of an interval. Only ends of strings can be exclusive."""

    secret: Secret
    inclusive: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of the condition: all equalities, and the interval if there is one.

    ``equals`` are in the order of ``Shape.equal``; an end that is None is open. A clause may be
    empty (low above high), and clauses may overlap: the executor merges them and adds dummies, so
    that their number stays the public one.
    """

    equals: tuple[Secret, ...] = ()
    low: End | None = None
    high: End | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to answer the same question with the same clauses."""

    shape: Shape
    finish: str


@dataclass(frozen=True, slots=True)
class Question:
    """A planned question.

    Attributes:
        shape: what the providers receive, with the protocol that suits the condition.
        alternatives: other shapes; cost decides once the sizes are known.
        clauses: the private part; one without secrets if nothing is private.
        finish: SQL over the table `louver_partials`, which contains the opened rows of all
            clauses and nodes. Every `Partial` is one column ``p<i>`` in its order (an arg_max comes
            after the max of its second argument), groups are ``g<i>``; rows have ``c<i>``,
            ``o<i>`` and ``position``.
        names: the names of the answer's columns, as DuckDB prints them.
        types: their DuckDB types.
        private: a description of what no provider learns.
        public: a description of what every provider learns.
        condition: its class.
        tables: the tables that are read.
    """

    shape: Shape
    alternatives: tuple[Alternative, ...]
    clauses: tuple[Clause, ...]
    finish: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    private: tuple[str, ...]
    public: tuple[str, ...]
    condition: Condition
    tables: tuple[str, ...] = ()
