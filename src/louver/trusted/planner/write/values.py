"""What a value, and the rows of a query, depend on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from louver.names import fold
from louver.trusted.planner.write.reads import Secrets
from louver.trusted.vault.catalog import Table

#: The number of a row in its table, where that has no column of this name: plain, as its place is.
ROWID = "rowid"
NONE: Secrets = frozenset()
_UNKNOWN = frozenset((-1, -2))


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression is computed from.

    ``holders`` are the occurrences that its encrypted columns are of, and the lists of constants
    that it reads; ``plains`` those of which it reads plain columns.
    """

    secrets: Secrets = NONE
    holders: frozenset[int] = frozenset()
    plains: frozenset[int] = frozenset()

    def __or__(self, other: Value) -> Value:
        if self == CONSTANT or self is other:
            return other
        return Value(
            self.secrets | other.secrets, self.holders | other.holders, self.plains | other.plains
        )


CONSTANT = Value()


def unknown(secrets: Secrets) -> Value:
    """A value that is computed from these in nobody knows which way."""
    return Value(secrets, _UNKNOWN if secrets else frozenset(), _UNKNOWN)


def deciding(secrets: Secrets) -> Value:
    """A value that shows which rows these decide; a constant where there are none."""
    return unknown(secrets) if secrets else CONSTANT


def union(values: Iterable[Value]) -> Value:
    """What several values together are computed from."""
    found = CONSTANT
    for value in values:
        found = found | value
    return found


@dataclass(frozen=True, slots=True)
class Rows:
    """What decides which rows there are.

    ``chosen`` are encrypted columns that are compared with constants alone: they show which rows
    of their own table were chosen. ``joined`` are compared with encrypted columns of other
    occurrences. ``shown`` decide in any other way: compared with plain columns, grouped, sorted.
    Of these, ``counted`` tell their values by how many rows there are: compared with what the
    server knows, or taken for a number of rows.
    """

    chosen: Secrets = NONE
    joined: Secrets = NONE
    shown: Secrets = NONE
    counted: Secrets = NONE

    def __or__(self, other: Rows) -> Rows:
        return Rows(
            self.chosen | other.chosen,
            self.joined | other.joined,
            self.shown | other.shown,
            self.counted | other.counted,
        )

    @property
    def all(self) -> Secrets:
        return self.chosen | self.joined | self.shown

    def turned(self, more: Secrets = NONE) -> Rows:
        """The same where the rows are not only there or not: all is shown."""
        return Rows(NONE, NONE, self.all | more, self.counted)


def told(secrets: Secrets, columns: Secrets | None = None) -> Rows:
    """Rows of which nobody knows how these decide about them; ``columns`` are those of them that
    are read from tables: the text of a statement is no number of rows.
    """
    return Rows(shown=secrets, counted=secrets if columns is None else columns)


def apart(keys: Iterable[Value]) -> Rows:
    """Rows that stay where they differ in these: one that is computed from plain columns too
    compares encrypted values with them.
    """
    found = Rows()
    for value in keys:
        found = found | (told(value.secrets) if value.plains else Rows(shown=value.secrets))
    return found


def by_condition(value: Value) -> Rows:
    """What one comparison decides rows by."""
    if not value.secrets:
        return Rows()
    if value.plains:
        return told(value.secrets)
    return Rows(chosen=value.secrets) if len(value.holders) < 2 else Rows(joined=value.secrets)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a query: its columns in order, what any column that is not listed depends on
    (None where all are listed), and its rows.
    """

    columns: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None
    rows: Rows = field(default_factory=Rows)

    def at(self, place: int) -> Value:
        """The column at a place."""
        if place < len(self.columns):
            return self.columns[place][1]
        return self.rest if self.rest is not None else self.every

    def named(self, name: str) -> Value:
        """The column of a folded name; of several what all depend on."""
        found = [value for known, value in self.columns if known == name]
        return union(found) if found else (self.rest or CONSTANT)

    @property
    def every(self) -> Value:
        """What all columns together depend on."""
        return union(value for _, value in self.columns) | (self.rest or CONSTANT)


@dataclass(slots=True)
class Source:
    """One occurrence of a table or query in FROM."""

    number: int
    alias: str
    columns: dict[str, Value]
    rest: Value | None
    order: list[str]
    rowid: Value | None = None

    def get(self, name: str) -> Value | None:
        """The column of a folded name."""
        found = self.columns.get(name, self.rowid if name == ROWID else None)
        return self.rest if found is None else found

    @property
    def whole(self) -> Value:
        """A row of it."""
        return union(self.columns.values()) | (self.rest or CONSTANT)


def of_table(table: Table, number: int, alias: str) -> Source:
    """An occurrence of a base table."""
    plain, holders = Value(plains=frozenset((number,))), frozenset((number,))
    columns = {
        fold(c.name): Value(frozenset(((table.id, c.id),)), holders) if c.encrypted else plain
        for c in table.columns
    }
    return Source(number, alias, columns, None, list(columns), plain)


def of_relation(relation: Relation, number: int, alias: str, names: list[str]) -> Source:
    """An occurrence of a query, whose first columns have other names perhaps."""
    columns: dict[str, Value] = {}
    order = [name for name, _ in relation.columns]
    order[: len(names)] = names
    values = [relation.at(place) for place in range(len(order))]
    for name, value in zip(order, values, strict=True):
        seen = moved(value, number)
        columns[name] = columns[name] | seen if name in columns else seen
    rest = None if relation.rest is None else moved(relation.rest, number)
    return Source(number, alias, columns, rest, order)


def moved(value: Value, number: int) -> Value:
    """A query's column as a column of this occurrence of the query."""
    here = frozenset((number,))
    return Value(
        value.secrets,
        value.holders if len(value.holders) > 1 else here if value.holders else frozenset(),
        here if value.plains else frozenset(),
    )
