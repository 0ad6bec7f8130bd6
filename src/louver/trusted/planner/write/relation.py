"""The lineage of a query's columns and rows.

The grammar is small: SELECT over base tables, views, common table expressions, subqueries, VALUES,
files and numbers; joins with ON or USING; WHERE, GROUP BY, HAVING, ORDER BY, LIMIT; UNION ALL;
expressions of `grammar`. Any other part of a query depends on everything that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import count
from operator import or_

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import grammar
from louver.trusted.planner.write.groups import by_keys, grouped
from louver.trusted.planner.write.reads import Reads, is_file, is_generator, is_local, is_reader
from louver.trusted.planner.write.values import (
    CONSTANT,
    Relation,
    Rows,
    Source,
    Value,
    apart,
    by_condition,
    deciding,
    moved,
    of_relation,
    of_table,
    union,
    unknown,
    unknown_rows,
)  # fmt: skip
from louver.trusted.vault.catalog import Table

_SELECT = {
    "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "distinct", "with_", "kind", "qualify",
}  # fmt: skip
_TABLE = {"this", "db", "catalog", "alias", "joins"}
_JOIN = {"this", "side", "kind", "on", "using"}
_CONNECTORS = (exp.And, exp.Or, exp.Not, exp.Paren)
Queries = Mapping[str, Relation]


class Scope:
    """The names visible to an expression."""

    def __init__(self, reads: Reads, parent: Scope | None = None) -> None:
        self.reads = reads
        self.parent = parent
        self.numbers: Iterator[int] = parent.numbers if parent else count()
        self.queries: dict[str, Relation] = dict(parent.queries) if parent else {}
        self.sources: list[Source] = []
        self.aliases: dict[str, Value] = {}
        self.rows = Rows()
        #: whether columns of a source may be NULL because a row of another has no join partner
        self.outer = False

    # ------------------------------------------------------------------ sources

    def add(self, node: exp.Expr) -> None:
        """Add an item of FROM."""
        alias = node.args.get("alias")
        name = fold(str(node.alias_or_name))
        renamed = [fold(item.name) for item in alias.columns] if alias is not None else []
        number = next(self.numbers)
        if isinstance(node, exp.Table) and not set(filter(node.args.get, node.args)) - _TABLE:
            table = self._base(node)
            if table is not None:
                source = of_table(table, number, name)
                if renamed:
                    listed = Relation(tuple(source.columns.items()))
                    source = of_relation(listed, number, name, renamed)
                self.sources.append(source)
                return
        relation = self._relation(node, number)
        self.rows = self.rows | relation.rows
        self.sources.append(of_relation(relation, number, name, renamed))

    def _base(self, node: exp.Table) -> Table | None:
        if not isinstance(node.this, exp.Identifier):
            return None
        if not node.db and fold(node.name) in self.queries:
            return None
        return self.reads.table(node)

    def _relation(self, node: exp.Expr, number: int) -> Relation:
        if isinstance(node, exp.Subquery) and not node.args.get("joins"):
            return query(node, self.reads, self)
        if isinstance(node, exp.Values):
            return values(node, self, number)
        if is_generator(node):
            here = frozenset((number,))
            reads_file = isinstance(node, exp.Table) and is_reader(node)
            return Relation(rest=Value(holders=here) if reads_file else Value(plains=here))
        if not isinstance(node, exp.Table) or set(filter(node.args.get, node.args)) - _TABLE:
            return _unknown(self.reads)
        if not isinstance(node.this, exp.Identifier):
            return _unknown(self.reads)
        if not node.db and (known := self.queries.get(fold(node.name))) is not None:
            return known
        held = self.reads.temporary.get(fold(node.name)) if is_local(node) else None
        if held is not None:
            here = frozenset((number,))
            value = Value(held[0], here)
            if fold(node.name) in self.reads.plain_tables:
                value = Value(held[0], here if held[0] else frozenset(), here)
            return Relation(rest=value, rows=Rows(*held[1:]))
        view = self.reads.view(node)
        if view is not None:
            return _view(view.sql, self.reads.within(view))
        if is_file(node) or self.reads.in_file(node):
            return Relation(rest=Value(holders=frozenset((number,))))
        return _unknown(self.reads)

    # ------------------------------------------------------------------ expressions

    def value(self, node: exp.Expr) -> Value:
        """What an expression is computed from."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Exists):
            inner = query(node.this, self.reads, self)
            return moved(deciding(inner.rows.all), next(self.numbers))
        if isinstance(node, exp.Query):
            inner = query(node, self.reads, self)
            return moved(inner.every, next(self.numbers)) | deciding(inner.rows.all)
        if isinstance(node, exp.Star):
            counted = isinstance(node.parent, exp.Count)
            return CONSTANT if counted else unknown(self.reads.everything)
        if isinstance(node, exp.Window | exp.Columns | exp.Lambda):
            return unknown(self.reads.everything)
        if (variable := grammar.variable_of(node)) is not None:
            secrets = self.reads.variables.get(variable, self.reads.unset)
            here = frozenset((next(self.numbers),))
            return Value(secrets, here) if secrets else CONSTANT
        if not grammar.understood(node):
            # It may return several rows for one.
            secrets = self.reads.everything
            self.rows = self.rows | unknown_rows(secrets, self.reads.columns)
            return unknown(secrets)
        return union(self.value(part) for part in node.iter_expressions())

    def single(self, node: exp.Expr) -> Value:
        """The same for an expression with one value per row, as in SET."""
        rows = self.rows
        value = self.value(node)
        self.rows = rows
        return value

    def _column(self, node: exp.Column) -> Value:
        name, qualifier = fold(node.name), fold(node.table)
        if name.startswith(lexer.PARAMETER_PREFIX):
            return CONSTANT
        if not isinstance(node.this, exp.Identifier):
            return unknown(self.reads.everything)
        if node.args.get("catalog"):
            return unknown(self.reads.anything)
        further = fold(node.text("db"))
        scope: Scope | None = self
        values: list[Value] = []
        while scope is not None:
            hits, sure = scope._hits(qualifier, name)
            if further:
                # A schema's table; or a field of a field.
                hits += scope._hits(further, qualifier)[0] + scope._hits("", further)[0]
            values += hits
            if hits and sure:
                return union(values)
            scope = scope.parent
        return union(values) if values else unknown(self.reads.anything)

    def _hits(self, qualifier: str, name: str) -> tuple[list[Value], bool]:
        """What a name may mean here, and whether it cannot mean anything in an outer scope."""
        sure = all(source.rest is None for source in self.sources)
        if qualifier:
            candidates = [s.get(name) for s in self.sources if s.alias == qualifier]
            # A field of a STRUCT.
            candidates += [s.columns.get(qualifier) for s in self.sources]
            return [value for value in candidates if value is not None], sure
        candidates = [source.get(name) for source in self.sources]
        candidates += [source.whole for source in self.sources if source.alias == name]
        candidates.append(self.aliases.get(name))
        return [value for value in candidates if value is not None], sure

    # ------------------------------------------------------------------ conditions

    def condition(self, node: exp.Expr | None) -> Rows:
        """What a condition selects rows by."""
        if node is None:
            return Rows()
        if isinstance(node, exp.Where | exp.Having):
            return self.condition(node.this)
        if isinstance(node, _CONNECTORS):
            return reduce(or_, map(self.condition, node.iter_expressions()), Rows())
        if isinstance(node, exp.Exists):
            return query(node.this, self.reads, self).rows
        if (looked_for := grammar.query_compared(node)) is not None:
            compared, subquery = looked_for
            inner = query(subquery, self.reads, self)
            given = moved(inner.every, next(self.numbers))
            return inner.rows | by_condition(self.value(compared) | given)
        pairs = grammar.compared_in_pairs(node)
        return reduce(or_, (by_condition(union(map(self.value, pair))) for pair in pairs))


