"""Which rows of their table UPDATE and DELETE read, and what stands for the table in the dry run.

Only where a statement has one target and reads nothing else. The rows are planned as a SELECT of
them. Keys need all rows, unless the statement cannot break them: DELETE
breaks no key of its own table, and UPDATE none whose columns it leaves as they are.
"""

from __future__ import annotations

from sqlglot import exp

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.executor.row_writer import hides_rows
from louver.trusted.planner import choose
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.planner import supposed
from louver.trusted.planner.split import rewrite, table_scans
from louver.trusted.planner.sql import lexer, selection
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write.values import ROWID
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import is_collated

_PARTS = {"this", "expressions", "where", "returning"}
_SUBQUERIES = (exp.Query, exp.Subquery, exp.With, exp.Window)
#: What depends on the rows that are there, or on how often it is asked.
_TOUCHY = {ROWID, "nextval", "currval", "random", "uuid", "gen_random_uuid", "setseed"}
#: Parts of types whose values DuckDB updates by deleting the row and writing it again.
_NESTED = ("[", "STRUCT", "MAP", "UNION")


def rows_of(
    context: Context, words: statement_parts.Words, table: Table
) -> tuple[Plan | None, str]:
    """How the rows are read that a statement may touch, None where all of them are; and the text
    of the table that takes the target's place in the dry run, "" where the target itself does.
    """
    tree = parse(words.plain)
    if not isinstance(tree, exp.Update | exp.Delete) or not _is_simple(tree, words):
        return None, ""
    known = constraint_check.rules(context, table)
    if hides_rows(table) or table.column(ROWID) or _breaks(tree, known, table):
        return None, ""
    text = _stand_in(tree, known, table)
    if known.foreign and not text:
        return None, ""
    whole = isinstance(tree, exp.Update) or not text
    returning = tree.args.get("returning")
    items = [item.copy() for item in returning.expressions] if returning else []
    select = exp.select(*(["*"] if whole else items or ["1"])).from_(tree.this.copy())
    if tree.args.get("where") is not None:
        select.set("where", tree.args["where"].copy())
    plan = _planned(context, select, words, table)
    return (plan, text) if plan is not None else (None, "")


def _planned(
    context: Context, select: exp.Select, words: statement_parts.Words, table: Table
) -> Plan | None:
    """The plan of reading the rows that a SELECT over one table chooses, by the rules, layers,
    ceilings and costs of any SELECT; None where it is not understood, or would show what a ceiling
    forbids. A superset is always right, for the change runs locally on what comes. All columns are
    read that the whole change names.
    """
    home, servers = context.planner.home, context.planner.servers()
    catalog = supposed(context.catalog, context.planning, home)
    shape, parameters = words.shape(), list(words.parameters)
    resolver = Resolver(catalog, select, words.tokens)
    try:
        sources = selection.sources_of(select, resolver.table, servers)
        if resolver.views or sources[0].table.id != table.id:
            return None
        # What does not bind fails locally, in DuckDB's own words.
        scope = Scope(sources, shape, servers.modulus_bits, parameters)
        home.describe(rewrite.typed_text(select, scope))
    except (selection.Unsplit, errors.Error):
        return None
    plan = table_scans.plan_scans(
        select,
        words.tokens,
        [sources[0].table],
        shape,
        servers,
        parameters,
        home.describe,
        resolver.table,
        context.planning.link,
    )
    refused = choose.above_ceiling(plan.leaks, list(catalog.tables.values()))
    return None if refused else plan


def _is_simple(tree: exp.Expr, words: statement_parts.Words) -> bool:
    if set(filter(tree.args.get, tree.args)) - _PARTS or not isinstance(tree.this, exp.Table):
        return False
    if _TOUCHY & words.names() or lexer.MARKS & set(words.plain):
        return False
    if any(True for _ in tree.find_all(*_SUBQUERIES)):
        return False
    return len(list(tree.find_all(exp.Table))) == 1


def _breaks(tree: exp.Expr, known: constraint_check.Rules, table: Table) -> bool:
    """Whether a change may break a rule about several rows."""
    if isinstance(tree, exp.Delete):
        return bool(known.children)
    if not (known.keys or known.foreign or known.children):
        return False
    names = {fold(name) for name in known.key_columns()}
    names |= {fold(name) for foreign in known.foreign for name in foreign.columns}
    for item in tree.expressions:
        target = item.this if isinstance(item, exp.EQ) else None
        column = table.column(target.name) if isinstance(target, exp.Column) else None
        if column is None or fold(column.name) in names:
            return True
        if any(part in column.type for part in _NESTED):
            return True
    return not names.isdisjoint(known.generated)


def _stand_in(tree: exp.Expr, known: constraint_check.Rules, table: Table) -> str:
    """A temporary table of the target's name without rules about other rows; for DELETE without
    any rule, so that columns may be left out. None where a name with a schema would miss it, or
    where it would be another table.
    """
    named = [*tree.find_all(exp.Column), tree.this]
    if any(node.args.get("db") for node in named):
        return ""
    if isinstance(tree, exp.Update):
        return known.without_foreign
    if known.generated or not table.columns or any(is_collated(c.type) for c in table.columns):
        return ""
    return f"CREATE TEMP TABLE {quoted(table.name)} AS SELECT * FROM {table.local_name} LIMIT 0"
