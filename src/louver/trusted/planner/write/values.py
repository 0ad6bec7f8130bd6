"""The lineage of values and of the rows of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from louver.names import fold
from louver.trusted.planner.write.reads import Secrets
from louver.trusted.vault.catalog import Table

#: The number of a row in its table, unless the table has a column with this name: plain.
ROWID = "rowid"
NONE: Secrets = frozenset()
_UNKNOWN = frozenset((-1, -2))


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression is computed from.

    ``holders`` are the occurrences that contain its encrypted columns, and the lists of constants
    that it reads; ``plains`` are those whose plain columns it reads.
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
    """A value that is computed from these secrets in an unknown way."""
    return Value(secrets, _UNKNOWN if secrets else frozenset(), _UNKNOWN)


def deciding(secrets: Secrets) -> Value:
    """A value that reveals which rows these secrets select; a constant if there are none."""
    return unknown(secrets) if secrets else CONSTANT


def union(values: Iterable[Value]) -> Value:
    """What several values together are computed from."""
    result = CONSTANT
    for value in values:
        result = result | value
    return result


@dataclass(frozen=True, slots=True)
class Rows:
    """What decides which rows exist.

    ``chosen`` are encrypted columns compared with constants only: they reveal which rows of their
    own table were chosen. ``joined`` are compared with encrypted columns of other occurrences.
    ``shown`` decide in any other way: compared with plain columns, grouped, sorted. Of these,
    ``counted`` reveal their values by the number of rows: compared with values known to the server,
    or used as a number of rows.
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

    def all_shown(self, more: Secrets = NONE) -> Rows:
        """The same if more than the existence of rows is visible: everything is shown."""
        return Rows(NONE, NONE, self.all | more, self.counted)


def unknown_rows(secrets: Secrets, columns: Secrets | None = None) -> Rows:
    """Rows that depend on these secrets in an unknown way. ``columns`` are those of them that are
    read from tables: the text of a statement is not a number of rows.
    """
    return Rows(shown=secrets, counted=secrets if columns is None else columns)


def apart(keys: Iterable[Value]) -> Rows:
    """Rows that remain if they differ in these keys. A key that is also computed from plain columns
    compares encrypted values with them.
    """
    rows = Rows()
    for value in keys:
        rows = rows | (unknown_rows(value.secrets) if value.plains else Rows(shown=value.secrets))
    return rows


def by_condition(value: Value) -> Rows:
    """What one comparison selects rows by."""
    if not value.secrets:
        return Rows()
    if value.plains:
        return unknown_rows(value.secrets)
    return Rows(chosen=value.secrets) if len(value.holders) < 2 else Rows(joined=value.secrets)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a query: its columns in order, what any column that is not listed depends on
    (None if all are listed), and its rows.
    """

    columns: tuple[tuple[str, Value], ...] = ()
    rest: Value | None = None
    rows: Rows = field(default_factory=Rows)

    def at(self, position: int) -> Value:
        """The column at a position."""
        if position < len(self.columns):
            return self.columns[position][1]
        return self.rest if self.rest is not None else self.every

    def named(self, name: str) -> Value:
        """The column with a folded name; if there are several, what all of them depend on."""
        matches = [value for known, value in self.columns if known == name]
        return union(matches) if matches else (self.rest or CONSTANT)

    @property
    def secrets(self) -> Secrets:
        """What the columns or the rows depend on."""
        return self.every.secrets | self.rows.all

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
        """The column with a folded name."""
        column = self.columns.get(name, self.rowid if name == ROWID else None)
        return self.rest if column is None else column

    @property
    def whole(self) -> Value:
        """A whole row."""
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
    """An occurrence of a query, whose first columns may be renamed."""
    columns: dict[str, Value] = {}
    order = [name for name, _ in relation.columns]
    order[: len(names)] = names
    values = [relation.at(i) for i in range(len(order))]
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
