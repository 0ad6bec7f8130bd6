"""Check, the last rule: a text leaves only if every word of it is known to be harmless.

What is not known is refused; no switch turns this off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.backends.backend import FUNCTIONS, WORDS, Backend
from louver.trusted.planner.ir import RemoteQuery
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

_OURS = re.compile(r"t\d+|r\d+|h|louver_c\d+(_r)?|louver_numbers|louver_keys?|row_id")
#: A placeholder, or what is in quotes, where there is none.
_PLACEHOLDER = re.compile(r"""(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")|\$\d+|⟪\d+⟫""")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def check(sql: str, remote: RemoteQuery, tables: Mapping[int, Table], backend: Backend) -> str:
    """The text, if nothing in it is secret or unknown; else ``internal.check``.

    ``tables`` are the plan's tables by id, ``backend`` is that of the server that has them. Every
    name must be a server column of these tables, a server function or a word of the small SQL that
    this planner writes. Declared names of encrypted columns are refused even where a word of SQL
    is spelled the same.
    """
    known = _Known.of(remote, tables, backend)
    # Numbers are public where they stand; two placeholders would read as a dollar quote.
    text = _PLACEHOLDER.sub(lambda match: match["quoted"] or "?", sql)
    tokens = lexer.tokens(text)
    if lexer.between(text, tokens):
        raise errors.make("internal.check", detail="a comment")
    for token in tokens:
        _check_token(token, known)
    return sql


@dataclass(frozen=True, slots=True)
class _Known:
    """What may be written for a remote query's server, and the names that must not be."""

    stored: frozenset[str]
    secret: frozenset[str]
    words: frozenset[str]

    @staticmethod
    def of(remote: RemoteQuery, tables: Mapping[int, Table], backend: Backend) -> _Known:
        stored: set[str] = set()
        secret: set[str] = set()
        words = WORDS | FUNCTIONS | backend.words | backend.functions
        for source in (*remote.sources, *remote.inner):
            table = tables[source.table]
            stored |= backend.table_words(table)
            helpers = (table.helper_one, table.helper_random, table.helper_unit)
            own = (*helpers, *table.kept.values(), *table.packs, *table.tags)
            stored |= {fold(name) for name in own}
            for column in table.columns:
                stored |= {fold(name) for name in column.stored.values()}
                # A name that is spelled like one of ours tells nothing.
                if column.encrypted and not _OURS.fullmatch(fold(column.name)):
                    secret.add(fold(column.name))
        return _Known(frozenset(stored), frozenset(secret - stored - words), frozenset(words))


def _check_token(token: Token, known: _Known) -> None:
    word = fold(token.text)
    if word in known.secret and token.token_type not in (TokenType.STRING, TokenType.NUMBER):
        raise errors.make("internal.check", detail="the name of an encrypted column")
    if token.token_type == TokenType.IDENTIFIER and word not in known.stored:
        raise errors.make("internal.check", detail="an unknown name")
    if token.token_type == TokenType.VAR and not (
        word in known.stored or word in known.words or _OURS.fullmatch(word)
    ):
        raise errors.make("internal.check", detail=f"an unknown word, {word!r:.40}")
