"""Texts to trees and trees to local text: the only place that calls sqlglot's parser.

A text for a server is printed from a tree, and a tree has no comments: whatever a user writes
beside a statement stays on the user's machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.tokenizer import tokenized

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
#: What both sqlglot and the engine read before operators that are early or late.
_OPERANDS = (
    exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Cast, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Upper, exp.Lower, exp.Length, exp.Coalesce,
    exp.Anonymous, exp.Query,
)  # fmt: skip

#: Operators of `early` that sqlglot reads as functions.
_MATCHES = (exp.RegexpFullMatch, exp.RegexpLike, exp.StartsWith)


def local_text(node: exp.Expr) -> str:
    """A tree as text for the local engine, or for providers, whose language is the same; a text for
    any other server is its backend's to print.
    """
    return str(node.sql(spoken().sqlglot))


def parse(sql: str) -> exp.Expr | None:
    """Sqlglot's tree, or None for what only the local engine understands."""
    try:
        trees = parse_all(sql)
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 else None


def parse_one(sql: str) -> exp.Expr:
    """The tree of a text that is one statement or expression.

    Raises:
        SqlglotError: where it cannot be read as one.
    """
    trees = parse_all(sql)
    if len(trees) != 1 or trees[0] is None:
        raise SqlglotError("the text is not one statement")
    return trees[0]


def parse_all(sql: str) -> list[exp.Expr | None]:
    """The trees of all statements of a text.

    Raises:
        SqlglotError: where it cannot be read.
    """
    dialect, tokens = spoken(), tokenized(sql)
    for token in tokens:
        token.comments.clear()
    try:
        trees = dialect.sqlglot.parser().parse(tokens, sql)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise SqlglotError("the parser fails on this text") from None
    spelled = {token.text for token in tokens if token.token_type not in _QUOTED}
    if spelled & dialect.late or (spelled & dialect.early and not all(map(_is_plain, trees))):
        raise SqlglotError("operators whose order is another one in DuckDB")
    if dialect.require is not None:
        dialect.require(sql, tokens, trees)
    trees = [tree and _with_negations(tree) for tree in trees]
    for tree in trees:
        _bracket_negations(tree)
    return trees


def _with_negations(tree: exp.Expr) -> exp.Expr:
    """`IS NOT` as the NOT of IS, which every reader of trees knows: in some languages the parser
    marks the node instead.
    """
    for node in list(tree.find_all(exp.Is)):
        if node.args.pop("negate", None):
            negation = exp.Not(this=node.copy())
            if node is tree:
                tree = negation
            else:
                node.replace(negation)
    return tree


def _bracket_negations(tree: exp.Expr | None) -> None:
    """`a NOT IN (1) < b` is read as `(NOT a IN (1)) < b`, and printed so; without brackets DuckDB
    would negate the comparison.
    """
    for node in reversed(list(tree.find_all(exp.Not))) if tree is not None else ():
        around = node.parent
        if isinstance(around, exp.Binary | exp.Predicate) and not isinstance(around, exp.Connector):
            node.replace(exp.Paren(this=node.copy()))


def _is_plain(tree: exp.Expr | None) -> bool:
    """Whether no order of comparisons is another one in DuckDB: none stands within another."""
    compared = tree.find_all(exp.Predicate, *_MATCHES) if tree else ()
    bare = tree is None or tree.find(exp.BitwiseNot) is None
    return bare and all(isinstance(part, _OPERANDS) for node in compared for part in _sides(node))


def _sides(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a comparison compares without brackets around it."""
    for name in ("this", "expression", "low", "high"):
        part = node.args.get(name)
        while isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ) and isinstance(part, exp.Paren):
            part = part.this  # the parser puts brackets around these that are not in the text
        if isinstance(part, exp.Expr):
            yield part
