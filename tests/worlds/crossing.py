"""What crossed, in a form in which only ciphertext is masked.

Masked is what a stored position declares to be ciphertext: a column under a pseudonym (rows that
are sent, and items of a result that are computed from one), a constant in a predicate or
assignment of such a column, and the bodies of catalog and ledger. A mask keeps the type, the
length of bytes, whether it is NULL, and by a number which earlier ciphertext is the same one.
Everything else is compared as it is: texts, plain columns, row ids, names, counts, order.

What varies without a cause in the data, and is masked for that reason alone:

* pseudonyms, which are random; they are numbered in the order in which they appear.
* which rows a server draws for USING SAMPLE.
* the order of the tags of keys that are looked up, which is that of their bytes.
* the order of rows that a server returns for GROUP BY, DISTINCT or a join over codes: its hash
  tables depend on ciphertext. Such replies are compared as multisets, without numbers.
* the time in a ledger's record, which is sealed and always as long but where its microseconds
  are 0 (once in a million).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from louver.wire import control
from louver.wire.messages import Append, Control, Count, Failure, Message, Rows, Statement
from louver.wire.tap import Record

#: The names that Louver gives to stored forms of ENC columns; no plain column may have such a name.
PSEUDONYM = re.compile(r"[a-z]_[0-9a-f]{12}")
_KEY_LIST = re.compile(r'"k_[0-9a-f]{12}" IN \(((?:[^()]|\([^()]*\))*)\)')
#: A row whose values are bound in the order of its columns.
_ROW = re.compile(r"INSERT INTO [^()]* \(([^()]*)\) VALUES \((?:\$\d+(?:, )?)+\)")
_CONTROL = {
    control.CATALOG_UPDATE: {2}, control.CATALOG_INSERT: {4}, control.LEDGER_APPEND: {2},
}  # fmt: skip
_SEALED = {"body"}
_BOUNDS = (exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Select, exp.Update, exp.Delete,
           exp.Join, exp.Insert, exp.Values)  # fmt: skip


class Crossing:
    """Makes comparable what crossed in one world; it numbers ciphertext as it comes."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._last = Statement("")

    def seen(self, records: Sequence[Record]) -> list[Any]:
        """All records of a statement."""
        return [(record.direction, *self._message(record.message)) for record in records]

    def _message(self, message: Message) -> Iterator[Any]:
        match message:
            case Statement(sql, constants, kind, tables):
                self._last = message
                masked = masked_constants(sql)
                yield ("statement", kind, self._renamed(sql))
                listed = [] if kind != "query" else key_lists(sql)
                for numbers in listed:
                    yield self._known(constants[number - 1] for number in numbers)
                sets = {number for numbers in listed for number in numbers}
                yield [
                    self.mask(c) if n in masked else plain(c)
                    for n, c in enumerate(constants, 1) if n not in sets
                ]  # fmt: skip
                yield [(name, self._table(rows)) for name, rows in tables.items()]
            case Append(table, rows):
                yield ("append", self._renamed(table), self._table(rows))
            case Rows(table):
                if "USING SAMPLE" in self._last.sql or "ORDER BY random()" in self._last.sql:
                    yield ("rows", self._schema(table), table.num_rows)
                    return
                secret, shuffled = masked_items(self._last.sql)
                names = set(table.column_names)
                known = _SEALED | (names if None in secret else secret)
                hidden: set[Any] = {name for name in names if name in known}
                yield ("rows", *self._reply(table, hidden, shuffled))
            case Count(rows):
                yield ("count", rows)
            case Failure(code, _):
                yield ("failure", code)
            case Control(verb):
                yield ("control", verb)

    def _table(self, rows: pa.Table) -> list[Any]:
        """Rows that are sent: columns under pseudonyms are ciphertext."""
        return self._columns(rows, {n for n in rows.column_names if PSEUDONYM.fullmatch(n)})

    def _reply(self, table: pa.Table, secret: set[Any], shuffled: bool) -> list[Any]:
        if not shuffled:
            return self._columns(table, secret)
        rows = [
            [_shape(v) if name in secret else plain(v) for name, v in row.items()]
            for row in table.to_pylist()
        ]
        return [self._schema(table), sorted(map(repr, rows))]

    def _columns(self, table: pa.Table, secret: set[Any]) -> list[Any]:
        columns: list[Any] = [self._schema(table)]
        for name, column in zip(table.column_names, table.columns, strict=True):
            values = column.to_pylist()
            if name in secret:
                columns.append([self.mask(value) for value in values])
            else:
                columns.append([plain(value) for value in values])
        return columns

    def _schema(self, table: pa.Table) -> list[tuple[str, str]]:
        return [(self._renamed(field.name), str(field.type)) for field in table.schema]

    def _renamed(self, text: str) -> str:
        """The text with pseudonyms, which are random, numbered as they come."""

        def named(match: re.Match[str]) -> str:
            name = match.group()
            return self._names.setdefault(name, f"{name[0]}_{len(self._names):04}")

        if text not in self._texts:
            self._texts[text] = PSEUDONYM.sub(named, text)
        return self._texts[text]

    def mask(self, value: Any) -> Any:
        """A ciphertext: its shape, and the number of the first one that was the same."""
        if value is None:
            return None
        value = _raw(value)
        number = self._numbers.setdefault(value, len(self._numbers))
        return (*_shape(value), number)

    def _known(self, values: Iterable[Any]) -> list[Any]:
        """Tags of keys as a set: they are sent in the order of their bytes, and the last one again
        until they are a power of two. One that never crossed before has no number yet.
        """
        tags = {_raw(value) for value in values}
        return sorted(str((*_shape(tag), self._numbers.get(tag, "new"))) for tag in tags)


