"""ROLLUP, CUBE and GROUPING SETS over the groups of all their keys.

before  SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)
after   SELECT g0, g1, sum(v0) FROM (SELECT a AS g0, b AS g1, count(*) AS v0 FROM t GROUP BY a, b)
        GROUP BY ROLLUP (g0, g1)
The server makes the finest groups, as for GROUP BY a, b, and shows no more; totals of totals are
computed locally. Only for aggregates of which a total is made of totals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.normal_form import references
from louver.trusted.planner.normal_form.sources import Unclear
from louver.trusted.planner.sql.trees import local_text

_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_LISTS = (*_SETS, exp.Tuple, exp.Paren)
_OUTER = frozenset(("expressions", "from_", "joins", "where", "group", "having", "order", "limit"))
_TOTALS: dict[type[exp.Expr], type[exp.AggFunc]] = {
    exp.Count: exp.Sum, exp.Sum: exp.Sum, exp.Min: exp.Min, exp.Max: exp.Max,
}  # fmt: skip

_KNOWN = (*_TOTALS, exp.Grouping)


def write_out(select: exp.Select, names: Iterator[str]) -> None:
    """Split a block with grouping sets in two, in place, where that can be."""
    group = select.args.get("group")
    if group is None or not any(isinstance(key, _SETS) for key in group.expressions):
        return
    try:
        _write_out(select, group, next(names))
    except Unclear:
        return


def _write_out(select: exp.Select, group: exp.Group, alias: str) -> None:
    if set(filter(select.args.get, select.args)) - _OUTER - {"offset"}:
        raise Unclear
    keys = {local_text(key): key.copy() for key in _keys(group.expressions)}
    outer = {
        clause: [part.copy() for part in parts]
        for clause in ("expressions", "having", "order")
        if (parts := _parts(select, clause))
    }
    grouped = _Grouped(alias, keys)
    for parts in outer.values():
        for position, part in enumerate(parts):
            parts[position] = grouped.rewritten(exp.Paren(this=part)).this
    sets = [grouped.rewritten(exp.Paren(this=key.copy())).this for key in group.expressions]
    inner = exp.Select(expressions=grouped.items())
    for clause in ("from_", "joins", "where"):
        inner.set(clause, select.args.get(clause))
    inner.set("group", exp.Group(expressions=[key.copy() for key in keys.values()]))
    inner.meta["normal"] = True
    source = exp.Subquery(
        this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )
    select.set("from_", exp.From(this=source))
    select.set("joins", None)
    select.set("where", None)
    select.set("group", exp.Group(expressions=sets))
    select.set("expressions", outer["expressions"])
    for clause in ("having", "order"):
        if clause in outer:
            select.set(clause, outer[clause][0])


def require_one_spelling(before: list[str], select: exp.Select) -> None:
    """Raise `Unclear` where two keys of grouping sets are one column in several spellings: DuckDB
    may take these for two keys. ``before`` are the keys as they were written.
    """
    copy = select.copy()
    for name in copy.find_all(exp.Identifier):
        name.replace(exp.to_identifier(fold(name.name), quoted=True))
    if len(set(spellings(copy))) != len(set(before)):
        raise Unclear


def spellings(select: exp.Select) -> list[str]:
    """The keys of a block with grouping sets, each as it is written; none of another block."""
    group = select.args.get("group")
    if group is None or not any(isinstance(key, _SETS) for key in group.expressions):
        return []
    return [local_text(key) for key in _leaves(group.expressions)]


def _leaves(nodes: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    for node in nodes:
        if isinstance(node, exp.Paren):
            yield from _leaves([node.this])
        elif isinstance(node, _LISTS):
            yield from _leaves(node.expressions)
        else:
            yield node


def _parts(select: exp.Select, clause: str) -> list[exp.Expr]:
    part = select.args.get(clause)
    return list(part) if isinstance(part, list) else [part] if part is not None else []


def _keys(nodes: list[exp.Expr]) -> Iterator[exp.Expr]:
    """The keys of all sets, in their order."""
    for node in _leaves(nodes):
        if not references.is_repeatable(node) or node.find(exp.Column) is None:
            raise Unclear
        yield node


class _Grouped:
    """The columns of the finest groups."""

    def __init__(self, alias: str, keys: dict[str, exp.Expr]) -> None:
        self._alias = alias
        self._keys = {text: (f"g{n}", key) for n, (text, key) in enumerate(keys.items())}
        self._values: dict[str, tuple[str, exp.Expr]] = {}

    def items(self) -> list[exp.Expr]:
        """What the inner block selects."""
        pairs = [*self._keys.values(), *self._values.values()]
        return [exp.alias_(value.copy(), name, quoted=True) for name, value in pairs]

    def _column(self, name: str) -> exp.Column:
        return exp.column(
            exp.to_identifier(name, quoted=True), table=exp.to_identifier(self._alias, quoted=True)
        )

    def rewritten(self, part: exp.Expr) -> exp.Expr:
        """A part of the outer block over the groups; raises `Unclear` where one is not enough."""
        for node in list(part.find_all(*_TOTALS)):
            if node.find_ancestor(*_TOTALS) is None:
                node.replace(self._total(node))
        for node in list(part.walk()):
            known = self._keys.get(local_text(node)) if not isinstance(node, exp.Ordered) else None
            if known is not None and not _is_ours(node, self._alias):
                node.replace(self._column(known[0]))
        for column in part.find_all(exp.Column):
            if not _is_ours(column, self._alias):
                raise Unclear
        if part.find(exp.Query, exp.Window, exp.Star, exp.Anonymous) is not None:
            # A function that is not known may be an aggregate of rows.
            raise Unclear
        if any(not isinstance(node, _KNOWN) for node in part.find_all(exp.AggFunc)):
            raise Unclear
        return part

    def _total(self, node: exp.Expr) -> exp.Expr:
        marks = set(filter(node.args.get, node.args)) - {"this", "big_int"}
        if marks or isinstance(node.this, exp.Distinct):
            raise Unclear
        text = local_text(node)
        name, _ = self._values.setdefault(text, (f"v{len(self._values)}", node.copy()))
        total = _TOTALS[type(node)](this=self._column(name))
        if not isinstance(node, exp.Count):
            return total
        # No rows are none, and the sum of numbers of rows is one.
        nothing = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
        return exp.Cast(this=nothing, to=exp.DataType.build("BIGINT"))


def _is_ours(node: exp.Expr, alias: str) -> bool:
    return isinstance(node, exp.Column) and node.table == alias
