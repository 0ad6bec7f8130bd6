"""The server's side of an expression as a small tree, and a printed query with its constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from louver.trusted.vault.stored_types import WIDE_CODE


@dataclass(frozen=True, slots=True)
class Key:
    """A column key <m, x> as a formula.

    ``op`` is one of: ``column`` (table id, column id, generation, slot), ``ones`` and ``random``
    (table id, generation, slot), ``plain`` (), ``multiply`` (keys), ``sum_target`` (label, keys),
    ``common_target`` (label), ``compare_target`` (the key of R).
    """

    op: str
    args: tuple[Key | int | str, ...] = ()

    def columns(self) -> set[tuple[int, int]]:
        """The tables and columns, by id, whose keys are part of it."""
        if self.op == "column":
            table, column, *_ = (arg for arg in self.args if isinstance(arg, int))
            return {(table, column)}
        inner = (arg.columns() for arg in self.args if isinstance(arg, Key))
        return set().union(*inner)


PLAIN_KEY = Key("plain")


@dataclass(frozen=True, slots=True)
class Factor:
    """A constant by which a value is multiplied without touching its ciphertext (EC mode).

    ``literals`` are places of numbers in the statement, so that one plan serves all statements
    of a shape; ``number`` is what is fixed.
    """

    number: int = 1
    literals: tuple[LiteralValue, ...] = ()

    def times(self, other: Factor) -> Factor:
        return Factor(self.number * other.number, self.literals + other.literals)


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """The unscaled value of the ``index``-th number of the statement, times 10^``shift``."""

    index: int
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    """One key update: source key (with its constant factor) to target key."""

    source: Key
    factor: Factor
    target: Key


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column of one table occurrence."""

    alias: str
    name: str


@dataclass(frozen=True, slots=True)
class Sql:
    """SQL of the server's engine; ``⟪i⟫`` stands for the i-th number of the statement, ``⟦i⟧`` for
    a child.
    """

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

    ``onion`` is the representation that is asked. ``sign`` is the
    comparison: for ord the code is that of the boundary which the comparison draws. ``text`` is
    the local engine's, with ``⟪i⟫`` for the statement's i-th number; ``stored`` is the code's type
    (`vault.stored_types`). A code of several columns together is that of the first, and ``more``
    are the others. A ``bound`` one is a parameter alone, in a language in which that has the type
    of the column: there it must be of its range.
    """

    onion: str
    table: int
    column: int
    sign: str
    text: str
    stored: str
    more: tuple[Code, ...] = ()
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Public:
    """The public number of a scheme, such as the modulus under which its values are added."""

    scheme: str


@dataclass(frozen=True, slots=True)
class Tag:
    """The ``index``-th of the tags of keys (spec/key.md), or codes, that a read is given beside its
    text; ``stored`` is its type (`vault.stored_types`).
    """

    index: int
    stored: str = WIDE_CODE


Node = Column | Sql | Call | Updated | Added | Compared | Share | Code | Public | Tag


@dataclass(frozen=True, slots=True)
class Numbers:
    """An update as the server gets it: the factor q and, per slot, the exponent p of S."""

    factor: int
    powers: dict[int, int]


@dataclass(slots=True)
class Slot:
    """One table occurrence as the printer needs it: its alias in the text, its table's name on the
    server, the server's columns of S and of the products with its powers.
    """

    alias: str
    name: str
    ones: str
    materialized: dict[str, str]


@dataclass(frozen=True, slots=True)
class UpdateConstant:
    """A constant <p, q> of an update; q has the statement's numbers in it."""

    update: Update
    p: int


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant that is the same for every statement of the shape."""

    value: bytes


@dataclass(frozen=True, slots=True)
class SharedExpr:
    """An expression whose value the server holds as a share.

    ``low`` and ``high`` bound the unscaled value *including* the factor; ``scale`` is the
    decimal scale; ``type`` is DuckDB's type of the expression; ``slots`` are the table
    occurrences whose row numbers the item key needs; ``single`` is (table id, column id) where
    the expression is a bare column.
    """

    node: Node
    key: Key
    factor: Factor
    low: int
    high: int
    scale: int
    type: str
    slots: frozenset[int] = frozenset()
    columns: frozenset[tuple[int, int]] = frozenset()
    single: bool = False


@dataclass(frozen=True, slots=True)
class Summed:
    """A sum of values under a scheme: what is opened (`scheme.TOTAL`, `scheme.COUNT`), and the
    server's columns that the scheme opens it from, by their names there. ``names_rows`` tells that
    one of these grows with the rows that were added.
    """

    scheme: str
    what: str
    parts: tuple[tuple[str, Node], ...]
    slot: int
    column: int
    type: str
    names_rows: bool


@dataclass(frozen=True, slots=True)
class Plain:
    """An expression that the server computes natively, on plain columns and constants only."""

    node: Node
    type: str
    low: int | None = None
    high: int | None = None
    scale: int = 0
    slots: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Opening:
    """A layer of an onion that must be open before a plan runs: column by ids, ``onion`` is eq or
    ord, ``state`` is det or join of eq, open of ord.
    """

    table: int
    column: int
    onion: str
    state: str


Bindable = UpdateConstant | Share | Fixed | Code | Public | Tag


@dataclass(frozen=True, slots=True)
class Template:
    """A printed query: its text, in which ``⟪i⟫`` stands for the i-th number of the statement, and
    what is bound to ``$1``, ``$2`` …
    """

    sql: str
    constants: tuple[Bindable, ...]

    def text(self, literals: Sequence[str]) -> str:
        """The text with the statement's own numbers put in."""
        return _MARKER.sub(lambda match: literals[int(match[1])], self.sql)


_MARKER = re.compile(r"⟪(\d+)⟫")


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