def _raw(value: Any) -> Any:
    """The bytes of a UUID, and anything else as it is."""
    if isinstance(value, uuid.UUID):
        return value.bytes
    return uuid.UUID(value).bytes if isinstance(value, str) and len(value) == 36 else value


def key_lists(sql: str) -> list[list[int]]:
    """The numbers of the placeholders of each list of tags of keys."""
    lists = _KEY_LIST.findall(sql)
    return [[int(number) for number in re.findall(r"\$(\d+)", text)] for text in lists]


def _shape(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ("NULL",)
    if isinstance(value, uuid.UUID):
        return ("bytes", 16)
    return ("bytes", len(value)) if isinstance(value, bytes | str) else (type(value).__name__, 0)


def plain(value: Any) -> Any:
    """A value that has to be the same in both worlds."""
    return repr(value)


@lru_cache(4096)
def _tree(sql: str) -> exp.Expr | None:
    for dialect in ("duckdb", "postgres"):
        with suppress(sqlglot.errors.SqlglotError):
            return sqlglot.parse_one(sql, dialect=dialect)
    return None


def _secret(node: exp.Expr) -> bool:
    return any(PSEUDONYM.fullmatch(node.name) for node in node.find_all(exp.Identifier))


@lru_cache(4096)
def masked_constants(sql: str) -> frozenset[int]:
    """The numbers of the placeholders that stand for ciphertext."""
    if sql in _CONTROL:
        return frozenset(_CONTROL[sql])
    if "$" not in sql or not PSEUDONYM.search(sql):
        return frozenset()
    if row := _ROW.fullmatch(sql):
        columns = enumerate(row[1].split(", "), 1)
        return frozenset(number for number, name in columns if PSEUDONYM.fullmatch(name, 1, 15))
    tree = _tree(sql)
    if tree is None:
        return frozenset()
    names = set()
    for node in tree.find_all(exp.Parameter, exp.Placeholder):
        atom: exp.Expr = node
        while atom.parent is not None and not isinstance(atom.parent, _BOUNDS):
            atom = atom.parent
        if _secret(atom):
            names.add(int(node.name))
    return frozenset(names)


@lru_cache(4096)
def masked_items(sql: str) -> tuple[frozenset[str | None], bool]:
    """The names of a query's items that are ciphertext, and whether the order of its rows depends
    on ciphertext.
    """
    if not PSEUDONYM.search(sql):
        return frozenset(), False
    tree = _tree(sql)
    if not isinstance(tree, exp.Query):
        return frozenset((None,)), False
    inner = tree.args["from_"].this if tree.args.get("from_") else None
    as_they_are = all(isinstance(item, exp.Star | exp.Column) for item in tree.selects)
    if as_they_are and isinstance(inner, exp.Subquery):
        tree = inner.this  # a part of a query's rows or columns
    items = {item.alias_or_name for item in tree.selects if _secret(item)}
    shuffling = (exp.Group, exp.Distinct, exp.Join, exp.In, exp.Exists)
    return frozenset(items), any(_secret(node) for node in tree.find_all(*shuffling))
