"""The judge: which proposals of the observer are right beyond chance, and which facts say so.

It knows the truth, the names behind pseudonyms, and the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from louver.trusted.executor.ledger import LEVELS, Fact
from tests.observer.observer import Observer, Proposal
from tests.observer.recorder import Named, Recorder, Step, Values

LEAST_RANKS = 14
"""Of fewer rows an order is not told from chance."""
_CORRELATION = 0.9
_PRECISION = 0.9


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that the server can tell and the ledger does not state, or the reverse."""

    what: str
    columns: tuple[str, ...]
    statement: str
    detail: str = ""

    def __str__(self) -> str:
        """One line."""
        return f"{self.what} of {', '.join(self.columns)} after: {self.statement} {self.detail}"


@dataclass(slots=True)
class Verdict:
    """What came out over a whole session."""

    violations: list[Violation] = field(default_factory=list)
    #: what was established: the kind, and the columns behind it as "table.column"
    established: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)


class Judge:
    """Runs an observer over a recorder's steps."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def verdict(self) -> Verdict:
        """Every step, in order."""
        verdict = Verdict()
        observer = Observer(self._ask)
        for step in self.recorder.steps:
            for proposal in observer.see(step):
                behind = [step.named.get(name) for name in proposal.columns]
                named = [entry for entry in behind if entry is not None]
                if _itself(named) or all(entry.representation == "plain" for entry in named):
                    continue
                if self.holds(proposal):
                    self._check(verdict, step, proposal, named)
        return verdict

    def _check(
        self, verdict: Verdict, step: Step, proposal: Proposal, named: Sequence[Named]
    ) -> None:
        columns = tuple(f"{entry.table}.{entry.column}" for entry in named)
        verdict.established.add((proposal.kind, columns))
        # Two representations of one column, or one that was dropped and made again.
        if not self._entailed(proposal, named, step.facts):
            shown = tuple(
                f"{c} ({entry.representation})" for c, entry in zip(columns, named, strict=True)
            )
            verdict.violations.append(
                Violation(proposal.kind, shown, step.sql, proposal.detail[:300])
            )

    def _ask(self, sql: str, constants: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        from louver.wire.messages import Statement

        rows = self.recorder.engine.query(Statement(sql, constants))
        return [tuple(row.values()) for row in rows.to_pylist()]

    # ------------------------------------------------------------------ is it right?

    def holds(self, proposal: Proposal) -> bool:
        """Whether a proposal is right beyond chance."""
        match proposal.kind:
            case "equality" | "join":
                return self._equal(proposal.classes)
            case "order":
                truth = self._truth(proposal.columns[0])
                if proposal.detail and self._correlates(_by_number(proposal), truth, least=0.3):
                    # Values that were stored in their order: any running sum grows along.
                    return False
                return self._correlates(proposal, truth)
            case "ore_compare" | "text_match" | "condition" | "constant" | "chosen":
                return True
            case "nulls":
                truth = self._truth(proposal.columns[0])
                real = {row for row, value in truth.items() if value is None}
                rows = proposal.rows
                return len(rows & real) >= _PRECISION * len(rows)
            case "lengths":
                truth = self._truth(proposal.columns[0])
                lengths = {row: _length(value) for row, value in truth.items()}
                return self._correlates(proposal, lengths, least=0.5)
        raise AssertionError(proposal.kind)

    def _truth(self, name: str) -> Values:
        named = self.recorder.named.get(name)
        return self.recorder.truth.get(named.ids, {}) if named else {}

    def _equal(self, classes: Iterable[list[tuple[str, int]]]) -> bool:
        right = total = 0
        for places in classes:
            values = [self._truth(name).get(row) for name, row in places]
            if all(value is None for value in values):
                continue
            total += 1
            right += all(_same(value, values[0]) for value in values[1:])
        return total > 0 and right >= _PRECISION * total

    def _correlates(self, proposal: Proposal, truth: Values, least: float = _CORRELATION) -> bool:
        rows = [
            row for row in proposal.ranks
            if truth.get(row) is not None and truth[row] == truth[row]  # NaN has no place
        ]  # fmt: skip
        stored, real = [proposal.ranks[row] for row in rows], [truth[row] for row in rows]
        try:
            ranks, truths = _ranks(stored), _ranks(real)
        except TypeError:
            return False
        if min(len(set(ranks)), len(set(truths))) < (LEAST_RANKS if least == _CORRELATION else 2):
            return False
        return bool(abs(np.corrcoef(ranks, truths)[0, 1]) >= least)

    # ------------------------------------------------------------------ is it stated?

    def _entailed(self, proposal: Proposal, named: Sequence[Named], facts: Sequence[Fact]) -> bool:
        def some(entry: Named, least: str, kinds: tuple[str, ...] = ()) -> bool:
            return any(
                _about(fact, entry) and LEVELS.index(fact.level) >= LEVELS.index(least)
                and (not kinds or fact.kind.startswith(kinds))
                for fact in facts
            )  # fmt: skip

        static = ("eq.open", "eq.join", "eq.rest", "ord.", "sdb.")
        match proposal.kind:
            case "equality":
                return some(named[0], "equality", static)
            case "join":
                return self._joined(named, facts)
            case "order":
                return some(named[0], "order")
            case "ore_compare":
                return some(named[0], "order", ("ore.",))
            case "text_match":
                return some(named[0], "access", ("text.",))
            case "nulls":
                return any(_about(f, named[0]) and "NULL" in f.text for f in facts)
            case "lengths":
                return some(named[0], "size", ("rnd.lengths", "text.", "hom.", "ore."))
            case "condition":
                return some(named[0], "access")
            case "chosen":
                table = named[0].table.lower()
                return any(f.table.lower() == table and f.level != "size" for f in facts)
            case "constant":
                return any(some(entry, "equality") for entry in named) or any(
                    some(entry, "access", ("text.", "sdb.", "sum.", "key.asked")) for entry in named
                )
        raise AssertionError(proposal.kind)

    def _joined(self, named: Sequence[Named], facts: Sequence[Fact]) -> bool:
        if len(named) < 2:
            return False
        if named[0].ids == named[1].ids:
            # Two forms of one column: what each shows is stated for the column.
            return any(_about(f, named[0]) and f.level in LEVELS[2:] for f in facts)
        facts_of = [
            {f.text for f in facts
             if _about(f, entry) and f.kind in ("eq.join", "ord.join")}
            for entry in named
        ]  # fmt: skip
        wide = all(
            any(_about(f, entry) and f.level == "plaintext" for f in facts)
            or entry.representation == "plain"
            for entry in named
        )
        return bool(facts_of[0] & facts_of[1]) or wide

    # ------------------------------------------------------------------ nothing in vain

    def in_vain(self, verdict: Verdict) -> list[Violation]:
        """Static facts of equality and order that the observer did not establish, although the
        data would have shown it, and facts about columns that were never sent.
        """
        steps = self.recorder.steps
        sent = {text for step in steps for message in step.messages
                for text in [getattr(message, "sql", getattr(message, "table", ""))]}  # fmt: skip
        ever = {
            (stored.rsplit(".", 1)[1], entry.table, entry.column)
            for step in steps for stored, entry in step.named.items()
        }  # fmt: skip
        violations = []
        for fact in steps[-1].facts:
            where = tuple(f"{fact.table}.{column}" for column in fact.columns)
            for column in fact.columns:
                if (fact.table, column) not in self.recorder.ever_named:
                    violations.append(Violation("never sent", where, fact.text, fact.kind))
            if fact.kind in ("eq.open", "ord.open") and self._visible(fact):
                kinds = {"eq.open": ("equality",), "ord.open": ("order",)}[fact.kind]
                if not any((kind, where) in verdict.established for kind in kinds):
                    violations.append(Violation("stated in vain", where, fact.text, fact.kind))
            if fact.kind == "eq.join" and not self._meets(fact, verdict):
                violations.append(Violation("stated in vain", where, fact.text, fact.kind))
            if fact.kind == "rows" and not any(
                stored in text
                for stored, table, column in ever
                if table == fact.table and column in fact.columns
                for text in sent
            ):
                violations.append(Violation("stated in vain", where, fact.text, fact.kind))
        return violations

    def _visible(self, fact: Fact) -> bool:
        """Whether the data of some moment would show it."""
        for entry in self.recorder.named.values():
            if (entry.table, entry.column) == (fact.table, fact.columns[0]):
                now = self.recorder.steps[-1].snapshot
                rows = {row for name, values in now.items()
                        if self.recorder.named.get(name) == entry for row in values}  # fmt: skip
                truth = self.recorder.truth.get(entry.ids, {})
                values = [truth[row] for row in rows if truth.get(row) is not None]
                distinct = len({str(value) for value in values})
                if fact.kind == "eq.open" and entry.representation == "eq":
                    return distinct < len(values)
                if fact.kind == "ord.open" and entry.representation == "ord":
                    # Values of one range have one code; whether they show depends on the ranges.
                    return distinct >= 2 * LEAST_RANKS and " ranges of " not in fact.text
        return False

    def _meets(self, fact: Fact, verdict: Verdict) -> bool:
        """Whether the two columns of a join fact meet, or hold no value in common."""
        for kind, columns in verdict.established:
            if kind == "join" and all(name.rsplit(".", 1)[1] in fact.text for name in columns):
                return True
        sides = [
            {str(v) for v in self.recorder.truth.get(entry.ids, {}).values() if v is not None}
            for entry in set(self.recorder.named.values())
            if f"{entry.table}.{entry.column}" in fact.text and entry.representation == "eq"
        ]
        return len(sides) < 2 or not set.intersection(*sides)


def _itself(named: Sequence[Named]) -> bool:
    """Whether two stored columns are one, under an old name and a new one."""
    places = {(entry.ids, entry.representation) for entry in named}
    return len(named) > 1 and len(places) == 1


def _by_number(proposal: Proposal) -> Proposal:
    return Proposal("order", proposal.columns, ranks={row: row for row in proposal.ranks})


def _about(fact: Fact, entry: Named) -> bool:
    return fact.table.lower() == entry.table.lower() and entry.column.lower() in {
        column.lower() for column in fact.columns
    }


def _same(left: Any, right: Any) -> bool:
    return bool(left == right) or (left != left and right != right)


def _length(value: Any) -> int | None:
    return len(str(value).encode()) if isinstance(value, str | bytes) else None


def _ranks(values: Sequence[Any]) -> list[float]:
    order = {value: rank for rank, value in enumerate(sorted(set(values)))}
    return [float(order[value]) for value in values]
