"""The server's side of an expression as a small tree, and its printing.

A tree is printed only when the vault has turned the key symbols of its updates into numbers,
because what is printed depends on them: an update whose power of S is kept on the server costs a
product, one whose power is 0 nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from louver.trusted.planner.values import Factor, Key, Update


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column of one table occurrence."""

    alias: str
    name: str


@dataclass(frozen=True, slots=True)
class Sql:
    """Native SQL; ``⟪i⟫`` stands for the i-th number of the statement, ``⟦i⟧`` for a child."""

    text: str
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A server function whose last argument, the modulus, is added when printed."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Updated:
    """The operand brought under another key."""

    operand: Node
    update: Update


@dataclass(frozen=True, slots=True)
class Added:
    """The sum of two operands, each brought under the common key first."""

    left: Node
    left_update: Update
    right: Node
    right_update: Update


@dataclass(frozen=True, slots=True)
class Compared:
    """The sign of R·(left + right), the right operand carrying its minus in its key."""

    random: Node
    added: Added


@dataclass(frozen=True, slots=True)
class Share:
    """The ciphertext of a constant under a key without row numbers."""

    key: Key
    factor: Factor


Node = Column | Sql | Call | Updated | Added | Compared | Share


@dataclass(frozen=True, slots=True)
class Numbers:
    """An update as the server gets it: the factor q and, per slot, the exponent p of S."""

    factor: int
    powers: dict[int, int]


@dataclass(slots=True)
class Slot:
    """One table occurrence as the printer needs it."""

    alias: str
    ones: str
    kept: dict[int, str]


class Printer:
    """Prints trees as DuckDB SQL and gathers the constants that go beside the text.

    ``resolve`` turns an update into numbers, ``share`` a constant into a ciphertext; both are
    the vault's. Constants never enter the text: they are bound as ``$1``, ``$2`` …
    """

    def __init__(
        self,
        slots: dict[int, Slot],
        literals: Sequence[str],
        modulus: bytes,
        resolve: Callable[[Update], Numbers],
        share: Callable[[Share], bytes],
    ) -> None:
        self.slots = slots
        self.literals = literals
        self.modulus = modulus
        self.resolve = resolve
        self.share = share
        self.constants: list[bytes] = []
        self._places: dict[bytes, str] = {}

    def constant(self, value: bytes) -> str:
        """The placeholder of a constant; equal constants share one."""
        place = self._places.get(value)
        if place is None:
            self.constants.append(value)
            place = self._places[value] = f"${len(self.constants)}"
        return place

    def text(self, sql: str) -> str:
        """Native SQL with the statement's own numbers put in."""
        return re.sub(r"⟪(\d+)⟫", lambda found: self.literals[int(found[1])], sql)

    def print(self, node: Node) -> str:
        match node:
            case Column(alias, name):
                return f"{alias}.{name}" if alias else name
            case Sql(text, children):
                printed = [self.print(child) for child in children]
                text = self.text(text)
                return re.sub(r"⟦(\d+)⟧", lambda found: printed[int(found[1])], text)
            case Call(name, arguments):
                inner = [self.print(argument) for argument in arguments]
                return self._call(name, *inner)
            case Updated(operand, update):
                return self._update(operand, update)
            case Added():
                return self._added("sdb_add", node, ())
            case Compared(random, added):
                return self._added("sdb_compare_sum", added, (self.print(random),))
            case Share():
                return self.constant(self.share(node)) + "::BLOB"

    def _call(self, name: str, *arguments: str) -> str:
        return f"{name}({', '.join(arguments)}, {self.constant(self.modulus)})"

    def _update(self, operand: Node, update: Update) -> str:
        inner, helper, constant = self._prepared(operand, update)
        if helper is None:
            one = _wire(0, self.resolve(update).factor)
            return self._call("sdb_key_update", inner, inner, self.constant(one))
        return self._call("sdb_key_update", inner, helper, constant)

    def _added(self, name: str, node: Added, before: tuple[str, ...]) -> str:
        left, left_helper, left_k = self._prepared(node.left, node.left_update)
        right, right_helper, right_k = self._prepared(node.right, node.right_update)
        left_helper, right_helper = left_helper or left, right_helper or right
        if name == "sdb_add" and left_helper == right_helper:
            return self._call(name, left, right, left_helper, left_k, right_k)
        name = "sdb_add_kept" if name == "sdb_add" else name
        return self._call(name, *before, left, right, left_helper, right_helper, left_k, right_k)

    def _prepared(self, operand: Node, update: Update) -> tuple[str, str | None, str]:
        """Operand, helper column and update constant; all powers but one are multiplied in
        beforehand (a lift to the key of a product of tables: Rule 12).
        """
        numbers = self.resolve(update)
        printed = self.print(operand)
        powers = [(slot, p) for slot, p in sorted(numbers.powers.items()) if p]
        for slot, p in powers[1:]:
            helper, exponent = self._helper(slot, p)
            exponent_bytes = exponent.to_bytes((exponent.bit_length() + 7) // 8, "big")
            printed = self._call("sdb_cartprod", printed, helper, self.constant(exponent_bytes))
        if not powers:
            return printed, None, self.constant(_wire(0, numbers.factor))
        helper, exponent = self._helper(*powers[0])
        return printed, helper, self.constant(_wire(exponent, numbers.factor))

    def _helper(self, slot: int, p: int) -> tuple[str, int]:
        """The kept power of S and exponent 1, or S itself and the exponent."""
        place = self.slots[slot]
        kept = place.kept.get(p)
        if kept is not None:
            return f"{place.alias}.{kept}", 1
        return f"{place.alias}.{place.ones}", p


def _wire(p: int, q: int) -> bytes:
    """The wire form of <p, q>: version 1, then both numbers with their lengths."""
    p_bytes = p.to_bytes((p.bit_length() + 7) // 8, "big")
    q_bytes = q.to_bytes((q.bit_length() + 7) // 8, "big")
    return b"".join(
        (
            b"\x01",
            len(p_bytes).to_bytes(2, "big"),
            p_bytes,
            len(q_bytes).to_bytes(2, "big"),
            q_bytes,
        )
    )


def updates_of(node: Node) -> list[Update]:
    """Every update in a tree, in the order of printing."""
    match node:
        case Sql(_, children) | Call(_, children):
            return [update for child in children for update in updates_of(child)]
        case Updated(operand, update):
            return [*updates_of(operand), update]
        case Added(left, left_update, right, right_update):
            return [*updates_of(left), *updates_of(right), left_update, right_update]
        case Compared(random, added):
            return [*updates_of(random), *updates_of(added)]
        case _:
            return []