def _unknown(reads: Reads) -> Relation:
    """A source outside of the grammar: it depends on everything that the statement reads."""
    rows = unknown_rows(reads.everything, reads.columns)
    return Relation(rest=unknown(reads.everything), rows=rows)


def _view(sql: str, reads: Reads) -> Relation:
    tree = trees.parse(sql)
    if not isinstance(tree, exp.Create) or not isinstance(tree.expression, exp.Query):
        return _unknown(reads)
    relation = query(tree.expression, reads, None)
    names = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    renamed = [(fold(item.name), relation.at(i)) for i, item in enumerate(names)]
    return Relation((*renamed, *relation.columns[len(renamed) :]), relation.rest, relation.rows)


def values(node: exp.Values, scope: Scope, number: int | None) -> Relation:
    """The columns of VALUES: a single row is constants, several rows are lists of constants."""
    rows = [item.expressions for item in node.expressions if isinstance(item, exp.Tuple)]
    if len(rows) != len(node.expressions) or not rows:
        return _unknown(scope.reads)
    columns = []
    for i in range(min(map(len, rows))):
        value = union(scope.value(row[i]) for row in rows)
        if len(rows) > 1 and number is not None:
            value = value | Value(holders=frozenset((number,)))
        columns.append((f"col{i}", value))
    return Relation(tuple(columns))


