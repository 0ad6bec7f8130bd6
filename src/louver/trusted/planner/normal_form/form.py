"""A query in normal form, judged by DuckDB's own binder.

Forms that mean the same get the same plan: ordinals, aliases, ALL, USING, NATURAL, stars, views
and common table expressions are written out, queries in FROM that only choose rows and columns are
merged, and columns that are not read are dropped. What a block has that is not known here leaves
the block as the user wrote it. The result is used for planning alone; a query that is finished
from scans still runs in the user's own words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from sqlglot import exp
from sqlglot.tokens import Token

from louver.names import fold
from louver.trusted.planner.normal_form import block, grouping_sets, macros, merging, sources, views
from louver.trusted.planner.normal_form.references import own_nodes, parts
from louver.trusted.planner.normal_form.sources import Columns, Unclear
from louver.trusted.planner.sql.resolver import Resolver, name_words
from louver.trusted.vault.catalog import Catalog

#: Aliases that merged tables get; no user's name begins so.
PREFIX = "louver_n"
MOST_NODES = 4_000
"""A larger statement keeps its form: planning it must not cost more than running it."""


def normal_form(tree: exp.Expr, catalog: Catalog, tokens: Sequence[Token] = ()) -> exp.Expr | None:
    """The normal form of a query; None where it has none, or its views are not known.

    The tree is left alone but for marks. Positions of numbers are kept, and the
    marks by which blocks are known in both.
    """
    if not isinstance(tree, exp.Query) or not _has_forms(tree, catalog, tokens):
        return None
    for mark, select in enumerate(tree.find_all(exp.Select)):
        select.meta["mark"] = mark
    copy: exp.Expr = tree.copy()
    known = macros.by_name(catalog)
    try:
        copy = macros.write_out(copy, known, len(macros.named(known, tokens)))
        copy = views.Definitions(catalog, copy).write_out(copy)
    except Unclear:
        return None
    views.write_common(copy)
    resolver = Resolver(catalog, copy)

    def columns(node: exp.Table) -> tuple[str, ...] | None:
        table = resolver.table(node)
        return None if table is None else tuple(column.name for column in table.columns)

    foreign = frozenset(
        fold(name) for table in copy.find_all(exp.Table) for name in columns(table) or ()
    )
    _Form(columns, foreign).query(copy, inner=False)
    for select in copy.find_all(exp.Select):
        if select.meta.get("normal"):
            merging.prune(select)
    if isinstance(copy, exp.Select):
        _drop_aliases(copy, columns)
    return copy


def _has_forms(tree: exp.Query, catalog: Catalog, tokens: Sequence[Token]) -> bool:
    """Whether a statement of a bearable size has any form that is written out."""
    nodes = list(tree.walk())
    if len(nodes) > MOST_NODES:
        return False
    objects = {fold(o.name) for o in catalog.objects if o.kind in ("VIEW", "MACRO")}
    if objects & name_words(tokens):
        return True
    aliases = {fold(node.alias) for node in nodes if isinstance(node, exp.Alias)}
    return any(_is_form(node, aliases) for node in nodes)


def _is_form(node: exp.Expr, aliases: set[str]) -> bool:
    match node:
        case exp.Column():
            # A name that is an alias too means one or the other by where it is written.
            return fold(node.name) in aliases
        case exp.Group():
            return bool(node.args.get("all")) or any(
                not isinstance(key, exp.Column) for key in node.expressions
            )
        case exp.Ordered():
            return isinstance(node.this, exp.Literal | exp.Var)
        case exp.Join():
            return bool(node.args.get("using") or node.args.get("method"))
        case exp.Star():
            return any(node.args.get(key) for key in node.args)
    return isinstance(node, exp.Filter | exp.CTE) or (
        isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)
    )


class _Form:
    """Works through a statement's queries, inner ones first."""

    def __init__(self, columns: Columns, foreign: frozenset[str]) -> None:
        self._columns = columns
        self._foreign = foreign
        self._names: Iterator[str] = (f"{PREFIX}{number}" for number in count())

    def query(self, node: exp.Expr, *, inner: bool) -> bool:
        """Normalise a query; whether every block of it could be."""
        if isinstance(node, exp.Subquery):
            return self.query(node.this, inner=inner)
        if isinstance(node, exp.SetOperation):
            sides = [self.query(side, inner=inner) for side in (node.this, node.expression)]
            return all(sides)
        if not isinstance(node, exp.Select):
            return False
        whole = True
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            self.query(cte.this, inner=True)
        for source, _ in sources.items(node):
            if isinstance(source, exp.Subquery):
                if not source.args.get("alias"):
                    alias = exp.to_identifier(next(self._names), quoted=True)
                    source.set("alias", exp.TableAlias(this=alias))
                # One that is not known may read columns of those beside it.
                whole = self.query(source.this, inner=True) and whole
        for _, part in parts(node):
            for within in own_nodes(part):
                if isinstance(within, exp.Query):
                    whole = self.query(within, inner=True) and whole
        return self._block(node, whole=whole, inner=inner)

    def _block(self, select: exp.Select, *, whole: bool, inner: bool) -> bool:
        """Normalise one block. ``whole`` tells that queries in its clauses read nothing of it."""
        draft = select.copy()
        try:
            known = sources.read(draft, self._columns)
            if not whole and any(source.merged for source in known):
                return False
            if inner and self._takes_outer(draft, known):
                return False
            block.normalise(draft, known)
        except Unclear:
            return False
        if whole:
            merging.merge(draft, self._names)
            grouping_sets.write_out(draft, self._names)
        for key in list(select.args):
            select.set(key, None)
        for key, value in draft.args.items():
            select.set(key, value)
        select.meta["normal"] = whole
        return True

    def _takes_outer(self, select: exp.Select, known: list[sources.Source]) -> bool:
        """Whether an alias of a query within another one could be a column of that one."""
        aliases = {fold(item.alias) for item in select.expressions if isinstance(item, exp.Alias)}
        own = {fold(name) for source in known for name in source.columns}
        return bool((aliases & self._foreign) - own)


def _drop_aliases(select: exp.Select, columns: Columns) -> None:
    """Drop aliases that are also names of columns: the plan has the names of the answer."""
    if not select.meta.get("normal"):
        return
    names = {
        fold(name)
        for node, _ in sources.items(select)
        for name in (columns(node) if isinstance(node, exp.Table) else None) or ()
    }
    for item in list(select.expressions):
        if isinstance(item, exp.Alias) and fold(item.alias) in names:
            item.replace(item.this)
