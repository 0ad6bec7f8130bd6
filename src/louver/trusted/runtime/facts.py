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


def facts_of(plan: Plan, catalog: Catalog, known: Sequence[Fact] = ()) -> list[Fact]:
    """The leaks and openings of a plan as facts; ``known`` is what the ledger holds already."""
    leaks = [Fact(k.table, tuple(k.columns), k.level, k.kind, k.text) for k in plan.leaks]
    return [*leaks, *of_openings(plan.opens, catalog), *_with_former(plan.opens, catalog, known)]


def _with_former(
    openings: Sequence[Opening], catalog: Catalog, known: Sequence[Fact]
) -> list[Fact]:
    """Pairs with columns that were shown to the server once, though the catalog does not call
    them open: of a transaction that was rolled back, a lowered ceiling, a dropped table.
    """
    made: list[Fact] = []
    for onion, state in (("eq", "join"), ("ord", "open")):
        for opening in openings:
            table, column = catalog.column(opening.table, opening.column)
            if (opening.onion, opening.state) != (onion, state) or not column.group:
                continue
            now = {_name(place) for place in _open_columns(catalog, onion, state)}
            now |= {_name(catalog.column(o.table, o.column)) for o in openings}
            own = _name((table, column))
            for former in sorted(_shown(catalog, column.group, onion, known) - now - {own}):
                made += _pair(own, former, onion)
    return made


def _shown(catalog: Catalog, group: str, onion: str, known: Sequence[Fact]) -> set[tuple[str, str]]:
    """The columns of a join group that the ledger calls joinable: those that the catalog has, and
    those that share a sentence with one of them, and so on.
    """
    found = {
        (table.label, column.name)
        for table in catalog.tables.values() for column in table.columns if column.group == group
    }  # fmt: skip
    pairs = [fact for fact in known if fact.kind == f"{onion}.join"]
    while True:
        texts = {f.text for f in pairs if any((f.table, name) in found for name in f.columns)}
        more = {(f.table, name) for f in pairs if f.text in texts for name in f.columns}
        if more <= found:
            break
        found |= more
    kinds = (f"{onion}.join",) if onion == "eq" else ("ord.join", "ord.open")
    told = {(f.table, name) for f in known if f.kind in kinds for name in f.columns}
    return found & told


def _name(place: Place) -> tuple[str, str]:
    return place[0].label, place[1].name


def _pair(left: tuple[str, str], right: tuple[str, str], onion: str) -> list[Fact]:
    """Two columns that meet, told of both."""
    names = f"{left[0]}.{left[1]} and {right[0]}.{right[1]}"
    text = f"the server can tell which values of {names} are equal"
    level = "equality"
    if onion == "ord":
        level, text = "order", f"the server can order the values of {names} together"
    if left[0] == right[0]:
        return [Fact(left[0], (left[1], right[1]), level, f"{onion}.join", text)]
    return [Fact(label, (name,), level, f"{onion}.join", text) for label, name in (left, right)]


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
        first, second = sorted((left, right), key=_ids)
        facts += _pair(_name(first), _name(second), onion)
    return facts


def _ids(place: Place) -> tuple[int, int]:
    return place[0].id, place[1].id
