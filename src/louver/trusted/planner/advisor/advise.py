"""Advice for a workload (MONOMI's designer: Tu, Kaashoek, Madden, Zeldovich, VLDB 2013).

Each query is planned as if every column that it names might show its order, were joinable with
what the query equates it to, and as if its computed expressions were held by generated columns.
What that plan makes use of is then taken back change by change, as long as little of the saving
goes with it: what remains is the query's wish. The wishes of all queries are put together, and
each is weighed by what the whole workload would lose without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from sqlglot import exp

from louver import errors
from louver.names import fold
from louver.trusted.planner import cost
from louver.trusted.planner.advisor import candidates, estimate, hypothesis
from louver.trusted.planner.advisor.estimate import Estimate
from louver.trusted.planner.advisor.what_if import (
    Change,
    Changes,
    Computed,
    Grouped,
    Place,
    Raised,
    Searchable,
    needed,
    servable,
    steps,
    supposed,
)
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.planner import HomeSchema, Planner
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.split import precomputed
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.scope import Scope, Servers
from louver.trusted.planner.sql.trees import local_text, parse
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.levels import LEVELS, allows

WORTH = 0.05
"""The part of a query's time that must be saved, and of the saving that may be given up for less
leakage.
"""
SLOWER = 1.25
"""How much slower than the fastest plan a query may become for less leakage."""
_TOP = "order"
_MOST_EXPRESSIONS = 16
_GENERATED = 1 << 40
"""Ids of columns that are not there yet begin here."""
Hold = Callable[[Table, str], tuple[str, str] | None]
"""Type and DuckDB's own text of an expression as a generated column of a table; None where it
cannot be one."""
Parameters = Sequence[object] | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the workload."""

    number: int
    text: lexer.Text


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan under some changes, the catalog that it was made on, and what it is to cost."""

    plan: Plan
    catalog: Catalog
    cost: Estimate


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One change that pays: which queries want it, and what the workload costs with all that is
    recommended, and without this one.
    """

    change: Change
    level: str
    queries: tuple[int, ...]
    with_it: tuple[Trial, ...]
    without: tuple[Trial, ...]

    def saving(self) -> Estimate:
        """What the workload saves by it."""
        here, there = total(self.with_it), total(self.without)
        return Estimate(
            there.sent_bytes - here.sent_bytes,
            there.opened_rows - here.opened_rows,
            there.seconds - here.seconds,
        )


@dataclass(slots=True)
class Advice:
    """What a workload wants: recommendations by saving, and every query before and after."""

    recommendations: list[Recommendation]
    changes: Changes
    before: dict[int, Trial]
    after: dict[int, Trial]
    failed: dict[int, errors.Error] = field(default_factory=dict)


def total(trials: Iterable[Trial]) -> Estimate:
    """The cost of several plans."""
    return reduce(add, (trial.cost for trial in trials), Estimate())


def advise(
    queries: Sequence[Query],
    catalog: Catalog,
    home: HomeSchema,
    servers: Servers,
    hold: Hold,
    link: cost.Link | None = None,
) -> Advice:
    """Advice for a workload. Nothing is sent, and no row is looked at."""
    trials = _Trials(catalog, home, servers, link or cost.Link())
    advice = Advice([], {}, {}, {})
    wishes: dict[int, Changes] = {}
    names = _Expressions(hold, servers)
    for query in queries:
        try:
            advice.before[query.number] = trials.run(query, {})
        except errors.Error as error:
            advice.failed[query.number] = error
            continue
        wishes[query.number] = _wish(query, trials, advice.before[query.number], names)
    running = [query for query in queries if query.number in advice.before]
    _weigh(advice, running, wishes, trials)
    return advice


class _Trials:
    """Plans of queries under changes, each made once."""

    def __init__(
        self,
        catalog: Catalog,
        home: HomeSchema,
        servers: Servers,
        link: cost.Link,
    ) -> None:
        self.catalog = catalog
        self._home = _Remembering(home)
        self._servers = servers
        self.backend_of = servers.backend_of
        self._link = link
        self._made: dict[tuple[int, frozenset[tuple[Change, str]]], Trial] = {}

    def run(self, query: Query, changes: Changes) -> Trial:
        """Plan a query under changes; raises where there is no plan."""
        key = (query.number, frozenset(changes.items()))
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = self._planned(query, changes)
        return known

    def _planned(self, query: Query, changes: Changes) -> Trial:
        catalog = supposed(self.catalog, changes, self.backend_of) if changes else self.catalog
        servers = self._servers
        planner = Planner(self._home, lambda: servers.modulus_bits, servers.backend_of)
        settings = PlannerSettings(link=self._link)
        plan, shape = planner.plan(query.text, [], catalog, settings)
        tree = parse(query.text.plain)
        resolver = Resolver(catalog, tree)
        spent = estimate.of_plan(plan, resolver, servers, shape, self._link)
        return Trial(plan, catalog, spent)


