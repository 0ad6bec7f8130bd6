"""A changing statement cut into its pieces by tokens, never printed anew.

What runs locally is the user's own text; only the target's name or the source query is taken
out and replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX, Text
from louver.trusted.planner.sql.resolver import STRINGS, schema_of
from louver.trusted.planner.write.reads import names_of, reached, tables_named
from louver.trusted.vault.catalog import Catalog, Table

__all__ = ["reached", "tables_named"]

VERBS = ("INSERT", "UPDATE", "DELETE", "MERGE")
_SOURCE_STARTS = (
    "VALUES",
    "SELECT",
    "FROM",
    "WITH",
    "DEFAULT",
    "TABLE",
    "PIVOT",
    "UNPIVOT",
    "(",
    "DESCRIBE",
    "SHOW",
    "SUMMARIZE",
)
#: Table functions that read tables by a text, which may be worked out when they run.
_BY_TEXT = {"query", "query_table", "json_execute_serialized_sql"}


@dataclass(frozen=True, slots=True)
class Words:
    """A statement's plain text with its tokens and the values of its placeholders."""

    plain: str
    tokens: Sequence[Token]
    parameters: Sequence[object]

    def keyword(self, position: int) -> str:
        """A token's text in upper case; "" past the end and for a quoted name."""
        if not 0 <= position < len(self.tokens) or self.tokens[position].token_type in (
            TokenType.IDENTIFIER,
            TokenType.STRING,
        ):
            return ""
        return keyword(self.tokens[position].text)

    def shape(self) -> lexer.Shape:
        """The statement's shape, with its numbers."""
        return lexer.with_parameters(lexer.shape(self.plain, self.tokens), self.parameters)

    def text(self, first: int, last: int, offset: int = 0) -> tuple[str, list[object]]:
        """The tokens from ``first`` up to ``last`` as DuckDB reads them, with the values that
        their placeholders stand for; these are numbered from ``offset`` + 1.
        """
        if first >= last:
            return "", []
        values: list[object] = []
        pieces: list[str] = []
        position = self.tokens[first].start
        for token in self.tokens[first:last]:
            number = parameter_of(token)
            if number is None:
                continue
            values.append(self.parameters[number])
            pieces += [self.plain[position : token.start], f"${offset + len(values)}"]
            position = token.end + 1
        pieces.append(self.plain[position : self.tokens[last - 1].end + 1])
        return "".join(pieces), values

    def find(self, word: str, first: int = 0) -> int:
        """The place of a word outside of parentheses, -1 where there is none."""
        depth = 0
        for position in range(first, len(self.tokens)):
            kind = self.tokens[position].token_type
            if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE):
                depth += 1
            elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE):
                depth -= 1
            elif (
                depth == 0
                and self.keyword(position) == word
                and (word != "FROM" or begins_sources(self.tokens, position))
            ):
                return position
        return -1

    def names(self, first: int = 0, last: int | None = None) -> set[str]:
        """Every word of a stretch that could be a name, folded. A string may name a
        table too: FROM 'zoo'.
        """
        return names_of(self.tokens[first:last])


@dataclass(frozen=True, slots=True)
class Insert:
    """Where the pieces of an INSERT stand, as places of tokens."""

    verb: int
    name: int
    after_name: int
    source: int
    source_end: int
    returning: int
    end: int
    alternative: bool
    by_name: bool


def words_of(text: Text, tokens: Sequence[Token], parameters: Sequence[object]) -> Words:
    """A statement as words."""
    return Words(text.plain, tokens, parameters)


def parameter_of(token: Token) -> int | None:
    """Which placeholder a token stands for."""
    rest = token.text.removeprefix(PARAMETER_PREFIX)
    if token.token_type != TokenType.VAR or rest == token.text or not rest.isdigit():
        return None
    return int(rest)


def verb_place(words: Words) -> int:
    """The place of INSERT, UPDATE, DELETE or MERGE, after a WITH clause perhaps."""
    places = [position for verb in VERBS if (position := words.find(verb)) >= 0]
    if not places:
        raise errors.make("sql.syntax", detail="there is no verb")
    return min(places)


_DUPLICATE = "23505"


def is_key_of_conflict(words: Words, error: errors.Error) -> bool:
    """Whether the server's refusal of a key is of one that ON CONFLICT is about: rows with it are
    there, and the transaction does not see them. What the local engine says by itself is of rows
    that the transaction sees.
    """
    if error.sqlstate not in ("", _DUPLICATE) or (error.sqlstate and not error.is_reworded):
        return False
    first = words.find("CONFLICT") + 1
    if not first or words.tokens[first].text != "(":
        return bool(first)
    last = next(p for p in range(first, len(words.tokens)) if words.tokens[p].text == ")")
    names = [fold(t.text) for t in words.tokens[first + 1 : last] if t.text != ","]
    returning = words.find("RETURNING")
    end = returning if returning > last else len(words.tokens)
    if any(_is_set(words, position, names) for position in range(last, end)):
        return False  # one that DO UPDATE sets: another row may have it that was not read
    return f"key ({', '.join(names)})=" in fold(str(error))


def _is_set(words: Words, position: int, names: list[str]) -> bool:
    """Whether a column of these may get another value here than the new row's, as which it has
    conflicted.
    """
    before, *behind = (fold(token.text) for token in words.tokens[position - 1 : position + 5])
    if before == "." or behind[0] not in names:
        return False
    after = [fold(token.text) for token in words.tokens[position + 5 : position + 6]]
    is_whole = not after or after[0] in (",", "where", "returning")
    return not is_whole or behind[1:5] != ["=", "excluded", ".", behind[0]]


