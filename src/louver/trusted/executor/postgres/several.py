"""Definitions that say several things, each of which Louver runs as a statement by itself: CREATE
SCHEMA with elements, and ALTER TABLE with actions of several sorts. They are one transaction. And
one that PostgreSQL runs in several: CREATE INDEX CONCURRENTLY.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import keyword, quoted
from louver.trusted.executor import define, transaction
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.define import postgres_forms
from louver.trusted.executor.postgres import given
from louver.trusted.executor.postgres.messages import said
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.executor.schema import head
from louver.trusted.planner.sql import lexer

#: The order in which PostgreSQL makes the elements of a schema.
_ELEMENTS = ("SEQUENCE", "TABLE", "VIEW", "INDEX")
#: And that of the actions, by their first words; others come last.
_ACTIONS = (("DROP",), ("ALTER", "TYPE"), ("ADD",))
_NAMES = (TokenType.IDENTIFIER, TokenType.STRING)


@dataclass(slots=True)
class Concurrently:
    """The last text from which CONCURRENTLY was taken."""

    text: str = ""


def create(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """CREATE; of a schema with what is to be in it."""
    words = [_word(token) for token in tokens]
    if "INDEX" in words[1:3] and context.state.cache(Concurrently).text == text.plain:
        return _index(context, text, tokens, parameters)
    if words[1:2] != ["SCHEMA"] or words[2:3] in (["AUTHORIZATION"], ["IF"]) or text.parameters:
        return define.create(context, text, tokens, parameters)
    starts = [at for at in _outside(tokens) if words[at] in ("CREATE", "GRANT")][1:]
    if not starts:
        return define.create(context, text, tokens, parameters)
    schema = head.read(tokens).name[-1]
    elements = []
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        part = tokens[start:end]
        element = None if words[start] == "GRANT" or "TRIGGER" in words[start:end] else _head(part)
        named = element is not None and (len(element.name) > 1 or _is_of_schema(part))
        if element is None or element.kind not in _ELEMENTS or named:
            refuse("CREATE SCHEMA with this in it (write a statement for it)")
        if element.temporary:
            raise said("42P16", "cannot create temporary relation in non-temporary schema")
        elements.append((_ELEMENTS.index(element.kind), _cut(text, part)))
    before = given.copied(context)
    with _together(context):
        _run(context, _cut(text, tokens[: starts[0]]))
        (path,) = context.local.ask_schema("SHOW search_path").column(0).to_pylist()
        # A path of blanks names no schema.
        within = ", ".join((quoted(schema), path)) if path.strip() else quoted(schema)
        given.put(context, given.PATH, within, local=True)
        for _, sql in sorted(elements, key=lambda element: element[0]):
            _run(context, sql)
        given.restore(context, before)
    return Answer()


def _index(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """CREATE INDEX CONCURRENTLY: it is made at once, or not at all."""
    try:
        return define.create(context, text, tokens, parameters)
    except errors.IntegrityError as error:
        refuse(f"CREATE INDEX CONCURRENTLY that leaves an invalid index ({error.message})")


def alter(
    context: Context, text: lexer.Text, tokens: Sequence[Token], parameters: list[object]
) -> Answer:
    """ALTER; of a table with actions of several sorts."""
    start = head.read(tokens)
    parts = [part for part in postgres_forms.actions(tokens[start.end :]) if part]
    verbs = {_word(part[0]) for part in parts}
    if start.kind != "TABLE" or len(verbs) < 2 or text.parameters or not _are_apart(parts):
        return define.alter(context, text, tokens, parameters)
    before, answer = text.plain[: tokens[start.end].start], Answer()
    with _together(context):
        for part in sorted(parts, key=_pass_of):
            answer.notices += _run(context, before + _cut(text, part)).notices
    return answer


def _are_apart(parts: Sequence[Sequence[Token]]) -> bool:
    """Whether actions have the same effect one after the other: not where one numbers the rows of
    a column that another adds, takes an index for a key, or computes values from what was before.
    """
    words = {_word(token) for part in parts for token in part}
    return words.isdisjoint(("GENERATED", "IDENTITY", "USING", "VALIDATE", "RENAME"))


def _pass_of(part: Sequence[Token]) -> int:
    words = [_word(token) for token in part]
    for rank, first in enumerate(_ACTIONS):
        if words[:1] == [first[0]] and (first[1:] == () or first[1] in words[1:6]):
            return rank
    if words[:1] == ["ALTER"] and "DROP" in words[1:5]:
        return 0
    return len(_ACTIONS)


@contextmanager
def _together(context: Context) -> Iterator[None]:
    """A transaction of its own, where none is open."""
    if context.in_transaction:
        yield
        return
    before = given.copied(context)
    transaction.require_writable(context)
    transaction.begin(context)
    try:
        yield
    except BaseException:
        transaction.rollback(context)
        given.restore(context, before)
        raise
    transaction.commit(context)


def _run(context: Context, sql: str) -> Answer:
    (statement,) = lexer.split(sql)
    return context.run(statement, [])


def _cut(text: lexer.Text, tokens: Sequence[Token]) -> str:
    return text.plain[tokens[0].start : tokens[-1].end + 1]


def _head(tokens: Sequence[Token]) -> head.Head | None:
    return head.read(tokens) if len(tokens) > 2 else None


def _is_of_schema(index: Sequence[Token]) -> bool:
    """Whether a statement names the schema of the table that an index is of."""
    words = [_word(token) for token in index]
    behind = words.index("ON") + 1 if "INDEX" in words[:3] and "ON" in words else len(words)
    return any(token.token_type == TokenType.DOT for token in index[behind + 1 : behind + 3])


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """The positions of tokens that stand in no brackets."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            yield position


def _word(token: Token) -> str:
    return "" if token.token_type in _NAMES else keyword(token.text)
