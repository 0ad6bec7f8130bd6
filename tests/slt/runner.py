"""A sqllogictest runner whose oracle is plaintext DuckDB running the same text.

The expected results in the files are another engine's; DuckDB's own are what Louver promises.
Run as a program: ``python -m tests.slt.runner --profile sdb FILE…``.
"""

from __future__ import annotations

import argparse
import lzma
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import duckdb

from louver.trusted.planner import lexer

_CONSTRAINTS = frozenset(
    "NOT NULL PRIMARY UNIQUE CHECK DEFAULT REFERENCES COLLATE GENERATED AS CONSTRAINT".split()
)
_TABLE_CONSTRAINTS = frozenset("PRIMARY UNIQUE CHECK FOREIGN CONSTRAINT".split())


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement or query of a file."""

    line: int
    kind: str
    sql: str
    ordered: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Where Louver's answer is not DuckDB's."""

    entry: Entry
    expected: object
    found: object

    def __str__(self) -> str:
        return (
            f"line {self.entry.line}: {self.entry.sql}\n"
            f"  duckdb: {str(self.expected)[:400]}\n  louver: {str(self.found)[:400]}"
        )


class Connection(Protocol):
    def execute(self, sql: str) -> Any: ...


def read(path: Path) -> Iterator[Entry]:
    """The entries of a .test or .test.xz file that DuckDB is meant to run."""
    raw = path.read_bytes()
    text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode()
    line = 1
    for block in re.split(r"\n[ \t]*\n", text):
        start = line
        line += block.count("\n") + 2
        entry = _entry(block, start)
        if entry is not None:
            if entry.kind == "halt":
                return
            yield entry


def _entry(block: str, line: int) -> Entry | None:
    lines = [part for part in block.split("\n") if not part.startswith("#")]
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and re.match(r"(skipif|onlyif)\s", lines[0]):
        word, engine = lines.pop(0).split()[:2]
        if (word == "skipif") == (engine == "duckdb"):
            return None
    if not lines:
        return None
    head = lines[0].split()
    if head[0] == "halt":
        return Entry(line, "halt", "", False)
    if head[0] not in ("statement", "query"):
        return None
    body: list[str] = []
    for part in lines[1:]:
        if part.strip() == "----":
            break
        body.append(part)
    sql = "\n".join(body).strip()
    ordered = head[0] == "query" and "ORDER BY" in sql.upper() and "nosort" in head
    return Entry(line, head[0], sql, ordered) if sql else None


def encrypt_columns(sql: str) -> str:
    """CREATE TABLE with ENC behind the type of every column; other statements as they are."""
    found = lexer.tokens(sql)
    words = [token.text.upper() for token in found]
    if words[:2] != ["CREATE", "TABLE"] or "(" not in words or "SELECT" in words:
        return sql
    places: list[int] = []
    depth, fresh, ended = 0, True, True
    last = None
    for token, word in zip(found, words, strict=True):
        if word in ("(", "["):
            depth += 1
            if depth == 1:
                fresh, last = True, None
                continue
        if depth == 1 and word in (",", ")") and last is not None and not ended:
            places.append(last.end + 1)
            ended = True
        if word in (")", "]"):
            depth -= 1
        if depth == 1 and word == ",":
            fresh, last = True, None
            continue
        if depth == 0 and word != ")":
            continue
        if fresh:
            fresh, ended = False, word.split()[0] in _TABLE_CONSTRAINTS
        elif depth == 1 and not ended and word.split()[0] in _CONSTRAINTS:
            places.append(last.end + 1 if last else token.start)
            ended = True
        last = token
    for place in sorted(places, reverse=True):
        sql = sql[:place] + " ENC " + sql[place:]
    return sql


def run(
    entries: Iterable[Entry], louver: Connection, duck: duckdb.DuckDBPyConnection
) -> list[Difference]:
    """Run the entries of a file on both; the differences."""
    differences: list[Difference] = []
    for entry in entries:
        expected = outcome(duck, entry.sql)
        found = outcome(louver, encrypt_columns(entry.sql))
        if entry.kind == "statement":
            # A change is told by whether it happens; DuckDB's cursor adds a row with its count.
            expected, found = ([] if isinstance(o, list) else o for o in (expected, found))
        if not same(expected, found, entry.ordered):
            differences.append(Difference(entry, expected, found))
    return differences


def outcome(connection: Any, sql: str) -> object:
    """The rows, or the kind of error."""
    try:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []
    except Exception as error:  # noqa: BLE001 - every kind of error is an outcome
        return kind_of(error)


def kind_of(error: Exception) -> str:
    """DuckDB's own kind of error, of DuckDB's or of Louver's exception."""
    code = getattr(error, "code", None)
    if code is None:
        return "error " + type(error).__name__.removesuffix("Exception").lower()
    return "error " + str(code).removeprefix("duckdb.").replace("_", "")


def same(expected: object, found: object, ordered: bool) -> bool:
    """Whether two outcomes are equal: multisets unless the query orders its rows."""
    if isinstance(expected, str) or isinstance(found, str):
        return expected == found
    left, right = _rows(expected), _rows(found)
    return left == right if ordered else sorted(left) == sorted(right)


def _rows(rows: Any) -> list[str]:
    return [repr(tuple(_value(value) for value in row)) for row in rows]


def _value(value: object) -> object:
    """Sums of floats depend on the order of their terms in the last digits, in DuckDB too."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return value


def main(arguments: list[str]) -> int:
    """Run files under a profile; print the differences."""
    import tempfile

    import louver

    parser = argparse.ArgumentParser(prog="python -m tests.slt.runner", description=__doc__)
    parser.add_argument("--profile", default="sdb")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args(arguments)
    total = 0
    for path in options.files:
        with tempfile.TemporaryDirectory() as folder:
            from louver.trusted.vault.keyring import KeyRing

            KeyRing.create(f"{folder}/slt.louverkey")
            connection = louver.connect(
                f"duckdb:////{folder.lstrip('/')}/slt.duckdb",
                keys=f"{folder}/slt.louverkey",
                profile=options.profile,
            )
            differences = run(read(path), connection, duckdb.connect())
            connection.close()
        total += len(differences)
        for difference in differences[:20]:
            sys.stdout.write(f"{difference}\n")
        sys.stdout.write(f"{path.name} under {options.profile}: {len(differences)} different\n")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
