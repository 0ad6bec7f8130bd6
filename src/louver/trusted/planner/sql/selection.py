"""What a SELECT block says, read off its tree: its vocabulary, conjuncts, stars and groups."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Scope, Servers, Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.scheme import has_shares

# Only blocks made of these are printed anew for the home side; whatever is not known here runs
# there in the user's own words.
VOCABULARY: tuple[type[exp.Expr], ...] = (
    exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered,
    exp.Limit, exp.Offset, exp.Distinct, exp.Alias, exp.Column, exp.Identifier, exp.Table,
    exp.TableAlias, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.And, exp.Or,
    exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul,
    exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Between, exp.In, exp.Is, exp.Like, exp.Case,
    exp.If, exp.Coalesce, exp.Abs, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Count, exp.Sum,
    exp.Avg, exp.Min, exp.Max, exp.Round, exp.Upper, exp.Lower,
)  # fmt: skip
Resolve = Callable[[exp.Table], Table | None]
AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_CAST_TYPES = frozenset(
    ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL")
    + ("DATE", "TIMESTAMP", "TEXT", "VARCHAR")
)


class Unsplit(Exception):
    """This block cannot be split this way; the next choice is tried."""


def require_vocabulary(select: exp.Select, scope: Scope) -> None:
    """Raise `Unsplit` for a block that holds anything whose meaning is not pinned down here."""
    # What a generated column holds is never computed anew, so its words need not be known.
    for node in select.walk(prune=lambda part: scope.generated(part) is not None):
        if not isinstance(node, VOCABULARY) and scope.generated(node) is None:
            raise Unsplit
        if node is not select and isinstance(node, exp.Select):
            raise Unsplit
        if isinstance(node, exp.Distinct) and node.args.get("on"):
            raise Unsplit
        if isinstance(node, exp.Star) and not _stands_for_all(node):
            raise Unsplit
        if isinstance(node, exp.TryCast):
            raise Unsplit
        if isinstance(node, exp.Cast) and getattr(node.to.this, "name", "") not in _CAST_TYPES:
            raise Unsplit
        if isinstance(node, exp.Group) and set(filter(node.args.get, node.args)) - {"expressions"}:
            raise Unsplit
        if isinstance(node, exp.Ordered) and node.args.get("with_fill"):
            raise Unsplit
    _require_clear_names(select, scope)


def _stands_for_all(star: exp.Star) -> bool:
    """Whether a star is an item that stands for all columns, or ``count(*)``. Any other one, as
    ``* LIKE 'a%'``, chooses columns by their names, which are others locally.
    """
    if any(star.args.get(key) for key in star.args):
        return False
    item = star.parent if isinstance(star.parent, exp.Column) else star
    if isinstance(item.parent, exp.Count):
        return item is star
    return isinstance(item.parent, exp.Select) and item.arg_key == "expressions"


def _require_clear_names(select: exp.Select, scope: Scope) -> None:
    """An alias that is also a column's name means different things in different clauses."""
    for item in select.expressions:
        if not isinstance(item, exp.Alias):
            continue
        alias = fold(item.alias)
        plain = isinstance(item.this, exp.Column) and fold(item.this.name) == alias
        if not plain and any(source.table.column(alias) for source in scope.sources):
            raise Unsplit
    for column in select.find_all(exp.Column):
        if column.args.get("db") or fold(column.name).startswith("louver_c"):
            raise Unsplit
        if isinstance(column.this, exp.Star):
            continue
        whole_row = {fold(source.alias) for source in scope.sources}
        if not column.table and fold(column.name) in whole_row and not scope.find(column):
            raise Unsplit
        if column.table and scope.find(column) is None:
            raise Unsplit
        if not column.table and fold(column.name) in ("rowid", "row_id"):
            raise Unsplit


def sources_of(select: exp.Select, resolve: Resolve, servers: Servers) -> list[Source]:
    """The base tables of FROM in order; raises `Unsplit` for anything else there."""
    clause = select.args.get("from_") or select.args.get("from")
    if clause is None:
        raise Unsplit
    tables = [clause.this, *(join.this for join in select.args.get("joins") or [])]
    sources: list[Source] = []
    for slot, table in enumerate(tables):
        if not isinstance(table, exp.Table) or table.args.get("joins"):
            raise Unsplit
        if set(filter(table.args.get, table.args)) - {"this", "db", "alias"}:
            raise Unsplit
        alias = table.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise Unsplit
        stored = resolve(table)
        if stored is None:
            raise Unsplit
        sources.append(servers.source(slot, table.alias or table.name, stored))
    if len({fold(source.alias) for source in sources}) != len(sources):
        raise Unsplit
    for join in select.args.get("joins") or []:
        join_kind(join)
    return sources


