"""One SELECT block in normal form: stars written out, keys as expressions, joins with conditions.

before  SELECT *, count(*) FILTER … FROM a JOIN b USING (k) GROUP BY ALL ORDER BY 2
after   SELECT a.k, … FROM a JOIN b ON a.k = b.k GROUP BY a.k, … ORDER BY a.x
"""

from __future__ import annotations

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.normal_form import grouping_sets, references
from louver.trusted.planner.normal_form.sources import Source, Unclear, owner, qualified

_FILTERED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_STAR_WORDS = frozenset(("this", "except_", "replace"))


def normalise(select: exp.Select, sources: list[Source]) -> None:
    """Bring a block into normal form, in place; raises `Unclear` half-way where it cannot be."""
    references.require_known(select)
    written = grouping_sets.spellings(select)
    _expand_stars(select, sources)
    _require_no_rows(select, sources)
    _take_alias_forms(select)
    references.resolve(select, sources)
    _write_filters(select)
    _write_keys(select)
    grouping_sets.require_one_spelling(written, select)
    _write_order(select)
    _write_joins(select, sources)


def _expand_stars(select: exp.Select, sources: list[Source]) -> None:
    expanded: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star):
            expanded += _columns(item, sources, merged=True)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            source = qualified(fold(item.table), sources)
            if source is None or item.args.get("db"):
                raise Unclear
            expanded += _columns(item.this, [source], merged=False)
        else:
            expanded.append(item)
    select.set("expressions", expanded)


def _require_no_rows(select: exp.Select, sources: list[Source]) -> None:
    """Raise where a whole row is a value: `count(q.*)`, `count(q)`. It has all of the columns, and
    is NULL where an outer join finds no row.
    """
    for _, part in references.parts(select):
        for column in part.find_all(exp.Column):
            if isinstance(column.this, exp.Star) and qualified(fold(column.table), sources):
                raise Unclear
            name = fold(column.name)
            if not column.table and qualified(name, sources) and owner(name, sources) is None:
                raise Unclear


def _columns(star: exp.Star, sources: list[Source], *, merged: bool) -> list[exp.Expr]:
    if set(filter(star.args.get, star.args)) - _STAR_WORDS:
        raise Unclear
    excluded = {fold(node.name) for node in star.args.get("except_") or ()}
    replaced = {fold(item.alias): item for item in star.args.get("replace") or ()}
    columns: list[exp.Expr] = []
    for source in sources:
        for name in source.columns:
            if fold(name) in excluded or (merged and fold(name) in source.merged):
                continue
            if not name:
                raise Unclear
            new = replaced.get(fold(name))
            if new is not None:
                columns.append(exp.alias_(new.this.copy(), name, quoted=True))
            else:
                columns.append(source.column(name))
    return columns


def _take_alias_forms(select: exp.Select) -> None:
    """GROUP BY ALL and ORDER BY ALL as lists."""
    group, order = select.args.get("group"), select.args.get("order")
    if group is not None and group.args.get("all"):
        keys = [item.unalias() for item in select.expressions if not _aggregates(item)]
        if any(key.find(exp.Window) is not None for key in keys):
            raise Unclear
        select.set("group", exp.Group(expressions=[references.copied(key) for key in keys]))
    if order is not None and len(order.expressions) == 1:
        (item,) = order.expressions
        if isinstance(item.this, exp.Var) and keyword(item.this.name) == "ALL":
            ordered = []
            for position in range(len(select.expressions)):
                copy = item.copy()
                copy.set("this", exp.Literal.number(position + 1))
                ordered.append(copy)
            order.set("expressions", ordered)


def _aggregates(item: exp.Expr) -> bool:
    """Whether an item of an aggregated block is computed from its groups."""
    for node in references.own_nodes(item):
        if isinstance(node, exp.AggFunc):
            return True
        if isinstance(node, exp.Anonymous | exp.Query | exp.Window):
            raise Unclear
    return False


def _item(select: exp.Select, literal: exp.Literal) -> exp.Expr:
    """The item that an ordinal means."""
    position = int(literal.name) if not literal.is_string and literal.name.isdigit() else 0
    if not 0 < position <= len(select.expressions):
        raise Unclear
    item: exp.Expr = select.expressions[position - 1].unalias()
    if isinstance(item.unnest(), exp.Literal | exp.Null | exp.Boolean | exp.Neg):
        # A constant would be read as an ordinal itself.
        raise Unclear
    return item


def _write_filters(select: exp.Select) -> None:
    """FILTER of the usual aggregates as CASE within them."""
    for _, part in list(references.parts(select)):
        for node in [n for n in references.own_nodes(part) if isinstance(n, exp.Filter)]:
            call, condition = node.this, node.expression.this
            if not isinstance(call, _FILTERED) or isinstance(node.parent, exp.Window):
                continue
            inner = call.this
            if isinstance(inner, exp.Distinct):
                if len(inner.expressions) != 1 or not isinstance(call, exp.Count):
                    continue
                (value,) = inner.expressions
                inner.set("expressions", [_chosen(condition, value)])
            elif inner is None or isinstance(inner, exp.Star):
                call.set("this", _chosen(condition, exp.Literal.number(1)))
            else:
                call.set("this", _chosen(condition, inner))
            node.replace(call)


def _chosen(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    choice = exp.If(this=condition.copy(), true=value.copy())
    return exp.Case(ifs=[choice])


def _write_keys(select: exp.Select) -> None:
    """Ordinals among the keys of GROUP BY as the expressions that they mean."""
    group = select.args.get("group")
    if group is None:
        return
    if set(filter(group.args.get, group.args)) - {"expressions"}:
        raise Unclear
    for key in [k for k in group.find_all(exp.Literal) if _is_key(k)]:
        key.replace(references.copied(_item(select, key)))
    group.set("expressions", [_bare(key) for key in group.expressions])


def _is_key(literal: exp.Literal) -> bool:
    """Whether a number is a key by itself, also within ROLLUP and the like."""
    parent = literal.parent
    while isinstance(parent, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Group)


def _bare(key: exp.Expr) -> exp.Expr:
    inner = key.this if isinstance(key, exp.Paren) else key
    return inner if isinstance(inner, exp.Expr) else key


def _write_order(select: exp.Select) -> None:
    order = select.args.get("order")
    for item in order.expressions if order is not None else ():
        if isinstance(item.this, exp.Literal):
            value = _item(select, item.this)
            if value.find(exp.Window, exp.Query) is not None:
                raise Unclear
            item.set("this", value.copy())


def _write_joins(select: exp.Select, sources: list[Source]) -> None:
    """USING and NATURAL as conditions; what they merge is the left column everywhere."""
    for position, join in enumerate(select.args.get("joins") or []):
        source, before = sources[position + 1], sources[: position + 1]
        if not source.merged:
            continue
        names = [name.name for name in join.args.get("using") or ()]
        names = names or [c for c in source.columns if fold(c) in source.merged]
        conditions = []
        for name in names:
            left = owner(fold(name), before)
            if left is None:
                raise Unclear
            conditions.append(exp.EQ(this=left.column(name), expression=source.column(name)))
        join.set("on", exp.and_(*conditions, copy=False))
        join.set("using", None)
        join.set("method", None)
    for source in sources:
        source.merged.clear()
