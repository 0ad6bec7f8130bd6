"""Facts: what a server has learned, recorded by the ids of columns.

A table that is recreated under its name has other ids, so nothing is known about it yet; a renamed
table keeps its ids and its facts. A recorded sentence contains a mark instead of each name, so that
it is displayed with current names.
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
    """One thing that a server knows: about which columns, at which level, as a word and a sentence.

    ``ids`` are the columns' own, one each, and ``marked`` is the sentence with marks for names;
    both are empty if the fact is not about columns of the catalog. With ``counted``, every further
    ``condition`` (a fingerprint) reveals more.
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
        """The identity of a fact: it does not depend on the current names of columns."""
        if self.ids:
            return (self.ids, self.level, self.kind, self.marked)
        return (self.table, self.columns, self.level, self.kind, self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fact) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True, slots=True)
class Name:
    """A name for display, and its mark."""

    shown: str
    mark: str


def table_name(table: Table) -> Name:
    """The name of a table."""
    return Name(table.label, f"{{{table.id}}}")


def column_name(table: Table, column: Column) -> Name:
    """The name of a column, without its table's."""
    return Name(column.name, f"{{{table.id}.{column.id}}}")


def joined(names: Sequence[Name], word: str) -> Name:
    """Names joined by a word."""
    return Name(word.join(n.shown for n in names), word.join(n.mark for n in names))


def decoded(item: list[Any]) -> Fact:
    """A recorded fact; older releases recorded names only; ValueError for another form."""
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
    """The fact of a scheme's sentence about columns of a table; ``more`` fills its other fields."""
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


def about(item: Fact, table: Table, columns: Sequence[Column]) -> Fact:
    """The same sentence about columns of another table."""
    return replace(
        item,
        table=table.label,
        columns=tuple(column.name for column in columns),
        ids=tuple((table.id, column.id, column.generation) for column in columns),
    )


def moved(known: Iterable[Fact], old: Table, new: Table) -> dict[Fact, Fact]:
    """The facts about a table whose rows were stored again under other ids, each mapped to the same
    fact about the new table: the server still knows what it knew of the values.
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
        moved_ids = ids.get((table, int(column)))
        return f"{{{moved_ids[0]}.{moved_ids[1]}}}" if moved_ids else match[0]

    return {
        item: replace(
            item, ids=tuple(ids[i[:2]] for i in item.ids), marked=_MARK.sub(mark, item.marked)
        )
        for item in known
        if item.ids and all(i[:2] in ids for i in item.ids)
    }


def named(table: Table, names: Iterable[str]) -> list[Column]:
    """The columns with these names."""
    return [column for name in names if (column := table.column(name)) is not None]


def with_condition(facts: Iterable[Fact], condition: str) -> list[Fact]:
    """The facts of one statement; its condition is set in those that are counted."""
    return [replace(item, condition=condition) if item.counted else item for item in facts]


def condition_of(
    parts: Iterable[object], tables: Iterable[Table], version_token: Callable[[Table], str]
) -> str:
    """The fingerprint of a statement and the rows that its tables have now; of a table that is not
    counted, what a statement shows is one condition whatever its rows are.

    ``version_token`` changes with a table's rows, for tables whose row ids the catalog does not
    know.
    """
    text = hashlib.sha256()
    for part in parts:
        text.update(repr(part).encode() + b"\0")
    for table in tables:
        if table.counted:
            rows = table.runs if table.runs_known and not table.lake else version_token(table)
            text.update(repr((table.id, table.row_count, rows)).encode())
        else:
            text.update(repr(table.id).encode())
    return text.hexdigest()[:16]


def renamer(catalog: Catalog) -> Callable[[Fact], Fact]:
    """A function that renders a fact with current names; dropped tables and columns keep theirs."""
    tables = {table.id: table for table in catalog.tables.values()}
    columns = {(t.id, column.id): column for t in tables.values() for column in t.columns}

    def named_today(item: Fact) -> Fact:
        if not item.ids or item.ids[0][0] not in tables:
            return item
        recorded: dict[tuple[str, ...], str] = {}

        def word(mark: re.Match[str]) -> str:
            table, column = int(mark[1]), mark[2]
            if column is not None and (table, int(column)) in columns:
                return columns[table, int(column)].name
            if column is None and table in tables:
                return tables[table].label
            if not recorded:
                recorded.update(zip(_MARK.findall(item.marked), _recorded(item), strict=False))
            return recorded.get(mark.groups(""), "?")

        own = zip(item.ids, item.columns, strict=True)
        return replace(
            item,
            table=tables[item.ids[0][0]].label,
            columns=tuple(columns[i[:2]].name if i[:2] in columns else was for i, was in own),
            text=_MARK.sub(word, item.marked),
        )

    return named_today


class News:
    """What was newly revealed: facts, each with the number of new conditions, or 1."""

    def __init__(self, catalog: Callable[[], Catalog] | None) -> None:
        """None at first; ``catalog`` knows the names of today."""
        self._catalog = catalog
        self._counts: dict[Fact, int] = {}

    def note(self, fresh: Iterable[Fact]) -> None:
        """These are new."""
        for fact in fresh:
            self._counts[fact] = self._counts.get(fact, 0) + 1

    def taken(self) -> list[tuple[Fact, int]]:
        """What is new since this was last called."""
        if not self._counts:
            return []
        counts, self._counts = self._counts, {}
        today = renamer(self._catalog()) if self._catalog else None
        return [(today(fact) if today else fact, count) for fact, count in counts.items()]


def _recorded(item: Fact) -> tuple[str, ...]:
    """The names in a sentence as it was recorded, mark by mark."""
    pattern = "".join(
        "(.*?)" if i % 2 else re.escape(part)
        for i, part in enumerate(re.split(r"(\{\d+(?:\.\d+)?\})", item.marked))
    )
    match = re.fullmatch(pattern, item.text, re.DOTALL)
    return match.groups() if match else ()
