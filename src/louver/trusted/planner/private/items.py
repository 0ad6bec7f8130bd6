"""The select list, GROUP BY and ORDER BY with all names resolved."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.private.names import Scope
from louver.trusted.planner.private.refusal import no_column, refuse
from louver.trusted.planner.sql.trees import local_text


@dataclass(frozen=True, slots=True)
class Sorted:
    """One expression of ORDER BY."""

    node: exp.Expr
    descending: bool
    nulls_first: bool

    @property
    def suffix(self) -> str:
        """The sort direction, as SQL."""
        way = " DESC" if self.descending else ""
        return f"{way} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def select_list(select: exp.Select, scope: Scope) -> list[exp.Expr]:
    """The expressions of the select list; ``*`` is expanded, earlier aliases are known."""
    nodes: list[exp.Expr] = []
    for item in select.expressions:
        if isinstance(item, exp.Star):
            nodes += _star(item, "", scope)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            nodes += _star(item.this, item.table, scope)
        elif item.find(exp.Columns) is not None:
            raise refuse("COLUMNS(…)", "Name the columns, or write *")
        else:
            alias = item.alias if isinstance(item, exp.Alias) else ""
            node = item.this if isinstance(item, exp.Alias) else item
            node = scope.resolved(node, aliases=scope.aliases)
            if alias:
                scope.aliases.setdefault(fold(alias), node)
            nodes.append(node)
    return nodes


def _star(star: exp.Star, said: str, scope: Scope) -> list[exp.Expr]:
    if star.args.get("rename"):
        raise refuse("* RENAME", "Write the columns out with AS")
    without = {fold(node.name) for node in star.args.get("except_") or ()}
    instead = {
        fold(node.alias): scope.resolved(node.this) for node in star.args.get("replace") or ()
    }
    columns = scope.all_columns(said, without | set(instead))
    known = {fold(column.name) for column in columns}
    for name in sorted((without | set(instead)) - known):
        raise no_column(said or scope.sources[0].said, name, [c.name for c in columns])
    return [
        instead.get(fold(column.name), column)
        for column in columns
        if fold(column.name) not in without
    ]


def group_list(
    select: exp.Select, scope: Scope, items: list[exp.Expr], plain: list[bool]
) -> list[exp.Expr]:
    """The distinct expressions of GROUP BY; ``plain`` marks the items without an aggregate."""
    group = select.args.get("group")
    if group is None:
        return []
    for part in ("rollup", "cube", "grouping_sets", "totals"):
        if group.args.get(part):
            raise _sets()
    if group.args.get("all"):
        nodes = [item for item, is_plain in zip(items, plain, strict=True) if is_plain]
    else:
        nodes = []
        for node in group.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
                raise _sets()
            position = _position(node, len(items))
            if position is not None:
                nodes.append(items[position])
            else:
                nodes.append(scope.resolved(node, aliases=scope.aliases))
    unique = {local_text(node.unnest()): node.unnest() for node in nodes}
    return list(unique.values())


def _sets() -> Exception:
    return refuse(
        "ROLLUP, CUBE or GROUPING SETS", "GROUP BY the finest level and add up the result"
    )


def order_list(select: exp.Select, scope: Scope, items: list[exp.Expr]) -> list[Sorted]:
    """The expressions of ORDER BY."""
    order = select.args.get("order")
    result: list[Sorted] = []
    for item in order.expressions if order is not None else ():
        node, descending = item.this, bool(item.args.get("desc"))
        nulls_first = bool(item.args.get("nulls_first"))
        position = _position(node, len(items))
        if isinstance(node, exp.Var) and keyword(node.name) == "ALL":
            nodes = items
        elif position is not None:
            nodes = [items[position]]
        else:
            # A bare name means an item of the select list before it means a column.
            bare = isinstance(node, exp.Column)
            nodes = [scope.resolved(node, aliases=scope.aliases, first=bare)]
        result += [Sorted(node, descending, nulls_first) for node in nodes]
    return result


def whole_number(node: exp.Expr | None, said: str) -> int | None:
    """The number of LIMIT or OFFSET; None without one."""
    if node is None:
        return None
    value = node.expression
    if node.args.get("limit_options") or not isinstance(value, exp.Literal) or value.is_string:
        raise refuse(f"{said} of something else than a number", f"Write {said} 10")
    if not value.name.isdigit():
        raise refuse(f"{said} of something else than a whole number", f"Write {said} 10")
    return int(value.name)


def _position(node: exp.Expr, most: int) -> int | None:
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    position = int(node.name)
    return position - 1 if 1 <= position <= most else None
