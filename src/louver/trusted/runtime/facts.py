"""What a plan shows, as facts of the ledger: its leaks, and what the layers that it opens show.

An open layer shows the whole column for as long as the database lives, so its facts do not depend
on the query. Columns of one join group that are open to the join layer are joinable with each
other, whichever query opened them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from louver.trusted.planner.plan import Plan
from louver.trusted.planner.values import Opening
from louver.trusted.runtime.ledger import Fact
from louver.trusted.vault.catalog import Catalog, Column, Table

Place = tuple[Table, Column]


def facts_of(plan: Plan, catalog: Catalog) -> list[Fact]:
    """The leaks and openings of a plan as facts."""
    leaks = [Fact(k.table, tuple(k.columns), k.level, k.kind, k.text) for k in plan.leaks]
    return [*leaks, *of_openings(plan.opens, catalog)]


def of_openings(openings: Sequence[Opening], catalog: Catalog) -> list[Fact]:
    """What open layers show."""
    facts: list[Fact] = []
    for opening in openings:
        table, column = catalog.column(opening.table, opening.column)
        facts.append(_alone(table, column, opening.onion))
    for onion, state in (("eq", "join"), ("ord", "open")):
        asked = [o for o in openings if o.onion == onion and o.state == state]
        opened = [catalog.column(o.table, o.column) for o in asked]
        facts += _together(opened, _open_columns(catalog, onion, state), onion)
    return list(dict.fromkeys(facts))


def _alone(table: Table, column: Column, onion: str) -> Fact:
    named, label = column.name, table.label
    nulls = ", and which of them are NULL" if column.has_null else ""
    if onion == "eq":
        text = f"the server can tell which rows of {label} have the same {named}{nulls}"
        if column.unique:
            # No two rows are alike, but a value that is asked for or stored again is known again.
            text = (
                f"the server can tell that all values of {named} in {label} differ, and knows each"
                f" of them again{nulls}"
            )
        return Fact(label, (named,), "equality", "eq.open", text)
    by = f"{1 << (column.bits - column.coarse)} ranges of {named}" if column.coarse else named
    text = f"the server can order the rows of {label} by {by}{nulls}"
    return Fact(label, (named,), "order", "ord.open", text)


def _open_columns(catalog: Catalog, onion: str, state: str) -> list[Place]:
    return [
        (table, column)
        for table in catalog.tables.values()
        for column in table.columns
        if column.group and column.layers.get(onion) == state
    ]


def _together(opened: Iterable[Place], others: Iterable[Place], onion: str) -> list[Fact]:
    """The pairs of columns that are now joinable, each told of both tables."""
    facts: list[Fact] = []
    mine = list(opened)
    pairs = {
        frozenset((_ids(left), _ids(right))): (left, right)
        for left in mine
        for right in [*mine, *others]
        if _ids(left) != _ids(right) and left[1].group and left[1].group == right[1].group
    }
    for left, right in pairs.values():
        (first, a), (second, b) = sorted((left, right), key=_ids)
        names = f"{first.label}.{a.name} and {second.label}.{b.name}"
        if onion == "eq":
            level, kind = "equality", "eq.join"
            text = f"the server can tell which values of {names} are equal"
        else:
            level, kind = "order", "ord.join"
            text = f"the server can order the values of {names} together"
        if first.id == second.id:
            facts.append(Fact(first.label, (a.name, b.name), level, kind, text))
        else:
            facts.append(Fact(first.label, (a.name,), level, kind, text))
            facts.append(Fact(second.label, (b.name,), level, kind, text))
    return facts


def _ids(place: Place) -> tuple[int, int]:
    return place[0].id, place[1].id