def query(node: exp.Expr, reads: Reads, parent: Scope | None) -> Relation:
    """What a query's columns and rows depend on."""
    if reads.has_macros:
        return _unknown(reads)
    scope = Scope(reads, parent)
    while isinstance(node, exp.Subquery | exp.Paren):
        if set(filter(node.args.get, node.args)) - {"this", "alias"}:
            return _unknown(reads)
        node = node.this
    if isinstance(node, exp.Pivot) and isinstance(node.this, exp.Expr):  # rows are groups
        scope.add(node.this)
        return Relation(rest=unknown(reads.everything), rows=scope.rows.all_shown(reads.everything))
    if not isinstance(node, exp.Select | exp.SetOperation | exp.Values):
        return _unknown(reads)
    if isinstance(node, exp.Values):
        return values(node, scope, next(scope.numbers))
    if not take_queries(node, scope):
        return _unknown(reads)
    if isinstance(node, exp.Select):
        return _select(node, scope)
    return _set_operation(node, scope)


def take_queries(node: exp.Expr, scope: Scope) -> bool:
    """Add the common table expressions; False if they are outside of the grammar."""
    clause = node.args.get("with_")
    if clause is None:
        return True
    if clause.args.get("recursive"):
        return False
    for item in clause.expressions:
        relation = query(item.this, scope.reads, scope)
        names = [fold(column.name) for column in item.args["alias"].columns]
        renamed = [(name, relation.at(i)) for i, name in enumerate(names)]
        columns = (*renamed, *relation.columns[len(renamed) :])
        scope.queries[fold(item.alias)] = Relation(columns, relation.rest, relation.rows)
    return True


def _set_operation(node: exp.SetOperation, scope: Scope) -> Relation:
    reads = scope.reads
    first, second = (query(part, reads, scope) for part in (node.this, node.expression))
    rows = first.rows | second.rows
    if set(filter(node.args.get, node.args)) - {"this", "expression", "distinct", "with_"}:
        return _unknown(reads)
    if first.rest is not None or second.rest is not None or node.args.get("by_name"):
        return Relation(rest=unknown(reads.everything), rows=rows.all_shown(reads.everything))
    number = frozenset((next(scope.numbers),))
    columns = tuple(
        (name, value | second.at(i) | Value(holders=number))
        for i, (name, value) in enumerate(first.columns)
    )
    if node.args.get("distinct") or not isinstance(node, exp.Union):
        rows = rows.all_shown() | apart(value for _, value in columns)
    return Relation(columns, None, rows)


