"""Runs a session on Louver and on plaintext DuckDB, statement by statement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import louver
from tests.generated import fewest
from tests.grammar.session import Session, Step
from tests.slt import script
from tests.slt.runner import Outcome, Run
from tests.slt.sides import Side, duck

_MARK = re.compile(r"/\*(ENC[^*]*)\*/")
#: Kinds of errors that differ, and the fault that they wait for.
PENDING = {
    ("error binder", "error catalog"): "a view that no longer binds is gone after a reconnect",
}
MOST_ROWS = 300
"""A session ends where a table has more: copies of itself make it grow without end."""


@dataclass(slots=True)
class Difference:
    """A step whose outcomes differ; `sort` is as in tests/slt/runner.py."""

    step: Step
    sort: str
    expected: Outcome
    actual: Outcome
    where: str = ""

    def __str__(self) -> str:
        values = f"  {list(self.step.parameters)}" if self.step.parameters else ""
        return (
            f"[{self.where}] {self.sort}: {shown(self.step)}{values}\n"
            f"  duckdb: {str(self.expected)[:600]}\n  louver: {str(self.actual)[:600]}"
        )


@dataclass(slots=True)
class Report:
    """How many statements ran, failed in both, and were refused; and what differed."""

    ran: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def statements(self) -> int:
        """All."""
        return sum(self.ran.values()) + sum(self.failed.values()) + sum(self.refused.values())

    def add(self, other: Report) -> None:
        """Take in another report."""
        self.ran += other.ran
        self.failed += other.failed
        self.refused += other.refused
        self.refusals += other.refusals
        self.differences += other.differences

    def lines(self) -> list[str]:
        """The report as text."""
        refused, failed = sum(self.refused.values()), sum(self.failed.values())
        lines = [f"{self.statements} statements, {failed} fail in both, {refused} refused"]
        lines += [f"  {kind:16} {n:6} ran" for kind, n in sorted(self.ran.items())]
        lines += [f"  {kind:32} {n:6} fail" for kind, n in self.failed.most_common()]
        lines += [f"  {code:32} {n:6} refused" for code, n in self.refused.most_common()]
        return [*lines, f"{len(self.differences)} differences", *map(str, self.differences)]


def shown(step: Step) -> str:
    """A step's statement as Louver gets it."""
    return _MARK.sub(r"\1", step.sql)


def _twin(path: Path) -> Any:
    """Plaintext DuckDB whose files keep the sign of -0.0, which its run-length encoding forgets."""
    connection = duck(path)
    connection.execute("SET force_compression = 'uncompressed'")
    return connection


def _unsigned(outcome: Outcome) -> Outcome:
    """The same without the sign of -0.0, which the server's DuckDB forgets of a plain column."""
    rows = outcome.rows
    if rows is not None:
        rows = [tuple(0.0 if value == 0 and isinstance(value, float) else value for value in row)
                for row in rows]  # fmt: skip
    return replace(outcome, rows=rows)


class Broken(Exception):
    """A fault of DuckDB's own, after which its database cannot be asked any more."""


class Pair:
    """Both databases."""

    def __init__(self, folder: Path, key_file: Path, profile: str) -> None:
        policy = "sealed" if profile == "mixed" else profile
        self.stored_plain = profile == "mixed"

        def opened(path: Path) -> Any:
            return louver.connect(f"duckdb:///{path}", keys=key_file, profile=policy)

        sides = Side(folder / "louver", opened), Side(folder / "duckdb", _twin)
        self.run = Run(*sides, declared=lambda sql: _MARK.sub(r"\1", sql))

    def step(self, step: Step, report: Report) -> tuple[bool, Difference | None]:
        """Run a step on both: whether it ran, and what differs. What Louver refuses by design, the
        twin is not given.
        """
        run = self.run
        if step.reopens:
            run.reopen()
        entry = script.probe(step.sql, step.parameters)
        actual = run.outcome(run.louver, entry)
        if actual.refused:
            report.refused[actual.kind.removeprefix("error ")] += 1
            report.refusals.append(f"{actual.kind}: {shown(step)}\n    {actual.message}")
            return False, None
        expected = run.outcome(run.duck, entry)
        if "internal" in expected.kind or "fatal" in expected.kind:
            raise Broken(expected.message)
        if self.stored_plain:
            expected, actual = _unsigned(expected), _unsigned(actual)
        sort = run.compared(entry, expected, actual)
        if sort == "kind" and (expected.kind, actual.kind) in PENDING:
            sort = ""
        fine = actual.rows is not None and expected.rows is not None
        if fine:
            report.ran[step.kind] += 1
        else:
            report.failed[expected.kind or actual.kind] += 1
        return fine, Difference(step, sort, expected, actual) if sort else None

    def is_full(self) -> bool:
        """Whether a table has grown too far."""
        largest = "SELECT max(estimated_size) FROM duckdb_tables()"
        (size,) = self.run.duck.connection().execute(largest).fetchone() or (0,)
        return (size or 0) > MOST_ROWS

    def close(self) -> None:
        """Close all connections."""
        self.run.louver.close()
        self.run.duck.close()


@dataclass(slots=True)
class Played:
    """A session that was run, so that parts of it can be run again."""

    profile: str
    seed: str
    steps: list[Step] = field(default_factory=list)
    report: Report = field(default_factory=Report)


def play(folder: Path, key_file: Path, profile: str, seed: str, length: int) -> Played:
    """A session, until its end or the first difference of a statement that changes something."""
    session = Session(profile, seed)
    played = Played(profile, seed)
    pair = Pair(folder, key_file, profile)
    try:
        while len(played.steps) < length:
            if not _played(pair, session.next(), played, session):
                return played
        for step in session.last():
            if not _played(pair, step, played):
                return played
    except Broken:
        return played
    finally:
        pair.close()
    return played


def _played(pair: Pair, step: Step, played: Played, session: Session | None = None) -> bool:
    """Run a step; whether the session goes on."""
    played.steps.append(step)
    fine, difference = pair.step(step, played.report)
    if difference is not None:
        difference.where = f"{played.profile}:{played.seed}:{len(played.steps)}"
        played.report.differences.append(difference)
        if not step.reads or difference.expected.rows is None or difference.actual.rows is None:
            return False
    if session is not None:
        session.ran(fine)
    return step.reads or not fine or not pair.is_full()


def shrunk(folder: Path, key_file: Path, played: Played) -> list[Step]:
    """The steps of a session that differ, without those that it differs without."""
    difference = played.report.differences[0]
    until = played.steps.index(difference.step) + 1
    number = 0

    def differs(steps: Sequence[Step]) -> bool:
        nonlocal number
        number += 1
        pair = Pair(folder / str(number), key_file, played.profile)
        try:
            for step in steps:
                _, actual = pair.step(step, Report())
                if actual is not None:
                    return step is difference.step and actual.sort == difference.sort
        finally:
            pair.close()
        return False

    return fewest(played.steps[:until], differs)
