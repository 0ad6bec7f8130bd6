"""Semi-joins by keys on a server: which table's keys choose the rows of another one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.backends.backend import Costs
from louver.trusted.planner import cost
from louver.trusted.planner.ir import LOOKUP_ROWS, Node, Opening, Probe, RemoteQuery
from louver.trusted.planner.operators import keys
from louver.trusted.planner.split.scans import ties
from louver.trusted.planner.split.scans.conditions import Conditions
from louver.trusted.planner.split.scans.query_blocks import Block
from louver.trusted.planner.split.scans.ties import Tie
from louver.trusted.planner.sql.scope import Source
from louver.trusted.planner.sql.values import PlanEffects
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.scheme import may_meet
from louver.trusted.vault.types import code_domain

MOST_KEYS = 1 << 20
"""Keys that a server is asked for at once; for more its table is read."""
MOST_LISTED = 2_048
"""Keys that are constants of a text; more go beside it as an Arrow table."""


@dataclass(slots=True)
class Probed:
    """Scans that wait for keys of others, in an order in which every probe finds its keys read, and
    what they show and open.
    """

    remotes: list[RemoteQuery]
    leaks: list[Fact] = field(default_factory=list)
    opens: list[Opening] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to choose the rows of a table: ``condition`` compares its column with one key."""

    tie: Tie
    condition: Node
    effects: PlanEffects


@dataclass(frozen=True, slots=True)
class Choice:
    """How many ``rows`` are expected of a table, and ``by`` which way; None where it is read as it
    is. What comes first in ``turn``, by the rows that are read for it, is read first. Keys pass
    the ``filters`` before, which compare the columns ``compared``.
    """

    rows: float
    turn: float
    by: _Way | None = None
    filters: str = ""
    compared: tuple[str, ...] = ()


