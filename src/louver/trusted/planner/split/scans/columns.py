"""Which columns a statement may read without naming them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.planner.sql import selection
from louver.trusted.vault.catalog import Table

_UNNAMED = (exp.Columns, exp.Pivot, exp.Summarize)


def reads_all(
    tree: exp.Expr, tokens: Sequence[Token], tables: list[Table], resolve: selection.Resolve
) -> bool:
    """Whether columns may be read without being named."""
    if not isinstance(tree, exp.Query):
        return True
    if any(token.token_type == TokenType.HASH for token in tokens):
        return True
    names = {fold(table.name) for table in tables}
    if any(_reads_unnamed(star, names, resolve) for star in tree.find_all(exp.Star)):
        return True
    if any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return True
    if tree.find(*_UNNAMED) is not None:
        return True
    if any(map(_renames, tree.find_all(exp.Table, exp.Subquery))):
        return True
    return any(_is_row(column, names, resolve) for column in tree.find_all(exp.Column))


def _renames(source: exp.Expr) -> bool:
    """Whether columns of a table, or of a join in brackets, are read under other names."""
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select | exp.SetOperation):
        return False
    alias = source.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _is_row(column: exp.Column, names: set[str], resolve: selection.Resolve) -> bool:
    """Whether a column's name is that of a base table in reach, and so may be its whole row."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for source in _sources(select):
            if _names_its_columns(source, names, resolve):
                continue
            inner = [source, *source.find_all(exp.Table)]
            if any(fold(str(item.alias_or_name)) == fold(column.name) for item in inner):
                return True
        select = select.find_ancestor(exp.Select)
    return False


def _sources(select: exp.Select) -> list[exp.Expr]:
    clause = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or []
    clauses = [clause.this] if clause is not None else []
    return [*clauses, *(join.this for join in joins)]


def _reads_unnamed(star: exp.Star, names: set[str], resolve: selection.Resolve) -> bool:
    """Whether a star stands for columns of a base table."""
    if isinstance(star.parent, exp.Count):
        return False
    item: exp.Expr | None = star
    if isinstance(star.parent, exp.Column):
        item = star.parent
    select = item.parent if item is not None else None
    if not isinstance(select, exp.Select) or item is None or item.arg_key != "expressions":
        return True
    if isinstance(select.parent, exp.Exists) and not select.args.get("distinct"):
        return False
    return not all(_names_its_columns(source, names, resolve) for source in _sources(select))


def _names_its_columns(source: exp.Expr, names: set[str], resolve: selection.Resolve) -> bool:
    """Whether a source is a query, whose own text names what it reads."""
    if isinstance(source, exp.Subquery):
        inner = source.this
        return isinstance(inner, exp.Query) and not isinstance(inner, exp.Table | exp.Subquery)
    if not isinstance(source, exp.Table) or source.args.get("joins"):
        return False
    if not isinstance(source.this, exp.Identifier):
        return False
    # A common table expression of a table's name may be either.
    return fold(source.name) not in names and resolve(source) is None
