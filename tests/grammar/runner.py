"""Runs a session on Louver and on plaintext DuckDB, statement by statement."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import louver
from louver.trusted.executor import context
from tests.engines.suite import url_of
from tests.generated import fewest
from tests.grammar.faults import (
    PENDING,
    STATISTICS,
    alters_rows_that_stay,
    lost,
    repeated,
    stored,
    unsigned,
    without_quotes,
)
from tests.grammar.session import Session, Step
from tests.grammar.writers import Writers
from tests.slt import script
from tests.slt.runner import Outcome, Run
from tests.slt.script import Entry
from tests.slt.sides import Borrowed, Side, duck

Drawn = Session | Writers
_MARK = re.compile(r"/\*(ENC[^*]*)\*/")
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
    #: statements that lost against another connection: where plaintext DuckDB's lost too, where
    #: only Louver's did, and where only plaintext DuckDB's did
    conflicts: Counter[str] = field(default_factory=Counter)
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
        self.conflicts += other.conflicts
        self.differences += other.differences

    def lines(self) -> list[str]:
        """The report as text."""
        refused, failed = sum(self.refused.values()), sum(self.failed.values())
        lines = [f"{self.statements} statements, {failed} fail in both, {refused} refused"]
        lines += [f"  {kind:16} {n:6} ran" for kind, n in sorted(self.ran.items())]
        lines += [f"  {kind:32} {n:6} fail" for kind, n in self.failed.most_common()]
        lines += [f"  {code:32} {n:6} refused" for code, n in self.refused.most_common()]
        lines += [f"  conflicts {name:22} {n:6}" for name, n in sorted(self.conflicts.items())]
        return [*lines, f"{len(self.differences)} differences", *map(str, self.differences)]


def shown(step: Step) -> str:
    """A step's statement as Louver gets it, behind the connection that is not the first."""
    return (f"{step.connection}: " if step.connection else "") + _MARK.sub(r"\1", step.sql)


def _twin(path: Path) -> Any:
    """Plaintext DuckDB whose files keep the sign of -0.0, which its run-length encoding forgets."""
    connection = duck(path)
    connection.execute("SET force_compression = 'uncompressed'")
    return connection


class Broken(Exception):
    """A fault of DuckDB's own, after which its database cannot be asked any more, or a conflict
    that only plaintext DuckDB had, after which the databases differ.
    """


