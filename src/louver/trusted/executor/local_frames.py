"""Data frames and Arrow of the user's process in statements: which a statement names, for how long
they have their names, and which statements may name them.

Such data is the user's plaintext, as an attached file is. Only the client reads it: nothing is
written into it, and nothing that is stored may need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import attached_files, seen_state
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import standing as local
from louver.trusted.executor.local.frames import held
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import Dialect
from louver.trusted.planner.sql.trees import parse

Lookup = Callable[[str], object]
"""The object of a name that can be read as a table, or None."""
_BEFORE_SOURCE = frozenset(("FROM", "JOIN", ",", "(", "PIVOT", "UNPIVOT", "SUMMARIZE", "DESCRIBE"))


def candidates(text: lexer.Text, lookup: Lookup) -> dict[str, object]:
    """The objects whose names are words of a statement."""
    again = text.parameters and lexer.comes_again(text.plain, lexer.LONGEST_SPLIT)
    words = _words_again(text.plain) if again else _words(text.plain)
    return {name: data for name in words if (data := lookup(name)) is not None}


def _words(plain: str) -> frozenset[str]:
    """The words of a statement that may be names."""
    types = (TokenType.VAR, TokenType.IDENTIFIER)
    return frozenset(
        token.text
        for token in _tokens(plain)
        if token.token_type in types and not token.text.startswith(lexer.PARAMETER_PREFIX)
    )


@lexer.cached
def _words_again(plain: str, _: Dialect) -> frozenset[str]:
    return _words(plain)


def named(context: Context, text: lexer.Text, objects: Mapping[str, object]) -> dict[str, object]:
    """Those objects that a statement reads: by names that mean nothing in the database."""
    if not context.in_transaction:
        seen_state.refresh(context)
    tables = _sources(text, _tokens(text.plain))
    return {
        name: data
        for name, data in objects.items()
        if name in tables and not _is_taken(context, name)
    }


def _tokens(plain: str) -> Sequence[Token]:
    tokens = lexer.tokens(plain)
    if len(tokens) == 2 and tokens[1].token_type == TokenType.STRING:
        # What stands behind the word of a command is one token, as in EXPLAIN SELECT.
        return lexer.tokens(tokens[1].text)
    return tokens


def _sources(text: lexer.Text, tokens: Sequence[Token]) -> set[str]:
    """The names that stand where a table does, without those that WITH gives."""
    tree = parse(text.plain)
    if tree is None or isinstance(tree, exp.Command) or tree.find(exp.Command):
        return {b.text for a, b in pairwise(tokens) if keyword(a.text) in _BEFORE_SOURCE}
    given = {cte.alias for cte in tree.find_all(exp.CTE)}
    names = {node.name for node in tree.find_all(exp.Table) if not node.db}
    names |= {b.text for a, b in pairwise(tokens) if keyword(a.text) in ("PIVOT", "UNPIVOT")}
    return names - given


def _is_taken(context: Context, name: str) -> bool:
    """Whether a name means something in the database or the session."""
    if (
        fold(name) in context.local.temporary.names
        or fold(name) in context.local.files.frames.known
    ):
        return True
    if context.catalog.named("", name) is not None:
        return True
    return any(
        fold(item.name) == fold(name) and item.kind in ("VIEW", "MACRO", "TABLE")
        for item in context.catalog.objects
    )


def register(context: Context, name: str, data: object) -> None:
    """Give an object a name until it is taken away."""
    frames = context.local.files.frames
    if fold(name) not in frames.known and _is_taken(context, name):
        raise errors.make("table.temporary", table=name)
    if not name or fold(name).startswith("louver_"):
        raise errors.make("frame.name", name=name)
    context.local.put_frame(name, held(data))
    context.state.flows.clear()


def unregister(context: Context, name: str) -> None:
    """Take a name away; one that is not there is nothing to take, as in DuckDB."""
    context.local.drop_frame(name)
    context.state.flows.clear()


def standing(context: Context, frames: Mapping[str, object]) -> AbstractContextManager[None]:
    """Give objects names for as long as a statement is planned or runs."""
    return local.standing(context.local, frames, context.state.flows.clear)


def require_readable(context: Context, text: lexer.Text, tokens: Sequence[Token]) -> None:
    """Refuse a statement that names local data otherwise than to read it once."""
    known = context.local.files.frames.known
    words = known.keys() & {fold(token.text) for token in tokens}
    if not words:
        return
    tree = parse(text.plain)
    if tree is not None and not isinstance(tree, exp.Command) and not tree.find(exp.Command):
        words &= {fold(node.name) for node in tree.find_all(exp.Table) if not node.catalog}
    for name in words:
        if not attached_files.only_reads(tokens, name, dotted=False):
            raise errors.make("frame.read_only", name=known[name].name)
