"""Which occurrences a statement's conditions filter, and which reduce which.

An edge T ← N with conditions says: a row of T matters only if some row of N that matters meets
them. Both ends of an inner equi-join reduce each other; of a left join, the left side reduces the
right one; a subquery's table is reduced by the outer table that it is correlated with, and reduces
that one only if the subquery is an EXISTS or IN that must be true (Yannakakis' semi-joins).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from louver.trusted.planner.split.scans import query_blocks, stated_rows
from louver.trusted.planner.split.scans.conditions import Conditions, equates, pairs, parts
from louver.trusted.planner.split.scans.query_blocks import Block, Context
from louver.trusted.vault.levels import allows
from louver.trusted.vault.types import family

MOST_DEPTH = 4
"""How many tables a chain of semi-joins goes through."""


@dataclass(slots=True)
class Graph:
    """``filters`` are conditions per occurrence, ``edges`` those per target and source. Where
    tables lie ``apart``, edges are of no use.
    """

    conditions: Conditions
    filters: dict[int, list[exp.Expr]] = field(default_factory=dict)
    edges: dict[int, dict[int, list[exp.Expr]]] = field(default_factory=dict)
    apart: bool = False

    def filter(self, slot: int, node: exp.Expr) -> None:
        """Note a filter, once."""
        held = self.filters.setdefault(slot, [])
        if node not in held:
            held.append(node)

    def edge(self, target: int, source: int, node: exp.Expr) -> None:
        """Note an edge's condition, once. It must be one that the server may see of both."""
        if not self.conditions.is_cheap(node, frozenset({target, source})):
            return
        if not self._may_touch(node):
            return
        held = self.edges.setdefault(target, {}).setdefault(source, [])
        if node not in held:
            held.append(node)

    def _may_touch(self, node: exp.Expr) -> bool:
        """Whether the ceilings of what is compared allow to show which rows a query reads."""
        names = {o.name: o for o in self.conditions.occurrences.values()}
        for part in node.find_all(exp.Column):
            owner = names.get(part.table)
            column = owner.table.column(part.name) if owner is not None else None
            if column is None or (column.encrypted and not allows(column.ceiling, "access")):
                return False
        return True

    def inner_filters(self, slot: int) -> list[exp.Expr]:
        """The filters that may stand within a semi-join."""
        alone = frozenset({slot})
        filters = self.filters.get(slot, [])
        cheap = [node for node in filters if self.conditions.is_cheap(node, alone)]
        return [node for node in cheap if self._may_touch(node)]


def gather(blocks: list[Block], conditions: Conditions) -> Graph:
    """All filters and edges of a statement's blocks."""
    graph = Graph(conditions)
    by_select = {id(block.select): block for block in blocks}
    for block in blocks:
        for context in block.contexts:
            for part in parts(context.condition, block):
                _note(part, block, context, graph)
                _note_member(part, block, context, by_select, graph)
                _note_stated(part, block, context, graph)
    return graph


def _note(part: exp.Expr, block: Block, context: Context, graph: Graph) -> None:
    conditions = graph.conditions
    for slot in _mentioned(part, block):
        if slot in context.targets:
            node = conditions.weakened(part, block, frozenset({slot}))
            if node is not None:
                graph.filter(slot, node)
    for pair in pairs(part, block, conditions):
        node = conditions.weakened(part, block, pair)
        if node is None or not equates(node):
            continue
        for target in pair & context.targets:
            (source,) = pair - {target}
            graph.edge(target, source, node)


def _note_stated(part: exp.Expr, block: Block, context: Context, graph: Graph) -> None:
    """An equality with rows of constants as IN."""
    for owner, member in stated_rows.members(part, block, graph.conditions):
        if owner.slot in context.targets:
            node = graph.conditions.weakened(member, block, frozenset({owner.slot}))
            if node is not None:
                graph.filter(owner.slot, node)


def _mentioned(part: exp.Expr, block: Block) -> list[int]:
    owners = [block.resolve(column) for column in part.find_all(exp.Column)]
    return sorted({owner.slot for owner in owners if owner is not None})


def _note_member(
    part: exp.Expr,
    block: Block,
    context: Context,
    by_select: dict[int, Block],
    graph: Graph,
) -> None:
    """An IN (SELECT …) as the semi-join that it is."""
    if not isinstance(part, exp.In) or not isinstance(part.this.unnest(), exp.Column):
        return
    query, item = query_blocks.subquery(part), query_blocks.member(part)
    inner = by_select.get(id(query))
    if query is None or item is None or inner is None or inner.parent is not block:
        return
    outside, inside = part.this.unnest(), item
    first, second = block.resolve(outside), inner.resolve(inside)
    if first is None or second is None or first.slot == second.slot:
        return
    if second not in [match for _, match in inner.items]:
        return
    left, right = first.table.column(outside.name), second.table.column(inside.name)
    if left is None or right is None or family(left.type) != family(right.type):
        # IN may bring the two to another type than = does.
        return
    node = exp.EQ(
        this=exp.column(outside.this.copy(), exp.to_identifier(first.name)),
        expression=exp.column(inside.this.copy(), exp.to_identifier(second.name)),
    )
    ends = frozenset({first.slot, second.slot})
    if first.slot not in context.targets or not graph.conditions.decides(node, ends):
        return
    graph.edge(first.slot, second.slot, node)
    if second.slot in inner.strong and query_blocks.gives_all(query):
        graph.edge(second.slot, first.slot, node)


@dataclass(slots=True)
class Reduction:
    """A semi-join: rows of an occurrence are kept that meet ``conditions`` with a row of the
    occurrence ``slot`` that passes ``filters`` and all ``inner`` reductions.
    """

    slot: int
    conditions: list[exp.Expr]
    filters: list[exp.Expr]
    inner: list[Reduction] = field(default_factory=list)


def reductions(target: int, graph: Graph) -> list[Reduction]:
    """The semi-joins that reduce an occurrence: every other one at most once, by the shortest
    way, and only if it is filtered itself or leads to one that is.
    """
    roots: list[Reduction] = []
    if graph.apart:
        return roots
    seen = {target}
    front: list[tuple[int, list[Reduction]]] = [(target, roots)]
    for _ in range(MOST_DEPTH):
        reached: list[tuple[int, list[Reduction]]] = []
        for slot, held in front:
            for source, conditions in sorted(graph.edges.get(slot, {}).items()):
                if source in seen:
                    continue
                seen.add(source)
                reduction = Reduction(source, conditions, graph.inner_filters(source))
                held.append(reduction)
                reached.append((source, reduction.inner))
        front = reached
    return _worth(roots)


def _worth(reductions: list[Reduction]) -> list[Reduction]:
    for reduction in reductions:
        reduction.inner = _worth(reduction.inner)
    return [reduction for reduction in reductions if reduction.filters or reduction.inner]
