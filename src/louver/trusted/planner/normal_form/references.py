"""Names in a block's clauses: each column reference gets its table, each alias its expression.

DuckDB looks an unqualified name up among the columns of FROM first and among the aliases of the
SELECT list second; only a bare name in ORDER BY means an alias first. Where HAVING or QUALIFY could
mean either, the block stays as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.normal_form.sources import Source, Unclear, owner, qualified
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX

CLAUSES = ("where", "group", "having", "qualify", "order", "distinct")
_KNOWN = frozenset(
    (*CLAUSES, "expressions", "from_", "joins", "limit", "offset", "with_", "sample")
)
_AMBIGUOUS = frozenset(("having", "qualify"))
# Anything that brings names of its own, or means columns that are not written.
_NAMING = (
    exp.Lambda, exp.Columns, exp.Pivot, exp.Lateral, exp.Unnest, exp.Dot, exp.Struct,
    exp.PropertyEQ, exp.Kwarg, exp.Comprehension, exp.Explode, exp.Placeholder, exp.Parameter,
)  # fmt: skip
# What may be written twice: the same value each time it is computed.
_REPEATABLE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Connector,
    exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.Div,
    exp.IntDiv, exp.Mod, exp.Neg, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Case,
    exp.If, exp.Coalesce, exp.Abs, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Round, exp.Upper,
    exp.Lower, exp.TimestampTrunc, exp.DateTrunc, exp.Extract, exp.Year, exp.Month, exp.Day,
    exp.Quarter, exp.Week, exp.Var, exp.Substring, exp.Length, exp.Interval, exp.DPipe, exp.Concat,
    exp.Floor, exp.Ceil, exp.Trim, exp.Date, exp.Hour, exp.Minute, exp.Second, exp.DayOfWeek,
    exp.DayOfYear, exp.Nullif, exp.Greatest, exp.Least,
)  # fmt: skip


def own_nodes(part: exp.Expr) -> Iterator[exp.Expr]:
    """A clause's nodes outside of the queries within it."""
    yield from part.walk(prune=lambda node: isinstance(node, exp.Query))


def parts(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """The expressions of a block, with the names of their clauses; joins' conditions first."""
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            yield "on", join.args["on"]
    for item in select.expressions:
        yield "expressions", item
    for clause in CLAUSES:
        if isinstance(part := select.args.get(clause), exp.Expr):
            yield clause, part


def require_known(select: exp.Select) -> None:
    """Raise `Unclear` for a block with clauses that are not known, or with words that bring names
    of their own.
    """
    if set(filter(select.args.get, select.args)) - _KNOWN:
        raise Unclear
    for _, part in parts(select):
        if any(isinstance(node, _NAMING) for node in own_nodes(part)):
            raise Unclear


def is_repeatable(node: exp.Expr) -> bool:
    """Whether an expression has the same value wherever it is written, and no aggregate in it."""
    return all(isinstance(part, _REPEATABLE) for part in node.walk())


def is_constant(node: exp.Expr) -> bool:
    """Whether an expression may be a number, which by itself would be read as an ordinal."""
    return node.find(exp.Column, exp.AggFunc) is None


def copied(node: exp.Expr) -> exp.Expr:
    """An expression to be written once more; raises `Unclear` where it may be another value."""
    bare = node.unalias()
    if not is_repeatable(bare):
        raise Unclear
    copy = bare.copy()
    return copy if isinstance(copy, exp.Column | exp.Paren) else exp.Paren(this=copy)


def resolve(select: exp.Select, sources: list[Source]) -> None:
    """Qualify every column of the block's own clauses, and write aliases out."""
    aliases: dict[str, exp.Expr] = {}
    for item in select.expressions:
        _resolve_part(item, "expressions", sources, aliases)
        if isinstance(item, exp.Alias):
            if fold(item.alias) in aliases:
                aliases[fold(item.alias)] = exp.Star()  # written twice: means neither
            aliases.setdefault(fold(item.alias), item.this)
    for clause, part in list(parts(select)):
        if clause == "order":
            _resolve_order(part, sources, aliases)
        elif clause != "expressions":
            _resolve_part(part, clause, sources, aliases if clause != "on" else {})


def _resolve_order(order: exp.Expr, sources: list[Source], aliases: dict[str, exp.Expr]) -> None:
    for item in order.expressions:
        bare = item.this
        if isinstance(bare, exp.Column) and not bare.table and fold(bare.name) in aliases:
            value = aliases[fold(bare.name)]
            bare.replace(_written(value))
        else:
            _resolve_part(item, "order", sources, aliases)


def _written(value: exp.Expr) -> exp.Expr:
    """What an alias stands for in ORDER BY: also an aggregate, which is computed once."""
    if isinstance(value, exp.Star) or value.find(exp.Window, exp.Query) is not None:
        raise Unclear
    if any(not isinstance(node, (*_REPEATABLE, *_AGGREGATES)) for node in value.walk()):
        raise Unclear
    if is_constant(value):
        raise Unclear
    return value.copy()


_AGGREGATES = (
    exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Filter, exp.Where, exp.Star, exp.Distinct,
)  # fmt: skip


def _resolve_part(
    part: exp.Expr, clause: str, sources: list[Source], aliases: dict[str, exp.Expr]
) -> None:
    for node in list(own_nodes(part)):
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            _resolve_column(node, clause, sources, aliases)


def _resolve_column(
    node: exp.Column, clause: str, sources: list[Source], aliases: dict[str, exp.Expr]
) -> None:
    name = fold(node.name)
    if name.startswith(PARAMETER_PREFIX):
        return
    if node.args.get("db"):
        raise Unclear
    if node.table:
        source = qualified(fold(node.table), sources)
        if source is None or not source.has(name):
            raise Unclear
        node.set("table", exp.to_identifier(source.alias, quoted=True))
        return
    if any(fold(source.alias) == name for source in sources):
        # It may be a whole row.
        raise Unclear
    source = owner(name, sources)
    value = aliases.get(name)
    if source is not None:
        same = isinstance(value, exp.Column) and fold(value.name) == name
        if value is not None and not same and clause in _AMBIGUOUS:
            raise Unclear
        node.set("table", exp.to_identifier(source.alias, quoted=True))
        return
    if value is None or isinstance(value, exp.Star):
        raise Unclear
    node.replace(_in_clause(value, clause))


def _in_clause(value: exp.Expr, clause: str) -> exp.Expr:
    if clause in _AMBIGUOUS:
        if any(not isinstance(node, (*_REPEATABLE, *_AGGREGATES)) for node in value.walk()):
            raise Unclear
        return exp.Paren(this=value.copy())
    return copied(value)
