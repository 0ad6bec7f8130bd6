"""Semi-joins on a lake: keys that were read of one table choose the files of another.

A row of T matters only if some row of N that matters has the same key (see `graph`). N is read
first and finished locally; its keys become ranges of T's column. Only tables that occur once in a
statement are reduced so, and only by tables that something else reduces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.ir import Probe, RemoteQuery
from louver.trusted.planner.split.scans import query_blocks
from louver.trusted.planner.split.scans.conditions import Conditions, parts
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import answered
from louver.trusted.vault.types import family


@dataclass(frozen=True, slots=True)
class _Tie:
    """An equality of a column of one occurrence and one of another, whose rows both matter."""

    owner: Occurrence
    column: Column
    other: Occurrence
    key: Column


def add(
    remotes: list[RemoteQuery],
    sources: Mapping[int, Source],
    blocks: Sequence[Block],
    nodes: Sequence[exp.Table],
    conditions: Conditions,
) -> list[Fact]:
    """Give the remotes that read a lake their probes, and bring all into an order in which every
    probe finds its keys read. ``sources`` are the tables that the remotes read, by id.
    """
    remotes.sort(key=lambda remote: (remote.rows, remote.home))
    leaks: list[Fact] = []
    places = {remote.sources[0].table: position for position, remote in enumerate(remotes)}
    for position, remote in enumerate(remotes):
        source = sources[remote.sources[0].table]
        table = source.table
        if (
            not source.backend.keys_choose
            or sum(fold(n.name) == fold(table.name) for n in nodes) != 1
        ):
            continue
        for tie in _ties(table, blocks):
            before = places.get(tie.other.table.id, position)
            if before >= position or not _may(tie):
                continue
            filters, compared = _filters(tie.other, blocks, conditions)
            first = remotes[before]
            if not filters and not first.probes:
                continue
            home = first.home
            merged = _shows_equality(tie, compared)
            named = (tie.key.name, tie.other.name)
            probe = Probe(tie.column.id, home, *named, tuple(filters), merged)
            if probe not in remote.probes:
                remote = replace(remote, probes=(*remote.probes, probe), whole_table=False)
                leaks += _leaks(tie, compared)
        remotes[position] = remote
    return leaks


def _leaks(tie: _Tie, compared: list[str]) -> list[Fact]:
    """What the tokens of keys show of both tables: of the one that is read first, of its key and
    of what chose its rows.
    """
    source = tie.other.table
    words = {"source": facts.table_name(source)}
    request = answered(tie.column, "RANGE")
    named = request[1].keys if request is not None else ""
    leaks = [facts.fact(named, tie.owner.table, [tie.column], **words)]
    names = list(dict.fromkeys([tie.key.name, *compared]))
    held = [name for name in names if (c := source.column(name)) is not None and c.encrypted]
    if held:
        # The same sentence, told of the other table's columns.
        leaks.append(facts.about(leaks[0], source, facts.named(source, held)))
    return leaks


def _shows_equality(tie: _Tie, compared: Sequence[str]) -> bool:
    """Whether the number of different keys tells what a ceiling forbids: which keys are equal, or
    how many rows met the conditions on other columns.
    """
    columns = [tie.key, *facts.named(tie.other.table, compared)]
    return any(c.encrypted and not allows(c.ceiling, "equality") for c in columns)


def _may(tie: _Tie) -> bool:
    if answered(tie.column, "RANGE") is None or family(tie.column.type) != family(tie.key.type):
        return False
    return not tie.key.encrypted or allows(tie.key.ceiling, "access")


def _ties(table: Table, blocks: Sequence[Block]) -> list[_Tie]:
    ties: list[_Tie] = []
    for block in blocks:
        for context in block.contexts:
            for part in parts(context.condition, block):
                for left, right in _sides(part, block, blocks):
                    if left[0].table.id == table.id and left[0].slot in context.targets:
                        ties.append(_Tie(*left, *right))
    return ties


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


def _filters(
    owner: Occurrence, blocks: Sequence[Block], conditions: Conditions
) -> tuple[list[str], list[str]]:
    """The conditions on an occurrence alone that a row of it must meet to matter, as DuckDB's text
    with the statement's numbers left open, and the columns that they compare. One of a column that
    may not even show which rows a query reads is left out: keys would show it.
    """
    texts: list[str] = []
    compared: list[str] = []
    for block in blocks:
        for context in block.contexts:
            if owner.slot not in context.targets:
                continue
            for part in parts(context.condition, block):
                bound = conditions.bound(part, block)
                if bound is None or bound[1] != {owner.slot}:
                    continue
                names = _columns_in(bound[0], owner.table)
                text = _open(bound[0], conditions) if _may_show(names, owner.table) else ""
                if text and text not in texts:
                    texts.append(text)
                    compared += names
    return texts, compared


def _columns_in(node: exp.Expr, table: Table) -> list[str]:
    columns = [table.column(part.name) for part in node.find_all(exp.Column)]
    return [column.name for column in columns if column is not None]


def _may_show(names: Sequence[str], table: Table) -> bool:
    columns = [table.column(name) for name in names]
    return all(c is None or not c.encrypted or allows(c.ceiling, "access") for c in columns)


_UNSURE = re.compile(
    r"\b(random|nextval|currval|\w*uuid|setseed|now|today|age|current_\w+|local\w*time\w*"
    r"|get_current\w*|transaction_timestamp)\b",
    re.IGNORECASE,
)
"""What is another value when it is asked again."""


def _open(node: exp.Expr, conditions: Conditions) -> str:
    """A condition's text; empty where it holds a placeholder or depends on chance."""
    copy = exp.Paren(this=node.copy())
    starts = conditions.shape.starts
    for part in list(copy.find_all(exp.Literal, exp.Column)):
        if isinstance(part, exp.Column):
            if part.name.startswith(PARAMETER_PREFIX):
                return ""
        elif not part.is_string and part.meta.get("start") in starts:
            part.replace(exp.Var(this=f"⟪{starts.index(part.meta['start'])}⟫"))
    text = str(local_text(copy))
    return "" if _UNSURE.search(text) else text
