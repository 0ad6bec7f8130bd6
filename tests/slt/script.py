"""The sqllogictest format as DuckDB writes it, read into commands.

A file is a list of directives, each with its line, its words and what stands below it; loops hold
the directives between them and their end. Nothing is run here.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_TINY = ("tinyint", "smallint", "integer", "bigint", "hugeint")
_UNSIGNED = ("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint")
_NUMERIC = (*_TINY, *_UNSIGNED, "float", "double")
#: The names that stand for several types in `foreach`.
GROUPS: dict[str, tuple[str, ...]] = {
    "<signed>": _TINY,
    "<unsigned>": _UNSIGNED,
    "<integral>": (*_TINY, *_UNSIGNED),
    "<numeric>": _NUMERIC,
    "<alltypes>": (
        *_NUMERIC, "bool", "interval", "varchar", "date", "time", "timestamp", "uuid", "blob",
    ),
    "<compression>": ("none", "uncompressed", "rle", "bitpacking", "dictionary", "fsst", "alp"),
}  # fmt: skip
_LOOPS = ("loop", "concurrentloop", "foreach", "concurrentforeach")
_BODIED = ("statement", "query")
SORTS = ("nosort", "rowsort", "valuesort")
_ENGINE = "duckdb"
_QUOTED, _BRACKETED = re.compile(r"'[^']*'"), re.compile(r"\([^()]*\)")
_CONDITION = re.compile(r"(\S+?)(<=|>=|<>|!=|=|<|>)(\S+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One directive; `kind` is its first word, `words` are the others. A `probe` stands in no file:
    it is a statement of which nothing is known beforehand, compared as a query is.
    """

    line: int
    kind: str
    sql: str
    ordered: bool
    words: tuple[str, ...] = ()
    expected: tuple[str, ...] | None = None
    conditions: tuple[tuple[str, str], ...] = ()
    body: tuple[Entry, ...] = ()
    options: frozenset[str] = frozenset()
    parameters: tuple[object, ...] = ()
    #: whether the parameters are those of many runs
    many: bool = False

    @property
    def sort(self) -> str:
        """How a query's rows are compared with those of the file."""
        return next((word for word in self.words if word in SORTS), "nosort")

    @property
    def label(self) -> str | None:
        """Queries with the same label have the same answer."""
        return self.words[2] if self.kind == "query" and len(self.words) > 2 else None

    @property
    def connection(self) -> str | None:
        """The name of the connection that runs it."""
        if self.kind == "probe":
            return self.words[0]
        if self.kind in _BODIED and len(self.words) > 1 and self.words[1] not in SORTS:
            return self.words[1]
        return None


def read(path: Path) -> list[Entry]:
    """The directives of a .test file, which may be compressed by xz."""
    raw = path.read_bytes()
    return parse((lzma.decompress(raw) if path.suffix == ".xz" else raw).decode())


def parse(text: str) -> list[Entry]:
    """The directives of a text."""
    flat = list(_flat(text.split("\n")))
    entries, end = _nested(flat, 0)
    if end != len(flat):
        raise ValueError(f"line {flat[end].line}: endloop without a loop")
    return entries


def _flat(lines: Sequence[str]) -> Iterator[Entry]:
    position = 0
    conditions: list[tuple[str, str]] = []
    while position < len(lines):
        words = lines[position].split()
        start = position + 1
        position += 1
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("skipif", "onlyif"):
            conditions.append((words[0], " ".join(words[1:])))
            continue
        if words[0] not in _BODIED:
            yield _entry(start, words, "", None, conditions)
            conditions = []
            continue
        block: list[str] = []
        while position < len(lines) and lines[position].strip():
            block.append(lines[position])
            position += 1
        separator = next((n for n, line in enumerate(block) if line.strip() == "----"), len(block))
        expected = tuple(block[separator + 1 :]) if separator < len(block) else None
        sql = "\n".join(line for line in block[:separator] if not line.startswith("#"))
        yield _entry(start, words, sql.strip(), expected, conditions)
        conditions = []


