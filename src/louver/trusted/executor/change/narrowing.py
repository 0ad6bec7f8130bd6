"""Fewer rows to read for UPDATE and DELETE: conditions on plain columns are the server's.

Only where a statement has one target and reads nothing else. The local DuckDB applies the whole
condition once more, so a row too many does no harm; a row too few cannot be, for the server
decides it only where its backend says that the condition means the same there.
"""

from __future__ import annotations

import re

from sqlglot import exp

from louver import errors
from louver.names import fold, keyword
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.row_writer import hides_rows
from louver.trusted.planner.ir import Node, RowFilter
from louver.trusted.planner.split import rewrite
from louver.trusted.planner.sql import lexer, selection
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.scope import Scope, Servers
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Table

_PARTS = {"this", "expressions", "where", "returning"}
_SUBQUERIES = (exp.Query, exp.Subquery, exp.With, exp.Window)
#: What depends on the rows that are there, or on how often it is asked.
_TOUCHY = {"rowid", "nextval", "currval", "random", "uuid", "setseed"}
#: The planner's own marks in texts that it has not printed yet.
_MARKS = set("⟪⟫⟦⟧")

#: Types that hold no text, whatever it would be compared by.
_TEXTLESS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BOOLEAN|DATE|DECIMAL\(\d+,\s?\d+\)")


def filter_of(context: Context, words: statement_parts.Words, table: Table) -> RowFilter | None:
    """The conditions that the server can decide without learning anything; None where it has to
    send all rows.
    """
    tree = parse(words.plain)
    where = tree.args.get("where") if isinstance(tree, exp.Update | exp.Delete) else None
    if tree is None or where is None or not _is_simple(tree, words) or hides_rows(table):
        return None
    known = constraint_check.rules(context, table)
    if known.keys or known.foreign or known.children or _collates_by_default(context):
        return None
    select = exp.select("1").from_(tree.this.copy())
    select.set("where", where.copy())
    parameters = list(words.parameters)
    shape = lexer.with_parameters(lexer.shape(words.plain, words.tokens), parameters)
    resolver = Resolver(context.catalog, tree)
    try:
        servers = Servers(lambda _: context.backend, context.columns.modulus_bits())
        sources = selection.sources_of(select, resolver.table, servers)
        scope = Scope(sources, shape, servers.modulus_bits, parameters)
        context.local.describe(rewrite.typed_text(select, scope))
    except (selection.Unsplit, errors.Error):
        # What does not bind fails locally, in DuckDB's own words.
        return None
    if sources[0].table.id != table.id:
        return None
    rewrite.ask_types(select, scope, context.local.describe)
    nodes = _decided(select.args["where"].this, scope, _collated(context, table))
    return RowFilter(sources[0].ref, nodes, tuple(shape.literals)) if nodes else None


def _is_simple(tree: exp.Expr, words: statement_parts.Words) -> bool:
    if set(filter(tree.args.get, tree.args)) - _PARTS or not isinstance(tree.this, exp.Table):
        return False
    if _TOUCHY & words.names() or _MARKS & set(words.plain):
        return False
    if any(True for _ in tree.find_all(*_SUBQUERIES)):
        return False
    return len(list(tree.find_all(exp.Table))) == 1


def _collates_by_default(context: Context) -> bool:
    """Whether all texts compare otherwise locally than on the server, which knows no collation."""
    default = context.local.binder.execute("SELECT current_setting('default_collation')")
    return default.fetchone() not in (None, ("",))


def _collated(context: Context, table: Table) -> frozenset[str]:
    """Columns, folded, that may compare otherwise locally than on the server: where the table's
    text names a collation, all that may hold text.
    """
    same = (o.sql for o in context.catalog.objects if o.kind == "TABLE" and o.name == table.name)
    if not any("COLLATE" in keyword(sql) for sql in same):
        return frozenset()
    return frozenset(fold(c.name) for c in table.columns if not _TEXTLESS.fullmatch(c.type))


def _decided(condition: exp.Expr, scope: Scope, collated: frozenset[str]) -> tuple[Node, ...]:
    parts = [
        part for part in selection.conjuncts(condition)
        if collated.isdisjoint(fold(column.name) for column in part.find_all(exp.Column))
    ]  # fmt: skip
    decided = [rewrite.predicate(part, scope) for part in parts]
    return tuple(item.node for item in decided if item is not None and not item.secret)
