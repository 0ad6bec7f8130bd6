"""The printer of remote expressions: trees to the SQL of a backend.

A tree is printed only when the vault has turned the key symbols of its updates into numbers,
because what is printed depends on them: an update whose power of S is kept on the server costs a
product, one whose power is 0 nothing at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from louver.trusted.backends.backend import Backend
from louver.trusted.planner.ir import (
    Added,
    Bindable,
    Call,
    Code,
    Column,
    Compared,
    Fixed,
    Node,
    Public,
    Share,
    Slot,
    Sql,
    Tag,
    Update,
    UpdateConstant,
    Updated,
    term_name,
    wire_update,
)
from louver.trusted.vault.stored_types import BYTES

Summand = tuple[str, str, str]
"""A printed operand, the helper column that its power is of (or none), and its constant."""
_CHILD = re.compile(r"⟦(\d+)⟧")


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns that the server has kept for an update: the whole product, or the powers that the
    operand is still to be multiplied with.
    """

    product: str
    factors: tuple[str, ...] = ()


class Printer:
    """Prints trees in the SQL of a backend and gathers the constants that go beside the text.

    ``powers`` gives the exponents of an update per slot. They depend on keys alone, so one
    printed query serves every statement of its shape; constants never enter the text.
    """

    def __init__(
        self,
        backend: Backend,
        slots: dict[int, Slot],
        modulus: bytes,
        powers: Callable[[Update], dict[int, int]],
    ) -> None:
        self.backend = backend
        self.slots = slots
        self.modulus = modulus
        self.powers = powers
        self.constants: list[Bindable] = []
        self._places: dict[Bindable, str] = {}

    def constant(self, value: Bindable) -> str:
        """The placeholder of a constant; equal constants share one."""
        placeholder = self._places.get(value)
        if placeholder is None:
            self.constants.append(value)
            placeholder = self._places[value] = f"${len(self.constants)}"
        return placeholder

    def print(self, node: Node) -> str:
        match node:
            case Column(alias, name):
                return f"{alias}.{name}" if alias else name
            case Sql(text, children):
                printed = [self.print(child) for child in children]
                return _CHILD.sub(lambda match: printed[int(match[1])], text)
            case Call(name, arguments):
                inner = [self.print(argument) for argument in arguments]
                return self._call(name, *inner)
            case Updated(operand, update):
                return self._update(operand, update)
            case Added():
                return self._added(node)
            case Compared(random, added):
                return self._compared(random, added)
            case Share() | Public():
                return self.backend.cast(self.constant(node), BYTES)
            case Code():
                return self.backend.cast(self.constant(node), node.stored)
            case Tag():
                return self.backend.cast(self.constant(node), node.stored)

    def _call(self, name: str, *arguments: str) -> str:
        return f"{name}({', '.join(arguments)}, {self.constant(Fixed(self.modulus))})"

    def _update(self, operand: Node, update: Update) -> str:
        stored = self._kept(operand, update)
        if stored is not None:
            text, constant = self._ready(operand, update, stored)
            return self._call("sdb_key_update", text, text, constant)
        text, helper, constant = self._prepared(operand, update)
        return self._call("sdb_key_update", text, helper or text, constant)

    def _added(self, node: Added) -> str:
        stored = [self._kept(operand, update) for operand, update in node.terms]
        *first, last = self._summands(node, stored)
        return self._last(self._folded(first), last)

    def _compared(self, random: Node, node: Added) -> str:
        stored = [self._kept(operand, update, random) for operand, update in node.terms]
        *first, last = self._summands(node, stored)
        total = self._folded(first)
        if None not in stored:
            return self._call("sdb_compare_kept", total[0], last[0], total[2], last[2])
        # A power of 0 leaves its helper column unread: any will do.
        helper = total[1] or last[1] or last[0]
        helpers = (helper, last[1] or helper, total[2], last[2])
        return self._call("sdb_compare_sum", self.print(random), total[0], last[0], *helpers)

    def _summands(self, node: Added, stored: list[Kept | None]) -> list[Summand]:
        """The terms of a sum: all as the server kept them, or all with S at hand."""
        summands: list[Summand] = []
        for (operand, update), product in zip(node.terms, stored, strict=True):
            if product is not None and None not in stored:
                text, constant = self._ready(operand, update, product)
                summands.append((text, "", constant))
            else:
                summands.append(self._prepared(operand, update))
        return summands

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
            position = self.slots[powers[0][0]]
            name = position.materialized.get(term_name(random, operand, powers[0][1]))
            if name is not None:
                return Kept(f"{position.alias}.{name}")
        if random is not None:
            return None
        factors = []
        for slot, p in powers:
            name = self.slots[slot].materialized.get(term_name(None, None, p))
            if name is None:
                return None
            factors.append(f"{self.slots[slot].alias}.{name}")
        return Kept("", tuple(factors))

    def _ready(self, operand: Node, update: Update, stored: Kept) -> tuple[str, str]:
        """The operand with its powers (and R) multiplied in, and the constant <0, q> that is left
        to do.
        """
        printed = stored.product or self.print(operand)
        for factor in stored.factors:
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