class Pair:
    """Both databases."""

    def __init__(
        self,
        folder: Path,
        key_file: Path,
        profile: str,
        *,
        unsigned: bool = False,
        backend: str = "duckdb",
    ) -> None:
        policy = "sealed" if profile == "mixed" else profile
        self.stored_plain = unsigned or profile == "mixed"
        self._assigned, self.folder = False, folder

        def opened(path: Path) -> Any:
            url = url_of(backend, path)
            return louver.connect(url, keys=key_file, profile=policy, language="duckdb")

        sides = Side(folder / "louver", opened), Side(folder / "duckdb", _twin)
        self.run = Run(*sides, declared=lambda sql: _MARK.sub(r"\1", sql))

    def step(self, step: Step, report: Report) -> tuple[bool, Difference | None]:
        """Run a step on both: whether it ran, and what differs. What Louver refuses by design, the
        twin is not given.
        """
        run = self.run
        # Where a column is set to 0.0, DuckDB leaves a -0.0 that it finds equal.
        self._assigned |= "UPDATE" in step.sql or "MERGE" in step.sql or "REPLACE" in step.sql
        if step.reopens:
            run.reopen()
        entry = script.probe(step.sql, step.parameters, step.connection, many=step.many)
        actual = run.outcome(run.louver, entry)
        if lost(actual):
            self._lost(step, entry, actual, report)
            return False, None
        if actual.refused:
            report.refused[actual.kind.removeprefix("error ")] += 1
            report.refusals.append(f"{actual.kind}: {shown(step)}\n    {actual.message}")
            return False, None
        expected = self._expected(step, entry)
        if "internal" in expected.kind or "fatal" in expected.kind:
            raise Broken(expected.message)
        for other, failed in ((actual, expected), (expected, actual)):
            if other.rows is not None and STATISTICS.search(failed.message):
                raise Broken(failed.message)
        if lost(expected):
            report.conflicts["of plaintext only"] += 1
            if actual.rows is not None and (not step.inside or step.sql == "COMMIT"):
                raise Broken(expected.message)
            return False, None
        if self._own_check(step, expected, actual):
            report.conflicts["of a constraint that only one of them sees"] += 1
            raise Broken(expected.message)
        if step.sql.startswith("DESCRIBE ") and actual.rows is not None:
            # In the last column, which DuckDB leaves NULL, Louver says what ENC is.
            actual = replace(actual, rows=[(*row[:5], None, *row[6:]) for row in actual.rows])
            expected, actual = without_quotes(expected), without_quotes(actual)
        if self.stored_plain or self._assigned:
            expected, actual = unsigned(expected), unsigned(actual)
        sort = run.compared(entry, expected, actual)
        if sort and step.reads and expected.rows is not None and not step.inside:
            sort = "" if self._reads_generated(entry, actual) else sort
        # Of many rows, DuckDB runs one after the other; Louver converts all of them first.
        if sort == "kind" and (step.many or (expected.kind, actual.kind) in PENDING):
            sort = ""
        fine = actual.rows is not None and expected.rows is not None
        if fine:
            report.ran[step.kind] += 1
        else:
            report.failed[expected.kind or actual.kind] += 1
        return fine, Difference(step, sort, expected, actual) if sort else None

    def _own_check(self, step: Step, expected: Outcome, actual: Outcome) -> bool:
        """Whether one side checks more: DuckDB looks for keys among rows that its transaction, or
        its statement, deletes, and allows references to them; and its ALTER deletes all rows.
        """
        if "foreign key" in actual.message.lower() and expected.rows is not None:
            return step.inside
        if "still referenced" in expected.message and actual.rows is not None:
            # Its UPDATE deletes rows too, and inserts others.
            return step.inside or step.kind == "alter" or "UPDATE" in step.sql
        if "duplicate key" in actual.message.lower() and expected.rows is not None:
            # A key that another connection freed since, whose row its transaction still sees.
            return step.inside and bool(repeated(self.run.duck.connection(step.connection)))
        if "conversion" in expected.kind and actual.rows is not None and step.kind == "alter":
            sql = _MARK.sub(r"\1", step.sql)
            return alters_rows_that_stay(self.run.duck.connection(step.connection), sql)
        if actual.rows is None or "duplicate key" not in expected.message.lower():
            return False
        assert not repeated(self.run.louver.connection(step.connection)), shown(step)
        return True

    def _reads_generated(self, entry: Entry, actual: Outcome) -> bool:
        """Whether plaintext DuckDB answers as Louver does where columns are not computed anew."""
        with stored(self.run.duck.connection(entry.connection)) as connection:
            if connection is None:
                return False
            expected = self.run.outcome(Borrowed(self.folder, connection), entry)
        return not self.run.compared(entry, expected, actual)

    def _expected(self, step: Step, entry: Entry, *, undone: bool = False) -> Outcome:
        """What plaintext DuckDB makes of a step. Its executemany runs row by row, Louver's is one
        change: nothing of it stays where it fails.
        """
        run = self.run
        if step.inside or not (step.many or undone):
            outcome = run.outcome(run.duck, entry)
            if step.inside or "transaction is aborted" not in outcome.message:
                return outcome
            # After an ALTER that failed, DuckDB takes its next statement for one of a transaction.
            run.duck.connection(step.connection).execute("ROLLBACK")
            return run.outcome(run.duck, entry)
        duck = run.duck.connection(step.connection)
        with suppress(duckdb.TransactionException):  # of a session that was cut short
            duck.execute("BEGIN")
        outcome = run.outcome(run.duck, entry)
        if outcome.rows is None or undone:
            duck.execute("ROLLBACK")
            return outcome
        ended = run.outcome(run.duck, script.probe("COMMIT", (), step.connection))
        return outcome if ended.rows is not None else ended

    def _lost(self, step: Step, entry: Entry, actual: Outcome, report: Report) -> None:
        """Whether plaintext DuckDB loses too; whatever its statement did is undone."""
        if step.sql == "COMMIT":
            # Whether its COMMIT would be lost cannot be seen without a COMMIT.
            self.run.duck.connection(step.connection).execute("ROLLBACK")
            report.conflicts[f"at COMMIT: {actual.kind}"] += 1
            return
        too = lost(self._expected(step, entry, undone=True))
        name = "of both" if too else f"of Louver only: {step.kind}: {actual.kind}"
        report.conflicts[name] += 1

    def is_full(self) -> bool:
        """Whether a table has grown too far."""
        largest = "SELECT max(estimated_size) FROM duckdb_tables()"
        # A cursor of its own: the connection's transaction may have failed.
        (size,) = self.run.duck.connection().cursor().execute(largest).fetchone() or (0,)
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


def play(
    folder: Path,
    key_file: Path,
    profile: str,
    seed: str,
    length: int,
    kind: type[Session] | type[Writers] = Session,
    backend: str = "duckdb",
) -> Played:
    """A session, until its end or the first difference of a statement that changes something."""
    session = kind(profile, seed)
    played = Played(profile, seed)
    with _impatient():
        # Rows that are changed often are stored anew, and their zeros lose their signs in DuckDB.
        pair = Pair(folder, key_file, profile, unsigned=kind is Writers, backend=backend)
        _play(session, played, pair, length)
    return played


@contextmanager
def _impatient() -> Iterator[None]:
    """The other connections wait until a statement ends: to run it again later is in vain."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "_PATIENCE_S", 0.0)
        yield


def _play(session: Drawn, played: Played, pair: Pair, length: int) -> None:
    try:
        while len(played.steps) < length:
            if not _played(pair, session.next(), played, session):
                return
        for step in session.last():
            if not _played(pair, step, played):
                return
    except Broken:
        return
    finally:
        pair.close()


def _played(
    pair: Pair, step: Step, played: Played, session: Session | Writers | None = None
) -> bool:
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
    until = 1 + next(n for n, step in enumerate(played.steps) if step is difference.step)
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

    with _impatient():
        return fewest(played.steps[:until], differs)
