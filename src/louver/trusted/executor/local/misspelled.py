"""Misspelled keywords: what a statement may have meant that cannot be parsed.

The words at which DuckDB's parser fails are replaced by keywords that are spelled alike. DuckDB's
parser then judges: a keyword is offered only where the statement can be parsed with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import duckdb

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.sql import declarations as declare
from louver.trusted.planner.sql import lexer

#: A word, and what separates it from the words before it.
_WORD = re.compile(r"[A-Za-z_]\w*")
_LAST_WORD = re.compile(r"(?<![\w$])[A-Za-z_]\w*(?=\s*\Z)")
#: The parser may go on for a word or two: in GRUP BY it fails at BY, in ADD COLUM x INT at INT.
_WORDS_BEFORE = 2
#: Longer texts hold many values; parsing them again and again would take long.
_MOST_CHARACTERS = 100_000
#: In a short word two other letters are another word.
_LEAST_FOR_TWO_EDITS = 5
_OPTIONS_OF_EXPLAIN = re.compile(r"\s*EXPLAIN\s*\([^()]*\)", re.IGNORECASE)
_OWN_WORDS = ("enc", "may", "reveal")
_NEAR = """\
SELECT word, distance FROM (
    SELECT word, rank, damerau_levenshtein(word, $1) AS distance FROM (
        SELECT keyword_name AS word, CASE keyword_category WHEN 'reserved' THEN 0 ELSE 1 END AS rank
        FROM duckdb_keywords() UNION ALL SELECT unnest($3::VARCHAR[]), 0
    )
) WHERE distance BETWEEN 1 AND $2 ORDER BY distance, rank, word
"""


def meant(text: str) -> tuple[str, str] | None:
    """A word of a statement, and the keyword that it was probably meant to be. ``text`` is the
    statement with identifiers for placeholders.
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    with duckdb.connect(":memory:") as parser:
        position = _failure(parser, text)
        if position is None or position < 0:
            return None
        answers: list[tuple[int, str, str]] = []
        for start, end in _words(text, position):
            for other, distance in _near(parser, text[start:end]):
                if _failure(parser, text[:start] + other + text[end:]) is None:
                    answers.append((distance, text[start:end], keyword(other)))
                    break
    if not answers:
        return None
    _, word, other = min(answers, key=lambda answer: answer[0])
    return word, other


def _words(text: str, position: int) -> Iterator[tuple[int, int]]:
    """Where the word at a position begins and ends, and those right before it."""
    match = _WORD.match(text, position)
    if match is not None:
        yield match.span()
    for _ in range(_WORDS_BEFORE):
        match = _LAST_WORD.search(text[:position])
        if match is None:
            return
        yield match.span()
        position = match.start()


def _near(parser: duckdb.DuckDBPyConnection, word: str) -> list[tuple[str, int]]:
    """The keywords that are spelled like a word, the nearest first, and how far they are."""
    most = 0 if len(word) < 2 else 1 if len(word) < _LEAST_FOR_TWO_EDITS else 2
    return parser.execute(_NEAR, [fold(word), most, list(_OWN_WORDS)]).fetchall()


def _failure(parser: duckdb.DuckDBPyConnection, text: str) -> int | None:
    """Where DuckDB's parser fails in a statement, beside Louver's own words; None where it does
    not, -1 where these are what is wrong.
    """
    try:
        sql = _without_own_words(text)
    except errors.Error:
        return -1
    row = parser.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchone()
    reply = json.loads(row[0]) if row else {}
    # What is parsed but is not a query is an error of another type.
    if reply.get("error_type") != "parser":
        return None
    return int(reply.get("position", len(sql)))


def _without_own_words(text: str) -> str:
    """A statement with blanks in the place of what only Louver reads."""
    match = _OPTIONS_OF_EXPLAIN.match(text)
    if match is not None:
        return "EXPLAIN".ljust(match.end()) + text[match.end() :]
    tokens = lexer.tokens(text)
    if lexer.words(tokens, 1) not in (["CREATE"], ["ALTER"]):
        return text
    for start, end in declare.strip_enc(text, tokens).cuts:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
