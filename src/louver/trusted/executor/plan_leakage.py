"""What a plan shows, as facts of the ledger: its leaks, and what the layers that it opens show.

An open layer shows the whole column for as long as the database lives, so its facts do not depend
on the query. Columns of one join group that are open to the join layer are joinable with each
other, whichever query opened them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from louver import errors
from louver.trusted.planner.ir import Opening, Plan
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.facts import (
    Fact,
    Name,
    column_name,
    fact,
    joined,
    table_name,
    with_condition,
)
from louver.trusted.vault.scheme import scheme_of

Place = tuple[Table, Column]


def joinable_kinds() -> tuple[str, ...]:
    """Those kinds, of all onions."""
    return tuple(kind for onion, _ in _joining() for kind in joinable(onion))


def joinable(onion: str) -> tuple[str, ...]:
    """The kinds of facts by which a column that was shown once is known to meet another one."""
    row = scheme_of(onion)
    facts = [row.paired]
    # Where the first open state joins, an open column meets all others.
    facts += [row.opened] if row.layers[1].joins else []
    return tuple(leak.kind for leak in facts if leak is not None)


def _joining() -> list[tuple[str, str]]:
    """Every onion whose columns compare within a group, and the state in which they do."""
    return [(row.representations[0].name, row.joined) for row in scheme.onions() if row.joined]


def facts_of(
    plan: Plan, catalog: Catalog, known: Sequence[Fact] = (), condition: str = ""
) -> list[Fact]:
    """The leaks and openings of a plan as facts; ``known`` is what the ledger holds already.
    ``condition`` is the statement's fingerprint, by which facts are counted.
    """
    if not plan.opens:
        return with_condition(plan.leaks, condition)
    opened = [*of_openings(plan.opens, catalog), *_with_former(plan.opens, catalog, known)]
    return with_condition([*plan.leaks, *opened], condition)


def _with_former(
    openings: Sequence[Opening], catalog: Catalog, known: Sequence[Fact]
) -> list[Fact]:
    """Pairs with columns that were shown to the server once, though the catalog does not call
    them open: of a transaction that was rolled back, a lowered ceiling, a dropped table.
    """
    facts: list[Fact] = []
    for onion, state in _joining():
        for opening in openings:
            table, column = catalog.column(opening.table, opening.column)
            if (opening.onion, opening.state) != (onion, state) or not column.group:
                continue
            now = {_side(position).key for position in _open_columns(catalog, onion, state)}
            now |= {_side(catalog.column(o.table, o.column)).key for o in openings}
            own = _side((table, column))
            for former in _shown(catalog, column.group, onion, known):
                if former.key not in now and former.key != own.key:
                    facts += _pair(own, former, onion)
    return facts


def _shown(catalog: Catalog, group: str, onion: str, known: Sequence[Fact]) -> list[_Side]:
    """The columns of a join group that the ledger calls joinable: those that the catalog has, and
    those that share a sentence with one of them, and so on.
    """
    formers = {
        _side((table, column)).key
        for table in catalog.tables.values() for column in table.columns if column.group == group
    }  # fmt: skip
    paired = joinable(onion)[0]
    pairs = [(fact.marked or fact.text, _sides(fact)) for fact in known if fact.kind == paired]
    while True:
        texts = {text for text, sides in pairs if any(side.key in formers for side in sides)}
        more = {side.key for text, sides in pairs if text in texts for side in sides}
        if more <= formers:
            break
        formers |= more
    kinds = joinable(onion)
    facts = {side.key: side for f in known if f.kind in kinds for side in _sides(f)}
    return sorted((facts[key] for key in formers & set(facts)), key=lambda side: side.name.shown)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of two columns that meet; its table may be gone."""

    label: str
    column: str
    name: Name
    #: empty of a fact that an older release recorded
    ids: tuple[int, int, int] | None

    @property
    def table(self) -> object:
        """The table's id, or its name where no ids are known."""
        return self.ids[0] if self.ids else self.label

    @property
    def key(self) -> tuple[object, ...]:
        """The column's ids, or its names where no ids are known."""
        return self.ids[:2] if self.ids else (self.label, self.column)


def _side(member: Place) -> _Side:
    table, column = member
    name = joined([table_name(table), column_name(table, column)], ".")
    return _Side(table.label, column.name, name, (table.id, column.id, column.generation))


def _sides(fact: Fact) -> list[_Side]:
    """The columns that a fact is of."""
    entries = []
    for position, column in enumerate(fact.columns):
        ids = fact.ids[position] if fact.ids else None
        shown = f"{fact.table}.{column}"
        mark = f"{{{ids[0]}}}.{{{ids[0]}.{ids[1]}}}" if ids else shown
        entries.append(_Side(fact.table, column, Name(shown, mark), ids))
    return entries


def _pair(left: _Side, right: _Side, onion: str) -> list[Fact]:
    """Two columns that meet, told of both."""
    said = scheme_of(onion).paired
    if said is None:
        raise errors.make("internal", detail=f"no columns compare by {onion}")
    pair = joined([left.name, right.name], " and ")
    shared = left.table == right.table
    entries = []
    for sides in [[left, right]] if shared else [[left], [right]]:
        ids = tuple(side.ids for side in sides if side.ids)
        marked = said.text.format(pair=pair.mark) if len(ids) == len(sides) else ""
        columns = tuple(side.column for side in sides)
        text = said.text.format(pair=pair.shown)
        entries.append(
            Fact(
                sides[0].label, columns, said.level, said.kind, text, ids if marked else (), marked
            )
        )
    return entries


def of_openings(openings: Sequence[Opening], catalog: Catalog) -> list[Fact]:
    """What open layers show."""
    facts: list[Fact] = []
    for opening in openings:
        table, column = catalog.column(opening.table, opening.column)
        facts.append(_alone(table, column, opening.onion))
    for onion, state in _joining():
        request = [o for o in openings if o.onion == onion and o.state == state]
        opened = [catalog.column(o.table, o.column) for o in request]
        if opened:
            facts += _together(opened, _open_columns(catalog, onion, state), onion)
    return list(dict.fromkeys(facts))


def _alone(table: Table, column: Column, onion: str) -> Fact:
    nulls = ", and which of them are NULL" if column.has_null else ""
    row = scheme_of(onion)
    said = row.opened_unique if column.unique and row.opened_unique else row.opened
    if said is None:
        raise errors.make("internal", detail=f"an open layer of {onion} has no sentence")
    own = column_name(table, column)
    if column.coarse and "<" in row.answers:
        ranges = f"{1 << (column.bits - column.coarse)} ranges of "
        own = Name(ranges + own.shown, ranges + own.mark)
    return fact(said.name, table, [column], nulls=nulls, column=own)


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
        facts += _pair(_side(first), _side(second), onion)
    return facts


def _ids(member: Place) -> tuple[int, int]:
    return member[0].id, member[1].id
