"""What an expression of a query is to the planner: secret-shared, plain, or a constant.

Keys are symbols here. The planner knows which column keys an expression's key is made of; the
numbers behind them stay in the vault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from louver.trusted.planner.ir import Column, Factor, Node, Opening, Sql
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.scheme import Answer, answering


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """A bare column of which the server holds codes, masked sums or tokens.

    ``stored`` names the server's columns by representation; ``low`` and ``bits`` are the domain
    of its order codes, of which ``coarse`` low bits are left out; ``nullable`` tells whether a
    NULL may be among its values.
    """

    slot: int
    table: int
    column: int
    alias: str
    type: str
    domain: str
    group: str
    stored: tuple[tuple[str, str], ...]
    low: int
    bits: int
    nullable: bool
    coarse: int = 0
    when: Node | None = None

    def has(self, representation: str) -> bool:
        return any(name == representation for name, _ in self.stored)

    def answers(self, operation: str) -> tuple[str, Answer] | None:
        """The representation that answers an operation, and how; None where there is none."""
        return next((pair for pair in answering(operation) if self.has(pair[0])), None)

    def node(self, representation: str) -> Node:
        """The server's column of a representation."""
        return self.counted(Column(self.alias, dict(self.stored)[representation]))

    def counted(self, node: Node) -> Node:
        """A column of the same rows, NULL where the condition is not met."""
        return node if self.when is None else when(self.when, node)


def when(condition: Node, value: Node) -> Node:
    """A value where a condition is met, else NULL."""
    return Sql("CASE WHEN ⟦0⟧ THEN ⟦1⟧ END", (condition, value))


@dataclass(frozen=True, slots=True)
class Constant:
    """A number written in the statement, or bound to a parameter.

    ``low`` and ``high`` bound every value of its literal class, which is what a cached plan may
    meet; ``value`` is the one of this statement.
    """

    value: int
    scale: int
    type: str
    factor: Factor
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class GroupRepresentative:
    """A sealed column of one chosen row per group: ``node`` is its ciphertext, ``row`` the number
    of the row that it is bound to.
    """

    node: Node
    row: Node
    slot: int
    column: int
    type: str


@dataclass(frozen=True, slots=True)
class Raw:
    """A column of the answer that the client needs to open another one."""

    node: Node
    type: str = "BLOB"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition that the server can decide; if it is not ``exact``, some rows pass that must
    not, and none that must is lost. ``raises`` tells that it may be an error for some rows.
    """

    node: Node
    secret: bool
    exact: bool = True
    raises: bool = False


@dataclass(slots=True)
class PlanEffects:
    """What the rules ask for while they rewrite: layers to be open, and leaks."""

    leaks: list[Fact] = field(default_factory=list)
    opens: list[Opening] = field(default_factory=list)

    def mark(self) -> tuple[int, int]:
        """Where things stand, for `undo`."""
        return len(self.leaks), len(self.opens)

    def undo(self, mark: tuple[int, int]) -> None:
        """Forget what was noted since `mark`: what asked for it is not done after all."""
        del self.leaks[mark[0] :]
        del self.opens[mark[1] :]

    def open(self, opening: Opening) -> None:
        if opening not in self.opens:
            self.opens.append(opening)

    def leak(self, entry: Fact) -> None:
        if entry not in self.leaks:
            self.leaks.append(entry)