class _Remembering:
    """DuckDB's binder, asked each thing once."""

    def __init__(self, home: HomeSchema) -> None:
        self._home = home
        self._described: dict[str, list[tuple[str, str]] | errors.Error] = {}
        self._tables: dict[str, set[str]] = {}

    def describe(self, sql: str, parameters: Parameters = ()) -> list[tuple[str, str]]:
        """Names and types of a query's columns."""
        if parameters:
            return self._home.describe(sql, parameters)
        if sql not in self._described:
            try:
                self._described[sql] = self._home.describe(sql)
            except errors.Error as error:
                self._described[sql] = error
        cached = self._described[sql]
        if isinstance(cached, errors.Error):
            raise cached
        return cached

    @property
    def revision(self) -> int:
        """Another number when names, types or settings may mean something else."""
        return self._home.revision

    def reorders_nulls(self) -> bool:
        """Whether NULLs stand elsewhere in an order than DuckDB puts them by itself."""
        return self._home.reorders_nulls()

    def collated(self) -> bool:
        """Whether texts compare otherwise than by their bytes."""
        return self._home.collated()

    def tables_of(self, sql: str) -> set[str]:
        """The names of the tables and views that a statement reads."""
        if sql not in self._tables:
            self._tables[sql] = self._home.tables_of(sql)
        return self._tables[sql]


class _Expressions:
    """Generated columns that queries would like, each under one name and number."""

    def __init__(self, hold: Hold, servers: Servers) -> None:
        self._hold = hold
        self._servers = servers
        self._known: dict[tuple[int, str], Computed | None] = {}
        self._names: set[str] = set()

    def column(self, table: Table, node: exp.Expr) -> Computed | None:
        """An expression as a generated column; None where it cannot be one, or is one."""
        written = local_text(node)
        key = (table.id, fold(written))
        if key not in self._known:
            self._known[key] = self._made(table, node, written)
        return self._known[key]

    def _made(self, table: Table, node: exp.Expr, written: str) -> Computed | None:
        wanted = precomputed.normal(node)
        if any(c.expression and precomputed.parsed(c.expression) == wanted for c in table.columns):
            return None
        held = self._hold(table, written)
        # What is not recognised in DuckDB's own words would never be read.
        if held is None or precomputed.parsed(held[1]) != wanted:
            return None
        taken = self._names | {fold(column.name) for column in table.columns}
        name = candidates.name_of(node, taken)
        self._names.add(name)
        source = self._servers.source(0, table.name, table)
        scope = Scope([source], lexer.Shape("", (), ()), 0)
        several = 2.0 if held[0] == "BOOLEAN" else estimate.values(node, scope)
        identity = (table.id, _GENERATED + len(self._names))
        return Computed(identity, name, held[0], written, held[1], int(several))


def _wish(query: Query, trials: _Trials, before: Trial, names: _Expressions) -> Changes:
    """The least changes that keep most of what all changes together would save."""
    best, changes = before.cost.seconds, {}
    for everything in _everything(query, trials, names):
        try:
            after = trials.run(query, everything)
            used = needed(hypothesis.needs(after.plan, after.catalog), everything, trials.catalog)
            after = trials.run(query, used)
        except errors.Error:
            continue
        if after.cost.seconds < best:
            best, changes = after.cost.seconds, dict(used)
    saved = before.cost.seconds - best
    if saved < WORTH * before.cost.seconds:
        return {}
    limit = min(best + WORTH * saved, SLOWER * best)
    for change in sorted(changes, key=lambda other: _rank(other, changes)):
        for level in steps(change, changes[change], trials.catalog):
            fewer = {key: value for key, value in changes.items() if key != change}
            if level:
                fewer[change] = level
            try:
                spent = trials.run(query, fewer).cost.seconds
            except errors.Error:
                continue
            if spent <= limit:
                changes = fewer
                break
    return changes


