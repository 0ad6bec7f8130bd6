"""The planner: a SELECT to a plan, by the steps of ARCHITECTURE.md, each in its file.

It sees SQL, literals and the catalog; it cannot see a key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.trusted.backends.backend import Backend
from louver.trusted.planner import choose
from louver.trusted.planner.advisor import hypothesis
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.normal_form.judged import Written, better, judged
from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.planner.split import nested, subquery_pushdown, table_scans, whole_block
from louver.trusted.planner.sql import lexer, selection
from louver.trusted.planner.sql.placeholders import fixed_literals, fixed_texts
from louver.trusted.planner.sql.resolver import Resolver, pivots
from louver.trusted.planner.sql.scope import Servers
from louver.trusted.planner.sql.trees import local_text, parse
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.levels import LEVELS

Parameters = Sequence[object] | Mapping[str, object]
MOST_SHAPES = 4096
"""Shapes whose plans are kept; the oldest go first."""
MOST_VARIANTS = 64
"""Plans of one shape that differ in a number, or a bound text, which a plan depends on."""


class HomeSchema(Protocol):
    """What the planner asks of the database locally: DuckDB's own binder."""

    def describe(self, sql: str, parameters: Parameters = ()) -> list[tuple[str, str]]:
        """Names and types of a query's columns; DuckDB's own error where it does not bind."""

    @property
    def revision(self) -> int:
        """Another number when names, types or settings may mean something else."""
        ...

    def reorders_nulls(self) -> bool:
        """Whether NULLs stand elsewhere in an order than DuckDB puts them by itself."""

    def collated(self) -> bool:
        """Whether texts compare otherwise than by their bytes."""

    def tables_of(self, sql: str) -> set[str]:
        """The names of the tables and views that a statement reads."""


