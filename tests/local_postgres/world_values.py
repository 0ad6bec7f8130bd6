"""Values of two worlds, and statements that name them.

A mark ⟨type n⟩ stands for the n-th value of a type: in each world another one, with the same order
and the same equalities, and texts that are stored as long. ⟨type n m⟩ stands for the n-th value in
one world and the m-th in the other, of the same world's pool, so that nothing but their lengths is
the same. ⟨name⟩ begins names that differ, ⟨payload⟩ is a message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

COUNT = 11
_NUMBERS = range(1, COUNT + 1)
_UUID = "uuid '{:08}-0000-4000-8000-000000000000'"
#: Corresponding values by type, in order, and none beside another: what is below one is never one.
POOLS: dict[str, tuple[list[str], list[str]]] = {
    "integer": ([str(10 * i) for i in _NUMBERS], [str(1_000 + 37 * i) for i in _NUMBERS]),
    "bigint": ([str(3 * i) for i in _NUMBERS], [str(10**7 + 5 * i) for i in _NUMBERS]),
    "text": ([f"'{c}a'" for c in "abcdefghijk"], [f"'{c}x'" for c in "klmnopqrstu"]),
    "numeric(10,2)": ([f"{i}.25" for i in _NUMBERS], [f"{70 + i}.5" for i in _NUMBERS]),
    "date": (
        [f"date '2020-01-{2 * i:02}'" for i in _NUMBERS],
        [f"date '1999-05-{2 * i + 7:02}'" for i in _NUMBERS],
    ),
    "uuid": (
        [_UUID.format(2 * i) for i in _NUMBERS], [_UUID.format(700 + 3 * i) for i in _NUMBERS],
    ),
    "timestamp": (
        [f"timestamp '2020-01-{2 * i:02} 10:00:00'" for i in _NUMBERS],
        [f"timestamp '1999-05-{2 * i + 7:02} 11:30:00.25'" for i in _NUMBERS],
    ),
    "jsonb": (
        [f"jsonb '[{10 + i}]'" for i in _NUMBERS], [f"jsonb '[{70 + i}]'" for i in _NUMBERS],
    ),
    "integer[]": (
        [f"'{{{10 + i}}}'::integer[]" for i in _NUMBERS],
        [f"'{{{70 + i}}}'::integer[]" for i in _NUMBERS],
    ),
    # Of the same step of lengths.
    "payload": (["'m'"] * COUNT, ["'a longer message'"] * COUNT),
    "number": ([str(i) for i in _NUMBERS], [str(-(10**12) - 31 * i) for i in _NUMBERS]),
}  # fmt: skip
#: Types of columns; those that sort, and those that are only stored.
SORTED = ("integer", "bigint", "text", "numeric(10,2)", "date", "uuid", "timestamp")
STORED = ("jsonb", "integer[]")
_MARK = re.compile(r"⟨(\D[^⟩ ]*) (\d+)(?: (\d+))?⟩")
_LITERAL = re.compile(r"'(.*)'")


@dataclass(frozen=True)
class Column:
    """A column: its name and, if it is ENC, the first letter of its name in each world."""

    name: str
    type: str
    is_secret: bool


@dataclass(frozen=True)
class Act:
    """A statement of one of the clients, with its parameters, or with the data of COPY.

    ``during`` runs on the first client once this statement waits for it, else behind it.
    """

    text: str
    parameters: tuple[str, ...] = ()
    data: str | None = None
    client: int = 0
    during: str = ""


def rendered(text: str, world: int) -> str:
    """A statement with a world's values and names."""

    def value(match: re.Match[str]) -> str:
        first, other = match[2], match[3]
        if other is None:
            return POOLS[match[1]][world][int(first)]
        return POOLS[match[1]][0][int((first, other)[world])]

    return _MARK.sub(value, text).replace("⟨name⟩", "ck"[world])


def data(text: str, world: int) -> str:
    """The same as data of COPY."""

    def value(match: re.Match[str]) -> str:
        return written(rendered(match.group(), world))

    return rendered(_MARK.sub(value, text), world)


def written(literal: str) -> str:
    """A literal as data."""
    match = _LITERAL.search(literal)
    return match[1] if match else literal


def parameter(mark: str, world: int) -> Any:
    """A value as Python's."""
    if mark == "NULL":
        return None
    match = _MARK.fullmatch(mark)
    text = written(rendered(mark, world))
    read: Any = {
        "text": str, "payload": str, "numeric(10,2)": Decimal, "date": date.fromisoformat,
        "uuid": UUID, "timestamp": datetime.fromisoformat, "jsonb": str, "integer[]": str,
    }.get(match[1] if match else "", int)  # fmt: skip
    return read(text)
