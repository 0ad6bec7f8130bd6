"""Runs one session in both worlds and compares what crossed, statement by statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine
from tests.generated import fewest
from tests.worlds.lake import LakeWorld
from tests.worlds.session import Generator, Step
from tests.worlds.values import Values
from tests.worlds.world import Outcome, World, in_memory

MOST_ROWS = 2_000
"""A session ends where a table has more."""


@dataclass(slots=True)
class Difference:
    """A statement whose worlds differ, or whose answer is not plaintext DuckDB's."""

    what: str
    step: Step
    texts: tuple[str, str]
    detail: str
    seed: str = ""

    def __str__(self) -> str:
        """For people."""
        first, second = self.texts
        return f"[{self.seed}] {self.what}\n  A: {first}\n  B: {second}\n  {self.detail}"


@dataclass(slots=True)
class Report:
    """What was run, what of it was refused, and what differed."""

    ran: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    @property
    def statements(self) -> int:
        """How many statements both worlds were given."""
        return sum(self.ran.values()) + sum(self.refused.values())

    def add(self, other: Report) -> None:
        """Take in another report."""
        self.ran += other.ran
        self.refused += other.refused
        self.codes += other.codes
        self.differences += other.differences

    def lines(self) -> list[str]:
        """The report as text: by kind how many ran, and how many were refused."""
        lines = [f"{self.statements} statements, {sum(self.refused.values())} refused"]
        for kind in sorted(self.ran | self.refused):
            lines.append(f"{kind:16} {self.ran[kind]:6} ran {self.refused[kind]:6} refused")
        lines += [f"{code:32} {count}" for code, count in self.codes.most_common()]
        return lines + [str(difference) for difference in self.differences]


class Pair:
    """Two worlds side by side."""

    def __init__(
        self,
        ring: KeyRing,
        profile: str,
        seed: str,
        values: Values,
        attached: bool,
        server: Callable[[], Engine] = in_memory,
    ) -> None:
        self.values = values
        self.worlds: list[World] = [
            LakeWorld(ring, profile, seed, attached)
            if profile == "lake"
            else World(ring, profile, seed, attached, server)
            for _ in range(2)
        ]
        self.outcomes: list[Outcome] = []

    def step(self, step: Step, report: Report) -> Difference | None:
        """Run a statement in both worlds; what differs, if anything does."""
        texts = [step.rendered(self.values, number) for number in range(2)]
        pairs = list(zip(self.worlds, texts, strict=True))
        self.outcomes = [world.run(*text, step.other) for world, text in pairs]
        first, second = self.outcomes
        ran = first.error is None and second.error is None
        (report.ran if ran else report.refused)[step.kind] += 1
        for outcome in self.outcomes:
            if outcome.error is not None:
                report.codes[outcome.error.code] += 1
        said = (texts[0][0], texts[1][0])
        if first.crossed != second.crossed:
            detail = unlike(first.crossed, second.crossed)
            return Difference("crosses differently", step, said, detail)
        if first.facts != second.facts:
            return Difference("ledgers differ", step, said, unlike(first.facts, second.facts))
        if (first.error is None) != (second.error is None) and not self._overflows(step):
            return Difference("one world refuses", step, said, f"{first.error} / {second.error}")
        if any(map(_ours, self.outcomes)):
            return None
        for outcome, (world, text) in zip(self.outcomes, pairs, strict=True):
            wrong = _wrong(outcome, world.expected(*text, step.other), self.values.folds)
            if wrong:
                return Difference("another answer", step, said, wrong)
        return None

    def _overflows(self, step: Step) -> bool:
        """Whether a query failed in one world by its own values: its user learns that, and what
        crossed is the same.
        """
        codes = [o.error.code for o in self.outcomes if o.error is not None]
        return step.reads and codes == ["duckdb.out_of_range"]

    def last(self, step: Step) -> Difference | None:
        """What the server holds in the end."""
        first, second = (world.stored_orders() for world in self.worlds)
        if first != second:
            return Difference("stored orders differ", step, ("", ""), unlike(first, second))
        return None

    def is_full(self) -> bool:
        """Whether a table grew so far, by copies of itself, that statements take minutes."""
        largest = "SELECT max(estimated_size) FROM duckdb_tables()"
        (size,) = self.worlds[0].oracle.execute(largest).fetchone() or (0,)
        return (size or 0) > MOST_ROWS

    def undo(self) -> None:
        """End open transactions."""
        for world in self.worlds:
            world.undo()

    def close(self) -> None:
        """End both."""
        for world in self.worlds:
            world.close()


