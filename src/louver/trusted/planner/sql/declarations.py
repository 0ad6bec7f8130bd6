"""``ENC [USING scheme] [MAY REVEAL level]`` in CREATE TABLE and ALTER TABLE, read off the tokens.

The words are cut out of the text, so that what remains is DuckDB's own SQL; sqlglot's parser is
never extended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.planner.sql import trees
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.scheme import using_words

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
# After one of these a column's type is over, so ENC behind it stands in the wrong place.
_CONSTRAINTS = frozenset(
    ("NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "DEFAULT", "REFERENCES")
    + ("GENERATED", "AS", "CONSTRAINT")
)
#: What users write where ENC belongs.
_ENCRYPTING = ("ENC", "ENCRYPTED", "ENCRYPT")


@dataclass(frozen=True, slots=True)
class Declared:
    """What the SQL says of one column's protection; empty strings where it is silent."""

    column: str
    scheme: str
    ceiling: str
    #: what a policy could say beyond these: the entries of WITH, in their order
    options: tuple[tuple[str, str | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A statement without its ENC words, and what they said."""

    sql: str
    columns: dict[str, Declared]
    #: where the ENC words began and ended
    cuts: tuple[tuple[int, int], ...] = ()


def strip_enc(sql: str, tokens: Sequence[Token]) -> Declaration:
    """Cut the protection clauses out of a CREATE TABLE or ALTER TABLE statement. The names of a
    CREATE TABLE AS have no types in front of them.

    Raises ``sql.enc_misplaced``, ``enc.scheme`` and ``enc.level``.
    """
    cuts: list[tuple[int, int]] = []
    columns: dict[str, Declared] = {}
    elements, typed = _elements(tokens)
    for element in elements:
        read = _clause(element, typed=typed)
        if read is None:
            continue
        declared, start, end = read
        columns[fold(declared.column)] = declared
        cuts.append((start, end))
    for start, end in sorted(cuts, reverse=True):
        sql = sql[:start].rstrip() + " " + sql[end:]
    return Declaration(sql, columns, tuple(cuts))


def listed_names(tokens: Sequence[Token]) -> list[str]:
    """The names that a CREATE TABLE AS lists in front of its query."""
    elements, typed = _elements(tokens)
    return [] if typed else [element[0].text for element in elements if element]


def _elements(tokens: Sequence[Token]) -> tuple[list[list[Token]], bool]:
    """The column definitions: the parts of the first bracket of CREATE TABLE, or what follows
    each ADD [COLUMN] [IF NOT EXISTS] of ALTER TABLE; and whether types are part of them.
    """
    upper = [keyword(token.text) for token in tokens]
    if upper[:1] == ["ALTER"]:
        return _added(tokens), True
    depth = 0
    elements: list[list[Token]] = []
    for position, token in enumerate(tokens):
        if token.token_type in _OPEN:
            depth += 1
            if depth == 1:
                elements.append([])
                continue
        elif token.token_type in _CLOSE:
            depth -= 1
            if depth == 0:
                return elements, upper[position + 1 : position + 2] != ["AS"]
        if depth == 1 and token.token_type == TokenType.COMMA:
            elements.append([])
        elif depth >= 1:
            elements[-1].append(token)
        elif upper[position] == "AS":
            return [], False
    return elements, True


def _added(tokens: Sequence[Token]) -> list[list[Token]]:
    """What ALTER TABLE adds, one part for each of its actions."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth == 0 and token.token_type == TokenType.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    results = []
    for ordinal, part in enumerate(parts):
        words = [keyword(token.text) for token in part]
        if "ADD" not in (words[:1] if ordinal else words):
            continue
        start = words.index("ADD") + 1
        for skip in ("COLUMN", "IF", "NOT", "EXISTS"):
            if words[start : start + 1] == [skip]:
                start += 1
        results.append(part[start:])
    return results


def _clause(element: list[Token], *, typed: bool) -> tuple[Declared, int, int] | None:
    """The clause of one column definition with its place in the text, or None."""
    depth = 0
    constraint = ""
    for index, token in enumerate(element):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        word = keyword(token.text)
        if depth or index == 0:
            continue
        named = token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)
        if named and word.split()[0] in _CONSTRAINTS:
            constraint = constraint or word
        if word != "ENC" or token.token_type != TokenType.VAR:
            continue
        if keyword(element[index - 1].text) == "REFERENCES" or element[index - 1].text == ".":
            # The name of a table, which DuckDB prints without quotes.
            continue
        if (index == 1 and typed) or constraint:
            raise errors.make(
                "sql.enc_misplaced", column=element[0].text, example=_example(element, index)
            )
        return _read(element, index)
    _require_enc(element, typed=typed)
    return None


def _require_enc(element: list[Token], *, typed: bool) -> None:
    """Raise for what only follows ENC, and for words that look like it."""
    words = [keyword(token.text) for token in element]
    names = [token.token_type == TokenType.IDENTIFIER for token in element]
    for index in range(2 if typed else 1, len(words)):
        if names[index] or words[0] in _CONSTRAINTS:
            continue
        follows = words[index + 1 : index + 2]
        if words[index] in _ENCRYPTING[1:] or words[index : index + 2] == [
            "MAY",
            "REVEAL",
        ]:
            word = f"{words[index]} {follows[0]}" if words[index] == "MAY" else words[index]
            raise errors.make(
                "sql.enc_missing", column=element[0].text, word=word,
                example=_example(element, index),
            )  # fmt: skip


def _example(element: list[Token], index: int) -> str:
    """A column definition with ENC where it belongs, in the user's own words."""
    texts = [token.text for token in element]
    ceiling = ["MAY", "REVEAL"]
    words = [keyword(text) for text in texts]
    rest = texts[index:] if words[index : index + 2] == ceiling else texts[index + 1 :]
    before = texts[:index]
    first = next(
        (at for at in range(1, len(before)) if words[at].split()[0] in _CONSTRAINTS), len(before)
    )
    parts = before[:first] if first > 1 else [texts[0], *rest[:1]]
    rest = rest if first > 1 else rest[1:]
    return " ".join([*parts, "ENC", *rest, *before[first:]])


def _read(element: list[Token], index: int) -> tuple[Declared, int, int]:
    start = element[index].start
    end = element[index].end + 1
    rest = [token.text for token in element[index + 1 : index + 6]]
    upper = [keyword(word) for word in rest]
    scheme = ceiling = ""
    used = 0
    if upper[:1] == ["USING"]:
        if len(rest) == 1:
            raise _incomplete(element[0].text, "USING", "a scheme")
        scheme = fold(rest[1])
        if scheme not in using_words():
            raise errors.make("enc.scheme", scheme=scheme, known=", ".join(using_words()))
        used = 2
    if upper[used : used + 1] == ["MAY"]:
        if upper[used + 1 : used + 2] != ["REVEAL"]:
            raise _incomplete(element[0].text, "MAY", "REVEAL")
        if len(rest) == used + 2:
            raise _incomplete(element[0].text, "MAY REVEAL", "a level")
        ceiling = fold(rest[used + 2])
        if ceiling not in LEVELS:
            raise errors.make("enc.level", level=ceiling, known=", ".join(LEVELS))
        used += 3
    options, used = _options(element, index + 1 + used, used)
    if used:
        end = element[index + used].end + 1
    return Declared(element[0].text, scheme, ceiling, options), start, end


def _incomplete(column: str, word: str, wanted: str) -> errors.Error:
    """The error for a clause that ends too early."""
    clause, known = ("USING", using_words()) if word == "USING" else ("MAY REVEAL", LEVELS)
    return errors.make(
        "enc.incomplete", column=column, word=word, wanted=wanted, clause=clause,
        known=", ".join(known),
    )  # fmt: skip


def refuse_alias(table: str, query: str, tokens: Sequence[Token]) -> None:
    """Refuse the query of a CREATE TABLE AS in which ENC follows an item, which DuckDB would read
    as a new name: the column would have neither the user's name nor the user's protection.
    """
    tree = trees.parse(query)
    if not isinstance(tree, exp.Query):
        return
    before = {token.start: tokens[index - 1] for index, token in enumerate(tokens) if index}
    columns: list[str] = []
    alias, wrong = None, ""
    for item in tree.selects:
        name = item.args.get("alias")
        columns.append(item.output_name or "...")
        if not isinstance(name, exp.Identifier) or keyword(name.name) not in _ENCRYPTING:
            continue
        previous = before.get(name.meta.get("start", -1))
        # `AS ENC` and `ENC: item` are names on purpose, as is one in quotes.
        explicit = previous is None or previous.token_type == TokenType.ALIAS
        prefixed = query[name.meta.get("end", -1) + 1 :].lstrip().startswith(":")
        if not name.args.get("quoted") and not explicit and not prefixed:
            columns[-1] = f"{item.this.output_name or '...'} ENC"
            alias, wrong = alias or name.name, wrong or trees.local_text(item.this)
    if alias is not None:
        raise errors.make(
            "sql.enc_alias", word=alias, item=wrong, table=table, columns=", ".join(columns)
        )


def _options(
    element: list[Token], at: int, used: int
) -> tuple[tuple[tuple[str, str | bool], ...], int]:
    """The entries of WITH (key = value, …), and how many tokens are used up to their end."""
    words = [keyword(token.text) for token in element[at : at + 2]]
    if words != ["WITH", "("]:
        return (), used
    entries: list[tuple[str, str | bool]] = []
    position = at + 2
    while position + 3 < len(element) and element[position + 1].text == "=":
        value, word = element[position + 2], keyword(element[position + 2].text)
        literal = value.token_type == TokenType.STRING
        given = word == "TRUE" if not literal and word in ("TRUE", "FALSE") else value.text
        entries.append((fold(element[position].text), given))
        position += 4
        if element[position - 1].text != ",":
            break
    if not entries or element[position - 1].text != ")":
        raise errors.make("enc.options", column=element[0].text, detail="a list is not closed")
    return tuple(entries), used + position - at


def read_encryption(tokens: Sequence[Token]) -> tuple[str, Declared | None] | None:
    """The column and the clause of ``ALTER TABLE t ALTER [COLUMN] c SET ENC …``, or None as its
    clause for ``DROP ENC``; None for any other statement.
    """
    upper = [keyword(token.text) for token in tokens]
    for at in range(3, len(upper) - 2):
        position = at + 2 if upper[at + 1] == "COLUMN" else at + 1
        words = upper[position + 1 : position + 3]
        if upper[at] != "ALTER" or words not in (["SET", "ENC"], ["DROP", "ENC"]):
            continue
        name = tokens[position].text
        if words[0] == "DROP":
            rest, declared = upper[position + 3 :], None
        else:
            element = [tokens[position], *tokens[position + 2 :]]
            declared, _, end = _read(element, 1)
            rest = [token.text for token in element if token.start >= end]
        if rest:
            raise errors.make("sql.syntax", detail=f"unexpected {rest[0]} behind ENC")
        return name, declared
    return None


def read_ceiling(tokens: Sequence[Token]) -> tuple[str, str, str] | None:
    """``ALTER TABLE t ALTER [COLUMN] c MAY REVEAL level`` as (table, column, level), or None."""
    texts = [token.text for token in tokens]
    upper = [keyword(text) for text in texts]
    unfinished = upper[-2:] == ["MAY", "REVEAL"]
    if upper[:2] != ["ALTER", "TABLE"] or not (unfinished or upper[-3:-1] == ["MAY", "REVEAL"]):
        return None
    actions = [at for at, word in enumerate(upper) if at > 2 and word in ("ALTER", "ADD")]
    if not actions or upper[actions[0]] == "ADD":
        return None
    position, level = actions[0], fold(texts[-1])
    if unfinished:
        raise _incomplete(texts[-3], "MAY REVEAL", "a level")
    if level not in LEVELS:
        raise errors.make("enc.level", level=level, known=", ".join(LEVELS))
    column = texts[position + 2] if upper[position + 1] == "COLUMN" else texts[position + 1]
    return "".join(texts[2:position]), column, level
