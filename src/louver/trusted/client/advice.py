"""Advice on a workload in the user's words: what to change, what it saves, what it shows.

The statements of the workload are planned and never run. Of the server only the catalog is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from louver import errors
from louver.names import quoted
from louver.trusted.backends.backend import Backend
from louver.trusted.client import advised_script
from louver.trusted.executor import cardinality, seen_state
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import printed
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local.duckdb_schema import DuckDBSchema
from louver.trusted.executor.plan_leakage import facts_of
from louver.trusted.executor.schema import constraints
from louver.trusted.planner.advisor import advise
from louver.trusted.planner.advisor.estimate import Estimate
from louver.trusted.planner.advisor.what_if import (
    Change,
    Computed,
    Grouped,
    Place,
    Raised,
    Searchable,
    supposed,
)
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.scope import Servers
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.catalog_store import origin_of
from louver.trusted.vault.protection import Word
from louver.trusted.vault.scheme import needed

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "(", "PIVOT", "UNPIVOT")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HELD = "louver_held"


@dataclass(slots=True)
class Item:
    """One recommendation. ``kind`` is ceiling, text, join or computed."""

    kind: str
    title: str
    level: str
    queries: list[int]
    saving: Estimate
    reveals: list[Fact]
    warnings: list[str]
    apply: list[str]


@dataclass(slots=True)
class Report:
    """All that is recommended for a workload.

    ``beside`` is what the server learns by all of it together and by no column's change alone;
    ``script`` applies it to this database, and ``policy`` is the TOML for new ones.
    """

    statements: dict[int, str]
    plans: dict[int, tuple[advise.Trial, advise.Trial]]
    items: list[Item]
    beside: list[Fact]
    script: advised_script.Script
    policy: str
    failed: dict[int, str] = field(default_factory=dict)

    def before(self) -> Estimate:
        """What the workload is expected to cost now."""
        return advise.total(pair[0] for pair in self.plans.values())

    def after(self) -> Estimate:
        """What it is expected to cost with everything that is recommended."""
        return advise.total(pair[1] for pair in self.plans.values())


def report(context: Context, text: str) -> Report:
    """Advice on a text of queries; other statements and those with placeholders are separated."""
    if not context.in_transaction:
        seen_state.refresh(context)
    queries: list[advise.Query] = []
    failed: dict[int, str] = {}
    statements: dict[int, str] = {}
    for number, other in enumerate(lexer.split(text), 1):
        statements[number] = other.home
        first = lexer.words(lexer.tokens(other.plain), 1)
        if not first or first[0] not in _QUERIES:
            failed[number] = "this is not a query; only queries are planned"
        elif other.parameters:
            failed[number] = "it has placeholders; write values that are typical"
        else:
            queries.append(advise.Query(number, other))
    results = advise.advise(
        queries,
        context.catalog,
        context.local,
        Servers(lambda _: context.backend, context.columns.modulus_bits()),
        held,
        context.planning.link,
    )
    failed |= {number: error.message for number, error in results.failed.items()}
    plans = {number: (results.before[number], results.after[number]) for number in results.after}
    catalog = supposed(context.catalog, results.changes, lambda _: context.backend)
    groups = _labels(catalog, [c for c in results.changes if isinstance(c, Grouped)])
    items = _items(context, catalog, results.recommendations, groups)
    facts = {fact for item in items for fact in item.reveals}
    beside = [fact for fact in _new(context, results) if fact not in facts]
    for group, label in groups.items():
        for position in group.places:
            catalog.column(*position)[1].group = f"{label}@{origin_of(catalog)}"
    script = advised_script.of(context, catalog, list(results.changes))
    policy = _policy(catalog, list(results.changes), groups, context.backend)
    return Report(statements, plans, items, beside, script, policy, failed)


def held(table: Table, expression: str) -> tuple[str, str] | None:
    """Type and DuckDB's own text of an expression as a generated column; None if it is none."""
    listed = ", ".join(f"{quoted(c.name)} {c.type}" for c in table.columns if not c.expression)
    with duckdb.connect(":memory:") as scratch:
        try:
            scratch.execute(f"CREATE TABLE plain ({listed})")
            described = scratch.execute(f"DESCRIBE SELECT {expression} FROM plain").fetchone()
            type_ = str(described[1]) if described else ""
            generated = f"{_HELD} {type_} GENERATED ALWAYS AS ({expression})"
            scratch.execute(f"CREATE TABLE held ({listed}, {generated})")
        except duckdb.Error:
            return None
        printed = constraints.read(DuckDBSchema(scratch), "main", "held")[_HELD].expression
    return type_, printed