def _entry(
    line: int,
    words: Sequence[str],
    sql: str,
    expected: tuple[str, ...] | None,
    conditions: Sequence[tuple[str, str]],
) -> Entry:
    kind, others = words[0], tuple(words[1:])
    if kind in _LOOPS:
        kind = kind.removeprefix("concurrent")
    ordered = (
        kind == "query"
        and not {"rowsort", "valuesort"} & set(others)
        and re.search(r"\border\s+by\b", sql, re.IGNORECASE) is not None
    )
    return Entry(line, kind, sql, ordered, others, expected, tuple(conditions))


def _nested(flat: Sequence[Entry], position: int) -> tuple[list[Entry], int]:
    """The directives up to the end of the innermost loop, and the place of that end."""
    entries: list[Entry] = []
    while position < len(flat) and flat[position].kind != "endloop":
        entry = flat[position]
        position += 1
        if entry.kind in ("loop", "foreach"):
            body, position = _nested(flat, position)
            if position == len(flat):
                raise ValueError(f"line {entry.line}: a loop without endloop")
            position += 1
            entry = Entry(
                entry.line, entry.kind, "", False, entry.words, None, entry.conditions, tuple(body)
            )
        entries.append(entry)
    return entries, position


def probe(
    sql: str, parameters: tuple[object, ...] = (), connection: str = "", *, many: bool = False
) -> Entry:
    """A statement that is run for no other reason than to compare the two databases."""
    outer, count = _QUOTED.sub("''", sql), 1
    while count:
        outer, count = _BRACKETED.subn("", outer)
    ordered = re.search(r"\border\s+by\b", outer, re.IGNORECASE) is not None
    words = (connection,)
    return Entry(0, "probe", sql, ordered, words, parameters=parameters, many=many)


def rounds(entry: Entry) -> Iterator[tuple[str, str]]:
    """The variable of a loop and each of its values."""
    name, *items = entry.words
    if entry.kind == "loop":
        for number in range(int(items[0]), int(items[1])):
            yield name, str(number)
        return
    values: list[str] = []
    for item in items:
        if item.startswith("!"):
            values = [value for value in values if value not in GROUPS.get(item[1:], (item[1:],))]
        else:
            values += GROUPS.get(item, (item,))
    for value in values:
        yield name, value


def filled(text: str, variables: dict[str, str]) -> str:
    """A text with the values of ${name}, {name} and the names that are replaced as they stand."""
    for name, value in variables.items():
        text = text.replace("${" + name + "}", value)
        if name.startswith("__"):
            text = text.replace(name, value)
        else:
            text = text.replace("{" + name + "}", value)
    return text


def runs(conditions: Sequence[tuple[str, str]], variables: dict[str, str]) -> bool:
    """Whether what stands below skipif and onlyif is run."""
    return all(_holds(condition, variables) == (word == "onlyif") for word, condition in conditions)


def _holds(condition: str, variables: dict[str, str]) -> bool:
    for part in re.split(r"\s*&&\s*", condition):
        match = _CONDITION.fullmatch(part.replace(" ", ""))
        if match is None:
            if part.split()[0] != _ENGINE:
                return False
            continue
        name, sign, right = match.groups()
        left = variables.get(name, name)
        order = _compared(left, right)
        if not {
            "=": order == 0, "<>": order != 0, "!=": order != 0,
            "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0,
        }[sign]:  # fmt: skip
            return False
    return True


def _compared(left: str, right: str) -> int:
    """Numbers as numbers, others as texts."""
    numbers = re.fullmatch(r"-?\d+", left) and re.fullmatch(r"-?\d+", right)
    if numbers:
        return (int(left) > int(right)) - (int(left) < int(right))
    return (left > right) - (left < right)
