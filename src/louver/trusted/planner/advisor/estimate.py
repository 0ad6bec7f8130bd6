"""What a plan is expected to cost, from the client's bounds and counts alone.

A guess that is wrong makes advice worse, never an answer. The shares of rows are those of `cost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from louver.names import keyword
from louver.trusted.planner import cost
from louver.trusted.planner.ir import Plan, RemoteQuery
from louver.trusted.planner.sql import lexer, selection
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.scope import Scope, Servers, Source
from louver.trusted.planner.sql.selection import Unsplit
from louver.trusted.vault import bounds

RUN_BYTES = 3
"""What one scattered row number weighs in a row set."""
MASK_S = 5e-8
"""To take one row's mask away from a masked sum."""
_PARTS = {
    exp.Month: 12, exp.Quarter: 4, exp.Day: 31, exp.Week: 53, exp.DayOfWeek: 7, exp.DayOfYear: 366,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """What running a statement is expected to take: bytes that the servers send, values that the
    client opens, seconds in all.
    """

    sent_bytes: float = 0.0
    opened_rows: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Estimate) -> Estimate:
        """Both, one after the other."""
        return Estimate(
            self.sent_bytes + other.sent_bytes,
            self.opened_rows + other.opened_rows,
            self.seconds + other.seconds,
        )


def of_plan(
    plan: Plan, resolver: Resolver, servers: Servers, shape: lexer.Shape, link: cost.Link
) -> Estimate:
    """The estimate of a plan of the statement and on the catalog that the resolver is of."""
    total = Estimate()
    for remote in plan.remotes:
        total += _of_remote(remote, resolver, servers, shape, link)
    return total


def _of_remote(
    remote: RemoteQuery, resolver: Resolver, servers: Servers, shape: lexer.Shape, link: cost.Link
) -> Estimate:
    if remote.lookup is not None and remote.lookup.rest is not None:
        steps = (remote.lookup.first, remote.lookup.rest)
        first, rest = (_of_remote(step, resolver, servers, shape, link) for step in steps)
        return first + rest
    tables = [resolver.catalog.by_id(other.table) for other in (*remote.sources, *remote.inner)]
    read = [float(table.row_count) for table in tables]
    costs = servers.backend_of(tables[0]).costs
    work_s = sum(read) * costs.compare_s * max(len(remote.where), 1)
    work_s += max(read, default=0.0) * costs.probe_s * (len(read) - 1)
    rows, met = _rows(remote, resolver, servers, shape, [])
    sent = rows * cost.row_bytes(remote)
    seconds = rows * cost.opening_s(remote)
    named = any(out.summed is not None and out.summed.names_rows for out in remote.outputs)
    if named and met < sum(read):
        # The rows that were added are named one by one, as far as they do not lie together.
        sent += min(met * RUN_BYTES, sum(read) / 8 + rows * 16)
        seconds += met * MASK_S
    return Estimate(sent, rows, seconds + work_s + link.seconds(sent))


def fill(
    plan: Plan,
    resolver: Resolver,
    servers: Servers,
    shape: lexer.Shape,
    parameters: list[object],
) -> Plan:
    """The plan with the expected sizes of its answers, where the planner had no need to know."""
    remotes = []
    for remote in plan.remotes:
        if not remote.width:
            rows, _ = _rows(remote, resolver, servers, shape, parameters)
            remote = replace(remote, rows=rows, width=cost.row_bytes(remote))
        remotes.append(remote)
    return replace(plan, remotes=tuple(remotes))


def _rows(
    remote: RemoteQuery,
    resolver: Resolver,
    servers: Servers,
    shape: lexer.Shape,
    parameters: list[object],
) -> tuple[float, float]:
    """The rows of an answer, and those that were met on the way to it."""
    if remote.width and not remote.grouped:
        return remote.rows, remote.rows
    sources = [
        servers.source(other.slot, other.alias, resolver.catalog.by_id(other.table))
        for other in remote.sources
    ]
    select = _select_of(sources, resolver, servers)
    scope = Scope(sources, shape, 0, parameters)
    met = _met(sources, select, scope)
    rows = _groups(select, scope, met) if remote.grouped else met
    return min(rows, _limit(select)) if remote.limit else rows, met


def _select_of(wanted: list[Source], resolver: Resolver, servers: Servers) -> exp.Select | None:
    """The block of the statement that reads these table occurrences."""
    refs, tree = [source.ref for source in wanted], resolver.tree
    for select in tree.find_all(exp.Select) if tree is not None else ():
        try:
            sources = selection.sources_of(select, resolver.table, servers)
        except Unsplit:
            continue
        if [source.ref for source in sources] == refs:
            return select
    return None


def _met(sources: Sequence[Source], select: exp.Select | None, scope: Scope) -> float:
    """How many joined rows meet the conditions of a block."""
    rows = 1.0
    for source in sources:
        rows *= max(source.table.row_count, 1)
    for condition in _conditions(select):
        rows *= _equated(condition, scope) or cost.fraction(condition, scope, private=True)
    return max(rows, 1.0)


def _conditions(select: exp.Select | None) -> list[exp.Expr]:
    if select is None:
        return []
    where = select.args.get("where")
    results = selection.conjuncts(where.this if where else None)
    for join in select.args.get("joins") or []:
        if not join.side:
            results += selection.conjuncts(join.args.get("on"))
    return results


def _equated(node: exp.Expr, scope: Scope) -> float:
    """Of an equality of two columns: one of the values of the side that has more; else 0."""
    if not isinstance(node, exp.EQ):
        return 0.0
    sides = [node.this.unnest(), node.expression.unnest()]
    results = [scope.find(side) for side in sides if isinstance(side, exp.Column)]
    known = [position for position in results if position is not None]
    if len(known) < 2:
        return 0.0
    return 1 / max(cost.distinct(column, s.table.row_count, private=True) for s, column in known)


def _groups(select: exp.Select | None, scope: Scope, met: float) -> float:
    clause = select.args.get("group") if select is not None else None
    groups = 1.0
    for key in clause.expressions if clause else ():
        groups *= values(key, scope)
    return min(groups, met)


def values(key: exp.Expr, scope: Scope) -> float:
    """A guess at how many values an expression over columns has."""
    bare = key.unnest()
    owners = [results for c in bare.find_all(exp.Column) if (results := scope.find(c)) is not None]
    if not owners:
        return 1.0
    source, column = owners[0]
    several = cost.distinct(column, source.table.row_count, private=True)
    if isinstance(bare, exp.Column):
        return several
    year = isinstance(bare, exp.Year) or (
        isinstance(bare, exp.Extract) and keyword(bare.name) == "YEAR"
    )
    if year:
        known = bounds.close(column) is not None and column.type == "DATE"
        return max(1.0, several / 365) if known else 10.0
    for kind, most in _PARTS.items():
        if isinstance(bare, kind):
            return min(several, float(most))
    return several


def _limit(select: exp.Select | None) -> float:
    clause = select.args.get("limit") if select is not None else None
    number = clause.expression.name if clause is not None else ""
    return float(number) if number.isdigit() else 100.0