def _rank(change: Change, changes: Changes) -> tuple[bool, int]:
    """What shows most is tried to be done without first; groups last, as raises without use."""
    return isinstance(change, Grouped), -LEVELS.index(changes[change])


def _everything(query: Query, trials: _Trials, names: _Expressions) -> Iterable[Changes]:
    """All changes that could help a query and that the backends of its tables can store: without
    generated columns, and with them.
    """
    catalog, backend_of = trials.catalog, trials.backend_of
    tree = parse(query.text.plain)
    if tree is None:
        return
    resolver = Resolver(catalog, tree)
    words = {fold(token.text) for token in lexer.tokens(query.text.plain)}
    words |= {fold(token.text) for token in resolver.view_tokens}
    changes: dict[Change, str] = {}
    read = [results for node in tree.find_all(exp.Table) if (results := resolver.table(node))]
    for table in {table.id: table for table in read}.values():
        for column in table.columns:
            named = column.encrypted and fold(column.name) in words
            if named and not allows(column.ceiling, _TOP):
                changes[Raised((table.id, column.id))] = _TOP
    for places in _components(candidates.equated(tree, resolver.table)):
        columns = [catalog.column(*position) for position in places]
        able = all(servable("=", backend_of(table), pairs=True) for table, _ in columns)
        if able and len({column.group or (table.id, column.id) for table, column in columns}) > 1:
            changes[Grouped(places)] = "equality"
    for position in candidates.searched(tree, resolver.table):
        table, column = catalog.column(*position)
        names_of = servable("LIKE", backend_of(table))
        if names_of and not any(name in column.stored for name in names_of):
            changes[Searchable(position)] = "equality"
    yield dict(changes)
    wanted = candidates.expressions(tree, resolver.table)[:_MOST_EXPRESSIONS]
    computed = [entries for owner, node in wanted if (entries := names.column(owner, node))]
    if computed:
        yield changes | dict.fromkeys(computed, _TOP)


def _components(pairs: Iterable[frozenset[Place]]) -> list[frozenset[Place]]:
    """Sets of places that pairs connect."""
    results: list[frozenset[Place]] = []
    for pair in pairs:
        touching = [other for other in results if other & pair]
        results = [other for other in results if not other & pair]
        results.append(pair.union(*touching))
    return results


def _weigh(
    advice: Advice, queries: Sequence[Query], wishes: Mapping[int, Changes], trials: _Trials
) -> None:
    """Put the wishes together and see what each is worth to the workload."""
    changes = _together(wishes.values())
    while True:
        with_all = {query.number: trials.run(query, changes) for query in queries}
        results = [_weighed(c, changes, queries, wishes, with_all, trials) for c in changes]
        least = WORTH * total(with_all.values()).seconds / max(len(queries), 1)
        idle = [other for other in results if other.saving().seconds < least / 10]
        if not idle:
            break
        # One at a time: of two that stand in for each other one must stay.
        worst = min(idle, key=lambda other: other.saving().seconds)
        changes = {key: level for key, level in changes.items() if key != worst.change}
    advice.changes, advice.after = changes, with_all
    advice.recommendations = sorted(results, key=lambda other: -other.saving().seconds)


def _together(wishes: Iterable[Changes]) -> Changes:
    by_name: dict[Change, str] = {}
    pairs: list[frozenset[Place]] = []
    for wish in wishes:
        for change, level in wish.items():
            if isinstance(change, Grouped):
                pairs.append(change.places)
            else:
                by_name[change] = max(by_name.get(change, "size"), level, key=LEVELS.index)
    for places in _components(pairs):
        by_name[Grouped(places)] = "equality"
    return by_name


def _weighed(
    change: Change,
    changes: Changes,
    queries: Sequence[Query],
    wishes: Mapping[int, Changes],
    with_all: Mapping[int, Trial],
    trials: _Trials,
) -> Recommendation:
    fewer = {key: level for key, level in changes.items() if key != change}
    wanting = [query for query in queries if _wants(wishes[query.number], change)]
    return Recommendation(
        change,
        changes[change],
        tuple(query.number for query in wanting),
        tuple(with_all[query.number] for query in wanting),
        tuple(trials.run(query, fewer) for query in wanting),
    )


def _wants(wish: Changes, change: Change) -> bool:
    if isinstance(change, Grouped):
        return any(isinstance(other, Grouped) and other.places <= change.places for other in wish)
    return change in wish
