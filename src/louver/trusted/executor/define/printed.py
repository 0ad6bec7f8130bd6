"""The declaration of a table as SQL that creates it again: types, ENC, constraints, the rest.

The local DuckDB prints a table without ENC; the clauses of its columns are put in here. They say
everything that a policy could say, so that the text needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import fold, is_home, keyword, quoted
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.context import Context
from louver.trusted.executor.schema import objects
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.catalog_store import origin_of
from louver.trusted.vault.protection import FILES

_AFTER_TYPE = frozenset(
    ("NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "DEFAULT", "REFERENCES", "GENERATED", "COLLATE")
)
_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)


def create_table(context: Context, table: Table, *further: str) -> str:
    """CREATE TABLE of a table, with further definitions of columns at the end. The columns may be
    other than those in the catalog as far as ENC goes.
    """
    sql = objects.introspected(context, "TABLE", table.schema, table.name).rstrip()
    clauses = {fold(c.name): clause(c, context.catalog, context.backend) for c in table.columns}
    sql = with_clauses(sql, clauses)
    return ", ".join([sql.removesuffix(")"), *further]) + ")" if further else sql


def beside(context: Context, table: Table) -> list[str]:
    """The statements that create the indexes and comments of a table."""
    schema, position = context.local.schema, (table.schema, table.name)
    indexes = [i.sql for i in schema.indexes() if (i.schema, i.table) == position]
    said = [
        item.sql
        for item in schema.comments()
        if (fold(item.schema), fold(item.name)) == table.key
        and item.sql.startswith(("COMMENT ON TABLE", "COMMENT ON COLUMN"))
    ]
    return indexes + said


def clause(column: Column, catalog: Catalog, backend: Backend) -> str:
    """ENC with all that is said of a column; "" for a plain one."""
    if not column.encrypted:
        return ""
    if column.scheme == FILES:
        return f"ENC MAY REVEAL {column.ceiling}"
    options = _options(column, catalog, backend)
    words = f"ENC USING {column.scheme} MAY REVEAL {column.ceiling}"
    return f"{words} WITH ({', '.join(options)})" if options else words


def with_clauses(sql: str, clauses: Mapping[str, str]) -> str:
    """A CREATE TABLE as DuckDB prints it, with the clauses of its columns by folded name."""
    pieces, position = [], 0
    for name, end in _types(lexer.tokens(sql), clauses):
        if clauses[name]:
            pieces += [sql[position:end], " ", clauses[name]]
            position = end
    return "".join([*pieces, sql[position:]])


def _types(tokens: Sequence[Token], names: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """The columns of a CREATE TABLE, and where the type of each ends."""
    depth, name, end = 0, "", 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        first = before is not None and before.text in ("(", ",") and depth == 1
        if (depth == 1 and token.text in (",", ")")) or not depth:
            if name:
                yield name, end
            name = ""
        elif first and fold(token.text) in names and not _begins_constraint(token):
            name = fold(token.text)
        elif name and depth == 1 and _ends_type(token):
            yield name, end
            name = ""
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        end = token.end + 1


def _ends_type(token: Token) -> bool:
    return _word(token) in _AFTER_TYPE


def _begins_constraint(token: Token) -> bool:
    return _word(token) in ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT")


def _word(token: Token) -> str:
    """The first keyword of a token; "" for a quoted name."""
    if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
        return ""
    return keyword(token.text).split()[0]


def _options(column: Column, catalog: Catalog, backend: Backend) -> list[str]:
    """What WITH says: only what differs from what ENC means without it."""
    options = []
    label, mark, database = column.group.rpartition("@")
    if mark and database == origin_of(catalog):
        options.append(f"join = '{label.replace(chr(39), chr(39) * 2)}'")
    tables, tiles = catalog.tables.values(), backend.has_tiles
    for name, word in scheme.needed(column, tables, backend.serves, tiles=tiles).items():
        text = ("false", "true")[word] if isinstance(word, bool) else f"'{word}'"
        options.append(f"{name} = {text}")
    return options


def name_of(table: Table) -> str:
    """A table's name as SQL, without its schema if that is `main`."""
    schema = "" if is_home(table.schema) else f"{quoted(table.schema)}."
    return f"{schema}{quoted(table.name)}"