def qualified(words: Words, position: int) -> tuple[str, str, int]:
    """Schema ("" where none is named) and name at a place, and the place after it."""
    parts: list[str] = []
    while position < len(words.tokens):
        parts.append(words.tokens[position].text)
        position += 1
        if position < len(words.tokens) and words.tokens[position].token_type == TokenType.DOT:
            position += 1
            continue
        break
    if not parts:
        raise errors.make("sql.syntax", detail="the name of a table is missing")
    schema = parts[-2] if len(parts) > 1 else ""
    if len(parts) > 2:
        schema = schema_of(parts[-3], schema) or ".".join(parts[:-1])
    return schema, parts[-1], position


def target_place(words: Words, verb: int) -> int:
    """The place of the target's name."""
    skipped = {
        "UPDATE": ("ONLY",),
        "DELETE": ("FROM", "ONLY"),
        "MERGE": ("INTO", "ONLY"),
        "INSERT": ("OR", "REPLACE", "IGNORE", "INTO"),
    }[words.keyword(verb)]
    position = verb + 1
    for word in skipped:
        if words.keyword(position) == word:
            position += 1
    return position


def begins_sources(tokens: Sequence[Token], position: int) -> bool:
    """Whether a word is the FROM that names what is read, and not that of IS DISTINCT FROM."""
    before = [keyword(token.text) for token in tokens[max(position - 2, 0) : position]]
    is_operator = before[-1:] == ["DISTINCT"] and before[:1] in (["IS"], ["NOT"])
    return keyword(tokens[position].text) == "FROM" and not is_operator


def target(words: Words, verb: int, catalog: Catalog) -> Table | None:
    """The catalog's table that a statement changes."""
    schema, name, _ = qualified(words, target_place(words, verb))
    return catalog.named(schema, name)


def assigned(words: Words) -> tuple[int, int]:
    """The tokens of what UPDATE assigns to columns, the first and the one after the last; (0, 0)
    of other statements.
    """
    first = words.find("SET") + 1
    if words.keyword(0) != "UPDATE" or not first:
        return 0, 0
    ends = (words.find(word, first) for word in ("FROM", "WHERE", "RETURNING"))
    return first, min((end for end in ends if end >= 0), default=len(words.tokens))


def is_shared(catalog: Catalog, table: Table) -> bool:
    """Whether something else that can be read has a table's name, in another schema."""
    objects = (item for item in catalog.objects if item.kind in ("VIEW", "MACRO"))
    others = [key[1] for key in catalog.tables if key != table.key]
    return fold(table.name) in {*others, *(fold(item.name) for item in objects)}


def parse_insert(words: Words) -> Insert:
    """The pieces of an INSERT."""
    verb = words.find("INSERT")
    name = target_place(words, verb)
    _, _, after = qualified(words, name)
    position, by_name, source = after, False, -1
    while position < len(words.tokens):
        word = words.keyword(position)
        if word == "(" and not _opens_query(words, position):
            position = _closing(words, position) + 1
            continue
        if word in _SOURCE_STARTS:
            source = position
            break
        by_name = by_name or word == "NAME"
        position += 1
    if source < 0:
        raise errors.make("sql.syntax", detail="INSERT has neither VALUES nor a query")
    end = len(words.tokens)
    returning = words.find("RETURNING", source)
    returning = end if returning < 0 else returning
    conflict = _conflict(words, source)
    return Insert(
        verb,
        name,
        after,
        source,
        conflict if conflict >= 0 else returning,
        returning,
        end,
        words.keyword(verb + 1) == "OR" or conflict >= 0,
        by_name,
    )


def _opens_query(words: Words, position: int) -> bool:
    while words.keyword(position) == "(":
        position += 1
    return words.keyword(position) in _SOURCE_STARTS


def _closing(words: Words, position: int) -> int:
    depth = 0
    while position < len(words.tokens):
        depth += (words.keyword(position) == "(") - (words.keyword(position) == ")")
        if depth == 0:
            return position
        position += 1
    raise errors.make("sql.syntax", detail="a parenthesis is not closed")


def _conflict(words: Words, first: int) -> int:
    position = words.find("ON", first)
    while position >= 0:
        if words.keyword(position + 1) == "CONFLICT":
            behind = words.keyword(position + 2), words.keyword(position + 3)
            if behind[0] in ("(", "DO", "WHERE") or behind == ("ON", "CONSTRAINT"):
                return position
        position = words.find("ON", position + 1)
    return -1


def require_named(catalog: Catalog, words: Words) -> None:
    """Refuse table functions that read what a text says, in the statement and in the views and
    macros that it uses: which tables a change reads must be known before it runs.
    """
    texts = [lexer.tokens(item.sql) for item in reached(catalog, words.names())[1]]
    for name in (words.tokens, *texts):
        for token, after in pairwise(name):
            called = after.token_type == TokenType.L_PAREN and token.token_type not in STRINGS
            if called and fold(token.text) in _BY_TEXT:
                raise errors.make(
                    "sql.unsupported",
                    statement=f"{fold(token.text)}() in a change (name the table instead)",
                )


def only_adds(words: Words) -> bool:
    """Whether a statement can change no old row, whatever the values are."""
    changing = ("UPDATE", "DELETE", "REPLACE")
    return words.find("INSERT") >= 0 and all(words.find(word) < 0 for word in changing)
