"""Views and common table expressions as queries in FROM.

A view's text is the client's own: the catalog holds it sealed. Numbers in it are not numbers of the
statement, so they lose their positions.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner.normal_form import macros
from louver.trusted.planner.normal_form.sources import Unclear
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.resolver import schema_of
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Catalog, HomeObject

MOST = 64
"""Views within views and common table expressions that are written out in one statement."""


class Definitions:
    """What names in FROM stand for: views of the catalog, and common table expressions."""

    def __init__(self, catalog: Catalog, tree: exp.Expr) -> None:
        self._catalog = catalog
        self._views = {
            (fold(item.schema), fold(item.name)): item
            for item in catalog.objects
            if item.kind == "VIEW"
        }
        self._macros = macros.by_name(catalog)
        names = [name for _, name in self._views] + [name for _, name in catalog.tables]
        self._several = {name for name in names if names.count(name) > 1}
        self._left = MOST
        self.common = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}

    def write_out(self, tree: exp.Expr) -> exp.Expr:
        """The tree with queries in place of the names of views; raises `Unclear`."""
        while True:
            nodes = [node for node in tree.find_all(exp.Table) if self._view(node) is not None]
            if not nodes:
                return tree
            for node in nodes:
                item = self._view(node)
                if item is not None:
                    node.replace(self._query(item, node))

    def _view(self, node: exp.Table) -> HomeObject | None:
        if not isinstance(node.this, exp.Identifier):
            return None
        if not node.db and fold(node.name) in self.common:
            return None
        schema = schema_of("", node.db)
        views = [v for (s, n), v in self._views.items() if n == fold(node.name)]
        if not views:
            return None
        if len(views) > 1 or views[0].path or views[0].temporary or node.catalog:
            # Which of several is meant, the search path decides, or a database's name.
            raise Unclear
        if self._catalog.named(schema or "", node.name) is not None:
            raise Unclear
        return views[0]

    def _query(self, item: HomeObject, node: exp.Table) -> exp.Subquery:
        self._left -= 1
        if self._left < 0 or set(filter(node.args.get, node.args)) - {"this", "db", "alias"}:
            raise Unclear
        if macros.named(self._macros, lexer.tokens(item.sql)):
            raise Unclear
        definition = parse(item.sql)
        if not isinstance(definition, exp.Create) or not isinstance(
            definition.expression, exp.Select | exp.SetOperation
        ):
            raise Unclear
        query = definition.expression
        names = [fold(cte.alias) for cte in query.find_all(exp.CTE)]
        tables = list(query.find_all(exp.Table))
        # An argument of a table function may name a table: only the binder reads it.
        functions = not all(isinstance(table.this, exp.Identifier) for table in tables)
        inside = {fold(table.name) for table in tables}
        if names or functions or inside & self.common or not self._are_clear(tables):
            raise Unclear
        for part in query.walk():
            part.meta.clear()
        alias = node.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier(node.name, quoted=True)
        )
        columns = _declared(definition)
        if columns and not alias.args.get("columns"):
            alias = alias.copy()
            alias.set("columns", columns)
        return exp.Subquery(this=query, alias=alias)

    def _are_clear(self, tables: Sequence[exp.Table]) -> bool:
        """Whether names in a view mean what they mean in the statement: a view looks in its own
        schema first.
        """
        return not any(not table.db and fold(table.name) in self._several for table in tables)


def _declared(definition: exp.Create) -> list[exp.Expr]:
    """The names that a view gives to its columns, where it gives any."""
    schema = definition.this
    if not isinstance(schema, exp.Schema):
        return []
    if not all(isinstance(name, exp.Identifier) for name in schema.expressions):
        raise Unclear
    return [name.copy() for name in schema.expressions]


def write_common(tree: exp.Expr) -> None:
    """Common table expressions that are read once, or only choose, as queries in FROM."""
    for clause in [node for node in tree.find_all(exp.With) if not node.args.get("recursive")]:
        for cte in reversed(list(clause.expressions)):
            _write_common(tree, clause, cte)
        if not clause.expressions and clause.parent is not None:
            clause.parent.set("with_", None)


def _write_common(tree: exp.Expr, clause: exp.With, cte: exp.CTE) -> None:
    name = fold(cte.alias)
    same = [other for other in tree.find_all(exp.CTE) if fold(other.alias) == name]
    readers = [node for node in tree.find_all(exp.Table) if fold(node.name) == name]
    if len(same) > 1 or cte.args.get("materialized") or any(node.db for node in readers):
        return
    later = clause.expressions[clause.expressions.index(cte) + 1 :]
    if not all(_reads(node, clause, later) for node in readers):
        # Before its own definition, and outside of the query, the name is a table's.
        return
    query = cte.this
    if not isinstance(query, exp.Select | exp.SetOperation) or (
        len(readers) > 1 and not _only_chooses(query)
    ):
        return
    if any(set(filter(node.args.get, node.args)) - {"this", "alias"} for node in readers):
        return
    for node in readers:
        alias = (node.args.get("alias") or exp.TableAlias(this=cte.args["alias"].this)).copy()
        if not alias.args.get("columns"):
            alias.set("columns", [n.copy() for n in cte.args["alias"].args.get("columns") or ()])
        node.replace(exp.Subquery(this=query.copy(), alias=alias))
    cte.pop()


def _reads(node: exp.Expr, clause: exp.With, later: Sequence[exp.Expr]) -> bool:
    """Whether a name means a common table expression, by where it is written."""
    above: exp.Expr | None = node
    while above is not None and above is not clause.parent:
        if above.parent is clause:
            return any(above is cte for cte in later)
        above = above.parent
    return above is not None


def _only_chooses(query: exp.Expr) -> bool:
    if not isinstance(query, exp.Select) or query.find(exp.AggFunc, exp.Window) is not None:
        return False
    present = set(filter(query.args.get, query.args))
    return not present - {"expressions", "from_", "joins", "where"}
