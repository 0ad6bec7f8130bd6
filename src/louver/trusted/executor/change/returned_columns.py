"""RETURNING of columns of the row that is changed: known of its values, without any engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword
from louver.trusted.executor.change import simple_terms, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.vault.catalog import Table

#: What names the row before and after, where nothing else is called so.
_VERSIONS = ("old", "new")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Returned:
    """The columns that a statement gives back, by their names in the table, with the names and
    types that the answer has.
    """

    names: tuple[str, ...]
    described: tuple[tuple[str, str], ...]

    def of(self, rows: pa.Table) -> pa.Table:
        """What is given back of rows."""
        results = [rows.column(name) for name in self.names]
        return pa.table(results, [name for name, _ in self.described])


def of(
    context: Context, words: statement_parts.Words, table: Table, kinds: Collection[str],
    known_as: str = "",
) -> Returned | None:  # fmt: skip
    """What a statement that the engine has run gives back, if it is columns of the table of these
    ``kinds``, by a name that the table is ``known_as``, and nothing else.
    """
    first, last = words.find("RETURNING") + 1, len(words.tokens)
    own = fold(known_as or table.name)
    if not first or own in _VERSIONS or any(fold(c.name) == own for c in table.columns):
        return None
    names = list[str]()
    start = first
    for position in range(first, last + 1):
        if position < last and words.tokens[position].token_type != TokenType.COMMA:
            continue
        item = _item(words.tokens[start:position], table, own)
        if item is None:
            return None
        names += item
        start = position + 1
    if not set(names) <= set(kinds):
        return None
    _, described = context.local.statements.prepared(words.text(0, last)[0], ())
    return Returned(tuple(names), tuple(described)) if len(described) == len(names) else None


def _item(tokens: Sequence[Token], table: Table, own: str) -> list[str] | None:
    """The columns of one item of the list."""
    if len(tokens) > 2 and keyword(tokens[-2].text) == "AS" and tokens[-2].text.isalpha():
        tokens = tokens[:-2]
    if len(tokens) == 3:
        if fold(tokens[0].text) != own or tokens[0].token_type not in _NAMES:
            return None
        if tokens[1].token_type != TokenType.DOT:
            return None
    elif len(tokens) != 1 or fold(tokens[0].text) in simple_terms.FUNCTIONS:
        return None
    if tokens[-1].token_type == TokenType.STAR:
        return [column.name for column in table.columns]
    column = table.column(tokens[-1].text)
    if column is None or not simple_terms.is_name(tokens[-1]):
        return None
    return [column.name]
