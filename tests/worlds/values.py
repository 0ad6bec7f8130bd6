"""What the worlds differ in: values of ENC columns, literals, and names of ENC columns.

A *universe* is a list of places; place i is one value in world A and another one in world B. How
they correspond is what a column with this ceiling may show:

========  =========================================================================================
size      any value of the same length, in steps of 16 bytes; also NULL against a value. Rows get
          their places independently in each world (`free`), or the places of the rows of one
          INSERT are dealt out anew (`dealt`), so that a column has the same number of each value
access    one bijection for all values and literals, of equal length; NULL is NULL
equality  the same
order     a monotone bijection
========  =========================================================================================

Numbers of both worlds need the same bounds: 32 bits are enough for each BIGINT, and 64 are not for
any other number, for a bound that widens shows (THREAT_MODEL.md, 5).

Values of different universes never meet, and those of one universe lie so far apart that small
sums and added letters do not make them meet either.
"""

from __future__ import annotations

import datetime
import os
import re
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

LEVELS = ("size", "access", "equality", "order", "plaintext")
TYPES = ("VARCHAR", "BIGINT", "DATE", "HUGEINT", "DECIMAL(38,1)")
NUMBERS = ("BIGINT", "HUGEINT", "DECIMAL(38,1)")
PLACES = 8
"""How many values a universe has; the last ones of texts are long."""
_LONG = 6
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DAY = datetime.date(1900, 1, 1)
_MARK = re.compile("\x01([^\x01\x02]*)\x02")

Value = str | int | Decimal | datetime.date | None


@dataclass(frozen=True, slots=True)
class Universe:
    """Values of one type, of both worlds, by place."""

    name: str
    type: str
    #: the highest ceiling that its columns may have
    level: str
    pairs: tuple[tuple[Value, ...], tuple[Value, ...]]
    dealt: bool = False

    @property
    def loose(self) -> bool:
        """Whether a place means nothing: rows of the two worlds do not correspond."""
        return self.level == "size"

    def __deepcopy__(self, _: object) -> Universe:
        """It never changes, and is told by being the same one."""
        return self

    def alike(self, number: int) -> list[int]:
        """The places whose values are as long."""
        if self.type != "VARCHAR":
            return list(range(PLACES))
        return [p for p in range(PLACES) if (p >= _LONG) == (number >= _LONG)]


@dataclass(slots=True)
class Values:
    """All universes of a session, and the names of ENC columns."""

    universes: dict[str, Universe]
    names: list[tuple[str, str]] = field(default_factory=list)
    #: whether values stand in tables that are equal under a collation, of which any may be shown
    folds: bool = False

    def mark(self, universe: Universe, first: int, second: int | None = None) -> str:
        """A literal in a text that is not decided yet."""
        return f"\x01{universe.name}|{first}|{first if second is None else second}\x02"

    def name(self, dice: Random) -> str:
        """A new name of an ENC column; some are the same in both worlds, some not ASCII."""
        number = len(self.names)
        shape = dice.random()
        if shape < 0.1:
            odd = dice.choice(("Ä", "ö", "ß x", "İ"))
            pair = (f'"{odd}{number}"', f'"{odd}{number}"')
        elif shape < 0.3:
            pair = (f"same_{number}", f"same_{number}")
        else:
            pair = (f"wage_{number}", f"debt_{number}")
        self.names.append(pair)
        return f"\x01#{number}\x02"

    def same(self, name: str) -> str:
        """A name of an ENC column that is the same in both worlds."""
        self.names.append((name, name))
        return f"\x01#{len(self.names) - 1}\x02"

    def rendered(self, text: str, world: int, bound: bool) -> tuple[str, list[Value]]:
        """A text as one world has it, with its parameters where literals are `bound`."""
        parameters: list[Value] = []

        def replaced(match: re.Match[str]) -> str:
            mark = match.group(1)
            if mark.startswith("@"):
                return f"{os.environ.get('LOUVER_STATE_DIR', '')}-{mark[1:]}-{world}"
            if mark.startswith("#"):
                return self.names[int(mark[1:])][world]
            said, free = mark.lstrip("!"), mark.startswith("!")
            name, *places = said.split("|")
            value = self._value(name, int(places[world]), world)
            if bound and not free:
                parameters.append(value)
                return "?"
            return bare(value) if free else literal(value)

        return _MARK.sub(replaced, text), parameters

    def _value(self, name: str, number: int, world: int) -> Value:
        universe = self.universes[name]
        return None if number < 0 else universe.pairs[world][number]


def literal(value: Value) -> str:
    """A value in SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def bare(value: Value) -> str:
    """A value within a comment or a pattern."""
    return "" if value is None else str(value)


def drawn(dice: Random, same: bool = False) -> Values:
    """The universes of a session: of every type one a level, and a second one of size."""
    universes: dict[str, Universe] = {}
    stems = iter(dice.sample([a + b + c for a in _LETTERS for b in _LETTERS for c in "aeiou"], 200))
    numbers = iter(dice.sample(range(1, 40_000), 480))
    for type_ in TYPES:
        for level in ("size", "dealt", "access", "equality", "order"):
            sides: list[tuple[Value, ...]] = []
            widths = [dice.randint(4, 8) if p < _LONG else dice.randint(20, 26) for p in range(8)]
            for world in range(2):
                if level in ("size", "dealt"):
                    widths = [dice.randint(4, 8) if p < _LONG else 22 for p in range(8)]
                raw: list[Any] = [
                    next(stems) if type_ == "VARCHAR" else next(numbers) for _ in range(PLACES)
                ]
                if level == "order":
                    raw.sort()
                sides.append(
                    tuple(_made(type_, part, w, world) for part, w in zip(raw, widths, strict=True))
                )
            if same:
                sides[1] = sides[0]
            name = f"{level}_{type_.lower()}"
            known = "size" if level == "dealt" else level
            pairs = (sides[0], sides[1])
            universes[name] = Universe(name, type_, known, pairs, level == "dealt")
    sides = [_folded(sorted(next(stems) for _ in range(3))) for _ in range(2)]
    pair = (sides[0], sides[0] if same else sides[1])
    universes["folded_varchar"] = Universe("folded_varchar", "VARCHAR", "order", pair)
    return Values(universes)


def _folded(stems: list[str]) -> tuple[Value, ...]:
    """Texts of which some are equal under a collation; their order by bytes goes by the places."""
    first, two, three = stems
    return (first, first.upper(), two + "ex", two + "éx", two.upper() + "Ex", two.upper() + "Éx",
            three + "x" * 20, three.upper() + "X" * 20)  # fmt: skip


def _made(type_: str, raw: Any, width: int, world: int) -> Value:
    if type_ == "VARCHAR":
        filler = "Å" if raw[0] in "mn" and width % 2 else "x"
        rest = width - len(raw)
        return str(raw + ("Å" * (rest // 2) + "x" * (rest % 2) if filler == "Å" else "x" * rest))
    if type_ == "DATE":
        return _DAY + datetime.timedelta(days=2 * raw)
    # The numbers of the worlds lie far apart; a few of the largest ones make a sum overflow.
    if type_ == "DECIMAL(38,1)":
        return Decimal(f"{(10**20, 3 * 10**31)[world] * int(raw)}.5")
    steps = (1 << 70, 1 << 108) if type_ == "HUGEINT" else (100, 2_700)
    return steps[world] * int(raw)
