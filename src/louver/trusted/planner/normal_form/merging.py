"""Queries in FROM that only choose columns and rows become part of the block around them.

before  SELECT q.s FROM (SELECT a + 1 AS s, b FROM t WHERE b > 2) AS q WHERE q.s < 9
after   SELECT t.a + 1 FROM t WHERE t.a + 1 < 9 AND t.b > 2
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.normal_form import references
from louver.trusted.planner.normal_form.sources import items, output_names

_SIMPLE = frozenset(("expressions", "from_", "joins", "where"))


def merge(select: exp.Select, names: Iterator[str]) -> None:
    """Merge what can be merged into a block whose columns are all qualified, in place."""
    for node, join in list(items(select)):
        if not isinstance(node, exp.Subquery) or not _fits(select, node, join):
            continue
        inner = node.this
        _rename(inner, names)
        _write_out(select, node, inner)
        _put(select, node, inner, join)


def _fits(select: exp.Select, node: exp.Subquery, join: exp.Join | None) -> bool:
    """Whether a query in FROM is simple, and stands where its conditions mean the same outside."""
    inner = node.this
    if not isinstance(inner, exp.Select) or not inner.meta.get("normal"):
        return False
    if select.args.get("sample") is not None:
        # It is drawn from what the conditions leave.
        return False
    if not _is_simple(inner):
        return False
    if any(select.args.get(clause) for clause in ("group", "order", "distinct")) and any(
        references.is_constant(item.unalias()) for item in inner.expressions
    ):
        return False
    sides = [keyword(other.side) for other in select.args.get("joins") or ()]
    if any(side not in ("", "LEFT") for side in sides):
        return False
    if join is None:
        return True
    if inner.args.get("joins"):
        return False
    if keyword(join.side) != "LEFT":
        return True
    # What the join fills up with NULLs must not be computed from them.
    return all(isinstance(item.unalias(), exp.Column) for item in inner.expressions)


def _is_simple(inner: exp.Select) -> bool:
    if set(filter(inner.args.get, inner.args)) - _SIMPLE or inner.args.get("from_") is None:
        return False
    if any(keyword(join.side) not in ("", "LEFT") for join in inner.args.get("joins") or ()):
        return False
    if not all(isinstance(node, exp.Table) and not _renamed(node) for node, _ in items(inner)):
        return False
    names = output_names(inner)
    if names is None or len({fold(name) for name in names}) != len(names):
        return False
    values = [item.unalias() for item in inner.expressions]
    values += [join.args["on"] for join in inner.args.get("joins") or () if join.args.get("on")]
    where = inner.args.get("where")
    values += [where.this] if where is not None else []
    return all(references.is_repeatable(value) for value in values)


def _rename(inner: exp.Select, names: Iterator[str]) -> None:
    """Give the query's tables aliases that are not in use."""
    renamed: dict[str, str] = {}
    for node, _ in items(inner):
        fresh = renamed[fold(str(node.alias_or_name))] = next(names)
        node.set("alias", exp.TableAlias(this=exp.to_identifier(fresh, quoted=True)))
    for _, part in references.parts(inner):
        for column in part.find_all(exp.Column):
            if column.table:
                fresh = renamed[fold(column.table)]
                column.set("table", exp.to_identifier(fresh, quoted=True))


def _write_out(select: exp.Select, node: exp.Subquery, inner: exp.Select) -> None:
    """The query's columns as the expressions that they stand for."""
    alias = fold(str(node.alias_or_name))
    shown = output_names(inner) or ()
    written = _renamed(node)
    shown = tuple(name.name for name in written) + shown[len(written) :]
    values = {
        fold(name): item.unalias() for name, item in zip(shown, inner.expressions, strict=True)
    }
    for item in list(select.expressions):
        if isinstance(item, exp.Column) and fold(item.table) == alias:
            # What had its name from the column keeps it.
            item.replace(exp.alias_(item.copy(), item.name, quoted=True))
    for _, part in list(references.parts(select)):
        for column in list(part.find_all(exp.Column)):
            if fold(column.table) == alias:
                value = values[fold(column.name)].copy()
                bare = isinstance(value, exp.Column | exp.Paren)
                column.replace(value if bare else exp.Paren(this=value))


def _put(select: exp.Select, node: exp.Subquery, inner: exp.Select, join: exp.Join | None) -> None:
    """The query's FROM in the place of the query, its conditions beside the block's."""
    clause, where = inner.args["from_"], inner.args.get("where")
    node.replace(clause.this)
    if join is None:
        joins = [*(inner.args.get("joins") or ()), *(select.args.get("joins") or ())]
        select.set("joins", joins)
    if where is None:
        return
    if join is not None and keyword(join.side) == "LEFT":
        join.set("on", exp.and_(join.args["on"], where.this, copy=False))
        return
    own = select.args.get("where")
    both = [own.this, where.this] if own is not None else [where.this]
    select.set("where", exp.Where(this=exp.and_(*both, copy=False)))


def _renamed(node: exp.Expr) -> list[exp.Expr]:
    """The names that a query or table in FROM gets for its columns, if it gets any."""
    alias = node.args.get("alias")
    return list(alias.args.get("columns") or ()) if alias is not None else []


def prune(select: exp.Select) -> None:
    """Drop columns of queries in FROM that the block around them, all qualified, does not read."""
    used: dict[str, set[str]] = {}
    for _, part in references.parts(select):
        for column in part.find_all(exp.Column):
            used.setdefault(fold(column.table), set()).add(fold(column.name))
    for node, _ in items(select):
        if isinstance(node, exp.Subquery) and not _renamed(node):
            _prune(node.this, used.get(fold(str(node.alias_or_name)), set()))


def _prune(inner: exp.Expr, used: set[str]) -> None:
    if not isinstance(inner, exp.Select) or inner.args.get("distinct"):
        return
    if not inner.meta.get("normal"):
        return
    names = output_names(inner)
    if names is None or any(isinstance(node, exp.Star) for node in inner.expressions):
        return
    pairs = list(zip(inner.expressions, names, strict=True))
    left = [item for item, name in pairs if fold(name) in used or not _may_go(item)]
    grouped = inner.args.get("group") is not None
    if not left:
        left = inner.expressions[:1]
    aggregated = any(item.find(exp.AggFunc) is not None for item in inner.expressions)
    if aggregated and not grouped and not any(item.find(exp.AggFunc) for item in left):
        # One row, because something is aggregated.
        return
    inner.set("expressions", left)


def _may_go(item: exp.Expr) -> bool:
    """Whether an item that is not read decides nothing: a function that is not known may aggregate
    or give several rows.
    """
    return item.find(exp.Anonymous, exp.UDTF) is None
