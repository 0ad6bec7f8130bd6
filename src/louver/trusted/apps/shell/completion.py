"""Completion of statements: tables and columns, each with what it may reveal, and keywords."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from louver.names import fold, keyword
from louver.trusted.apps.shell.words import WORDS
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.scheme import using_words

KEYWORDS = tuple(
    "ALTER AND AS ASC BEGIN BETWEEN BY CASE COLUMN COMMIT COPY COUNT CREATE DELETE DESC DESCRIBE"
    " DISTINCT DROP ELSE ENC END EXISTS EXPLAIN FROM GROUP HAVING IN INSERT INTO IS JOIN LEAKAGE"
    " LEFT LIKE LIMIT MAY NOT NULL ON OR ORDER PRIMARY KEY REVEAL RIGHT ROLLBACK SELECT SET SHOW"
    " TABLE TABLES THEN UNION UPDATE USING VALUES VIEW WHEN WHERE WITH".split()
)
_WORD = re.compile(r'(?:"[^"]*"?|[\w.]|\\)*$')
_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")
_BEFORE_TABLES = frozenset(("FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE", "\\D", "\\L"))


class Names(Completer):
    """Completes what stands before the cursor from the catalog as it is at that time."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The completions of the word before the cursor, the likeliest first."""
        text = document.text_before_cursor
        match = _WORD.search(text)
        word = match[0] if match else ""
        if not word and not complete_event.completion_requested:
            return
        before = text[: len(text) - len(word)].split()
        typed = fold(word.replace('"', ""))
        seen: set[str] = set()
        for name, meta in self._candidates(document.text, word, before):
            if fold(name.replace('"', "")).startswith(typed) and name not in seen:
                seen.add(name)
                yield Completion(name, start_position=-len(word), display_meta=meta)

    def _candidates(self, text: str, word: str, before: list[str]) -> Iterator[tuple[str, str]]:
        last = keyword(before[-1]) if before else ""
        if word.startswith("\\") and not before:
            yield from ((name.split()[0], meaning) for name, meaning in WORDS.items())
            return
        if last == "REVEAL":
            yield from ((level, "leakage level") for level in LEVELS)
            return
        if last == "USING":
            yield from ((scheme, "scheme") for scheme in using_words())
        tables = list(self._catalog().tables.values())
        if "." in word:
            yield from _qualified(text, word, tables)
        if last in _BEFORE_TABLES or last.endswith("\\D"):
            yield from ((_quoted(table.label), table_meta(table)) for table in tables)
            return
        yield from _columns(text, tables)
        yield from ((_quoted(table.label), table_meta(table)) for table in tables)
        yield from ((name, "") for name in KEYWORDS if word)


def _columns(text: str, tables: list[Table]) -> Iterator[tuple[str, str]]:
    """The columns of the tables that the text mentions, else of all tables."""
    words = set(re.findall(r"\w+", fold(text)))
    mentioned = [table for table in tables if fold(table.name) in words]
    for table in mentioned or tables:
        for column in table.columns:
            yield _quoted(column.name), f"{table.label}: {column_meta(column)}"


def _qualified(text: str, word: str, tables: list[Table]) -> Iterator[tuple[str, str]]:
    """The columns behind `table.` or `alias.`."""
    prefix = word.rpartition(".")[0]
    name = fold(prefix.replace('"', ""))
    alias = re.search(rf"(\w+)\s+(?:as\s+)?{re.escape(name)}\b", fold(text))
    targets = {name, name.rpartition(".")[2], alias[1] if alias else ""}
    for table in tables:
        if fold(table.name) in targets or fold(table.label) == name:
            for column in table.columns:
                yield f"{prefix}.{_quoted(column.name)}", column_meta(column)


def column_meta(column: Column) -> str:
    """Type and protection of a column in one line."""
    if not column.encrypted:
        return f"{column.type}, plain"
    return f"{column.type} ENC USING {column.scheme}, may reveal {column.ceiling}"


def table_meta(table: Table) -> str:
    """Rows of a table, and how many of its columns are encrypted."""
    count = sum(column.encrypted for column in table.columns)
    return f"{table.row_count:,} rows, {count} of {len(table.columns)} columns encrypted"


def _quoted(name: str) -> str:
    """A name as SQL writes it."""
    if all(_NAME.match(fold(part)) for part in name.split(".")) or '"' in name:
        return name
    return '"' + name + '"'
