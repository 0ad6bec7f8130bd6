"""`SELECT set_config(…), …`: settings that are changed by a query of nothing but constants, which
drivers send. The items are evaluated one after the other, as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver.names import fold, quoted
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change.statement_parts import Words
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import admitted, given, setting
from louver.trusted.executor.postgres.lock_clause import Numbered
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.postgres_types import own_type

_CALL = "set_config"
_TEXT = own_type("VARCHAR")
_TYPES = (_TEXT, _TEXT, "boolean")
#: What stands in no item of this module's.
_WORDS = frozenset((
    "select", "from", "where", "group", "having", "union", "intersect", "except", "order", "limit",
    "offset", "window", "into", "with", "values", "table", "fetch", "for",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """Places of tokens: of an item, and of the arguments of set_config() if it is that."""

    first: int
    last: int
    arguments: tuple[tuple[int, int], ...] = ()


def items_of(tokens: Sequence[Token]) -> list[Item]:
    """The items of such a query; none of any other."""
    if not any(fold(token.text) == _CALL for token in tokens):
        return []
    words = ["" if t.token_type == TokenType.STRING else fold(t.text) for t in tokens]
    if words[0] != "select" or _WORDS.intersection(words[1:]):
        return []
    return [_item(words, first, last) for first, last in _pieces(words, 1, len(words))]


def _pieces(words: Sequence[str], first: int, last: int) -> list[tuple[int, int]]:
    """The ranges between commas."""
    results, depth, start = list[tuple[int, int]](), 0, first
    for position in range(first, last):
        depth += (words[position] in ("(", "[")) - (words[position] in (")", "]"))
        if depth == 0 and words[position] == ",":
            results.append((start, position))
            start = position + 1
    return [*results, (start, last)]


def _item(words: Sequence[str], first: int, last: int) -> Item:
    at = first + 2 if list(words[first : first + 2]) == ["pg_catalog", "."] else first
    if words[at] != _CALL or words[at + 1 : at + 2] != ["("] or ")" not in words[at:last]:
        return Item(first, last)
    end = last - 1 - words[first:last][::-1].index(")")
    return Item(first, last, tuple(_pieces(words, at + 2, end)))


def is_call(tokens: Sequence[Token]) -> bool:
    """Whether a statement is such a query."""
    return spoken().has_own_statements and any(item.arguments for item in items_of(tokens))


def call(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """Run such a query."""
    words = Words(text.plain, tokens, parameters)
    whole = Numbered(words, text.parameters)
    context.local.statements.bind(whole.text(), whole.values)
    columns = context.local.describe(whole.text(), whole.values)
    arrays = [
        _set(context, text, words, item) if item.arguments else _value(context, text, words, item)
        for item in items_of(tokens)
    ]
    if len(arrays) != len(columns):
        refuse("set_config() in a query of this form")
    return Answer(pa.Table.from_arrays(arrays, [name for name, _ in columns]), columns)


def _value(context: Context, text: lexer.Text, words: Words, item: Item) -> pa.Array:
    sent = _part(text, words, item.first, item.last)
    admitted.require_query(context, f"SELECT {sent.text()}")
    return context.local.statements.values([sent.text()], sent.values).column(0).combine_chunks()


def _set(context: Context, text: lexer.Text, words: Words, item: Item) -> pa.Array:
    if len(item.arguments) != len(_TYPES):
        refuse("set_config() of this form")
    values = list[object]()
    for (first, last), type_ in zip(item.arguments, _TYPES, strict=True):
        sent = _part(text, words, first, last)
        sql = f"({sent.text()})::{type_}"
        admitted.require_query(context, f"SELECT {sql}")
        values += context.local.python_rows(context.local.statements.values([sql], sent.values))[0]
    name, value, local = values
    if name is None or value is None or local is None:
        refuse("set_config() of NULL")
    literal = spoken().string(str(value))
    if fold(str(name)) == given.PATH:
        return _set_path(context, str(value), literal, local=bool(local))
    path = ".".join(map(quoted, str(name).split(".")))
    change = f"SET {'LOCAL ' if local else ''}{path} = {literal}"
    (sql_text,) = lexer.split(change)
    setting.change(context, sql_text, lexer.tokens(sql_text.plain), [])
    named = spoken().string(str(name))
    if local and not context.in_transaction:
        # It ends with its statement, and the answer has it all the same.
        with context.local.rehearsal() as connection:
            sql = f"SELECT pg_catalog.set_config({named}, {literal}, true)"
            return connection.fetch_arrow(sql).column(0).combine_chunks()
    sql = f"SELECT current_setting({named})"
    return context.local.ask_schema(sql).column(0).combine_chunks()


def _set_path(context: Context, value: str, literal: str, *, local: bool) -> pa.Array:
    """Set the list of names as it stands there: SET would read it as one name, or write it anew."""
    with context.local.rehearsal() as connection:
        connection.execute(f"SELECT pg_catalog.set_config('{given.PATH}', {literal}, true)")
    if context.in_transaction or not local:
        given.put(context, given.PATH, value, local=local)
    return pa.array([value])


def _part(text: lexer.Text, words: Words, first: int, last: int) -> Numbered:
    part = words.plain[words.tokens[first].start : words.tokens[last - 1].end + 1]
    return Numbered(Words(part, lexer.tokens(part), words.parameters), text.parameters)
