"""Conditions of a statement in the form that the server can decide, or a weaker one.

A part that the server cannot decide is left out of an AND; an OR is kept only if each of its sides
leaves something. So what is pushed may pass too many rows, never too few, and home applies the
whole condition again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from louver.trusted.planner import choose
from louver.trusted.planner.ir import Code, Column, Node, Opening, Sql
from louver.trusted.planner.operators import keys
from louver.trusted.planner.split import rewrite
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX, Shape
from louver.trusted.planner.sql.scope import Scope, Servers, Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.planner.sql.values import PlanEffects, Predicate
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Column as Declared
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import scheme_of

Describe = Callable[[str], list[tuple[str, str]]]
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)


@dataclass(slots=True)
class Conditions:
    """Rewrites conditions over occurrences whose columns bear the occurrences' own names."""

    shape: Shape
    servers: Servers
    parameters: Sequence[object]
    describe: Describe
    occurrences: dict[int, Occurrence]
    types: dict[str, str] = field(default_factory=dict)
    _decided: dict[str, tuple[bool, bool]] = field(default_factory=dict)

    def bound(self, node: exp.Expr, block: Block) -> tuple[exp.Expr, frozenset[int]] | None:
        """A condition with its columns under the occurrences' names, and whose these are; None
        where a name is not clear.
        """
        if node.find(exp.Query, exp.AggFunc, exp.Window) is not None:
            return None
        slots: set[int] = set()
        copy = exp.Paren(this=node.copy())
        for column in list(copy.find_all(exp.Column)):
            if column.name.startswith(PARAMETER_PREFIX):
                continue
            owner = block.resolve(column)
            if owner is None:
                return None
            slots.add(owner.slot)
            column.set("table", exp.to_identifier(owner.name))
        return copy.this, frozenset(slots)

    def weakened(self, node: exp.Expr, block: Block, slots: frozenset[int]) -> exp.Expr | None:
        """What a condition says of just these occurrences, as far as the server can decide it."""
        if isinstance(node, exp.Paren):
            return self.weakened(node.this, block, slots)
        if isinstance(node, exp.And):
            whole = self._key(node, block, slots)
            if whole is not None:
                return whole
            node = keys.regrouped(node, finds(block))
        if isinstance(node, exp.And | exp.Or):
            sides = [self.weakened(side, block, slots) for side in (node.this, node.expression)]
            left, right = sides
            if isinstance(node, exp.And):
                if left is None or right is None or left == right:
                    return left if left is not None else right
                return exp.And(this=left, expression=right)
            if left is None or right is None:
                return None
            return left if left == right else exp.Paren(this=exp.Or(this=left, expression=right))
        condition = self.bound(node, block)
        if condition is None or condition[1] != slots:
            return None
        return condition[0] if self.decides(condition[0], condition[1]) else None

    def _key(self, node: exp.And, block: Block, slots: frozenset[int]) -> exp.Expr | None:
        """Equalities that together are a look-up by a key of several columns; else None."""
        condition = self.bound(node, block)
        if condition is None or condition[1] != slots or len(slots) != 1:
            return None
        scope = self.scope(dict.fromkeys(slots, 0))
        if not isinstance(condition[0], exp.And) or keys.conjunction(condition[0], scope) is None:
            return None
        return condition[0] if self.decides(*condition) else None

    def scope(self, printed: Mapping[int, int]) -> Scope:
        """A scope over occurrences, under the slots that they are printed with."""
        sources = []
        for slot, position in printed.items():
            owner = self.occurrences[slot]
            sources.append(self.servers.source(position, owner.name, owner.table))
        scope = Scope(sources, self.shape, self.servers.modulus_bits, self.parameters, self.types)
        scope.describe = self.describe
        return scope

    def decides(self, node: exp.Expr, slots: frozenset[int]) -> bool:
        """Whether the server can decide a bound condition, and may learn what that shows."""
        return self._decision(node, slots)[0]

    def is_cheap(self, node: exp.Expr, slots: frozenset[int]) -> bool:
        """Whether it decides it by comparing what it holds, without arithmetic on shares."""
        return self._decision(node, slots)[1]

    def _decision(self, node: exp.Expr, slots: frozenset[int]) -> tuple[bool, bool]:
        key = local_text(node)
        known = self._decided.get(key)
        if known is None:
            scope = self.scope({slot: position for position, slot in enumerate(sorted(slots))})
            condition = self.predicate(node, scope)
            allowed = condition is not None and self.allowed(scope.collected, scope.sources)
            known = self._decided[key] = (
                allowed,
                condition is not None and _is_cheap(condition.node),
            )
        return known

    def predicate(self, node: exp.Expr, scope: Scope) -> Predicate | None:
        """A bound condition as the server runs it."""
        if node.find(*_ARITHMETIC) is not None:
            self._ask_types(node, scope)
        condition = rewrite.predicate(node, scope)
        return None if condition is None else rewrite.guarded(condition, scope)

    def _ask_types(self, node: exp.Expr, scope: Scope) -> None:
        tables = [
            exp.alias_(
                exp.Table(
                    this=exp.to_identifier(source.table.name, quoted=True),
                    db=exp.to_identifier(source.table.schema, quoted=True),
                ),
                source.alias,
                table=True,
            )
            for source in scope.sources
        ]
        select = exp.select("1").from_(tables[0])
        for table in tables[1:]:
            select = select.join(table, join_type="cross")
        select.set("where", exp.Where(this=node.copy()))
        rewrite.ask_types(select, scope, self.describe)

    def allowed(self, collected: PlanEffects, sources: Sequence[Source]) -> bool:
        """Whether every column's ceiling is above what was collected."""
        tables = [source.table for source in sources]
        if choose.above_ceiling(collected.leaks, tables):
            return False
        for opening in collected.opens:
            column = _column(opening, tables)
            if column is None or not allows(column.ceiling, level_of(opening)):
                return False
        return True


