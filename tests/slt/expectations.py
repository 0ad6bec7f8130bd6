"""Whether an answer is the one that a file states: texts, sort modes, hashes, patterns."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any

import duckdb

Columns = Sequence[tuple[str, str]]
_HASH = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_NUMBERS = ("FLOAT", "DOUBLE")


class Texts:
    """Values as DuckDB writes them."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()

    def of(self, value: object, type_: str) -> str:
        """One value of a type as a cell of a file."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return value.replace("\0", "\\0") or "(empty)"
        if isinstance(value, int):
            return str(value)
        try:
            row = self.connection.execute(f"SELECT (?::{type_})::VARCHAR", [value]).fetchone()
        except duckdb.Error:
            return str(value)
        return str(row[0]) if row else ""

    def same(self, expected: str, actual: str, type_: str) -> bool:
        """Whether a cell of a file states this one."""
        if expected == actual:
            return True
        for mark, wanted in (("<REGEX>:", True), ("<!REGEX>:", False)):
            if expected.startswith(mark):
                pattern = expected.removeprefix(mark)
                return (re.fullmatch(pattern, actual, re.DOTALL) is not None) == wanted
        if "NULL" in (expected, actual):
            return False
        if type_ == "BOOLEAN":
            return {"1": "true", "0": "false"}.get(expected, expected) == actual
        try:
            if type_ in _NUMBERS:
                return math.isclose(float(expected), float(actual), rel_tol=1e-2, abs_tol=1e-9)
            sql = f"SELECT ?::{type_} = ?::{type_}"
            row = self.connection.execute(sql, [expected, actual]).fetchone()
        except (duckdb.Error, ValueError):
            return False
        return bool(row and row[0])


def cells(rows: Sequence[Sequence[Any]], columns: Columns, sort: str, texts: Texts) -> list[str]:
    """All values of an answer as texts, in the order of a sort mode."""
    types = [type_ for _, type_ in columns]
    lines = [[texts.of(value, type_) for value, type_ in zip(row, types, strict=True)]
             for row in rows]  # fmt: skip
    if sort == "rowsort":
        lines.sort()
    values = [cell for line in lines for cell in line]
    return sorted(values) if sort == "valuesort" else values


def hashed(values: Sequence[str]) -> str:
    """The hash that stands in a file for many values."""
    text = "".join(f"{cell}\n" for cell in values)
    return f"{len(values)} values hashing to {hashlib.md5(text.encode()).hexdigest()}"


def met(
    expected: Sequence[str],
    rows: Sequence[Sequence[Any]],
    columns: Columns,
    sort: str,
    texts: Texts,
) -> bool:
    """Whether an answer is what the lines below ---- state."""
    types = [type_ for _, type_ in columns]
    if len(expected) == 1 and _HASH.fullmatch(expected[0]):
        return hashed(cells(rows, columns, sort, texts)) == expected[0]
    width = len(types)
    wanted = [cell for line in expected for cell in line.split("\t")]
    if len(wanted) == len(expected) != len(rows) * width and width > 1:
        return False
    by_rows = len(expected) == len(rows) and all(line.count("\t") == width - 1 for line in expected)
    if not by_rows:
        wanted = list(expected)
    actual = cells(rows, columns, sort, texts)
    if len(wanted) != len(actual):
        return False
    if sort == "rowsort":
        lines = sorted(wanted[n : n + width] for n in range(0, len(wanted), width or 1))
        wanted = [cell for line in lines for cell in line]
    elif sort == "valuesort":
        types, wanted = ["VARCHAR"] * len(actual), sorted(wanted)
    return all(
        texts.same(cell, other, types[n % len(types)])
        for n, (cell, other) in enumerate(zip(wanted, actual, strict=True))
    )


def message_met(expected: Sequence[str] | None, message: str) -> bool:
    """Whether an error says what a file states."""
    wanted = "\n".join(expected or ()).strip()
    for mark, sign in (("<REGEX>:", True), ("<!REGEX>:", False)):
        if wanted.startswith(mark):
            pattern = wanted.removeprefix(mark)
            return (re.search(pattern, message, re.DOTALL) is not None) == sign
    return wanted.casefold() in message.casefold()
