"""Which rows of their tables UPDATE, DELETE and MERGE read, and what stands for the tables in the
dry run.

The rows are planned as those of the SELECT that needs them (`equivalent`), table by table. Keys
without tags need all rows, unless the statement cannot break them: DELETE breaks no key of its own
table, and UPDATE none whose columns it leaves as they are. Tags are the server's to decide, and
what refers to the rows, or they refer to, is looked for when it is known which change. Tables that
are only read have no rules in the dry run, so that columns that the statement does not name may be
left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

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
from louver.trusted.planner.sql.placeholders import fixed_literals, fixed_texts
from louver.trusted.planner.sql.resolver import Resolver
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.trees import parse
from louver.trusted.planner.write.values import ROWID
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import is_collated

_SUBQUERIES = (exp.Query, exp.Subquery, exp.With, exp.Window)
#: What depends on the rows that are there, or on how often it is asked.
_TOUCHY = {ROWID, "nextval", "currval", "random", "uuid", "gen_random_uuid", "setseed"}
#: Parts of types whose values DuckDB updates by deleting the row and writing it again.
NESTED = ("[", "STRUCT", "MAP", "UNION")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """How the rows are read that a statement may touch or look at, one query per table, and the
    text of the table that takes the target's place in the dry run, "" where the target itself does.
    ``alone`` tells whether each row of the target is changed by itself.
    """

    plan: Plan
    stand_in: str
    alone: bool


def rows_of(
    context: Context, words: statement_parts.Words, table: Table, read: Sequence[Table]
) -> Narrowed | None:
    """How the rows of the target and of what is ``read`` beside it are read; None where all are."""
    tree = parse(words.plain)
    if not isinstance(tree, exp.Update | exp.Delete | exp.Merge) or not _is_known(tree, words):
        return None
    from louver.trusted.executor.change import equivalent

    select = equivalent.select_of(tree)
    known = constraint_check.rules(context, table)
    if select is None or hides_rows(table) or table.column(ROWID):
        return None
    if _acts(context, table, known):
        return None
    alone = len(list(tree.find_all(exp.Table))) == 1 and tree.find(*_SUBQUERIES) is None
    breaks = _breaks if alone else _may_break
    if any(breaks(branch, known, table) for branch in equivalent.branches(tree)):
        return None
    text = _stand_in(tree, known, table)
    others = [other for other in read if other.id != table.id]
    if not statement_parts.reached(context.catalog, words.names())[1]:
        # A column may have the name of a table, as foreign keys often do.
        named = {fold(node.name) for node in tree.find_all(exp.Table)}
        others = [other for other in others if fold(other.name) in named]
    if (known.foreign and not text) or not _stand_ins(context, tree, others):
        return None
    # The keys that others refer to are looked for where the row goes.
    pruned = isinstance(tree, exp.Delete) and text and not known.children
    plan = _planned(context, select, words, [table, *others], () if pruned else (table.id,))
    return Narrowed(plan, text, alone) if plan is not None else None


def rows_of_query(
    context: Context, select: exp.Select, words: statement_parts.Words, tables: list[Table]
) -> Plan | None:
    """The same of a query over these tables, whose rows are to be locked."""
    if not _is_plain(words) or not _stand_ins(context, select, tables):
        return None
    if any(hides_rows(table) for table in tables) or select.find(exp.With) is not None:
        return None
    return _planned(context, select, words, tables, [table.id for table in tables])


def _acts(context: Context, table: Table, known: constraint_check.Rules) -> bool:
    """Whether rows of other tables change with those of a table."""
    children = filter(None, (context.catalog.table(*key) for key in known.children))
    return any(constraint_check.acts(context, table, child) for child in children)


def _planned(
    context: Context,
    select: exp.Select,
    words: statement_parts.Words,
    tables: list[Table],
    whole: Collection[int],
) -> Plan | None:
    """The plan of reading the rows that a SELECT over these tables chooses, by the rules, layers,
    ceilings and costs of any SELECT; None where it is not understood, or would show what a ceiling
    forbids. A superset is always right, for the change runs locally on what comes. All columns are
    read that the whole change names, and of the ``whole`` tables all that there are.
    """
    home, servers = context.planner.home, context.planner.servers()
    catalog = supposed(context.catalog, context.planning, home)
    shape, parameters = words.shape(), lexer.Values(words.parameters)
    resolver = Resolver(catalog, select, words.tokens)
    try:
        nodes = list(select.find_all(exp.Table))
        named = {match.id if (match := resolver.table(node)) else 0 for node in nodes}
        if resolver.views or resolver.by_text or named != {table.id for table in tables}:
            return None
        # What does not bind fails locally, in DuckDB's own words.
        home.describe(rewrite.typed_text(select, Scope([], shape, 0, parameters)))
    except (selection.Unsplit, errors.Error):
        return None
    plan = table_scans.plan_scans(
        select,
        words.tokens,
        [catalog.by_id(table.id) for table in tables],
        shape,
        servers,
        parameters,
        home.describe,
        resolver.table,
        context.planning.link,
        whole=whole,
        change=True,
    )
    refused = choose.above_ceiling(plan.leaks, list(catalog.tables.values()))
    if refused or not has_values(context, plan, shape.literals):
        return None
    fixed = fixed_literals(select, shape, ()) + fixed_texts(select, shape, parameters)
    # Rows are replaced by number, so the numbers of all come too.
    remotes = tuple(replace(remote, whole_table=True) for remote in plan.remotes)
    alone = tables[0].name if len(tables) == 1 else ""
    return replace(plan, remotes=remotes, fixed=fixed, alone=alone)


def has_values(context: Context, plan: Plan, literals: Sequence[str]) -> bool:
    """Whether every constant of a condition has a value of the type that it is compared as; whether
    that is an error otherwise depends on the rows that DuckDB compares it with.
    """
    try:
        for remote in plan.remotes:
            context.storage.request(remote, literals)
    except errors.DataError:
        return False
    return True


def _is_known(tree: exp.Expr, words: statement_parts.Words) -> bool:
    if not isinstance(tree.this, exp.Table) or tree.find(exp.With) is not None:
        return False
    return _is_plain(words)


def _is_plain(words: statement_parts.Words) -> bool:
    return not (_TOUCHY & words.names() or lexer.MARKS & set(words.plain))


def _breaks(tree: exp.Expr, known: constraint_check.Rules, table: Table) -> bool:
    """Whether a change of single rows may break a rule about several rows that only all of them can
    decide. DuckDB writes a row anew of which a key column is set, which it refuses if others refer
    to the row.
    """
    if isinstance(tree, exp.Delete):
        return table.key in known.children
    if not (known.keys or known.foreign or known.children):
        return False
    keys = known.keys if known.children else constraint_check.untagged(table, known)
    names = {fold(name) for key in keys for name in key.columns}
    if known.children:
        names |= {fold(name) for foreign in known.foreign for name in foreign.columns}
    return _sets(tree, names, known, table)


def _may_break(branch: exp.Expr, known: constraint_check.Rules, table: Table) -> bool:
    """Whether a change that looks at several rows, or a branch of one, touches a rule about several
    rows at all.
    """
    from louver.trusted.executor.change import equivalent

    if equivalent.deletes(branch):
        return bool(known.children)
    if isinstance(branch, exp.Var) or not (known.keys or known.foreign or known.children):
        return False
    if isinstance(branch, exp.Insert):
        # Whether a new row repeats a key of one that is not read, the server's index decides.
        return bool(constraint_check.untagged(table, known) or known.foreign)
    names = {fold(name) for name in known.key_columns()}
    names |= {fold(name) for foreign in known.foreign for name in foreign.columns}
    return _sets(branch, names, known, table)


def _sets(tree: exp.Expr, names: set[str], known: constraint_check.Rules, table: Table) -> bool:
    """Whether UPDATE sets one of these columns, or one that DuckDB writes a row anew for."""
    for item in tree.expressions:
        target = item.this if isinstance(item, exp.EQ) else None
        column = table.column(target.name) if isinstance(target, exp.Column) else None
        if column is None or fold(column.name) in names:
            return True
        if any(part in column.type for part in NESTED):
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
    if not isinstance(tree, exp.Delete):
        return known.without_foreign
    if known.generated or not table.columns or any(is_collated(c.type) for c in table.columns):
        return ""
    return f"CREATE TEMP TABLE {quoted(table.name)} AS SELECT * FROM {table.local_name} LIMIT 0"


def _stand_ins(context: Context, tree: exp.Expr, tables: Sequence[Table]) -> bool:
    """Whether temporary tables may take the places of tables that are only read."""
    if tables and any(node.args.get("db") for node in tree.find_all(exp.Column, exp.Table)):
        return False
    for table in tables:
        generated = constraint_check.rules(context, table).generated
        if generated or not table.columns or any(is_collated(c.type) for c in table.columns):
            return False
    return len({fold(table.name) for table in tables}) == len(tables)
