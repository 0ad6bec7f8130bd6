"""Semi-joins by keys that were read: those of one table choose the rows, or files, of another.

A row of T matters only if some row of N that matters has the same key (see `graph`). N is read
first. Only tables that occur once in a statement are reduced so.

On a lake, the keys of N become ranges of T's column, if something else reduces N. On a server, T is
asked for the rows that have one of N's keys, as by IN, if N is expected to give few rows and that
pays. The server then sees which values of the two columns are equal, for N may have one row; so
both must admit that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner import cost
from louver.trusted.planner.ir import Opening, Probe, RemoteQuery
from louver.trusted.planner.operators import keys
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
from louver.trusted.vault.scheme import answered, may_meet
from louver.trusted.vault.types import code_domain, family

MOST_KEYS = 2_048
"""Keys that a server is asked for at once; for more its table is read."""


@dataclass(slots=True)
class Probed:
    """Scans that wait for keys of others, in an order in which every probe finds its keys read, and
    what they show and open.
    """

    remotes: list[RemoteQuery]
    leaks: list[Fact] = field(default_factory=list)
    opens: list[Opening] = field(default_factory=list)


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
    link: cost.Link,
    may_show: Callable[[RemoteQuery], bool],
    *,
    change: bool,
) -> Probed:
    """The remotes with their probes. ``sources`` are the tables that the remotes read, by id;
    ``may_show`` tells of a remote whether the server may see which of its rows are read. ``change``
    tells that the rows are read for a change.
    """
    ordered = sorted(remotes, key=lambda remote: (remote.rows, remote.home))
    probed = Probed(ordered)
    places = {remote.sources[0].table: position for position, remote in enumerate(ordered)}
    for position, remote in enumerate(ordered):
        source = sources[remote.sources[0].table]
        table = source.table
        if sum(fold(n.name) == fold(table.name) for n in nodes) != 1:
            continue
        for tie in _ties(table, blocks):
            before = places.get(tie.other.table.id, position)
            if before >= position:
                continue
            first = ordered[before]
            if source.backend.keys_choose:
                remote = _by_ranges(tie, remote, first, blocks, conditions, probed)
            elif source.backend.computes and may_show(remote):
                remote = _by_codes(tie, remote, first, conditions, link, probed, change=change)
        ordered[position] = remote
    if not any(remote.probes for remote in ordered):
        probed.remotes = remotes
    return probed


def _by_ranges(
    tie: _Tie,
    remote: RemoteQuery,
    first: RemoteQuery,
    blocks: Sequence[Block],
    conditions: Conditions,
    probed: Probed,
) -> RemoteQuery:
    """A scan of a lake with the keys of another one as ranges."""
    if not _may(tie):
        return remote
    filters, compared = _filters(tie.other, blocks, conditions)
    if not filters and not first.probes:
        return remote
    merged = _shows_equality(tie, compared)
    named = (tie.key.name, tie.other.name)
    probe = Probe(tie.column.id, first.home, *named, tuple(filters), merged)
    if probe in remote.probes:
        return remote
    probed.leaks += _leaks(tie, compared)
    return replace(remote, probes=(*remote.probes, probe), whole_table=False)


def _by_codes(
    tie: _Tie,
    remote: RemoteQuery,
    first: RemoteQuery,
    conditions: Conditions,
    link: cost.Link,
    probed: Probed,
    *,
    change: bool,
) -> RemoteQuery:
    """A scan of a server's table with the keys of another one as members of IN. One probe is
    enough: each one beside it would read less, and show more.
    """
    domain, alone = code_domain(tie.column.type), frozenset({tie.owner.slot})
    if not domain or domain != code_domain(tie.key.type) or not tie.column.encrypted:
        return remote
    if remote.probes or not may_meet(tie.column, tie.key):
        return remote
    if not (change and not tie.key.unique) and not tie.column.unique:
        # Rows are mostly joined with what they refer to, so all of them would meet; but what a
        # change is given is mostly what it is to change.
        return remote
    met_there = any(ref.table == tie.other.table.id for ref in remote.inner)
    if met_there or first.rows > MOST_KEYS or remote.rows < cost.LEAST_ROWS:
        return remote
    name = exp.column(exp.to_identifier(tie.column.name, quoted=True), tie.owner.name)
    node = exp.In(this=name, expressions=[exp.Null()])
    scope = conditions.scope({tie.owner.slot: remote.sources[0].slot})
    matches = min(remote.rows, first.rows * remote.rows * cost.fraction(node, scope))
    if matches > remote.rows * scope.sources[0].backend.costs.most_left:
        return remote
    saved = cost.seconds(remote, remote.rows, link) - cost.seconds(remote, matches, link)
    if saved <= remote.rows * scope.sources[0].backend.costs.compare_s:
        return remote
    condition = conditions.predicate(node, scope) if conditions.decides(node, alone) else None
    if condition is None or len(keys.codes_of(condition.node)) != 1:
        return remote
    collected, other = scope.collected, facts.column_name(tie.other.table, tie.key)
    words = {"target": facts.table_name(tie.other.table), "other": other}
    met = facts.fact("eq.met", tie.owner.table, [tie.column], **words)
    probed.leaks += [*collected.leaks, met, facts.about(met, tie.other.table, [tie.key])]
    probed.opens += collected.opens
    probe = Probe(tie.column.id, first.home, tie.key.name, tie.other.name, (), node=condition.node)
    return replace(remote, probes=(probe,), rows=matches, lookup=None)


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
