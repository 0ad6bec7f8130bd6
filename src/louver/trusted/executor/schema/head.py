"""The first words of a CREATE, ALTER or DROP statement."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, own_schemas
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.vault.catalog import DATABASE, Catalog

KINDS = ("TABLE", "VIEW", "INDEX", "SCHEMA", "TYPE", "SEQUENCE", "MACRO", "FUNCTION")
_TEMPORARY = ("TEMP", "TEMPORARY", "LOCAL", "GLOBAL")
_MODIFIERS = (*_TEMPORARY, "OR", "REPLACE", "UNIQUE", "RECURSIVE", "PERSISTENT")
RESERVED = "louver_"
"""Names that begin so are Louver's own on the server and locally."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a statement is about. ``end`` is the index of the first token after the name."""

    verb: str
    kind: str
    modifiers: frozenset[str]
    conditional: bool
    name: tuple[str, ...]
    end: int

    @property
    def temporary(self) -> bool:
        """Whether the object is to vanish with the connection."""
        return any(word in self.modifiers for word in _TEMPORARY)

    @property
    def target(self) -> tuple[str, str]:
        """Schema, "" where none is written, and name, folded."""
        schema = fold(self.name[-2]) if len(self.name) > 1 else ""
        schema = own_schemas().home if schema == DATABASE else schema
        return schema, fold(self.name[-1]) if self.name else ""


def read(tokens: Sequence[Token]) -> Head:
    """Read the first words; raises ``sql.unsupported`` for a kind that Louver does not keep."""
    verb = keyword(tokens[0].text)
    at = 1
    modifiers = set()
    known = (*_MODIFIERS, "UNLOGGED") if spoken().prints_objects else _MODIFIERS
    while at < len(tokens) and keyword(tokens[at].text) in known:
        modifiers.add(keyword(tokens[at].text))
        at += 1
    kind = keyword(tokens[at].text) if at < len(tokens) else ""
    if kind == "DOMAIN" and spoken().prints_objects:
        kind = "TYPE"
    if kind not in KINDS:
        raise errors.make("sql.unsupported", statement=f"{verb} {kind}".strip())
    at += 1
    conditional = at < len(tokens) and keyword(tokens[at].text) == "IF"
    if conditional:
        at += 3 if verb == "CREATE" else 2
    if spoken().prints_objects and kind in ("TABLE", "INDEX"):
        while at < len(tokens) and keyword(tokens[at].text) in ("ONLY", "CONCURRENTLY"):
            at += 1
    name, at = names(tokens, at)
    if not name and not (kind == "INDEX" and verb == "CREATE"):
        raise errors.make("sql.syntax", detail=f"{verb} {kind} without a name")
    kind = "MACRO" if kind == "FUNCTION" else kind
    return Head(verb, kind, frozenset(modifiers), conditional, name, at)


def names(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    """A dotted name from a place on, and the place behind it."""
    parts: list[str] = []
    while at < len(tokens) and tokens[at].token_type not in (TokenType.L_PAREN, TokenType.DOT):
        parts.append(tokens[at].text)
        at += 1
        if at >= len(tokens) or tokens[at].token_type != TokenType.DOT:
            break
        at += 1
    return tuple(parts), at


def refuse_reserved(*names_given: str) -> None:
    """Louver's own tables lie in the same database, and its own columns beside the user's."""
    for name in names_given:
        if fold(name).startswith(RESERVED):
            raise errors.make("sql.reserved", name=name)


def refuse_marks(catalog: Catalog) -> None:
    """A name on the server that looks like the place of a constant would get the constant."""
    for table in catalog.tables.values():
        for name in (table.schema, table.name, *(c.name for c in table.columns if not c.encrypted)):
            if not lexer.MARKS.isdisjoint(name):
                statement = (
                    f"The name {name}, with one of the signs {' '.join(sorted(lexer.MARKS))},"
                )
                raise errors.make("sql.unsupported", statement=statement)


def collations(sql: str) -> dict[str, str]:
    """The collations of a table's columns, by folded name. ``sql`` is the table as DuckDB prints
    it, so what is not a property of a column stands in brackets of its own.
    """
    return {column: name for column, name, _, _ in _collated(sql)}


def without_collations(sql: str, columns: Collection[str]) -> str:
    """The same text without the collations of some columns, by folded name."""
    for column, _, start, end in reversed(_collated(sql)):
        if column in columns:
            sql = sql[:start].rstrip() + sql[end:]
    return sql


def _collated(sql: str) -> list[tuple[str, str, int, int]]:
    """Column, collation, and where the clause begins and ends."""
    clauses = []
    depth, column, results = 0, "", lexer.tokens(sql)
    for position, token in enumerate(results):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        first = token.token_type == (TokenType.COMMA if column else TokenType.L_PAREN)
        if depth == 1 and first and position + 1 < len(results):
            column = fold(results[position + 1].text)
        if depth == 1 and token.token_type == TokenType.COLLATE:
            parts, after = names(results, position + 1)
            clauses.append((column, ".".join(parts), token.start, results[after - 1].end + 1))
    return clauses


def refuse_collation(label: str) -> errors.Error:
    """What refuses a column with a collation in files, which are made without, and on a server
    that may not know it.
    """
    return errors.make(
        "sql.unsupported",
        statement=f"COLLATE on {label}, which files hold, or of a collation that a server may not "
        "know, (put it into the query instead: ORDER BY s COLLATE NOCASE)",
    )
