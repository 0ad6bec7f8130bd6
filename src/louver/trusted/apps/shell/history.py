r"""The history file of the shell, without values of encrypted columns.

A statement is stored as typed only if every literal in it belongs to a plain column for certain.
Otherwise all of its literals are stored as ``?``, as are words that stand where a value would, such
as a name whose quotes were forgotten. What cannot be cut into tokens is not stored. ``\set history
full`` stores statements as typed, ``\set history off`` stores none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit.history import FileHistory
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import pin
from louver.trusted.vault.catalog import Catalog, Table

MODES = ("masked", "full", "off")
MASK = "?"
#: Tokens that are values, or may contain one.
_LITERALS = frozenset((
    TokenType.STRING, TokenType.NUMBER, TokenType.BIT_STRING, TokenType.HEX_STRING,
    TokenType.BYTE_STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING,
    TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING, TokenType.TRUE, TokenType.FALSE,
))  # fmt: skip
_COMPARISONS = frozenset(("=", "==", "<", ">", "<=", ">=", "<>", "!=", "LIKE", "ILIKE"))
#: What may precede a column that is compared, and follow the literal.
_BEFORE = frozenset(("WHERE", "AND", "OR", "NOT", "(", "HAVING", "WHEN", "BETWEEN"))
_AFTER = frozenset(("AND", "OR", ")", "ORDER", "GROUP", "LIMIT", "THEN", "HAVING", ";", "OFFSET"))
_COMMAND = re.compile(r"\s*(\\[^\s;'\"]*)[\s;]*")
#: Commands that take names of files, which are stored as typed.
_OF_FILES = frozenset(("\\I", "\\O"))
#: First words of statements whose literals can be attributed.
_KINDS = frozenset(("SELECT", "FROM", "INSERT", "UPDATE", "DELETE"))


class MaskedHistory(FileHistory):
    """Statements of this and of earlier sessions; those of this one are complete in memory."""

    def __init__(self, path: Path, catalog: Callable[[], Catalog]) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        super().__init__(str(path))
        self._catalog = catalog
        #: one of MODES
        self.mode = "masked"

    def store_string(self, string: str) -> None:
        """Append a statement to the file, in the form that the mode allows."""
        text = string if self.mode == "full" else masked(string, self._catalog())
        if self.mode != "off" and text:
            super().store_string(text)


def path() -> Path:
    """Where the history is stored: the folder of the local state."""
    return pin.state_directory() / "history"


def masked(text: str, catalog: Catalog) -> str:
    """The text without literals of encrypted columns; "" if it cannot be cut into tokens."""
    command, statement = "", text
    if match := _COMMAND.match(text):
        if keyword(match[1]) in _OF_FILES:
            return text
        command, statement = match[0].lstrip(), text[match.end() :]
    plain = "; ".join(part.plain for part in lexer.split(statement))
    try:
        tokens = lexer.tokens(plain)
    except errors.Error:
        return ""
    if all(_attributed(part, catalog) for part in _statements(tokens)):
        return command + (statement if plain == statement.rstrip("; \n") else plain + ";")
    end = ";" if statement.rstrip().endswith(";") else ""
    return command + _without_values(plain, tokens, catalog) + end


def _statements(tokens: Sequence[Token]) -> Iterable[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            yield part
            part = []
        else:
            part.append(token)
    if part:
        yield part


def _attributed(tokens: Sequence[Token], catalog: Catalog) -> bool:
    """Whether each literal of a statement belongs to a plain column, so far as names can tell."""
    values = [number for number, token in enumerate(tokens) if token.token_type in _LITERALS]
    words = {fold(token.text) for token in tokens if token.token_type not in _LITERALS}
    if not values:
        # A word that is not a name may be a value whose quotes were forgotten.
        return not any(_is_value(tokens, number, catalog) for number in range(len(tokens)))
    tables = [table for table in catalog.tables.values() if fold(table.name) in words]
    if not tables or not _simple(tokens, tables, catalog):
        return False
    protected = {fold(c.name) for table in tables for c in table.columns if c.encrypted}
    if not protected:
        return True
    plain = {fold(c.name) for table in tables for c in table.columns} - protected
    return all(_compared(tokens, number, plain) for number in values)


def _simple(tokens: Sequence[Token], tables: Sequence[Table], catalog: Catalog) -> bool:
    """Whether names mean what the catalog says: no alias, subquery, view or macro is in sight."""
    if keyword(tokens[0].text) not in _KINDS:
        return False
    words = [keyword(token.text) for token in tokens]
    if words.count("SELECT") > 1 or not {"AS", "WITH"}.isdisjoint(words):
        return False
    names = {fold(table.name) for table in tables} | {"main"}
    names |= {fold(column.name) for table in tables for column in table.columns}
    objects = {fold(item.name) for item in catalog.objects if item.kind != "TABLE"}
    for number, token in enumerate(tokens):
        name = fold(token.text)
        if not _is_name(token):
            continue
        follows = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if name in objects or (name not in names and follows != "("):
            return False
        if number and (_is_name(tokens[number - 1]) or tokens[number - 1].text == ")"):
            return False
    return True


def _compared(tokens: Sequence[Token], number: int, plain: set[str]) -> bool:
    """Whether a literal is compared with a plain column and takes part in nothing else."""
    # sqlglot takes ORDER BY as one token.
    after = keyword(tokens[number + 1].text).split() if number + 1 < len(tokens) else [";"]
    if after[0] not in _AFTER:
        return False
    if number and keyword(tokens[number - 1].text) in ("LIMIT", "OFFSET"):
        return tokens[number].token_type == TokenType.NUMBER
    if number < 3 or keyword(tokens[number - 1].text) not in _COMPARISONS:
        return False
    first = number - 2
    if not _is_name(tokens[first]) or fold(tokens[first].text) not in plain:
        return False
    if tokens[first - 1].text == ".":
        first -= 2
    return first > 0 and keyword(tokens[first - 1].text) in _BEFORE


def _is_name(token: Token) -> bool:
    return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _is_value(tokens: Sequence[Token], number: int, catalog: Catalog) -> bool:
    """Whether a token is a value, or a word where a value is expected that names nothing."""
    token = tokens[number]
    if token.token_type in _LITERALS:
        return True
    if not _is_name(token):
        return False
    previous = tokens[number - 1] if number else None
    # sqlglot cuts 0x1F and 1_000 in two.
    adjacent = previous is not None and previous.end + 1 == token.start
    if previous is not None and adjacent and previous.token_type in _LITERALS:
        return True
    names = {fold(table.name) for table in catalog.tables.values()}
    names |= {fold(c.name) for table in catalog.tables.values() for c in table.columns}
    if fold(token.text) in names:
        return False
    before = keyword(previous.text) if previous is not None else ""
    if before in ("(", ","):
        earlier = {keyword(other.text) for other in tokens[:number]}
        return not earlier.isdisjoint(("IN", "VALUES"))
    return token.token_type == TokenType.IDENTIFIER or before in _COMPARISONS


def _without_values(text: str, tokens: Sequence[Token], catalog: Catalog) -> str:
    """The text with each value replaced; blanks of comments are left out."""
    pieces: list[str] = []
    position = 0
    for number, token in enumerate(tokens):
        gap = text[position : token.start]
        # Between two tokens there can be nothing but blanks; anything else would be unknown.
        pieces.append(gap if not gap.strip() else " ")
        call = number + 1 < len(tokens) and tokens[number + 1].text == "("
        secret = _is_value(tokens, number, catalog) and not (_is_name(token) and call)
        pieces.append(MASK if secret else text[token.start : token.end + 1])
        position = token.end + 1
    return "".join(pieces)
