"""Pushes: what the server is asked to apply to one table's rows, each with its price.

A push is one filter or one semi-join, with what it shows, which layers it opens and the share of
rows that it leaves. Those are taken that no ceiling forbids and that are expected to save more
than they cost; each stands for itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from sqlglot import exp

from louver.trusted.planner import cost
from louver.trusted.planner.ir import Column, Node, Sql
from louver.trusted.planner.split.scans.conditions import (
    Conditions,
    compared,
    level_of,
    newly_opened,
    touched,
)
from louver.trusted.planner.split.scans.graph import Graph, Reduction, reductions
from louver.trusted.planner.split.scans.query_blocks import Occurrence
from louver.trusted.planner.sql.scope import Scope, Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import PlanEffects
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.levels import LEVELS

ROOT = 0
"""The slot under which the table that is read is printed."""


@dataclass(slots=True)
class Push:
    """``key`` is equal for pushes that say the same; ``left`` is the share of rows it leaves."""

    key: str
    node: Node
    secret: bool
    cheap: bool
    collected: PlanEffects
    inner: list[Source]
    left: float

    def reveals(self) -> bool:
        """Whether it opens a layer that is closed, or shows more than which rows are read."""
        tables = [source.table for source in self.inner]
        if newly_opened(self.collected, tables):
            return True
        return any(LEVELS.index(k.level) > LEVELS.index("access") for k in self.collected.leaks)

    def order(self) -> tuple[bool, int, float]:
        """Pushes that show less come first, then those that leave less."""
        shown = [LEVELS.index(leak.level) for leak in self.collected.leaks]
        shown += [LEVELS.index(level_of(opening)) for opening in self.collected.opens]
        return self.reveals(), max(shown, default=0), self.left

    def is_free(self) -> bool:
        """Whether it shows nothing new and is decided row by row."""
        return not self.cheap or (len(self.inner) == 1 and not self.reveals())

    def work_s(self, rows: float) -> float:
        """What it costs the server, where the conditions before it leave so many rows."""
        scanned = sum(source.table.row_count for source in self.inner)
        costs = self.inner[0].backend.costs
        return scanned * costs.compare_s + rows * (len(self.inner) - 1) * costs.probe_s


def pushes(owner: Occurrence, graph: Graph, slots: Iterator[int]) -> list[Push]:
    """Every push that an occurrence admits, filters first."""
    conditions = graph.conditions
    candidates = [_filter(owner, node, conditions) for node in graph.filters.get(owner.slot, [])]
    known = [push for push in candidates if push is not None]
    for reduction in reductions(owner.slot, graph):
        push = _semi_join(owner, reduction, conditions, slots)
        if push is not None:
            known.append(push)
    return known


def _filter(owner: Occurrence, node: exp.Expr, conditions: Conditions) -> Push | None:
    scope = conditions.scope({owner.slot: ROOT})
    condition = conditions.predicate(node, scope)
    if condition is None:
        return None
    cheap = conditions.is_cheap(node, frozenset({owner.slot}))
    left = cost.fraction(node, scope)
    text = _key(node, {owner.slot: 0}, conditions)
    return Push(text, condition.node, condition.secret, cheap, scope.collected, scope.sources, left)


def _semi_join(
    owner: Occurrence, reduction: Reduction, conditions: Conditions, slots: Iterator[int]
) -> Push | None:
    collected = PlanEffects()
    root = conditions.servers.source(ROOT, owner.name, owner.table)
    writer = _Writer(conditions, collected, slots, [root])
    entries = writer.write(reduction, {owner.slot: ROOT}, owner.slot, 1)
    if entries is None or entries[2] > root.backend.costs.most_left:
        return None
    for table, names in writer.touched.values():
        collected.leak(touched(table, sorted(names)))
    node, key, left = entries
    return Push(key, node, True, True, collected, writer.sources, left)


@dataclass(slots=True)
class _Writer:
    """Writes nested EXISTS and gathers what they show, open and touch."""

    conditions: Conditions
    collected: PlanEffects
    slots: Iterator[int]
    sources: list[Source]
    touched: dict[int, tuple[Table, set[str]]] = field(default_factory=dict)

    def write(
        self, reduction: Reduction, printed: dict[int, int], outer: int, depth: int
    ) -> tuple[Node, str, float] | None:
        """A reduction as (node, key, share of the rows it leaves)."""
        slot, position = reduction.slot, next(self.slots)
        owner = self.conditions.occurrences[slot]
        printed = printed | {slot: position}
        source = self.conditions.servers.source(position, owner.name, owner.table)
        self.sources.append(source)
        labels = {outer: depth - 1, slot: depth}
        nodes: list[Node] = []
        keys: list[str] = []
        for node in reduction.conditions:
            decided = self._decided(node, {outer: printed[outer], slot: position})
            if decided is None:
                return None
            nodes.append(decided)
            keys.append(_key(node, labels, self.conditions))
        left = 1.0
        for node in reduction.filters:
            decided = self._decided(node, {slot: position})
            if decided is not None:
                nodes.append(decided)
                keys.append(_key(node, labels, self.conditions))
                left *= cost.fraction(node, self.conditions.scope({slot: position}))
        for inner in reduction.inner:
            written = self.write(inner, printed, slot, depth + 1)
            if written is not None:
                nodes.append(written[0])
                keys.append(written[1])
                left *= written[2]
        # A column without an alias is printed as it is.
        table = Column("", f"{source.server_name} AS {source.server_alias}")
        listed = " AND ".join(f"⟦{child}⟧" for child in range(1, len(nodes) + 1))
        made_node = Sql(f"EXISTS (SELECT 1 FROM ⟦0⟧ WHERE {listed})", (table, *nodes))
        printed_both = {outer: printed[outer], slot: position}
        scope = self.conditions.scope(printed_both)
        met = min(
            1.0,
            *(cost.met(condition, owner.table, left, scope) for condition in reduction.conditions),
        )
        return made_node, f"{owner.table.id}({' AND '.join(sorted(keys))})", met

    def _decided(self, node: exp.Expr, printed: dict[int, int]) -> Node | None:
        scope: Scope = self.conditions.scope(printed)
        condition = self.conditions.predicate(node, scope)
        if condition is None:
            return None
        for opening in scope.collected.opens:
            self.collected.open(opening)
        for leak in scope.collected.leaks:
            self.collected.leak(leak)
        for slot, position in printed.items():
            owner = self.conditions.occurrences[slot]
            names = compared(node, owner.table, owner.name)
            if names and position != ROOT:
                held = self.touched.setdefault(owner.table.id, (owner.table, set()))
                held[1].update(names)
        return condition.node


def _key(node: exp.Expr, labels: dict[int, int], conditions: Conditions) -> str:
    """A condition's text in which occurrences bear their place, not their number."""
    copy = exp.Paren(this=node.copy())
    names = {conditions.occurrences[slot].name: label for slot, label in labels.items()}
    for column in copy.find_all(exp.Column):
        if column.table in names:
            column.set("table", exp.to_identifier(f"s{names[column.table]}"))
    return local_text(copy)


def fresh_slots() -> Iterator[int]:
    """Slots of the tables within semi-joins; 0 is the table that is read."""
    return count(ROOT + 1)
