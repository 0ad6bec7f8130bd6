"""Changes that no one has made yet: higher ceilings, join groups, expressions held ready.

`supposed` gives the catalog as it would be with them. Plans made on it are never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.backends.backend import Backend
from louver.trusted.planner.advisor import hypothesis
from louver.trusted.planner.split import precomputed
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.levels import LEVELS, allows
from louver.trusted.vault.protection import SEALED
from louver.trusted.vault.scheme import answering, scheme_of

Place = tuple[int, int]
"""Table and column by their ids."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A column may reveal more than now."""

    member: Place


@dataclass(frozen=True, slots=True)
class Searchable:
    """A column of text has tokens by which LIKE finds rows; it takes a ceiling of equality."""

    member: Place


@dataclass(frozen=True, slots=True)
class Grouped:
    """Columns whose codes compare with each other."""

    places: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Computed:
    """A generated column that a table could have. ``values`` is how many values it may have, 0
    where no one knows; ``written`` is the expression as the query has it, ``printed`` as DuckDB.
    """

    member: Place
    name: str
    type: str
    written: str
    printed: str
    values: int


Change = Raised | Searchable | Grouped | Computed
Changes = Mapping[Change, str]
"""What is changed, and to which level the columns in question may then go."""


def supposed(catalog: Catalog, changes: Changes, backend_of: hypothesis.BackendOf) -> Catalog:
    """The catalog as if these changes had been made, with what each backend can store."""
    entries = catalog.copy()
    for change, level in changes.items():
        match change:
            case Raised(member) | Searchable(member):
                table, column = entries.column(*member)
                if not allows(column.ceiling, level):
                    hypothesis.raise_to(level, table, column, backend_of(table))
                if isinstance(change, Searchable):
                    for name in servable("LIKE", backend_of(table)):
                        column.stored.setdefault(name, f"{name}_{column.id}")
    for number, change in enumerate(changes):
        if isinstance(change, Grouped):
            for position in change.places:
                table, column = entries.column(*position)
                column.group = f"supposed {number}"
                names = servable("=", backend_of(table), pairs=True)
                column.layers |= dict.fromkeys(names, "closed")
    for change, level in changes.items():
        if isinstance(change, Computed):
            # It may show no more than what it is computed from.
            sources = [column for _, column in _sources(change, entries)]
            ceilings = [column.ceiling for column in sources]
            own = min((level, *ceilings), key=LEVELS.index)
            table = next(t for t in entries.tables.values() if t.id == change.member[0])
            column = _generated(change)
            hypothesis.raise_to(own, table, column, backend_of(table), sources)
            table.columns.append(column)
    return entries


def servable(operation: str, backend: Backend, *, pairs: bool = False) -> list[str]:
    """The representations that answer an operation and that a backend can store; ``pairs`` asks
    for those that compare two columns.
    """
    return [
        name
        for name, request in answering(operation)
        if (request.pairs or not pairs) and backend.serves(scheme_of(name))
    ]


def _sources(change: Computed, catalog: Catalog) -> list[tuple[Table, Column]]:
    """The encrypted columns that a generated column is computed from."""
    table = next(t for t in catalog.tables.values() if t.id == change.member[0])
    tree = precomputed.parsed(change.printed)
    named = {node.name for node in tree.find_all(exp.Column)} if tree is not None else ()
    results = [column for name in named if (column := table.column(name)) is not None]
    return [(table, column) for column in results if column.encrypted]


def _generated(change: Computed) -> Column:
    column = Column(change.name, change.type, change.member[1], True, SEALED, LEVELS[0])
    column.expression = change.printed
    if change.values:
        column.minimum, column.maximum = 0, change.values - 1
    return column


def level_of(catalog: Catalog, member: Place) -> str:
    """The ceiling in force of a column; "" for one that is not there yet."""
    try:
        return catalog.column(*member)[1].ceiling
    except KeyError:
        return ""


def steps(change: Change, level: str, catalog: Catalog) -> list[str]:
    """The levels below one that a change may do with instead, lowest first; "" is not at all."""
    if isinstance(change, Grouped | Searchable):
        return [""]
    lowest = "size" if isinstance(change, Computed) else level_of(catalog, change.member)
    between = LEVELS[LEVELS.index(lowest) + 1 : LEVELS.index(level)]
    return ["", *between]


def needed(plan_needs: Mapping[Place, str], changes: Changes, catalog: Catalog) -> Changes:
    """Of some changes those that a plan makes use of, at the levels that it needs."""
    by_name: dict[Change, str] = {}
    wanted = dict(plan_needs)
    for change in changes:
        if isinstance(change, Computed) and (level := plan_needs.get(change.member, "")):
            for table, column in _sources(change, catalog):
                identity = (table.id, column.id)
                wanted[identity] = max(wanted.get(identity, level), level, key=LEVELS.index)
    for change in changes:
        match change:
            case Grouped(places):
                used = frozenset(p for p in places if allows(plan_needs.get(p, "size"), "equality"))
                if len(used) > 1:
                    by_name[Grouped(used)] = "equality"
            case Searchable(member):
                if allows(plan_needs.get(member, "size"), "equality"):
                    by_name[change] = "equality"
            case Raised(member) | Computed(member):
                level = wanted.get(member, "")
                if level and not allows(level_of(catalog, member) or "size", level):
                    by_name[change] = level
    return by_name
