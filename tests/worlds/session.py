"""A generated session: profile and seed give the same statements again, as long as the same ones
of them run.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field, replace
from random import Random

from tests.worlds.definitions import DEFINITIONS, Effect, create, define, settings
from tests.worlds.known_faults import left_out
from tests.worlds.reads import read
from tests.worlds.schema import Col, State, Tab, enc, kind_of
from tests.worlds.schemas import SCHEMAS, bare, explain
from tests.worlds.session_objects import SESSION_OBJECTS, execute, prepare, shown
from tests.worlds.temporary import TEMPORARY
from tests.worlds.values import Value, Values, drawn
from tests.worlds.writes import write

_LOCAL = (*SESSION_OBJECTS, *TEMPORARY, *SCHEMAS)
_LOCAL_KINDS = frozenset(map(kind_of, _LOCAL))
_READING = (execute, shown, bare, explain)
_UNBOUND = (execute, prepare)
_PLACED = re.compile("\x01([a-z][^\x01\x02|]*)\\|[^\x01\x02]*\x02")
PROFILES = ("sealed", "cryptdb", "mixed", "sdb", "lake")


@dataclass(slots=True)
class Step:
    """A statement with its literals and secret names still to be decided."""

    kind: str
    text: str
    bound: bool = False
    other: bool = False
    #: whether it is a query
    reads: bool = False

    def rendered(self, values: Values, world: int) -> tuple[str, list[Value]]:
        """Its text and parameters in one world."""
        return values.rendered(self.text, world, self.bound)


def texts(profile: str, seed: str, count: int) -> list[tuple[str, list[Value]]]:
    """The first statements of a session of which every seventh fails, as world A has them."""
    generator, texts = Generator(profile, seed), []
    for number in range(count):
        texts.append(generator.next().rendered(generator.state.values, 0))
        generator.ran(number % 7 != 0)
    return texts


@dataclass(slots=True)
class Generator:
    """Gives one statement after the other, and is told which of them ran."""

    profile: str
    seed: str
    focus: tuple[str, ...] = ()
    state: State = field(init=False)
    attached: bool = field(init=False)
    _effect: Effect = field(init=False, default=lambda: None)
    _queue: list[Step] = field(init=False, default_factory=list)
    #: statements with placeholders since something was last defined
    _bound: list[Step] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        dice = Random(f"{self.profile}:{self.seed}")
        values = drawn(dice)
        if self.profile == "sdb":
            alike = drawn(dice, same=True).universes["order_bigint"]
            values.universes["order_bigint"] = alike
        self.state = State(dice, values, self.profile, focus=self.focus)
        share = 1 if "far" in self.focus else 0.12
        self.attached = dice.random() < share and self.profile != "lake"
        self._queue = [Step("setting", text) for text in settings(self.state)]
        if self.attached:
            self._queue += self._elsewhere()

    def _elsewhere(self) -> list[Step]:
        """A table of the attached connection; the session can read it, and name it with a dot."""
        cols = [Col("id", "BIGINT"), Col("p", "VARCHAR")]
        for level in ("access", "equality"):
            name = self.state.values.name(self.state.dice)
            cols.append(Col(name, "VARCHAR", level, self.state.universe("VARCHAR", level)))
        listed = ", ".join(f"{c.name} {c.type}{enc(self.profile, c.level)}" for c in cols)
        table = Tab("far", cols)
        rows = ", ".join(f"({', '.join(self.state.literal(c) for c in cols)})" for _ in range(4))
        self.state.tables.append(Tab("other.far", table.cols, attached=True))
        return [
            Step("create table", f"CREATE TABLE far ({listed})", other=True),
            Step("values", f"INSERT INTO far VALUES {rows}", other=True),
        ]

    def next(self) -> Step:
        """The next statement."""
        self._effect = lambda: None
        if self._queue:
            return self._queue.pop(0)
        state, dice = self.state, self.state.dice
        if len(state.base()) < 2:
            return self._defining(create(state))
        if self._bound and not self.focus and dice.random() < 0.12:
            return self._repeated(dice.choice(self._bound))
        draw = dice.random()
        if self.focus:
            return self._focused(draw)
        if draw < 0.05:
            return self._transaction()
        if draw < 0.12 and len(state.base()) < 6:
            return self._defining(create(state))
        if draw < 0.20:
            return self._defining(define(state))
        if draw < 0.38 and (step := self._local()) is not None:
            return step
        reads = draw < 0.65
        kind, text = read(state) if reads else write(state)
        bound = dice.random() < 0.3 and "current_query" not in text
        if dice.random() < 0.35:
            text = self._noise(text)
        step = Step(kind, text, bound, reads=reads)
        self._bound += [step] if bound else []
        return step

    def _local(self) -> Step | None:
        """A statement about what the session keeps locally, or about names and maintenance."""
        state = self.state
        maker = state.dice.choice(state.focused(_LOCAL) or _LOCAL)
        step = maker(state)
        if step is None:
            return None
        self._bound.clear()
        text, self._effect = step
        bound = state.dice.random() < 0.2 and maker not in _UNBOUND
        if state.dice.random() < 0.25:
            text = self._noise(text)
        return Step(kind_of(maker), text, bound, reads=maker in _READING)

    def _focused(self, draw: float) -> Step:
        """Mostly writes, with the queries and definitions that are in focus too."""
        often = 0.7 if _LOCAL_KINDS.intersection(self.focus) else 0
        if self.state.dice.random() < often and (step := self._local()) is not None:
            return step
        if draw < 0.12 and len(self.state.base()) < 6:
            return self._defining(create(self.state))
        if draw < 0.2 and any(name in self.focus for name in DEFINITIONS):
            return self._defining(define(self.state))
        reads = draw < 0.35 and "read" in self.focus
        kind, text = read(self.state) if reads else write(self.state)
        return Step(kind, self._noise(text) if "noise" in self.focus else text, reads=reads)

    def _repeated(self, step: Step) -> Step:
        """A statement with placeholders that comes again, as nothing was defined meanwhile: with
        other values where those of the two worlds correspond.
        """

        def replaced(match: re.Match[str]) -> str:
            universe = self.state.values.universes[match[1]]
            if universe.loose:
                return match[0]
            return self.state.values.mark(universe, self.state.places(universe)[0])

        return replace(step, kind="repeated", text=_PLACED.sub(replaced, step.text))

    def _defining(self, definition: tuple[str, str, Effect]) -> Step:
        self._bound.clear()
        kind, text, self._effect = definition
        return Step(kind, text)

    def _transaction(self) -> Step:
        if not self.state.in_transaction:
            return self._defining(("transaction", "BEGIN", self._begun))
        if self.state.dice.random() < 0.5:
            return self._defining(("transaction", "COMMIT", self._committed))
        return self._defining(("transaction", "ROLLBACK", self._undone))

    def _begun(self) -> None:
        self.state.in_transaction, self.state.saved = True, copy.deepcopy(self.state.tables)

    def _committed(self) -> None:
        self.state.in_transaction = False

    def _undone(self) -> None:
        self._bound.clear()
        self.state.in_transaction, self.state.tables = False, self.state.saved
        self.state.goes(self.state.current)

    def ran(self, fine: bool) -> None:
        """What became of the last statement; one that fails ends a transaction."""
        if fine:
            self._effect()
        elif self.state.in_transaction:
            self._undone()

    def _noise(self, text: str) -> str:
        """Comments that hold literals, other letters' cases, more space: at spaces that stand in
        no quotes.
        """
        dice, parts = self.state.dice, []
        for number, piece in enumerate(_outside(text)):
            if number % 2:
                parts.append(piece)
                continue
            words = piece.split(" ")
            for index, word in enumerate(words):
                if dice.random() < 0.1 and "\x01" not in word:
                    words[index] = dice.choice((word.upper(), word.lower(), word.swapcase()))
            joints = [" " if dice.random() > 0.06 else self._comment() for _ in words[1:]]
            words_so_far = words[0]
            for joint, word in zip(joints, words[1:], strict=True):
                words_so_far += joint + word
            parts.append(words_so_far)
        return "".join(parts)

    def _comment(self) -> str:
        if left_out("comments"):
            return "  "
        dice = self.state.dice
        universe = dice.choice(list(self.state.values.universes.values()))
        mark = self.state.values.mark(universe, dice.randrange(6)).replace("\x01", "\x01!", 1)
        return dice.choice((f" /* AND name = '{mark}' */ ", f" -- '{mark}'\n"))


def _outside(text: str) -> list[str]:
    """The text cut at quotes and marks: pieces at even places stand outside of both."""
    parts, current, until = [], "", ""
    for letter in text:
        if not until and letter in "'\"\x01":
            parts.append(current)
            current, until = letter, {"\x01": "\x02"}.get(letter, letter)
        elif until and letter == until:
            parts.append(current + letter)
            current, until = "", ""
        else:
            current += letter
    return [*parts, current]