REFUSALS = {
    "leak.flow": "what an ENC column decides would go where it may show more",
    "leak.refused": "the ceilings let the query be answered in no way",
    "sql.unsupported": "a statement that Louver does not have",
    "attach.reads": "a view, macro or change over a table of an attached connection",
    "prepared.path": "a statement that was prepared under another search path",
    "table.temporary": "a stored table and a TEMP table of one name",
    "transaction.batches": "SET ENC runs in transactions of its own",
    "lake.transaction": "a transaction changes one table of a lake",
    "engine.type": "a server has fewer types than DuckDB",
    "server.value": "a server's texts and dates end sooner than DuckDB's",
}
"""Errors by which Louver refuses, by design, what plain DuckDB runs, and what each is for. The
oracle is not asked after these; any other error that it does not raise too is a fault.
"""


def _ours(outcome: Outcome) -> bool:
    """Whether it is Louver that refused, so that the oracle has nothing to say."""
    return outcome.error is not None and outcome.error.code in REFUSALS


def _wrong(outcome: Outcome, expected: Any, folds: bool) -> str:
    """How an answer is not the oracle's; empty where it is. Of values that are equal under a
    collation either may be shown.
    """
    if isinstance(expected, Exception):
        return "" if outcome.error is not None else f"DuckDB refuses: {str(expected)[:200]}"
    if outcome.error is not None:
        return f"Louver refuses: {outcome.error.code}: {str(outcome.error)[:200]}"
    rows = outcome.rows
    if rows is None or expected is None:
        return ""
    if folds:
        rows, expected = sorted(map(_folded, rows)), sorted(map(_folded, expected))
    if rows != expected:
        return f"{rows[:5]} instead of {expected[:5]}"
    return ""


def _folded(row: str) -> str:
    return row.casefold().replace("é", "e")


def unlike(first: Sequence[Any], second: Sequence[Any]) -> str:
    """The first place at which two lists differ, and what stands there."""
    for index, (left, other) in enumerate(zip(first, second, strict=False)):
        if left == other:
            continue
        if isinstance(left, list | tuple) and isinstance(other, list | tuple):
            return f"[{index}]" + unlike(left, other)
        return f"[{index}] {str(left)[:300]} | {str(other)[:300]}"
    return f"{len(first)} | {len(second)}: {str(first[-1:])[:200]} | {str(second[-1:])[:200]}"


@dataclass(slots=True)
class Played:
    """A session that was generated and run, so that parts of it can be run again."""

    profile: str
    seed: str
    values: Values
    attached: bool
    report: Report
    steps: list[Step] = field(default_factory=list)


def run(
    ring: KeyRing,
    profile: str,
    seed: str,
    statements: int,
    focus: tuple[str, ...] = (),
    server: Callable[[], Engine] = in_memory,
) -> Played:
    """A generated session, until its end or the first difference."""
    generator = Generator(profile, seed, focus)
    report = Report()
    played = Played(profile, seed, generator.state.values, generator.attached, report)
    pair = Pair(ring, profile, seed, played.values, played.attached, server)
    try:
        while len(played.steps) < statements:
            step = generator.next()
            played.steps.append(step)
            difference = pair.step(step, report)
            fine = all(outcome.error is None for outcome in pair.outcomes)
            full = fine and difference is None and not step.reads and pair.is_full()
            if difference is None and (full or len(played.steps) == statements):
                difference = pair.last(step)
            if difference is not None:
                difference.seed = f"{profile}:{seed}:{len(played.steps)}"
                report.differences.append(difference)
                break
            if full:
                break
            if not fine:
                pair.undo()
            generator.ran(fine)
    finally:
        pair.close()
    return played


def again(ring: KeyRing, played: Played, steps: Sequence[Step]) -> Difference | None:
    """Some of the steps of a session once more: the first difference."""
    pair = Pair(ring, played.profile, played.seed, played.values, played.attached)
    try:
        for step in steps:
            difference = pair.step(step, Report())
            if difference is not None:
                return difference
            if any(outcome.error is not None for outcome in pair.outcomes):
                pair.undo()
        return pair.last(steps[-1]) if steps else None
    finally:
        pair.close()


def shrunk(ring: KeyRing, played: Played) -> list[Step]:
    """The steps of a session that differs without those that it differs without."""
    (difference,) = played.report.differences

    def differs(steps: Sequence[Step]) -> bool:
        outcome = again(ring, played, steps)
        return outcome is not None and outcome.what == difference.what

    return fewest(played.steps, differs)
