"""Facts: what a server has been shown, told of columns by their ids.

A table that is made again under its name has other ids, so nothing of it is known yet; one that is
renamed keeps its ids, and what is known of it. Sentences keep a mark in the place of each name, so
that people read the name of today.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.levels import LEVELS

Place = tuple[int, int, int]
"""Table, column and generation by their ids."""
_MARK = re.compile(r"\{(\d+)(?:\.(\d+))?\}")


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """One thing that a server knows: of which columns, how much, in a word and a sentence.

    ``ids`` are the columns' own, one each, and ``marked`` is the sentence with marks for names;
    both are empty where something else than a column of the catalog is told of. ``counted`` tells
    that every further ``condition`` (a fingerprint) shows more.
    """

    table: str
    columns: tuple[str, ...]
    level: str
    kind: str
    text: str
    ids: tuple[Place, ...] = ()
    marked: str = ""
    counted: bool = False
    condition: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two facts the same: not the names that columns have by now."""
        if self.ids:
            return (self.ids, self.level, self.kind, self.marked)
        return (self.table, self.columns, self.level, self.kind, self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fact) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Name:
    """A name as people read it, and its mark."""

    shown: str
    mark: str


def table_name(table: Table) -> Name:
    """The name of a table."""
    return Name(table.label, f"{{{table.id}}}")


def column_name(table: Table, column: Column) -> Name:
    """The name of a column, without its table's."""
    return Name(column.name, f"{{{table.id}.{column.id}}}")


def joined(names: Sequence[Name], word: str) -> Name:
    """Names with a word between them."""
    return Name(word.join(n.shown for n in names), word.join(n.mark for n in names))


def decoded(item: list[Any]) -> Fact:
    """A fact of a record, of an older release with names alone; ValueError for another form."""
    table, columns, level, kind, text, *rest = item
    names = columns if isinstance(columns, list) else [columns]
    words = all(isinstance(word, str) for word in (*names, table, kind, text))
    if names is not columns or level not in LEVELS or not words:
        raise ValueError("not a fact")
    if not rest:
        return Fact(table, tuple(columns), level, scheme.kind_today(kind), text)
    ids, marked, counted, condition = rest
    if not isinstance(marked, str) or not isinstance(condition, str):
        raise ValueError("not a fact")
    return Fact(
        table, tuple(columns), level, scheme.kind_today(kind), text,
        tuple((int(t), int(c), int(g)) for t, c, g in ids), marked, bool(counted), condition,
    )  # fmt: skip


def fact(name: str, table: Table, columns: Sequence[Column], /, **more: Name | str) -> Fact:
    """The fact of a scheme's sentence about columns of a table; ``more`` are other words of it."""
    said = scheme.leak(name)
    words: dict[str, Name | str] = {
        "table": table_name(table),
        "column": joined([column_name(table, column) for column in columns], " and "),
        **more,
    }
    shown = {key: word.shown if isinstance(word, Name) else word for key, word in words.items()}
    marks = {key: word.mark if isinstance(word, Name) else word for key, word in words.items()}
    return Fact(
        table.label,
        tuple(column.name for column in columns),
        said.level,
        said.kind,
        said.text.format(**shown),
        tuple((table.id, column.id, column.generation) for column in columns),
        said.text.format(**marks),
        said.counted,
    )


def retold(one: Fact, table: Table, columns: Sequence[Column]) -> Fact:
    """The same sentence, told of columns of another table."""
    return replace(
        one,
        table=table.label,
        columns=tuple(column.name for column in columns),
        ids=tuple((table.id, column.id, column.generation) for column in columns),
    )


def moved(known: Iterable[Fact], old: Table, new: Table) -> dict[Fact, Fact]:
    """The facts of a table whose rows were stored anew under other ids, each as it is told of the
    new one: what a server knows of the values, it knows still.
    """
    ids = {
        (old.id, column.id): (new.id, now.id, now.generation)
        for column in old.columns
        if (now := new.column(column.name)) is not None
    }

    def mark(match: re.Match[str]) -> str:
        table, column = int(match[1]), match[2]
        if column is None:
            return f"{{{new.id if table == old.id else table}}}"
        place = ids.get((table, int(column)))
        return f"{{{place[0]}.{place[1]}}}" if place else match[0]

    return {
        one: replace(
            one, ids=tuple(ids[i[:2]] for i in one.ids), marked=_MARK.sub(mark, one.marked)
        )
        for one in known
        if one.ids and all(i[:2] in ids for i in one.ids)
    }


def named(table: Table, names: Iterable[str]) -> list[Column]:
    """The columns of these names."""
    return [column for name in names if (column := table.column(name)) is not None]


def under(found: Iterable[Fact], condition: str) -> list[Fact]:
    """Facts of one statement: those that are counted are counted by its condition."""
    return [replace(one, condition=condition) if one.counted else one for one in found]


def condition_of(
    parts: Iterable[object], tables: Iterable[Table], stamp: Callable[[Table], str]
) -> str:
    """The fingerprint of a statement over the rows that its tables have now: what it divides.
    ``stamp`` changes with a table's rows, where the catalog does not know which they are.
    """
    text = hashlib.sha256()
    for part in parts:
        text.update(repr(part).encode() + b"\0")
    for table in tables:
        rows = table.runs if table.runs_known and not table.lake else stamp(table)
        text.update(repr((table.id, table.row_count, rows)).encode())
    return text.hexdigest()[:16]


def renamer(catalog: Catalog) -> Callable[[Fact], Fact]:
    """What gives a fact the names of today; dropped tables and columns keep their last."""
    tables = {table.id: table for table in catalog.tables.values()}
    columns = {(t.id, column.id): column for t in tables.values() for column in t.columns}

    def named_today(one: Fact) -> Fact:
        if not one.ids or one.ids[0][0] not in tables:
            return one
        recorded: dict[tuple[str, ...], str] = {}

        def word(mark: re.Match[str]) -> str:
            table, column = int(mark[1]), mark[2]
            if column is not None and (table, int(column)) in columns:
                return columns[table, int(column)].name
            if column is None and table in tables:
                return tables[table].label
            if not recorded:
                recorded.update(zip(_MARK.findall(one.marked), _recorded(one), strict=False))
            return recorded.get(mark.groups(""), "?")

        own = zip(one.ids, one.columns, strict=True)
        return replace(
            one,
            table=tables[one.ids[0][0]].label,
            columns=tuple(columns[i[:2]].name if i[:2] in columns else was for i, was in own),
            text=_MARK.sub(word, one.marked),
        )

    return named_today


def _recorded(one: Fact) -> tuple[str, ...]:
    """The names in a sentence as it was recorded, mark by mark."""
    pattern = "".join(
        "(.*?)" if place % 2 else re.escape(part)
        for place, part in enumerate(re.split(r"(\{\d+(?:\.\d+)?\})", one.marked))
    )
    match = re.fullmatch(pattern, one.text, re.DOTALL)
    return match.groups() if match else ()
