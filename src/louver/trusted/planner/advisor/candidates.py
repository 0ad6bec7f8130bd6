"""What a statement would like the server to hold: expressions that columns of one table could hold
ready, and columns that it equates.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.sql import selection
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.scheme import answering, scheme_of
from louver.trusted.vault.types import code_domain

Place = tuple[int, int]
"""Table and column by their ids."""
# Whatever else an expression holds, it may depend on more than its row.
_DETERMINISTIC = (
    exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div,
    exp.IntDiv, exp.Mod, exp.Paren, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Extract,
    exp.Var, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.Case, exp.If, exp.EQ,
    exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.In, exp.Between,
    exp.Like, exp.Null, exp.Boolean, exp.Coalesce, exp.Upper, exp.Lower, exp.Substring, exp.Abs,
)  # fmt: skip
_LEAVES = (exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Star)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)
_AGGREGATES = (exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count)
_MOST_NODES = 60
_MOST_NAME = 48
_WORDS = {
    "*": " times ", "+": " plus ", "-": " minus ", "/": " by ", "<=": " at most ",
    ">=": " at least ", "<>": " not ", "=": " is ", "<": " below ", ">": " above ",
}  # fmt: skip


def expressions(tree: exp.Expr, resolve: selection.Resolve) -> list[tuple[Table, exp.Expr]]:
    """Expressions over columns of one table, each once, without the names of tables."""
    by_name: dict[tuple[int, str], tuple[Table, exp.Expr]] = {}
    for select in tree.find_all(exp.Select):
        tables = _tables(select, resolve)
        for node in _asked(select):
            table = _owner(node, tables)
            if table is None or not any(c.encrypted for c in _columns(node, table)):
                continue
            bare = _unqualified(node)
            by_name.setdefault((table.id, fold(local_text(bare))), (table, bare))
    return list(by_name.values())


def _asked(select: exp.Select) -> Iterator[exp.Expr]:
    """The expressions of a block that decide how far the server gets."""
    for call in select.find_all(*_AGGREGATES):
        if isinstance(call.this, exp.Expr) and not isinstance(call.this, exp.Distinct):
            yield call.this
    clause = select.args.get("group")
    yield from clause.expressions if clause else ()
    for item in select.expressions:
        yield item.this if isinstance(item, exp.Alias) else item
    for node in select.find_all(*_COMPARISONS):
        yield node.this
        if isinstance(node.expression, exp.Expr):
            yield node.expression


def _tables(select: exp.Select, resolve: selection.Resolve) -> dict[str, Table]:
    """The base tables of a block's FROM by their names in it."""
    clause = select.args.get("from_") or select.args.get("from")
    named = [clause.this] if clause is not None else []
    named += [join.this for join in select.args.get("joins") or []]
    results = {}
    for node in named:
        table = resolve(node) if isinstance(node, exp.Table) else None
        if table is not None:
            results[fold(node.alias or node.name)] = table
    return results


def _owner(node: exp.Expr, tables: dict[str, Table]) -> Table | None:
    """The one table that an expression reads, if it could be a column of it."""
    bare = node.unnest()
    if isinstance(bare, _LEAVES) or sum(1 for _ in bare.walk()) > _MOST_NODES:
        return None
    if any(not isinstance(part, _DETERMINISTIC) or part.args.get("query") for part in bare.walk()):
        return None
    owners: dict[int, Table] = {}
    for column in bare.find_all(exp.Column):
        if column.name.startswith(PARAMETER_PREFIX):
            return None
        table = owner_of(column, tables)
        if table is None:
            return None
        owners[table.id] = table
    return next(iter(owners.values())) if len(owners) == 1 else None


def owner_of(column: exp.Column, tables: dict[str, Table]) -> Table | None:
    """The table of a reference, where that is clear."""
    if column.table:
        table = tables.get(fold(column.table))
        return table if table is not None and table.column(column.name) else None
    hits = [table for table in tables.values() if table.column(column.name) is not None]
    return hits[0] if len(hits) == 1 else None


def _columns(node: exp.Expr, table: Table) -> list[Column]:
    named = [table.column(column.name) for column in node.find_all(exp.Column)]
    return [column for column in named if column is not None]


def _unqualified(node: exp.Expr) -> exp.Expr:
    copy: exp.Expr = exp.Paren(this=node.unnest().copy())
    for column in list(copy.find_all(exp.Column)):
        column.set("table", None)
        column.set("db", None)
    bare: exp.Expr = copy.this
    bare.pop()
    return bare


def equated(tree: exp.Expr, resolve: selection.Resolve) -> set[frozenset[Place]]:
    """Pairs of encrypted columns whose values the statement compares with each other."""
    reach: dict[str, Table] = {}
    unclear: set[str] = set()
    for select in tree.find_all(exp.Select):
        for name, table in _tables(select, resolve).items():
            if reach.setdefault(name, table).id != table.id:
                unclear.add(name)
    for name in unclear:
        del reach[name]
    by_name: set[frozenset[Place]] = set()
    for sides in _compared(tree):
        left, right = (_coded(side, reach) for side in sides)
        if left is None or right is None or left[0] == right[0]:
            continue
        if code_domain(left[1].type) != code_domain(right[1].type):
            continue
        by_name.add(frozenset((left[0], right[0])))
    return by_name


def _coded(side: exp.Column, reach: dict[str, Table]) -> tuple[Place, Column] | None:
    """An encrypted column that has codes."""
    owner = owner_of(side, reach)
    column = owner.column(side.name) if owner is not None else None
    if owner is None or column is None or not column.encrypted or not code_domain(column.type):
        return None
    return (owner.id, column.id), column


def searched(tree: exp.Expr, resolve: selection.Resolve) -> set[Place]:
    """Encrypted columns of text that LIKE looks into."""
    by_name: set[Place] = set()
    for select in tree.find_all(exp.Select):
        tables = _tables(select, resolve)
        for node in select.find_all(exp.Like):
            column = node.this.unnest()
            coded = _coded(column, tables) if isinstance(column, exp.Column) else None
            if coded is not None and _searchable(coded[1]):
                by_name.add(coded[0])
    return by_name


def _searchable(column: Column) -> bool:
    return any(scheme_of(name).takes(column.type) for name, _ in answering("LIKE"))


def _compared(tree: exp.Expr) -> Iterator[tuple[exp.Column, exp.Column]]:
    for node in tree.find_all(exp.EQ):
        sides = (node.this.unnest(), node.expression.unnest())
        if isinstance(sides[0], exp.Column) and isinstance(sides[1], exp.Column):
            yield sides[0], sides[1]
    for member in tree.find_all(exp.In):
        query = member.args.get("query")
        inner = query.this if isinstance(query, exp.Subquery) else query
        left = member.this.unnest()
        if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
            continue
        item = inner.expressions[0]
        right = item.this if isinstance(item, exp.Alias) else item
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            yield left, right


def name_of(expression: exp.Expr, taken: set[str]) -> str:
    """A name for a column that holds an expression."""
    text = local_text(expression)
    if isinstance(expression, exp.Extract):
        text = f"{expression.expression.name} {expression.name}"
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    letters = "".join(fold(c) if c.isalnum() or c == "_" else " " for c in text)
    name = "_".join(letters.split())[:_MOST_NAME].rstrip("_") or "computed"
    if name[0].isdigit():
        name = f"c_{name}"
    entries, number = name, 2
    while entries in taken:
        entries, number = f"{name}_{number}", number + 1
    return entries