def _select(node: exp.Select, scope: Scope) -> Relation:
    if set(filter(node.args.get, node.args)) - _SELECT or node.args.get("kind"):
        return _unknown(scope.reads)
    clause, joins = node.args.get("from_"), node.args.get("joins") or []
    if joins if clause is None else not add_sources(clause.this, joins, scope):
        return _unknown(scope.reads)
    items = _items(node.expressions, scope)
    rows = scope.rows | scope.condition(node.args.get("where"))
    if scope.outer:
        # NULLs reveal which rows have no partner.
        hidden = deciding(rows.all)
        items = Relation(
            tuple((name, value | hidden) for name, value in items.columns),
            None if items.rest is None else items.rest | hidden,
        )
        rows = rows.all_shown()
    rows, items = grouped(node, scope, rows, items)
    if (qualify := node.args.get("qualify")) is not None:
        everything = scope.reads.everything
        numbered = grammar.is_numbering(qualify)
        rows = (
            rows.all_shown(everything)
            if numbered
            else unknown_rows(everything, scope.reads.columns)
        )
    order = node.args.get("order")
    sorted_by = by_keys(order.expressions if order is not None else (), scope, items)
    rows = rows | Rows(shown=union(sorted_by).secrets)
    if (distinct := node.args.get("distinct")) is not None:
        on = distinct.args.get("on")
        told_apart = [value for _, value in items.columns]
        if on is not None:
            told_apart = by_keys([on], scope, items)
        rows = rows.all_shown() | apart((*told_apart, items.rest or CONSTANT))
    for part in ("limit", "offset"):
        limit = node.args.get(part)
        if limit is not None and scope.value(limit.expression).secrets:
            rows = rows.all_shown() | unknown_rows(scope.value(limit.expression).secrets)
    return Relation(items.columns, items.rest, rows)


def add_sources(first: exp.Expr, joins: Sequence[exp.Expr], scope: Scope) -> bool:
    """Add the sources of a FROM clause; False if one is outside of the grammar."""
    scope.add(first)
    nested = first.args.get("joins") or [] if isinstance(first, exp.Table) else []
    for join in (*nested, *joins):
        if not isinstance(join, exp.Join) or set(filter(join.args.get, join.args)) - _JOIN:
            return False
        if isinstance(join.this, exp.Table) and join.this.args.get("joins"):
            return False
        scope.add(join.this)
        scope.outer = scope.outer or keyword(join.side) in ("LEFT", "RIGHT", "FULL")
        scope.rows = scope.rows | scope.condition(join.args.get("on"))
        for name in join.args.get("using") or []:
            met = union(v for s in scope.sources if (v := s.get(fold(name.name))) is not None)
            scope.rows = scope.rows | by_condition(met)
    return True


def _items(nodes: Sequence[exp.Expr], scope: Scope) -> Relation:
    """The columns of a select list."""
    columns: list[tuple[str, Value]] = []
    for node in nodes:
        if isinstance(node, exp.Star) or (
            isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
        ):
            qualifier = fold(node.table) if isinstance(node, exp.Column) else ""
            stood = _star(node, qualifier, scope)
            if stood is None:
                return Relation(rest=unknown(scope.reads.everything))
            if isinstance(stood, Value):
                return Relation(rest=stood | union(value for _, value in columns))
            columns += stood
            continue
        value = scope.value(node.this if isinstance(node, exp.Alias) else node)
        if grammar.may_be_several(node):
            return Relation(rest=unknown(scope.reads.everything) | value)
        if isinstance(node, exp.Alias):
            name = fold(node.alias)
            known = scope.aliases.get(name)
            scope.aliases[name] = value if known is None else known | value
        columns.append((fold(node.alias_or_name), value))
    return Relation(tuple(columns))


def _star(node: exp.Expr, qualifier: str, scope: Scope) -> list[tuple[str, Value]] | Value | None:
    """The columns of a bare star; their union if their number is not known, None if it is outside
    of the grammar.
    """
    star = node.this if isinstance(node, exp.Column) else node
    if any(star.args.values()):
        return None
    sources = [s for s in scope.sources if not qualifier or s.alias == qualifier]
    merged = {name for s in sources for name in s.order}
    if not sources or len(merged) != sum(len(s.order) for s in sources):
        # Columns with one name: USING merges them, and an outer scope may be meant.
        return unknown(scope.reads.everything) if sources else None
    if any(source.rest is not None for source in sources):
        return union(source.whole for source in sources)
    return [(name, source.columns[name]) for source in sources for name in source.order]
