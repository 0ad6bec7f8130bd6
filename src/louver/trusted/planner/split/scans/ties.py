"""Equalities that tie occurrences of tables: a row of one matters only if one of the other has its
value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.split.scans import query_blocks
from louver.trusted.planner.split.scans.conditions import parts
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import allows
from louver.trusted.vault.types import code_domain


@dataclass(frozen=True, slots=True)
class Tie:
    """An equality of a column of one occurrence and one of another, whose rows both matter."""

    owner: Occurrence
    column: Column
    other: Occurrence
    key: Column


def stated(table: Table, blocks: Sequence[Block]) -> list[Tie]:
    """The ties of a table's occurrences, of which rows may be left out, with others."""
    return [tie for tie in _all(blocks) if tie.owner.table.id == table.id]


def ties(table: Table, blocks: Sequence[Block]) -> list[Tie]:
    """The stated ties, and those that follow: what a row of the other table must have of a third
    one's values, this one's must have too.
    """
    every = _all(blocks)
    reached = [tie for tie in every if tie.owner.table.id == table.id]
    seen = {_ends(tie) for tie in reached}
    for tie in reached:
        for further in every:
            if further.owner.slot != tie.other.slot or further.column.id != tie.key.id:
                continue
            follows = replace(tie, other=further.other, key=further.key)
            exact = code_domain(tie.column.type) == code_domain(tie.key.type) == _EXACT
            if not exact or further.other.slot == tie.owner.slot or _ends(follows) in seen:
                continue
            seen.add(_ends(follows))
            reached.append(follows)
    return reached


#: Of these = is the same, whichever type two values are compared in.
_EXACT = "int"


def _ends(tie: Tie) -> tuple[int, int, int, int]:
    return tie.owner.slot, tie.column.id, tie.other.slot, tie.key.id


def _all(blocks: Sequence[Block]) -> list[Tie]:
    results: list[Tie] = []
    for block in blocks:
        for context in block.contexts:
            for part in parts(context.condition, block):
                for equality in _implied(part):
                    for left, right in _sides(equality, block, blocks):
                        if left[0].slot in context.targets:
                            results.append(Tie(*left, *right))
    return results


def _implied(part: exp.Expr) -> list[exp.Expr]:
    """The condition itself; of an OR the equalities that each of its sides states."""
    bare = part.unnest()
    if not isinstance(bare, exp.Or):
        return [part]
    left, right = (
        [item.unnest() for both in selection.conjuncts(side) for item in _implied(both)]
        for side in (bare.this, bare.expression)
    )
    return [item for item in left if isinstance(item, exp.EQ) and item in right]


_Side = tuple[Occurrence, Column]


def _sides(part: exp.Expr, block: Block, blocks: Sequence[Block]) -> list[tuple[_Side, _Side]]:
    """Both readings of an equality of two columns; of IN (SELECT …) the one from outside."""
    if isinstance(part, exp.EQ):
        first, second = (_column(node, block) for node in (part.this, part.expression))
        if first and second and first[0].slot != second[0].slot:
            return [(first, second), (second, first)]
    if isinstance(part, exp.In):
        query, item = query_blocks.subquery(part), query_blocks.member(part)
        inner = next((b for b in blocks if b.select is query), None)
        if item is not None and inner is not None and not inner.frozen:
            outside, inside = _column(part.this, block), _column(item, inner)
            local = inside is not None and inside[0] in [held for _, held in inner.items]
            if outside and inside and local:
                return [(outside, inside)]
    return []


def _column(node: exp.Expr, block: Block) -> _Side | None:
    bare = node.unnest()
    if not isinstance(bare, exp.Column) or bare.name.startswith(PARAMETER_PREFIX):
        return None
    owner = block.resolve(bare)
    column = owner.table.column(bare.name) if owner is not None else None
    return (owner, column) if owner is not None and column is not None else None


def named(nodes: Sequence[exp.Table], table: Table) -> list[exp.Table]:
    """The mentions of a table's name."""
    return [node for node in nodes if fold(node.name) == fold(table.name)]


def may_show(names: Sequence[str], table: Table) -> bool:
    """Whether these columns of a table admit that the server sees which rows a query touches."""
    columns = [table.column(name) for name in names]
    return all(c is None or not c.encrypted or allows(c.ceiling, "access") for c in columns)
