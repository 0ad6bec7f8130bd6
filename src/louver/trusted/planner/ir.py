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
    from louver.trusted.planner.sql.values import Factor, Key, Update


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
    """The sum of operands, each brought under the common key first. No operand is a sum itself:
    key updates are linear, so a sum of sums is one sum, and each of its terms is updated once.
    """

    terms: tuple[tuple[Node, Update], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """The sign of R times a sum, in which what is subtracted carries its minus in its key."""

    random: Node
    added: Added


@dataclass(frozen=True, slots=True)
class Share:
    """The ciphertext of a constant under a key without row numbers."""

    key: Key
    factor: Factor


@dataclass(frozen=True, slots=True)
class Code:
    """What a column's codes are compared with: a constant expression of the statement, of which
    the client computes the value, and then its code.

    ``onion`` is eq, ord, ore, text, or eds for a range of a lake's files. ``sign`` is the
    comparison: for ord the code is that of the boundary which the comparison draws. ``text`` is
    DuckDB's, with ``⟪i⟫`` for the statement's i-th number; ``cast`` is the code's type on the
    server.
    """

    onion: str
    table: int
    column: int
    sign: str
    text: str
    cast: str


@dataclass(frozen=True, slots=True)
class PackedModulus:
    """The modulus under which packed sums are added."""


Node = Column | Sql | Call | Updated | Added | Compared | Share | Code | PackedModulus


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
    kept: dict[str, str]


@dataclass(frozen=True, slots=True)
class UpdateConstant:
    """A constant <p, q> of an update; q has the statement's numbers in it."""

    update: Update
    p: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant that is the same for every statement of the shape."""

    value: bytes


Bindable = UpdateConstant | Share | Fixed | Code | PackedModulus


@dataclass(frozen=True, slots=True)
class Template:
    """A printed query: its text, in which ``⟪i⟫`` stands for the i-th number of the statement, and
    what is bound to ``$1``, ``$2`` …
    """

    sql: str
    constants: tuple[Bindable, ...]

    def text(self, literals: Sequence[str]) -> str:
        """The text with the statement's own numbers put in."""
        return _MARKER.sub(lambda found: literals[int(found[1])], self.sql)


Summand = tuple[str, str, str]
"""A printed operand, the helper column that its power is of (or none), and its constant."""
_MARKER = re.compile(r"⟪(\d+)⟫")
_CHILD = re.compile(r"⟦(\d+)⟧")


class Printer:
    """Prints trees as DuckDB SQL and gathers the constants that go beside the text.

    ``powers`` gives the exponents of an update per slot. They depend on keys alone, so one
    printed query serves every statement of its shape; constants never enter the text.
    """

    def __init__(
        self,
        slots: dict[int, Slot],
        modulus: bytes,
        powers: Callable[[Update], dict[int, int]],
    ) -> None:
        self.slots = slots
        self.modulus = modulus
        self.powers = powers
        self.constants: list[Bindable] = []
        self._places: dict[Bindable, str] = {}

    def constant(self, value: Bindable) -> str:
        """The placeholder of a constant; equal constants share one."""
        place = self._places.get(value)
        if place is None:
            self.constants.append(value)
            place = self._places[value] = f"${len(self.constants)}"
        return place

    def print(self, node: Node) -> str:
        match node:
            case Column(alias, name):
                return f"{alias}.{name}" if alias else name
            case Sql(text, children):
                printed = [self.print(child) for child in children]
                return _CHILD.sub(lambda found: printed[int(found[1])], text)
            case Call(name, arguments):
                inner = [self.print(argument) for argument in arguments]
                return self._call(name, *inner)
            case Updated(operand, update):
                return self._update(operand, update)
            case Added():
                return self._added(node)
            case Compared(random, added):
                return self._compared(random, added)
            case Share():
                return self.constant(node) + "::BLOB"
            case PackedModulus():
                return self.constant(node) + "::BLOB"
            case Code():
                return f"{self.constant(node)}::{node.cast}"

    def _call(self, name: str, *arguments: str) -> str:
        return f"{name}({', '.join(arguments)}, {self.constant(Fixed(self.modulus))})"

    def _update(self, operand: Node, update: Update) -> str:
        kept = self._kept(operand, update)
        if kept is not None:
            text, constant = self._ready(operand, update, kept)
            return self._call("sdb_key_update", text, text, constant)
        text, helper, constant = self._prepared(operand, update)
        return self._call("sdb_key_update", text, helper or text, constant)

    def _added(self, node: Added) -> str:
        kept = [self._kept(operand, update) for operand, update in node.terms]
        *first, last = self._summands(node, kept)
        return self._last(self._folded(first), last)

    def _compared(self, random: Node, node: Added) -> str:
        kept = [self._kept(operand, update, random) for operand, update in node.terms]
        *first, last = self._summands(node, kept)
        total = self._folded(first)
        if None not in kept:
            return self._call("sdb_compare_kept", total[0], last[0], total[2], last[2])
        # A power of 0 leaves its helper column unread: any will do.
        helper = total[1] or last[1] or last[0]
        helpers = (helper, last[1] or helper, total[2], last[2])
        return self._call("sdb_compare_sum", self.print(random), total[0], last[0], *helpers)

    def _summands(self, node: Added, kept: list[Kept | None]) -> list[Summand]:
        """The terms of a sum: all as the server kept them, or all with S at hand."""
        found: list[Summand] = []
        for (operand, update), product in zip(node.terms, kept, strict=True):
            if product is not None and None not in kept:
                text, constant = self._ready(operand, update, product)
                found.append((text, "", constant))
            else:
                found.append(self._prepared(operand, update))
        return found

    def _folded(self, summands: list[Summand]) -> Summand:
        """All summands added up, still to be multiplied with the constant."""
        total = summands[0]
        for summand in summands[1:]:
            total = (self._last(total, summand), "", self.constant(Fixed(wire_update(0, 1))))
        return total

    def _last(self, total: Summand, last: Summand) -> str:
        """The sum of two summands."""
        if not total[1] and not last[1]:
            return self._call("sdb_linear", total[0], last[0], total[2], last[2])
        first, second = total[1] or last[1], last[1] or total[1]
        if first == second:
            return self._call("sdb_add", total[0], last[0], first, total[2], last[2])
        return self._call("sdb_add_kept", total[0], last[0], first, second, total[2], last[2])

    def _kept(self, operand: Node, update: Update, random: Node | None = None) -> Kept | None:
        """What the server has kept of an operand's update; None where that is not enough."""
        powers = self._powers(update)
        if len(powers) == 1:
            place = self.slots[powers[0][0]]
            name = place.kept.get(term_name(random, operand, powers[0][1]))
            if name is not None:
                return Kept(f"{place.alias}.{name}")
        if random is not None:
            return None
        factors = []
        for slot, p in powers:
            name = self.slots[slot].kept.get(term_name(None, None, p))
            if name is None:
                return None
            factors.append(f"{self.slots[slot].alias}.{name}")
        return Kept("", tuple(factors))

    def _ready(self, operand: Node, update: Update, kept: Kept) -> tuple[str, str]:
        """The operand with its powers (and R) multiplied in, and the constant <0, q> that is left
        to do.
        """
        printed = kept.product or self.print(operand)
        for factor in kept.factors:
            printed = self._call("sdb_mul", printed, factor)
        return printed, self.constant(UpdateConstant(update, 0))

    def _prepared(self, operand: Node, update: Update) -> Summand:
        """Operand, helper column (none where no power is left) and update constant; all powers but
        one are multiplied in beforehand (a lift to the key of a product of tables: Rule 12).
        """
        printed = self.print(operand)
        powers = self._powers(update)
        for slot, p in powers[1:]:
            exponent = self.constant(Fixed(p.to_bytes((p.bit_length() + 7) // 8, "big")))
            printed = self._call("sdb_cartprod", printed, self._ones(slot), exponent)
        if not powers:
            return printed, "", self.constant(UpdateConstant(update, 0))
        slot, p = powers[0]
        return printed, self._ones(slot), self.constant(UpdateConstant(update, p))

    def _powers(self, update: Update) -> list[tuple[int, int]]:
        return [(slot, p) for slot, p in sorted(self.powers(update).items()) if p]

    def _ones(self, slot: int) -> str:
        return f"{self.slots[slot].alias}.{self.slots[slot].ones}"


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns that the server has kept for an update: the whole product, or the powers that the
    operand is still to be multiplied with.
    """

    product: str
    factors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Term:
    """What a server may keep of one table: [R·][operand·]S^p. Without an operand it is the bare
    power; ``name`` tells terms apart.
    """

    random: Node | None
    operand: Node | None
    update: Update

    def name(self, p: int) -> str:
        """The term's name for one exponent."""
        return term_name(self.random, self.operand, p)


def term_name(random: Node | None, operand: Node | None, p: int) -> str:
    """The name of a kept term; empty, and never kept, where the operand is computed itself."""
    parts = [stored_name(node) for node in (random, operand) if node is not None]
    return "*".join([*parts, f"{p:x}"]) if all(parts) else ""


def stored_name(node: Node) -> str:
    """The columns that a product of stored columns is made of; empty for anything else."""
    if isinstance(node, Column):
        return node.name
    if isinstance(node, Call) and node.name == "sdb_mul":
        parts = [stored_name(argument) for argument in node.arguments]
        return "*".join(parts) if all(parts) else ""
    return ""


def terms_of(node: Node) -> list[Term]:
    """What a tree could use if the server kept it."""
    match node:
        case Sql(_, children) | Call(_, children):
            return [term for child in children for term in terms_of(child)]
        case Updated(operand, update):
            return [*terms_of(operand), _term(operand, update)]
        case Added(summands):
            inner = [term for operand, _ in summands for term in terms_of(operand)]
            return inner + [_term(operand, update) for operand, update in summands]
        case Compared(random, added):
            inner = [term for operand, _ in added.terms for term in terms_of(operand)]
            if all(stored_name(operand) for operand, _ in added.terms):
                return inner + [Term(random, operand, update) for operand, update in added.terms]
            return inner
        case _:
            return []


def _term(operand: Node, update: Update) -> Term:
    return Term(None, operand if stored_name(operand) else None, update)


def wire_update(p: int, q: int) -> bytes:
    """The wire form of <p, q>: version 1, then both numbers with their lengths."""
    p_bytes = p.to_bytes((p.bit_length() + 7) // 8, "big")
    q_bytes = q.to_bytes((q.bit_length() + 7) // 8, "big")
    lengths = (len(p_bytes).to_bytes(2, "big"), len(q_bytes).to_bytes(2, "big"))
    return b"".join((b"\x01", lengths[0], p_bytes, lengths[1], q_bytes))