# ---------------------------------------------------------------------- recommendations


def _items(
    context: Context,
    catalog: Catalog,
    results: Sequence[advise.Recommendation],
    groups: dict[Grouped, str],
) -> list[Item]:
    raised = {other.change.member: other for other in results if isinstance(other.change, Raised)}
    # Equality that only a join asks for is part of that join.
    within = {
        position
        for other in results
        if isinstance(other.change, Grouped)
        for position in other.change.places
        if position in raised and raised[position].level == "equality"
    }
    items = []
    for other in results:
        if isinstance(other.change, Raised) and other.change.member in within:
            continue
        places = other.change.places if isinstance(other.change, Grouped) else ()
        parts = [other, *(raised[position] for position in sorted(places) if position in within)]
        items.append(_item(context, catalog, other, parts, groups))
    return items


def _item(
    context: Context,
    catalog: Catalog,
    other: advise.Recommendation,
    parts: Sequence[advise.Recommendation],
    groups: dict[Grouped, str],
) -> Item:
    changed = [position for part in parts for position in advised_script.places_of(part.change)]
    own = {(t.label, c.name) for t, c in (catalog.column(*position) for position in changed)}
    facts = [
        fact
        for fact in dict.fromkeys(fact for part in parts for fact in _shown(context, part))
        if fact.level != "access" and any((fact.table, name) in own for name in fact.columns)
    ]
    warnings = cardinality.warned(facts, catalog)
    queries = sorted({number for part in parts for number in part.queries})
    raises = [
        advised_script.raising(catalog, part.change.member, part.level)
        for part in parts
        if isinstance(part.change, Raised)
    ]
    match other.change:
        case Raised(member):
            kind, title = "ceiling", f"{_label(catalog, member)} may reveal {other.level}"
        case Searchable(member):
            kind, title = (
                "text",
                f"{_label(catalog, member)} is searchable by LIKE, {other.level}",
            )
            table, column = catalog.column(*member)
            clause = printed.clause(column, context.catalog, context.backend)
            raises = [f"{_label(catalog, member)} {clause}, by the script below"]
        case Grouped(places):
            names = " and ".join(_label(catalog, member) for member in sorted(places))
            kind, title = "join", f"{names} in one join group, {other.level}"
            group = groups[other.change].replace("'", "''")
            raises += [
                f"{_label(catalog, position)} WITH (join = '{group}'), by the script below"
                for position in sorted(places)
            ]
        case Computed():
            table, _ = catalog.column(*other.change.member)
            kind = "computed"
            title = f"{table.label} holds {other.change.written}, may reveal {other.level}"
            definition = advised_script.defined(context, catalog, other.change)
            raises = [f"CREATE TABLE {table.label} (…, {definition})"]
    return Item(kind, title, other.level, queries, other.saving(), facts, warnings, raises)


def _shown(context: Context, other: advise.Recommendation) -> list[Fact]:
    """What the server would learn by this, and would not without it."""
    without = {f for trial in other.without for f in facts_of(trial.plan, trial.catalog)}
    facts = [f for trial in other.with_it for f in facts_of(trial.plan, trial.catalog)]
    return [fact for fact in context.ledger.new(facts) if fact not in without]


