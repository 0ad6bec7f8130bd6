"""Texts to trees and trees to local text: the only place that calls sqlglot's parser.

A text for a server is printed from a tree, and a tree has no comments: whatever a user writes
beside a statement stays on the user's machine.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

LOCAL_DIALECT = "duckdb"
"""The language of the local engine, which is the user's as well."""
_DIALECT = DuckDB()


def local_text(node: exp.Expr) -> str:
    """A tree as text for the local engine, or for providers, whose language is the same; a text for
    any other server is its backend's to print.
    """
    return str(node.sql(LOCAL_DIALECT))


def parse(sql: str) -> exp.Expr | None:
    """Sqlglot's tree, or None for what only DuckDB understands."""
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
    tokens = _DIALECT.tokenize(sql)
    for token in tokens:
        token.comments.clear()
    return _DIALECT.parser().parse(tokens, sql)
