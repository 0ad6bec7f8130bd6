"""Statements with ENC behind the type of every column that they declare; every other one, as the
text of the statement has it, has masked sums, where its type can.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from sqlglot.tokens import Token

from louver.trusted.planner.sql import lexer

_CONSTRAINTS = frozenset(
    "NOT NULL PRIMARY UNIQUE CHECK DEFAULT REFERENCES COLLATE GENERATED AS CONSTRAINT USING".split()
)
_TABLE_CONSTRAINTS = frozenset("PRIMARY UNIQUE CHECK FOREIGN CONSTRAINT".split())


def encrypt_columns(sql: str) -> str:
    """CREATE TABLE and ALTER TABLE … ADD COLUMN with ENC behind the type of every column; other
    statements, and those that cannot be read, as they are.
    """
    try:
        pieces = [text.home for text in lexer.split(sql)]
        encrypted = [_encrypted(piece) for piece in pieces]
    except Exception:  # noqa: BLE001 - the engine refuses what has no tokens
        return sql
    return sql if encrypted == pieces else "; ".join(encrypted)


def _encrypted(sql: str) -> str:
    words = [word for token in lexer.tokens(sql) for word in token.text.upper().split()]
    while "OR" in words[1:2]:
        del words[1:3]
    if words[:2] == ["ALTER", "TABLE"] and "ADD" in words:
        return _added(sql)
    if words[:2] != ["CREATE", "TABLE"] or "SELECT" in words or "FROM" in words:
        return sql
    return _created(sql)


def _words(sql: str, tokens: Sequence[Token]) -> list[str]:
    """The tokens as words in capitals; a quoted name is none that means something."""
    return ['"' if sql[token.start] == '"' else token.text.upper() for token in tokens]


def _added(sql: str) -> str:
    tokens = lexer.tokens(sql)
    words = _words(sql, tokens)
    index = words.index("ADD") + 1
    if words[index] in _TABLE_CONSTRAINTS or "(" in words[: index + 1]:
        return sql
    while words[index] in ("COLUMN", "IF", "NOT", "EXISTS"):
        index += 1
    depth, end = 0, len(sql)
    for token, word in list(zip(tokens, words, strict=True))[index + 1 :]:
        depth += (word in ("(", "[")) - (word in (")", "]"))
        if depth == 0 and word.split()[0] in _CONSTRAINTS:
            end = token.start
            break
    return f"{sql[:end].rstrip()} {_enc(sql, end)} {sql[end:]}"


def _enc(sql: str, position: int) -> str:
    masked = crc32(f"{sql} {position}".encode()) % 2
    return "ENC WITH (sum = 'masked')" if masked else "ENC"


def _created(sql: str) -> str:
    tokens = lexer.tokens(sql)
    words = _words(sql, tokens)
    places: list[int] = []
    depth, fresh, ended = 0, True, True
    last = None
    for token, word in zip(tokens, words, strict=True):
        if word in ("(", "["):
            depth += 1
            if depth == 1:
                fresh, last = True, None
                continue
        if depth == 1 and word in (",", ")") and last is not None and not ended:
            places.append(last.end + 1)
            ended = True
        if word in (")", "]"):
            depth -= 1
        if depth == 1 and word == ",":
            fresh, last = True, None
            continue
        if depth == 0 and word != ")":
            continue
        if fresh:
            fresh, ended = False, word.split()[0] in _TABLE_CONSTRAINTS
        elif depth == 1 and not ended and word.split()[0] in _CONSTRAINTS:
            places.append(last.end + 1 if last else token.start)
            ended = True
        last = token
    declared = sql
    for index in sorted(places, reverse=True):
        declared = f"{declared[:index]} {_enc(sql, index)} {declared[index:]}"
    return declared
