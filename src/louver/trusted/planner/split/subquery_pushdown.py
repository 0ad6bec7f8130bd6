"""Split of a larger statement: its aggregating blocks, wherever they stand, run on the server.

before  WITH S AS (SELECT G, SUM(A) FROM T GROUP BY G) SELECT … FROM S JOIN U …
A block over base tables that the server can group and aggregate by itself (`block`) is asked for
as a whole, and only its groups are sent. Locally its text is replaced by a query of the opened
groups; all else stays the user's own words. What is not a such block is scanned (`scan`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.planner import cost
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.normal_form.sources import output_names
from louver.trusted.planner.split import whole_block
from louver.trusted.planner.split.nested import block_text, is_nested, plan_nested
from louver.trusted.planner.split.select_positions import select_spans
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX, Shape
from louver.trusted.planner.sql.scope import Servers, Source
from louver.trusted.planner.sql.selection import Unsplit
from louver.trusted.vault.catalog import Table

Describe = Callable[[str], list[tuple[str, str]]]
WORTH = 2
"""Rows that a group must stand for, at the least, as far as can be told."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the statement with its own plan, and the tokens that it replaces."""

    select: exp.Select
    plan: Plan
    first: int
    last: int


def plan_blocks(
    tree: exp.Expr,
    written: exp.Expr | None,
    tokens: Sequence[Token],
    resolve: selection.Resolve,
    shape: Shape,
    servers: Servers,
    parameters: Sequence[object],
    describe: Describe,
    allowed: Callable[[Plan], bool],
) -> list[Block]:
    """The blocks that the server can run whole; none lies within another. Those of the normal form
    replace what is ``written``: the block that bears the same mark.
    """
    if written is None:
        return []
    spans = select_spans(written, tokens)
    by_mark = {select.meta.get("mark"): select for select in written.find_all(exp.Select)}
    blocks: list[Block] = []
    for select in tree.find_all(exp.Select):
        own = select if tree is written else by_mark.get(select.meta.get("mark"))
        span = spans.get(id(own))
        if own is None or span is None or any(_within(span, other) for other in blocks):
            continue
        target = f"louver_rows_{len(blocks)}"
        try:
            plan = _plan(select, own, resolve, shape, servers, parameters, describe, target)
        except (Unsplit, errors.Error):
            continue
        if allowed(plan):
            blocks.append(Block(select, plan, *span))
    return blocks


def beside(tree: exp.Expr, parts: Sequence[Block], tables: list[Table]) -> list[Table]:
    """The tables that are read outside of the blocks. The blocks are cut out of the tree."""
    if not parts:
        return tables
    for part in parts:
        part.select.replace(exp.select("1"))
    # By name: one that a common table expression has too may still be the table's.
    outside = {fold(node.name) for node in tree.find_all(exp.Table)}
    return [table for table in tables if fold(table.name) in outside]


def needed(parts: Sequence[Block], plan: Plan) -> list[Block]:
    """The blocks that ``plan``, which reads what is beside them, leaves to the server. One whose
    tables are read whole anyway costs less, and shows less, where these rows are finished: every
    column that the statement names is read with them.
    """
    read = {
        remote.sources[0].table
        for remote in plan.remotes
        if remote.whole_table and not (remote.where or remote.probes or remote.lookup)
    }
    return [part for part in parts if not _tables(part.plan) <= read]


def _tables(plan: Plan) -> set[int]:
    return {ref.table for remote in plan.remotes for ref in (*remote.sources, *remote.inner)}


def joined(plan: Plan, parts: Sequence[Block]) -> Plan:
    """The plan of the whole statement."""
    if not parts:
        return plan
    plans = [plan, *(part.plan for part in parts)]
    return replace(
        plan,
        kind="scans" if plan.remotes else "blocks",
        remotes=tuple(remote for other in plans for remote in other.remotes),
        leaks=tuple(dict.fromkeys(leak for other in plans for leak in other.leaks)),
        opens=tuple(dict.fromkeys(opening for other in plans for opening in other.opens)),
        reads_secret=any(other.reads_secret for other in plans),
        replacements=tuple((part.first, part.last, part.plan.home_sql) for part in parts),
    )


def _within(span: tuple[int, int], other: Block) -> bool:
    return other.first <= span[1] and span[0] <= other.last


def _plan(
    select: exp.Select,
    own: exp.Select,
    resolve: selection.Resolve,
    shape: Shape,
    servers: Servers,
    parameters: Sequence[object],
    describe: Describe,
    target: str,
) -> Plan:
    grouped = selection.is_aggregated(select) or select.args.get("distinct") is not None
    if not grouped or any(
        column.name.startswith(PARAMETER_PREFIX) for column in select.find_all(exp.Column)
    ):
        raise Unsplit
    # A block that needs columns from around it does not bind by itself.
    names = [name for name, _ in describe(block_text(own, parameters))]
    if own is not select:
        describe(block_text(select, parameters))
        if len(select.expressions) < len(names):
            # Columns that the block around does not read are dropped, and all others have names.
            names = list(output_names(select) or ())
    if own is not select and is_nested(select):
        named = select.copy()
        _name(named, names)
        return plan_nested(named, resolve, shape, servers, parameters, describe, target=target)
    sources = selection.sources_of(select, resolve, servers)
    if not _is_worth(select, sources):
        raise Unsplit
    block = whole_block.plan_block(
        select, sources, shape, servers, parameters, describe, target=target
    )
    plan, tree = block.plan, block.tree
    if plan.kind != "whole":
        raise Unsplit
    _name(tree, names)
    return replace(plan, home_sql=selection.marked_text(tree))


def _name(tree: exp.Select, names: Sequence[str]) -> None:
    """Give the items the names that the block's own text gives them."""
    if len(tree.expressions) != len(names):
        raise Unsplit
    items = [
        exp.alias_(item.unalias().copy(), name, quoted=True)
        for item, name in zip(tree.expressions, names, strict=True)
    ]
    tree.set("expressions", items)


def _is_worth(select: exp.Select, sources: list[Source]) -> bool:
    """Whether groups are fewer than rows, as far as the columns' bounds tell."""
    rows = max(source.table.row_count for source in sources)
    clause = select.args.get("group")
    keys = clause.expressions if clause else ()
    if select.args.get("distinct") is not None:
        keys = [item.unalias() for item in select.expressions]
    groups, guessed = 1.0, set[int]()
    for key in keys:
        groups *= _values(key, sources, rows, guessed)
    return groups * WORTH <= max(rows, WORTH)


def _values(key: exp.Expr, sources: list[Source], rows: int, guessed: set[int]) -> float:
    """A guess at how many values a grouping expression has, beside those before it.

    What is not known of encrypted columns is guessed once for each table: the columns that one
    groups by seldom have all their combinations.
    """
    for source in sources:
        column = source.table.column(key.name) if isinstance(key, exp.Column) else None
        if column is None:
            continue
        if column.encrypted and not (column.choices or column.unique):
            if source.table.id in guessed:
                return 1.0
            guessed.add(source.table.id)
        return cost.distinct(column, source.table.row_count)
    return math.sqrt(rows or 1)