def _new(context: Context, results: advise.Advice) -> list[Fact]:
    """What the server would learn by all that is recommended, and has not learned by today."""
    today = {f for trial in results.before.values() for f in facts_of(trial.plan, trial.catalog)}
    later = [f for trial in results.after.values() for f in facts_of(trial.plan, trial.catalog)]
    return [fact for fact in context.ledger.new(later) if fact not in today]


def _label(catalog: Catalog, member: Place) -> str:
    table, column = catalog.column(*member)
    return f"{table.label}.{column.name}"


# ---------------------------------------------------------------------- to apply it


def _labels(catalog: Catalog, groups: Sequence[Grouped]) -> dict[Grouped, str]:
    """A name for each join group: that of its column in the smallest table."""
    by_name: dict[Grouped, str] = {}
    for group in groups:
        places = [catalog.column(*position) for position in sorted(group.places)]
        table, column = min(places, key=lambda position: position[0].row_count)
        by_name[group] = f"{table.label}.{column.name}"
    return by_name


def _policy(
    catalog: Catalog, changes: Sequence[Change], groups: dict[Grouped, str], backend: Backend
) -> str:
    """The TOML under which the tables that change are what is recommended."""
    touched: set[int] = set()
    joined: dict[Place, str] = {}
    for change in changes:
        match change:
            case Grouped(places):
                joined |= dict.fromkeys(places, groups[change])
                touched |= {member[0] for member in places}
            case Raised(member) | Searchable(member) | Computed(member):
                touched.add(member[0])
    lines: list[str] = []
    for table in catalog.tables.values():
        if table.id not in touched:
            continue
        lines += ["", f"[{_key(table.label)}]"]
        for column in table.columns:
            if column.encrypted:
                words = needed(column, [table], backend.serves, tiles=backend.has_tiles)
                entry = _entry(column, joined.get((table.id, column.id), ""), words)
                lines.append(f"{_key(column.name)} = {{ {entry} }}")
    return "\n".join(lines).strip()


def _entry(column: Column, join: str, words: Mapping[str, Word]) -> str:
    parts = [f'scheme = "{column.scheme}"', f'may_reveal = "{column.ceiling}"']
    if join:
        parts.append(f"join = {json.dumps(join)}")
    parts += [f"{name} = {json.dumps(word)}" for name, word in words.items()]
    return ", ".join(parts)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def as_json(results: Report) -> dict[str, object]:
    """A report as plain data."""
    from louver.trusted.executor.explain_leakage import fact_json

    return {
        "before": _estimate(results.before()),
        "after": _estimate(results.after()),
        "queries": [
            {
                "query": number,
                "sql": results.statements[number],
                "before": {"split": pair[0].plan.kind, **_estimate(pair[0].cost)},
                "after": {"split": pair[1].plan.kind, **_estimate(pair[1].cost)},
            }
            for number, pair in results.plans.items()
        ],
        "failed": [{"query": number, "error": text} for number, text in results.failed.items()],
        "recommendations": [
            {
                "kind": item.kind,
                "title": item.title,
                "level": item.level,
                "queries": item.queries,
                "saving": _estimate(item.saving),
                "reveals": [fact_json(fact) for fact in item.reveals],
                "warnings": item.warnings,
                "apply": item.apply,
            }
            for item in results.items
        ],
        "beside": [fact_json(fact) for fact in results.beside],
        "script": results.script.statements,
        "last": results.script.last,
        "notes": results.script.notes,
        "policy": results.policy,
    }


def _estimate(cost: Estimate) -> dict[str, float]:
    return {
        "sent_bytes": round(cost.sent_bytes),
        "opened_rows": round(cost.opened_rows),
        "seconds": round(cost.seconds, 6),
    }


def require_queries(results: Report) -> None:
    """Raise where nothing could be advised on."""
    if not results.plans:
        said = next(iter(results.failed.values()), "it holds no statement")
        raise errors.make("usage", detail=f"the workload has no query to plan: {said}")
