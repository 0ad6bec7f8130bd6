"""What a statement would need: plans under ceilings that are not in force.

A copy of the catalog says that the server holds what a higher ceiling would let it hold. Plans
made on it are never sent; they tell which ceilings would do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from louver.trusted.backends.backend import Backend
from louver.trusted.planner.ir import Plan
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.levels import LEVELS, allows
from louver.trusted.vault.protection import Protection
from louver.trusted.vault.scheme import answering, scheme_of
from louver.trusted.vault.types import code_domain

Place = tuple[int, int]
"""Table and column by their ids."""
BackendOf = Callable[[Table], Backend]
"""The backend of a table's server."""


def raised(catalog: Catalog, level: str, backend_of: BackendOf) -> Catalog:
    """The catalog as if all encrypted columns might reveal this level."""
    entries = catalog.copy()
    for table in entries.tables.values():
        for column in table.columns:
            if not column.encrypted or allows(column.ceiling, level):
                continue
            raise_to(level, table, column, backend_of(table))
            _join_any(column)
    return entries


def without_text_codes(catalog: Catalog) -> Catalog:
    """The catalog as if the server held no codes of texts: those compare by bytes, so none may be
    asked where a collation is in force.
    """
    entries = catalog.copy()
    for table in entries.tables.values():
        texts = {column.id for column in table.columns if column.type == "VARCHAR"}
        table.tags = {name: ids for name, ids in table.tags.items() if not texts & set(ids)}
        for column in table.columns:
            if column.type == "VARCHAR":
                for name in [name for name in column.stored if scheme_of(name).answers]:
                    del column.stored[name]
    return entries


def without_codes(catalog: Catalog) -> Catalog:
    """The catalog as if the server held nothing that a constant can be compared with."""
    entries = catalog.copy()
    for table in entries.tables.values():
        table.tags = {}
        for column in filter(lambda column: column.encrypted, table.columns):
            for name in [n for n in column.stored if {"=", "<"} & set(scheme_of(n).answers)]:
                del column.stored[name]
    return entries


def without_sums(catalog: Catalog, places: Iterable[Place]) -> Catalog:
    """The catalog as if the server held of these columns nothing that it can add up."""
    entries = catalog.copy()
    for table in entries.tables.values():
        stopped = {column for owner, column in places if owner == table.id}
        for column in table.columns:
            if column.id in stopped:
                for name in [n for n in column.stored if "SUM" in scheme_of(n).answers]:
                    del column.stored[name]
        for ids in table.packs.values():
            # No column has this id; the other columns stay in their slots.
            ids[:] = [-1 if id_ in stopped else id_ for id_ in ids]
    return entries


def settled(catalog: Catalog) -> Catalog:
    """The catalog as if no layer could be opened any further: plans on it open none."""
    entries = catalog.copy()
    for table in entries.tables.values():
        for column in table.columns:
            for onion, state in column.layers.items():
                row = scheme_of(onion)
                if not row.rank(state):
                    column.stored.pop(onion, None)
                elif row.rank(state) < row.rank(row.joined):
                    # Without its group a column is compared with itself and constants only.
                    column.group = ""
    return entries


def raise_to(
    level: str, table: Table, column: Column, backend: Backend, sources: Sequence[Column] = ()
) -> None:
    """Suppose that the server holds of a column all that ALTER … MAY REVEAL would let it hold, of
    the representations that the backend can store; of one that is computed from ``sources``, what
    all of these have.
    """
    own = scheme.details(column, [table])
    rule = scheme.alike([scheme.details(source, [table]) for source in sources])
    words = scheme.carried(own, scheme.usual(column.scheme, tiles=backend.has_tiles), rule)
    column.ceiling, column.bits = level, column.bits or 64
    protection = Protection(True, column.scheme, level, words=words)
    for name in scheme.held(column, protection):
        if not backend.serves(scheme_of(name)):
            continue
        column.stored.setdefault(name, f"{name}_{column.id}")
        if scheme_of(name).layers:
            column.layers.setdefault(name, "closed")


def _join_any(column: Column) -> None:
    """Suppose that a column may be joined with any other of its domain."""
    domain = code_domain(column.type)
    equal = any(name in column.stored for name, request in answering("=") if request.pairs)
    if equal and not column.group and domain is not None:
        column.group = f"any {domain}"


def lowest(
    catalog: Catalog, backend_of: BackendOf, attempt: Callable[[Catalog], Plan | None]
) -> list[tuple[str, str, str]]:
    """The lowest ceilings under which an attempt gives a plan: (table, column, level) of every
    column that now has a lower one. Empty where no ceiling would do.
    """
    for level in ("access", "equality", "order"):
        supposed = raised(catalog, level, backend_of)
        plan = attempt(supposed)
        if plan is not None:
            return _above(catalog, needs(plan, supposed))
    return []


def needs(plan: Plan, catalog: Catalog) -> dict[Place, str]:
    """What a plan shows of each column of the catalog that it was made on, as a level."""
    by_name: dict[Place, str] = {}

    def need(member: Place, level: str) -> None:
        before = by_name.get(member, "size")
        by_name[member] = max(before, level, key=LEVELS.index)

    for opening in plan.opens:
        need((opening.table, opening.column), scheme_of(opening.onion).layer(opening.state).level)
    for remote in plan.remotes:
        for out in remote.outputs:
            if out.summed is not None:
                need((remote.table_of(out.slot), out.column), "access")
        for source in remote.sources:
            table = catalog.by_id(source.table)
            for leak in plan.leaks:
                if leak.table != table.label:
                    continue
                for name in leak.columns:
                    column = table.column(name)
                    if column is not None and column.encrypted:
                        need((table.id, column.id), leak.level)
    return by_name


def _above(catalog: Catalog, wanted: dict[Place, str]) -> list[tuple[str, str, str]]:
    above = []
    for (table_id, column_id), level in wanted.items():
        table, column = catalog.column(table_id, column_id)
        if not allows(column.ceiling, level):
            above.append((table.label, column.name, level))
    return sorted(above)