def compared(node: exp.Expr, table: Table, name: str) -> list[str]:
    """The encrypted columns of an occurrence that a bound condition mentions."""
    names: list[str] = []
    for part in node.find_all(exp.Column):
        column = table.column(part.name) if part.table == name else None
        if column is not None and column.encrypted and column.name not in names:
            names.append(column.name)
    return names


def touched(table: Table, names: Sequence[str]) -> Fact:
    """The server sees which rows of a table a condition on another one meets."""
    return facts.fact("rows", table, facts.named(table, names))


def level_of(opening: Opening) -> str:
    """What an open layer shows."""
    return scheme_of(opening.onion).layer(opening.state).level


def newly_opened(collected: PlanEffects, tables: Sequence[Table]) -> list[Opening]:
    """The layers that are not open yet."""
    openings = []
    for opening in collected.opens:
        column = _column(opening, tables)
        state = column.layers.get(opening.onion, "") if column is not None else ""
        row = scheme_of(opening.onion)
        if row.rank(state) < row.rank(opening.state):
            openings.append(opening)
    return openings


def _column(opening: Opening, tables: Sequence[Table]) -> Declared | None:
    for table in tables:
        if table.id == opening.table:
            return next((c for c in table.columns if c.id == opening.column), None)
    return None


def _is_cheap(node: Node) -> bool:
    if isinstance(node, Sql):
        return all(_is_cheap(child) for child in node.children)
    return isinstance(node, Column | Code)


def equates(node: exp.Expr) -> bool:
    """Whether a bound condition is an equality of two columns, of two occurrences."""
    if not isinstance(node, exp.EQ):
        return False
    sides = (node.this.unnest(), node.expression.unnest())
    if not all(isinstance(side, exp.Column) and side.table for side in sides):
        return False
    return bool(sides[0].table != sides[1].table)


def pairs(node: exp.Expr, block: Block, conditions: Conditions) -> set[frozenset[int]]:
    """The pairs of occurrences that some equality in a condition ties together."""
    linked: set[frozenset[int]] = set()
    for part in node.find_all(exp.EQ):
        bound = conditions.bound(part, block) if part.find(exp.Query) is None else None
        if bound is not None and len(bound[1]) == 2 and equates(bound[0]):
            linked.add(bound[1])
    return linked


def parts(condition: exp.Expr, block: Block) -> list[exp.Expr]:
    """The conjuncts of a condition, equalities that make up a key of several columns as one."""
    return keys.grouped(selection.conjuncts(condition), finds(block))


def finds(block: Block) -> keys.Find[int]:
    """Whose the columns of a condition are in a block."""

    def find(column: exp.Column) -> tuple[int, Table] | None:
        owner = block.resolve(column)
        return None if owner is None else (owner.slot, owner.table)

    return find
