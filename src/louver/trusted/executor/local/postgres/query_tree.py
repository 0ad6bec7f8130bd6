"""PostgreSQL's own tree of a query (`node_tree`) as nodes with their fields."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from louver.trusted.executor.local.postgres.node_tree import TOKEN

_MOST_CHARACTERS, _DEEPEST = 65_536, 40
_BYTES, _HEADER, _BYTE = ":constvalue ", 4, 255


class UnreadableError(Exception):
    """A tree is of another form."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what it is, and its fields with what they hold."""

    label: str
    fields: dict[str, Value]

    def word(self, name: str) -> str:
        """A field that holds a word."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        """A field that holds a number; -1 of any other."""
        word = self.word(name)
        return int(word) if word.isdecimal() else -1

    def node(self, name: str) -> Node | None:
        """A field that holds a node."""
        value = self.fields.get(name)
        return value if isinstance(value, Node) else None

    def nodes(self, name: str) -> list[Node] | None:
        """A field that holds a list of nodes; none of an empty one, None of anything else."""
        value = self.fields.get(name)
        if value == "<>":
            return []
        if not isinstance(value, list):
            return None
        known = [item for item in value if isinstance(item, Node)]
        return known if len(known) == len(value) else None


Value = Node | list["Node | str | list[object]"] | str


def parsed(tree: str) -> Node | None:
    """The only query of a function's body; None of more, and of a tree of another form."""
    if len(tree) > _MOST_CHARACTERS:
        return None
    reader = _Reader([match[0] for match in TOKEN.finditer(tree)])
    try:
        value: object = reader.value(0)
    except (UnreadableError, IndexError):
        return None
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    is_whole = reader.at == len(reader.words)
    return value if is_whole and isinstance(value, Node) and value.label == "QUERY" else None


class _Reader:
    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.at = words, 0

    def value(self, depth: int) -> Value:
        """What begins here."""
        word = self._next()
        if depth > _DEEPEST:
            raise UnreadableError
        if word == "{":
            return self._node(depth)
        if word == "(":
            items: list[object] = []
            while self.words[self.at] != ")":
                items.append(self.value(depth + 1))
            self.at += 1
            return items  # type: ignore[return-value]
        if word in ("}", ")"):
            raise UnreadableError
        return word

    def _node(self, depth: int) -> Node:
        label, fields = self._next(), dict[str, Value]()
        while (name := self._next()) != "}":
            if not name.startswith(":") or name in fields:
                raise UnreadableError
            if name.startswith(_BYTES):
                fields[_BYTES.strip()] = name
            else:
                # Whatever it looks like: a name may look like a field.
                fields[name] = self.value(depth + 1)
        return Node(label, fields)

    def _next(self) -> str:
        self.at += 1
        return self.words[self.at - 1]


def constant(node: Node) -> int | str | None:
    """The value of a constant that is a whole number or a text; None of any other."""
    type_, word = node.number(":consttype"), node.word(":constvalue")
    if node.label != "CONST" or not word.startswith(_BYTES) or sys.byteorder != "little":
        return None
    bytes_ = bytes(int(item) & _BYTE for item in word.partition("[")[2].rstrip("] ").split())
    if type_ in _WIDTHS:
        return int.from_bytes(bytes_[: _WIDTHS[type_]], "little", signed=True)
    if type_ not in _TEXTS or len(bytes_) < _HEADER:
        return None
    if int.from_bytes(bytes_[:_HEADER], "little") != len(bytes_) << 2:
        return None
    return bytes_[_HEADER:].decode()


_TEXTS, _WIDTHS = (25, 1043), {20: 8, 21: 2, 23: 4}