@dataclass(slots=True)
class Joined:
    """What a statement says of the tables of servers that it joins."""

    sources: Mapping[int, Source]
    blocks: Sequence[Block]
    nodes: Sequence[exp.Table]
    conditions: Conditions
    link: cost.Link
    may_show: Callable[[RemoteQuery], bool]
    change: bool
    _known: dict[int, list[_Way]] = field(default_factory=dict)

    def choice(self, remote: RemoteQuery, before: Sequence[RemoteQuery]) -> Choice:
        """The way that leaves the fewest rows, by the keys of a table that is read ``before``."""
        source = self.sources[remote.sources[0].table]
        expected = self._kept(remote)[0]
        best = Choice(expected, expected + _looked_at(remote))
        costs = source.backend.costs
        best_s = _read_s(remote, self.link, costs)
        if not source.backend.computes or remote.rows < cost.LEAST_ROWS or remote.probes:
            return best
        places = {other.sources[0].table: other for other in before}
        for way in self._ways(remote, source.table):
            first = places.get(way.tie.other.table.id)
            if first is None or any(ref.table == way.tie.other.table.id for ref in remote.inner):
                continue
            if not self._may_give(first):
                continue
            expected, filters, compared = self._kept(first)
            rows = self._matches(way.tie, remote, first, expected)
            if expected > MOST_KEYS or rows > remote.rows * costs.most_left:
                continue
            work_s = remote.rows * costs.compare_s
            spent_s = cost.seconds(remote, rows, self.link) + work_s
            if spent_s < best_s:
                best, best_s = Choice(rows, rows, way, filters, compared), spent_s
        return best

    def taken(self, remote: RemoteQuery, choice: Choice, probed: Probed) -> RemoteQuery:
        """A scan of a server's table with the keys of another one as members of IN. One probe is
        enough: each one beside it would read less, and show more.
        """
        if choice.by is None:
            return remote
        tie, effects = choice.by.tie, choice.by.effects
        other = facts.column_name(tie.other.table, tie.key)
        words = {"target": facts.table_name(tie.other.table), "other": other}
        met = facts.fact("eq.met", tie.owner.table, [tie.column], **words)
        leaks = [*effects.leaks, met, facts.about(met, tie.other.table, [tie.key])]
        chosen = facts.named(tie.other.table, choice.compared)
        if chosen:
            leaks.append(facts.fact("rows", tie.other.table, chosen))
        probed.leaks += [leak for leak in leaks if leak not in probed.leaks]
        probed.opens += [item for item in effects.opens if item not in probed.opens]
        home = (tie.other.table.schema, tie.other.table.name)
        filters = (choice.filters,) if choice.filters else ()
        least = min(tie.other.table.row_count, tie.owner.table.row_count)
        most = int(least * self.sources[tie.owner.table.id].backend.costs.most_left)
        probe = Probe(
            tie.column.id, home, tie.key.name, LOOKUP_ROWS, filters,
            node=choice.by.condition, most=min(max(most, MOST_LISTED), MOST_KEYS),
        )  # fmt: skip
        return replace(remote, probes=(probe,), rows=choice.rows, lookup=None)

    def _ways(self, remote: RemoteQuery, table: Table) -> list[_Way]:
        """The ways that every occurrence of a table admits, and the ceilings."""
        known = self._known.get(table.id)
        if known is None:
            may = self.may_show(remote)
            known = self._known[table.id] = self._read_ways(remote, table) if may else []
        return known

    def _read_ways(self, remote: RemoteQuery, table: Table) -> list[_Way]:
        count = len(ties.named(self.nodes, table))
        held: dict[tuple[int, int, int], dict[int, Tie]] = {}
        for tie in ties.ties(table, self.blocks):
            key = (tie.column.id, tie.other.table.id, tie.key.id)
            held.setdefault(key, {}).setdefault(tie.owner.slot, tie)
        ways: list[_Way] = []
        for tied in held.values():
            tie = next(iter(tied.values()))
            domain = code_domain(tie.column.type)
            if len(tied) != count or not domain or domain != code_domain(tie.key.type):
                continue
            if tie.other.table.id not in self.sources or tie.other.table.id == table.id:
                continue
            if not tie.column.encrypted or not may_meet(tie.column, tie.key):
                continue
            if (way := self._way(tie, remote)) is not None:
                ways.append(way)
        return ways

    def _way(self, tie: Tie, remote: RemoteQuery) -> _Way | None:
        name = exp.column(exp.to_identifier(tie.column.name, quoted=True), tie.owner.name)
        node = exp.In(this=name, expressions=[exp.Null()])
        scope = self.conditions.scope({tie.owner.slot: remote.sources[0].slot})
        if not self.conditions.decides(node, frozenset({tie.owner.slot})):
            return None
        condition = self.conditions.predicate(node, scope)
        if condition is None or len(keys.codes_of(condition.node)) != 1:
            return None
        return _Way(tie, condition.node, scope.collected)

    def _matches(self, tie: Tie, remote: RemoteQuery, first: RemoteQuery, expected: float) -> float:
        """How many rows are expected to have one of so many keys: one for each of a column without
        duplicates, and as large a share as is kept of the keys' own table of what refers to these.
        """
        if tie.column.unique or (self.change and not tie.key.unique):
            name = exp.column(exp.to_identifier(tie.column.name, quoted=True), tie.owner.name)
            node = exp.In(this=name, expressions=[exp.Null()])
            scope = self.conditions.scope({tie.owner.slot: remote.sources[0].slot})
            return min(remote.rows, expected * remote.rows * cost.fraction(node, scope))
        least = min(tie.other.table.row_count, tie.owner.table.row_count)
        share = min(1.0, expected / max(least, 1))
        if first.probes and first.probes[0].column != tie.key.id and not tie.key.unique:
            # Rows that were chosen by their values of one column have most of another one's.
            share = math.sqrt(share)
        return remote.rows * share

    def _may_give(self, first: RemoteQuery) -> bool:
        """Whether the rows that are left of a table may show by their keys: a look-up in one step
        leaves out rows by columns of any ceiling.
        """
        if first.lookup is None:
            return True
        read = [out.name for out in first.lookup.first.outputs]
        return ties.may_show(read, self.sources[first.sources[0].table].table)

    def _kept(self, remote: RemoteQuery) -> tuple[float, str, tuple[str, ...]]:
        """How many rows of a table that is read first are expected to give keys, the filters that
        these pass before, and the columns which those compare, where keys show more of them than
        reading does.
        """
        source = self.sources[remote.sources[0].table]
        if not source.backend.computes:
            return remote.rows, "", ()
        if remote.lookup is not None:
            read = [out.name for out in remote.lookup.first.outputs]
            compared = () if remote.lookup.rest is not None else tuple(read)
            return remote.lookup.matches, "", compared
        if remote.rows >= cost.LEAST_ROWS or remote.probes or self.change:
            return remote.rows, "", ()
        owners = [o for block in self.blocks for _, o in block.items if o is not None]
        owners = [owner for owner in owners if owner.table.id == source.table.id]
        if len(owners) != len(ties.named(self.nodes, source.table)):
            return remote.rows, "", ()
        from louver.trusted.planner.split.scans import lookups

        chosen = lookups.conditions_of(source, owners, self.blocks, self.conditions, pushed=False)
        if chosen is None or not ties.may_show([*chosen.names], source.table):
            return remote.rows, "", ()
        names = tuple(c.name for c in source.table.columns if fold(c.name) in chosen.names)
        rows = min(remote.rows, source.table.row_count * chosen.left)
        return rows, chosen.condition, names


def _read_s(remote: RemoteQuery, link: cost.Link, costs: Costs) -> float:
    """To read a table as it is planned, in one step or in two."""
    lookup = remote.lookup
    if lookup is None:
        return cost.seconds(remote, remote.rows, link)
    first_s = cost.seconds(lookup.first, remote.rows, link)
    if lookup.rest is None:
        return first_s
    return first_s + cost.by_number_s(lookup.rest, lookup.matches, remote.rows, link, costs)


def _looked_at(remote: RemoteQuery) -> float:
    """What the first step of a look-up reads, in rows of all columns."""
    if remote.lookup is None:
        return 0.0
    return remote.rows * cost.row_bytes(remote.lookup.first) / cost.row_bytes(remote)
