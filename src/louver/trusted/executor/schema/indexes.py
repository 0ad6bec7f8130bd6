"""Indexes on the server: over plain keys, over codes that are open, and what CREATE INDEX declares.

An index shows nothing beyond the columns that it is over, and that it was declared. Codes under a
layer are different in every row, so one over them would answer nothing. A key's tags have the index
that keeps them apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token

from louver.names import fold, keyword
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, Table


def wanted(catalog: Catalog, table: Table, backend: Backend) -> list[tuple[str, ...]]:
    """The server's columns of each index that a table has now."""
    keys = [[c for c in table.columns if c.id in ids] for ids in table.tags.values()]
    plain = [key for key in keys if all("plain" in column.stored for column in key)]
    listed = [tuple(column.stored["plain"] for column in key) for key in plain if key]
    listed += [(code,) for column in table.columns for code in _codes(column)]
    for columns in _declared(catalog, table):
        if any(_is_long(c) or not _is_looked_up(c, backend) for c in columns):
            continue
        names = tuple(name for column in columns for name in _answering(column))
        listed += [names] if len(names) == len(columns) else []
    return list(dict.fromkeys(listed))


def table_of(catalog: Catalog, tokens: Sequence[Token]) -> Table | None:
    """The table of a CREATE INDEX statement."""
    words = [keyword(token.text) for token in tokens]
    if "ON" not in words:
        return None
    name, _ = head.names(tokens, words.index("ON") + 1)
    return catalog.named(name[-2] if len(name) > 1 else "", name[-1]) if name else None


def _declared(catalog: Catalog, table: Table) -> list[list[Column]]:
    """The columns of each declared index, of those over columns alone."""
    listed = []
    for item in catalog.objects:
        tokens = lexer.tokens(item.sql) if item.kind == "INDEX" else []
        target = table_of(catalog, tokens) if tokens else None
        if target is not None and target.id == table.id:
            columns = _columns(table, tokens)
            listed += [columns] if columns else []
    return listed


def _columns(table: Table, tokens: Sequence[Token]) -> list[Column]:
    """What is between the parentheses, if that is names of columns; else nothing."""
    words = [token.text for token in tokens]
    if "(" not in words or words[-1:] == [";"]:
        return []
    between = words[words.index("(") + 1 : -1]
    names, commas = between[::2], between[1::2]
    known = {fold(column.name): column for column in table.columns}
    if words[-1] != ")" or any(comma != "," for comma in commas):
        return []
    if not names or any(fold(name) not in known for name in names):
        return []
    return [known[fold(name)] for name in names]


def _is_long(column: Column) -> bool:
    """Whether a plain value may be larger than what an index of the server's takes, which would
    refuse the row.
    """
    return "plain" in column.stored and column.type in ("VARCHAR", "BLOB")


def _is_looked_up(column: Column, backend: Backend) -> bool:
    """Whether the server decides conditions on a plain column: an index of others would answer
    none, and may not exist for its type.
    """
    return "plain" not in column.stored or backend.compares(column.type)


def _codes(column: Column) -> list[str]:
    """The server's columns of codes that are open."""
    names = [row.representations[0].name for row in scheme.onions()]
    return [column.stored[name] for name in names if _is_open(column, name)]


def _is_open(column: Column, name: str) -> bool:
    return name in column.stored and column.layers.get(name, "closed") != "closed"


def _answering(column: Column) -> list[str]:
    """The server's column, if there is one, by which conditions on a column are looked up."""
    if "plain" in column.stored:
        return [column.stored["plain"]]
    return _codes(column)[:1]
