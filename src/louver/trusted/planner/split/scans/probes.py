"""Semi-joins by keys that were read: those of one table choose the rows, or files, of another.

A row of T matters only if some row of N that matters has the same key (see `graph`). N is read
first. A table that occurs several times is reduced so only if all of its occurrences are.

On a lake, the keys of N become ranges of T's column, if something else reduces N. On a server, T is
asked for the rows that have one of N's keys, as by IN, if that is expected to leave few of them:
as large a share of T's rows as is left of N's. The server then sees which values of the two columns
are equal, for N may have one row; so both must admit that. The tables are read in the order in
which each is expected to give the fewest rows after those before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from louver.trusted.planner import cost
from louver.trusted.planner.ir import Probe, RemoteQuery
from louver.trusted.planner.split.scans import key_joins, ties
from louver.trusted.planner.split.scans.conditions import Conditions, parts
from louver.trusted.planner.split.scans.key_joins import Probed
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.split.scans.ties import Tie
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.facts import Fact
from louver.trusted.vault.levels import allows
from louver.trusted.vault.scheme import answered
from louver.trusted.vault.types import family


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
    probed = Probed([])
    left = sorted(remotes, key=lambda remote: (remote.rows, remote.home))
    joined = key_joins.Joined(sources, blocks, nodes, conditions, link, may_show, change)
    while left:
        choices = [joined.choice(remote, probed.remotes) for remote in left]
        position = min(range(len(left)), key=lambda index: choices[index].turn)
        remote, choice = left.pop(position), choices[position]
        source = sources[remote.sources[0].table]
        if source.backend.keys_choose:
            remote = _by_all_ranges(remote, source.table, nodes, blocks, conditions, probed)
        else:
            remote = joined.taken(remote, choice, probed)
        probed.remotes.append(remote)
    if not any(remote.probes for remote in probed.remotes):
        probed.remotes = remotes
    return probed


def _by_all_ranges(
    remote: RemoteQuery,
    table: Table,
    nodes: Sequence[exp.Table],
    blocks: Sequence[Block],
    conditions: Conditions,
    probed: Probed,
) -> RemoteQuery:
    """A scan of a lake with the keys of those that are read before it."""
    if len(ties.named(nodes, table)) != 1:
        return remote
    places = {before.sources[0].table: before for before in probed.remotes}
    for tie in ties.stated(table, blocks):
        first = places.get(tie.other.table.id)
        if first is not None:
            remote = _by_ranges(tie, remote, first, blocks, conditions, probed)
    return remote


def _by_ranges(
    tie: Tie,
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


def _leaks(tie: Tie, compared: list[str]) -> list[Fact]:
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


def _shows_equality(tie: Tie, compared: Sequence[str]) -> bool:
    """Whether the number of different keys tells what a ceiling forbids: which keys are equal, or
    how many rows met the conditions on other columns.
    """
    columns = [tie.key, *facts.named(tie.other.table, compared)]
    return any(c.encrypted and not allows(c.ceiling, "equality") for c in columns)


def _may(tie: Tie) -> bool:
    if answered(tie.column, "RANGE") is None or family(tie.column.type) != family(tie.key.type):
        return False
    return not tie.key.encrypted or allows(tie.key.ceiling, "access")


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
                text = _open(bound[0], conditions) if ties.may_show(names, owner.table) else ""
                if text and text not in texts:
                    texts.append(text)
                    compared += names
    return texts, compared


def _columns_in(node: exp.Expr, table: Table) -> list[str]:
    columns = [table.column(part.name) for part in node.find_all(exp.Column)]
    return [column.name for column in columns if column is not None]


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
