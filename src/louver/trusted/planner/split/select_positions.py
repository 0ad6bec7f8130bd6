"""Where the SELECT blocks of a statement stand in its text, as places of tokens.

Sqlglot's tree tells only the positions of names and numbers. The word SELECT of a block is the
last one before the first position of its items, except that blocks which begin one within the
other share that position; then the outer ones stand first.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.names import keyword

_ENDS = frozenset((TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.SEMICOLON))
_TAIL = ("ORDER", "ORDER BY", "LIMIT", "OFFSET")


def select_spans(tree: exp.Expr, tokens: Sequence[Token]) -> dict[int, tuple[int, int]]:
    """First and last token of every block that could be placed, by the identity of its node."""
    words = [
        position for position, token in enumerate(tokens) if token.token_type == TokenType.SELECT
    ]
    by_start: dict[int, list[exp.Select]] = {}
    for select in tree.find_all(exp.Select):
        start = _first_item(select)
        if start is not None:
            by_start.setdefault(start, []).append(select)
    spans: dict[int, tuple[int, int]] = {}
    for start, selects in by_start.items():
        before = [position for position in words if tokens[position].start < start][-len(selects) :]
        if len(before) != len(selects):
            continue
        for position, select in zip(before, sorted(selects, key=_depth), strict=True):
            last = _last(tokens, position, select)
            if _has_from(tokens, position, last):
                spans[id(select)] = (position, last)
    return spans


def _first_item(select: exp.Select) -> int | None:
    starts = [
        node.meta["start"]
        for item in select.expressions
        for node in item.walk()
        if "start" in node.meta
    ]
    return min(starts, default=None)


def _depth(node: exp.Expr) -> int:
    depth, parent = 0, node.parent
    while parent is not None:
        depth, parent = depth + 1, parent.parent
    return depth


def _last(tokens: Sequence[Token], first: int, select: exp.Select) -> int:
    """The last token of a block: before the bracket that closes around it, or the next word of
    a set operation, whose own ORDER BY and LIMIT do not belong to the block.
    """
    depth = 0
    in_set = isinstance(select.parent, exp.SetOperation)
    for position in range(first, len(tokens)):
        kind = tokens[position].token_type
        if depth == 0 and position > first:
            tail = in_set and keyword(tokens[position].text).split(" ")[0] in _TAIL
            if kind in _ENDS or kind == TokenType.R_PAREN or tail:
                return position - 1
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
    return len(tokens) - 1


def _has_from(tokens: Sequence[Token], first: int, last: int) -> bool:
    """Whether FROM stands behind SELECT, as it need not in DuckDB."""
    depth = 0
    for token in tokens[first : last + 1]:
        if depth == 0 and token.token_type == TokenType.FROM:
            return True
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
    return False
