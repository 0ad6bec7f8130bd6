"""Which columns a statement may read without naming them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from louver.trusted.planner import selection
from louver.trusted.vault.catalog import Table

_UNNAMED = (exp.Columns, exp.Pivot, exp.Summarize)


def reads_all(
    tree: exp.Expr, found: Sequence[Token], tables: list[Table], resolve: selection.Resolve
) -> bool:
    """Whether columns may be read without being named."""
    if not isinstance(tree, exp.Query):
        return True
    if any(token.token_type == TokenType.HASH for token in found):
        return True
    names = {table.name.lower() for table in tables}
    if any(_reads_unnamed(star, names, resolve) for star in tree.find_all(exp.Star)):
        return True
    if any(join.args.get("method") for join in tree.find_all(exp.Join)):
        return True
    if tree.find(*_UNNAMED) is not None:
        return True
    aliases = [node.args.get("alias") for node in tree.find_all(exp.Table)]
    if any(alias.args.get("columns") for alias in aliases if alias is not None):
        # Its columns are read under other names.
        return True
    # A table's name or alias used as a column is the whole row.
    rows = names | {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    return any(column.name.lower() in rows for column in tree.find_all(exp.Column))


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
    clause = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or []
    sources = [clause and clause.this, *(join.this for join in joins)]
    return not all(_names_its_columns(source, names, resolve) for source in sources)


def _names_its_columns(
    source: exp.Expr | None, names: set[str], resolve: selection.Resolve
) -> bool:
    """Whether a source is a query, whose own text names what it reads."""
    if isinstance(source, exp.Subquery):
        inner = source.this
        return isinstance(inner, exp.Query) and not isinstance(inner, exp.Table | exp.Subquery)
    if not isinstance(source, exp.Table) or source.args.get("joins"):
        return False
    if not isinstance(source.this, exp.Identifier):
        return False
    # A common table expression of a table's name may be either.
    return source.name.lower() not in names and resolve(source) is None