class Planner:
    """Plans SELECTs and remembers plans by shape."""

    def __init__(
        self,
        home: HomeSchema,
        modulus_bits: Callable[[], int],
        backend_of: Callable[[Table], Backend],
    ) -> None:
        self.home = home
        self.modulus_bits = modulus_bits
        self.backend_of = backend_of
        self.times_ms: dict[str, float] = {}
        self._plans: dict[tuple[str, PlannerSettings], list[Plan]] = {}
        #: the revisions of the catalog and of the binder that the plans are of
        self._revisions = (-1, -1)

    def plan(
        self,
        text: lexer.Text,
        parameters: list[object],
        catalog: Catalog,
        settings: PlannerSettings = DEFAULT,
        tokens: Sequence[Token] | None = None,
    ) -> tuple[Plan, lexer.Shape]:
        """The plan of a statement under some settings, from the cache where its shape has been met
        since catalog and binder last changed: the proofs of a plan rest on bounds and row counts.
        """
        start = time.perf_counter()
        self.times_ms = {}
        revisions = (catalog.revision, self.home.revision)
        if revisions != self._revisions:
            self._plans.clear()
            self._revisions = revisions
        tokens = lexer.tokens(text.plain) if tokens is None else tokens
        shape = lexer.with_parameters(lexer.shape(text.plain, tokens), parameters)
        key = (shape.key, settings)
        for known in self._plans.get(key, ()):
            if all(shape.literals[index] == value for index, value in known.fixed):
                self._spent("parse", start)
                return known, shape
        self._spent("parse", start)
        plan = self._new(text, tokens, shape, parameters, catalog, settings)
        if len(self._plans) >= MOST_SHAPES:
            self._plans.pop(next(iter(self._plans)))
        variants = self._plans.setdefault(key, [])
        variants.insert(0, plan)
        del variants[MOST_VARIANTS:]
        return plan, shape

    def _new(
        self,
        text: lexer.Text,
        tokens: Sequence[Token],
        shape: lexer.Shape,
        parameters: list[object],
        catalog: Catalog,
        settings: PlannerSettings,
    ) -> Plan:
        start = time.perf_counter()
        tree = parse(text.plain)
        start = self._spent("parse", start)
        described = self._described(text, tokens, parameters)
        values = lexer.Values(parameters)
        catalog = supposed(catalog, settings, self.home)
        resolver = Resolver(catalog, tree, tokens)
        start = self._spent("analyse", start)
        plan = None if settings.apart else self._on_server(tree, shape, values, resolver)
        written = Written(tree, resolver, tokens)
        if plan is None or plan.kind != "whole" or self._refused(plan, catalog):
            normal = judged(written, described, values, catalog, self.home.describe)
            if normal is not None:
                tree, resolver = normal, Resolver(catalog, normal)
                other = None if settings.apart else self._on_server(tree, shape, values, resolver)
                plan = better(plan, None if other and self._refused(other, catalog) else other)
        if (
            not settings.local_processing
            and not settings.apart
            and reads_secret(plan, resolver, text, self.home)
        ):
            plan = self._without_home(plan, tree, shape, values, resolver, catalog)
        # A generated column holds an expression with one number, and with no other.
        generated = resolver.reads_generated() or written.resolver.reads_generated()
        names = [name for name, _ in described]
        own = None if generated else written.tree
        if plan is None or self._refused(plan, catalog):
            plan = self._scans(
                text, written, tree, tokens, shape, values, resolver, catalog, settings
            )
        once, by_row = table_scans.alone(plan, written.tree, views=bool(resolver.views))
        plan = replace(
            plan,
            names=tuple(names),
            types=tuple(type_ for _, type_ in described),
            fixed=fixed_literals(own, shape, names) + fixed_texts(own, shape, values),
            alone=once if by_row else "",
            once=once,
        )
        plan = replace(plan, columns=table_scans.projected(plan, written.tree))
        if not by_row:
            plan = replace(plan, remotes=tuple(remote.for_engine() for remote in plan.remotes))
        self._require_allowed(plan, catalog)
        self._spent("rewrite", start)
        return plan

    def _described(
        self, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
    ) -> list[tuple[str, str]]:
        """Names and types of the answer's columns; none where only the rows can tell them."""
        try:
            return self.home.describe(text.home, home_values(text, parameters))
        except errors.ProgrammingError:
            if not pivots(tokens):
                raise
            return []

    def _scans(
        self,
        text: lexer.Text,
        written: Written,
        tree: exp.Expr | None,
        tokens: Sequence[Token],
        shape: lexer.Shape,
        parameters: Sequence[object],
        resolver: Resolver,
        catalog: Catalog,
        settings: PlannerSettings,
    ) -> Plan:
        """Aggregating blocks whole, and scans of what is read beside them. What the tree says is
        planned; what is written, DuckDB runs locally.
        """
        if tree is None or tree is written.tree:
            tables = resolver.all_tables(text, self.home)
            words = [*tokens, *resolver.view_tokens]
        else:
            tables, words = resolver.named_tables(), lexer.tokens(local_text(tree))
        servers = self.servers()
        parts: list[subquery_pushdown.Block] = []
        whole = tree is not None and not resolver.views and not settings.apart
        if tree is not None and whole and not self._loses_order(tree):
            parts = subquery_pushdown.plan_blocks(
                tree,
                written.tree,
                tokens,
                self._computed(resolver),
                shape,
                servers,
                parameters,
                self.home.describe,
                lambda plan: not self._refused(plan, catalog),
            )
            tables = subquery_pushdown.beside(tree, parts, tables)
        plan = table_scans.plan_scans(
            None if resolver.views else tree,
            words,
            tables,
            shape,
            servers,
            parameters,
            self.home.describe,
            resolver.table,
            settings.link,
            apart=settings.apart,
        )
        if self._refused(plan, catalog):
            plan = self._whole_scans(tables, words, shape)
        return subquery_pushdown.joined(plan, subquery_pushdown.needed(parts, plan))

    def _spent(self, step: str, start: float) -> float:
        now = time.perf_counter()
        self.times_ms[step] = self.times_ms.get(step, 0.0) + (now - start) * 1000
        return now

    def _on_server(
        self,
        tree: exp.Expr | None,
        shape: lexer.Shape,
        parameters: Sequence[object],
        resolver: Resolver,
        *,
        rows: bool = False,
    ) -> Plan | None:
        if not isinstance(tree, exp.Select) or resolver.views or self._loses_order(tree):
            return None
        servers, resolve = self.servers(), self._computed(resolver)
        try:
            if nested.is_nested(tree):
                return nested.plan_nested(
                    tree, resolve, shape, servers, parameters, self.home.describe
                )
            sources = selection.sources_of(tree, resolve, servers)
            return whole_block.plan_block(
                tree, sources, shape, servers, parameters, self.home.describe, rows=rows
            ).plan
        except selection.Unsplit:
            return None

    def servers(self) -> Servers:
        """The machines that hold the tables."""
        return Servers(self.backend_of, self.modulus_bits())

    def _computed(self, resolver: Resolver) -> selection.Resolve:
        """Names to the tables that a server computes on."""

        def table(node: exp.Table) -> Table | None:
            table = resolver.table(node)
            return table if table is not None and self.backend_of(table).computes else None

        return table

    def _loses_order(self, tree: exp.Expr) -> bool:
        """Whether a tree's text would order otherwise: a tree does not tell NULLS LAST and ASC
        from what stands there by default, and the session has changed the default.
        """
        return self.home.reorders_nulls() and tree.find(exp.Ordered) is not None

    def _without_home(
        self,
        plan: Plan | None,
        tree: exp.Expr | None,
        shape: lexer.Shape,
        parameters: Sequence[object],
        resolver: Resolver,
        catalog: Catalog,
    ) -> Plan:
        """A plan that leaves nothing to be finished locally; else the error that names the lowest
        ceilings under which there is one.
        """

        def attempt(supposed: Catalog) -> Plan | None:
            resolver.catalog = supposed
            try:
                candidate = self._on_server(tree, shape, parameters, resolver, rows=True)
            finally:
                resolver.catalog = catalog
            return None if candidate is None or self._refused(candidate, supposed) else candidate

        if plan is None or plan.kind != "whole" or self._refused(plan, catalog):
            plan = attempt(catalog)
        if plan is not None:
            return plan
        wanted = hypothesis.lowest(catalog, self.backend_of, attempt)
        if not wanted:
            raise errors.make("leak.home_off")
        table, column, level = max(wanted, key=lambda item: LEVELS.index(item[2]))
        changes = "; ".join(
            f"ALTER TABLE {t} ALTER COLUMN {c} MAY REVEAL {v}" for t, c, v in wanted
        )
        raise errors.make("leak.ceiling", table=table, column=column, level=level, changes=changes)

    def _whole_scans(
        self, tables: list[Table], tokens: Sequence[Token], shape: lexer.Shape
    ) -> Plan:
        """Scans without filters: what shows least."""
        return table_scans.plan_scans(
            None,
            tokens,
            tables,
            shape,
            self.servers(),
            [],
            self.home.describe,
            lambda _: None,
        )

    @staticmethod
    def _refused(plan: Plan, catalog: Catalog) -> bool:
        return bool(choose.above_ceiling(plan.leaks, list(catalog.tables.values())))

    def _require_allowed(self, plan: Plan, catalog: Catalog) -> None:
        over = choose.above_ceiling(plan.leaks, list(catalog.tables.values()))
        if over:
            table, column, level, ceiling = over[0]
            raise errors.make(
                "leak.refused", table=table, column=column, level=level, ceiling=ceiling
            )


def supposed(catalog: Catalog, settings: PlannerSettings, home: HomeSchema) -> Catalog:
    """The catalog without what a plan may not use."""
    if not settings.opens_layers:
        catalog = hypothesis.settled(catalog)
    if settings.stopped:
        catalog = hypothesis.without_sums(catalog, settings.stopped)
    if not settings.compares_codes:
        catalog = hypothesis.without_codes(catalog)
    return hypothesis.without_text_codes(catalog) if home.collated() else catalog


def reads_secret(plan: Plan | None, resolver: Resolver, text: lexer.Text, home: HomeSchema) -> bool:
    """Whether a statement reads encrypted columns."""
    if plan is not None:
        return plan.reads_secret
    return any(table.has_encrypted for table in resolver.all_tables(text, home))


def home_values(text: lexer.Text, parameters: list[object]) -> list[object] | dict[str, object]:
    """Parameters as the local DuckDB binds them: by number or by name."""
    if not text.parameters:
        return []
    if all(isinstance(key, str) for key in text.parameters):
        return {str(key): value for key, value in zip(text.parameters, parameters, strict=True)}
    by_number = dict(zip(text.parameters, parameters, strict=True))
    return [by_number[key] for key in sorted(k for k in by_number if isinstance(k, int))]
