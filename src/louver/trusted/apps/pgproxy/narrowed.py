"""Parameters of other types than the columns that they are compared with or stored in: drivers say
bigint of any number, and varchar of any text. Where such a parameter is all that stands there, a
value that the column's own type has means the same as if it had that type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokens import Token, TokenType

from louver.names import keyword
from louver.trusted.executor.change import statement_parts
from louver.trusted.planner.sql import lexer

_WHOLE = {21: 1 << 15, 23: 1 << 31}
_NARROWER = {20: (21, 23), 23: (21,), 1043: (25, 1042), 25: (1043, 1042)}
"""Numbers of types, and of those that take their place."""
_TEXT, _BLANK_PADDED = 25, 1042
_COMPARISONS = frozenset(("=", "<", ">", "<=", ">=", "<>", "!="))
_LISTS = ("VALUES", "IN")
_BEHIND = frozenset(
    ("", ")", ",", "AND", "OR", "WHERE", "RETURNING", "ORDER", "GROUP", "LIMIT", "OFFSET", "FOR")
)


def types(text: lexer.Text, given: Sequence[int], inferred: Sequence[int]) -> dict[int, int]:
    """By the positions of parameters the types of their columns, where they have `given` ones that
    values are brought to these from (`fits`).
    """
    results = {}
    for position, (own, other) in enumerate(zip(given, inferred, strict=False)):
        if other in _NARROWER.get(own, ()):
            results[position] = other
    tokens = lexer.tokens(text.plain) if results else []
    for token_position, position in _parameters(text, tokens):
        if position in results and not _is_all(tokens, token_position):
            del results[position]
    return results


def fits(value: object, given: int, type_: int) -> bool:
    """Whether a value of a type means the same in the one that takes its place."""
    if value is None:
        return True
    if type_ in _WHOLE:
        return type(value) is int and -_WHOLE[type_] <= value < _WHOLE[type_]
    # Blanks at the end count beside text, and not beside varchar.
    counts = (given, type_) == (_TEXT, _BLANK_PADDED)
    return isinstance(value, str) and not (counts and value.endswith(" "))


def counts_blanks(given: Sequence[int], items: Sequence[tuple[int, int]]) -> bool:
    """Whether char(n) takes the place of text."""
    return any((given[at], type_) == (_TEXT, _BLANK_PADDED) for at, type_ in items)


def _parameters(text: lexer.Text, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    for position, token in enumerate(tokens):
        number = statement_parts.parameter_of(token)
        if number is not None:
            yield position, int(text.parameters[number]) - 1


def _is_all(tokens: Sequence[Token], at: int) -> bool:
    """Whether what stands at a place is all that is compared with something, a bound of BETWEEN, an
    item of VALUES or IN, or what SET gives a column.
    """
    before, behind = _word(tokens, at - 1), _word(tokens, at + 1)
    if behind not in _BEHIND:
        return False
    if before in _COMPARISONS:
        return True
    if before == "BETWEEN":
        return behind == "AND"
    if before == "AND":
        return _word(tokens, at - 3) == "BETWEEN"
    return before in ("(", ",") and behind in (")", ",") and _list_word(tokens, at) in _LISTS


def _list_word(tokens: Sequence[Token], at: int) -> str:
    """The word before the parentheses around a place; of further rows of VALUES too."""
    depth = 0
    for position in range(at - 1, -1, -1):
        word = _word(tokens, position)
        depth += (word == ")") - (word == "(")
        if depth >= 0:
            continue
        head = _word(tokens, position - 1)
        if head != ",":
            return head
        # A row behind another one.
        depth = 0
        for earlier in range(position - 2, -1, -1):
            other = _word(tokens, earlier)
            depth += (other == ")") - (other == "(")
            if depth == 0 and other == "(" and _word(tokens, earlier - 1) != ",":
                return _word(tokens, earlier - 1)
            if depth == 0 and other not in ("(", ","):
                return ""
        return ""
    return ""


def _word(tokens: Sequence[Token], at: int) -> str:
    if not 0 <= at < len(tokens):
        return ""
    token = tokens[at]
    if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
        return "'"
    return keyword(token.text)
