"""Check, the last rule: a text leaves only if every word of it is known to be harmless.

What is not known is refused; no switch turns this off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.planner.plan import Remote
from louver.trusted.planner.sql import lexer

_FUNCTIONS = frozenset(
    (
        "sdb_mul sdb_linear sdb_add sdb_add_kept sdb_key_update sdb_compare sdb_compare_kept "
        "sdb_compare_sum sdb_sum sdb_cartprod sdb_residue sdb_order sdb_powers "
        "list encode count sum min max arg_min arg_max row struct_extract row_set text_match "
        "ore_compare hom_sum coalesce try"
    ).split()
)
_WORDS = frozenset(
    (
        "select from as where group by having join left cross on and or not between in is null "
        "like distinct true false limit blob bigint cast date timestamp decimal int text varchar "
        "escape uuid filter order asc desc nulls first last"
    ).split()
)
_OURS = re.compile(r"t\d+|r\d+|h|louver_c\d+(_r)?|row_id")
_PLACEHOLDER = re.compile(r"\$\d+|⟪\d+⟫")
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)


def check(sql: str, remote: Remote) -> str:
    """The text, if nothing in it is secret or unknown; else ``internal.check``.

    Every name must be a server column of the plan's tables, a server function or a word of the
    small SQL that this planner writes. Declared names of encrypted columns are refused even
    where a word of SQL is spelled the same.
    """
    stored, secret = _names(remote)
    # Numbers are public where they stand; two placeholders would read as a dollar quote.
    text = _PLACEHOLDER.sub("?", sql)
    found = lexer.tokens(text)
    if lexer.between(text, found):
        raise errors.make("internal.check", detail="a comment")
    for token in found:
        _check_token(token, stored, secret)
    return sql


def _names(remote: Remote) -> tuple[set[str], set[str]]:
    stored: set[str] = set()
    secret: set[str] = set()
    for source in (*remote.sources, *remote.inner):
        table = source.table
        stored |= {fold(table.schema), fold(table.name)}
        helpers = (table.helper_one, table.helper_random, table.helper_unit)
        stored |= {fold(name) for name in (*helpers, *table.kept.values(), *table.packs)}
        for column in table.columns:
            stored |= {fold(name) for name in column.stored.values()}
            # A name that is spelled like one of ours tells nothing.
            if column.encrypted and not _OURS.fullmatch(fold(column.name)):
                secret.add(fold(column.name))
    return stored, secret - stored - _WORDS - _FUNCTIONS


def _check_token(token: Token, stored: set[str], secret: set[str]) -> None:
    word = fold(token.text)
    if word in secret and token.token_type not in (TokenType.STRING, TokenType.NUMBER):
        raise errors.make("internal.check", detail="the name of an encrypted column")
    if token.token_type == TokenType.IDENTIFIER and word not in stored:
        raise errors.make("internal.check", detail="an unknown name")
    if token.token_type == TokenType.VAR and not (
        word in stored or word in _FUNCTIONS or word in _WORDS or _OURS.fullmatch(word)
    ):
        raise errors.make("internal.check", detail=f"an unknown word, {word!r:.40}")


def check_all(texts: Iterable[tuple[str, Remote]]) -> None:
    """Check several texts."""
    for sql, remote in texts:
        check(sql, remote)