def join_kind(join: exp.Join) -> str:
    """CROSS JOIN, JOIN or LEFT JOIN; raises `Unsplit` for the others."""
    if join.args.get("using") or join.args.get("method") or join.args.get("global"):
        raise Unsplit
    side, kind = keyword(join.side), keyword(join.kind)
    on = join.args.get("on")
    if side == "LEFT" and kind in ("", "OUTER") and on is not None:
        return "LEFT JOIN"
    if side or kind not in ("", "INNER", "CROSS"):
        raise Unsplit
    return "JOIN" if on is not None else "CROSS JOIN"


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that AND joins."""
    if condition is None:
        return []
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return conjuncts(condition.this) + conjuncts(condition.expression)
    return [condition]


def is_aggregated(select: exp.Select) -> bool:
    """Whether the block groups or aggregates."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(True for _ in select.find_all(*AGGREGATES))


def chooses_rows(select: exp.Select) -> bool:
    """Whether the answer has other rows than FROM and WHERE give."""
    chosen = ("distinct", "limit", "offset", "qualify")
    return is_aggregated(select) or any(select.args.get(part) for part in chosen)


def _is_placeholder(column: exp.Column) -> bool:
    return bool(column.name.startswith(PARAMETER_PREFIX))


def distinct_as_group(select: exp.Select, scope: Scope) -> exp.Select:
    """SELECT DISTINCT of columns as the GROUP BY that it is; any other block as it was."""
    distinct = select.args.get("distinct")
    if distinct is None or distinct.args.get("on") or is_aggregated(select):
        return select
    copy = select.copy()
    expand_stars(copy, scope)
    keys = [item.unalias() for item in copy.expressions]
    if not all(isinstance(k, exp.Column) and not _is_placeholder(k) for k in keys):
        return select
    copy.set("distinct", None)
    copy.set("group", exp.Group(expressions=[key.copy() for key in dict.fromkeys(keys)]))
    return copy


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """The grouping expressions; positions and aliases are left to the next choice."""
    clause = select.args.get("group")
    keys = list(clause.expressions) if clause else []
    aliases = {fold(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
    for key in keys:
        if isinstance(key, exp.Literal | exp.Star):
            raise Unsplit
        if isinstance(key, exp.Column) and not key.table and fold(key.name) in aliases:
            raise Unsplit
    return keys


def expand_stars(tree: exp.Select, scope: Scope) -> None:
    """``*`` and ``t.*`` as the columns they stand for, in DuckDB's order."""
    items: list[exp.Expr] = []
    for item in tree.expressions:
        if isinstance(item, exp.Star):
            chosen = scope.sources
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            chosen = [s for s in scope.sources if fold(s.alias) == fold(item.table)]
        else:
            items.append(item)
            continue
        for source in chosen:
            items.extend(
                exp.column(
                    exp.to_identifier(column.name, quoted=True),
                    table=exp.to_identifier(source.alias, quoted=True),
                )
                for column in source.table.columns
            )
    tree.set("expressions", items)


def put_column(node: exp.Expr, name: str) -> None:
    """Replace a node by a column of the answer; a select item keeps its place and, where it had
    no alias, gets its name back from the plan.
    """
    node.replace(exp.column(name))


def home_text(tree: exp.Select, scope: Scope) -> str:
    """The home query's text, in which ``⟪i⟫`` stands for the i-th number of the statement and
    ``⟪pi⟫`` for the i-th parameter.
    """
    for node in list(tree.find_all(exp.Literal, exp.Column)):
        marker = _marker(node, scope)
        if marker:
            node.replace(exp.Var(this=marker))
    return marked_text(tree)


def marked_text(tree: exp.Select) -> str:
    """The text of a tree whose numbers are markers."""
    return local_text(tree)


def _marker(node: exp.Expr, scope: Scope) -> str:
    if isinstance(node, exp.Column):
        if node.name.startswith(PARAMETER_PREFIX):
            return f"⟪p{node.name.removeprefix(PARAMETER_PREFIX)}⟫"
        return ""
    start = node.meta.get("start")
    if isinstance(node, exp.Literal) and not node.is_string and start in scope.shape.starts:
        return f"⟪{scope.shape.starts.index(start)}⟫"
    return ""


def worth_rows(sources: list[Source]) -> bool:
    """Whether rows from the server beat scans: it can compute on shares."""
    return any(has_shares(source.table) for source in sources)
