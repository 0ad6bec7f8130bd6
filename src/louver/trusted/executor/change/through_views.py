"""Changes through views that PostgreSQL updates by itself: those of the rows of one table.

The local engine runs the user's own text on the view, over the rows of its table, and what became
of these is read off as with any change. What the change may depend on is judged on the statement
that PostgreSQL makes of it: one of the table, with the view's columns and its condition put in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor.change import flow, statement_parts
from louver.trusted.executor.context import Context
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import spoken
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import HomeObject, Table

_VERBS = (exp.Insert, exp.Update, exp.Delete)
_SETS = (exp.Update, exp.OnConflict)
_MOST_VIEWS = 32
Involved = Callable[[Context, Table, Sequence[Table]], list[Table]]
"""The tables that a change of a table needs beside those that are read."""


@dataclass(frozen=True, slots=True)
class Through:
    """The table that a change of a view is of, and the same change of the table, as words."""

    table: Table
    words: statement_parts.Words


def plan(context: Context, words: statement_parts.Words, involved: Involved) -> ChangePlan | None:
    """The plan of a change of a view, which may be made; None where it names no view."""
    through = _resolved(context, words) if context.local.dialect.reads_off else None
    if through is None:
        return None
    all_met = flow.require(context, through.words, through.table).all_met
    names = words.names()
    read = statement_parts.tables_named(context.catalog, names)
    every = statement_parts.reached(context.catalog, names)[0]
    needed = [table.id for table in involved(context, through.table, read)]
    others = tuple(table.id for table in read)
    return ChangePlan(
        through.table.id, others, tuple(needed), frozenset(every), None, "", (0, 0), None, all_met
    )


def _resolved(context: Context, words: statement_parts.Words) -> Through | None:
    """The table behind a view that a statement changes; None where it names no view."""
    schema, name, _ = statement_parts.qualified(
        words, statement_parts.target_place(words, statement_parts.verb_place(words))
    )
    view = view_of(context, schema, name)
    if view is None:
        return None
    # Whether a view can be changed is PostgreSQL's to say; nothing is drawn from sequences.
    sql, values = words.text(0, len(words.tokens))
    with context.local.rehearsal() as connection:
        connection.execute(f"EXPLAIN {sql}", values)
    tree = parse(words.plain)
    if not isinstance(tree, _VERBS) or tree.args.get("with_") is not None:
        raise _refused()
    tree = tree.copy()
    _without_returning(tree)
    for _ in range(_MOST_VIEWS):
        _require_names(context, view)
        node = _replaced(tree, view)
        table = context.catalog.named(node.db, node.name)
        if table is not None:
            plain = tree.sql(dialect=spoken().sqlglot)
            return Through(
                table, statement_parts.Words(plain, lexer.tokens(plain), words.parameters)
            )
        view = view_of(context, node.db, node.name)
        if view is None:
            break
    raise _refused()


def _refused() -> errors.Error:
    return errors.make("sql.unsupported", statement="A change of a view of this form")


def view_of(context: Context, schema: str, name: str) -> HomeObject | None:
    """The view of a name, as far as only one can be meant."""
    views = [
        item for item in context.catalog.objects
        if item.kind == "VIEW" and fold(item.name) == fold(name) and not item.temporary
        and (not schema or fold(item.schema) == fold(schema))
    ]  # fmt: skip
    return views[0] if len(views) == 1 else None


def _require_names(context: Context, view: HomeObject) -> None:
    """What the text of a view calls its columns is what they are called."""
    path = f"{quoted(view.schema)}.{quoted(view.name)}"
    known = [fold(name) for name, _ in context.local.describe(f"SELECT * FROM {path}")]
    if known != [fold(item.alias_or_name) for item in query_of(view).expressions]:
        raise _refused()


def _without_returning(tree: exp.Expr) -> None:
    """What is returned is shown to the user alone; queries in it read other tables."""
    returning = tree.args.get("returning")
    if returning is not None:
        if returning.find(exp.Query) is not None:
            raise _refused()
        tree.set("returning", None)


def _replaced(tree: exp.Expr, view: HomeObject) -> exp.Table:
    """Put what a view is of in its place; the table or view that it is of."""
    query = query_of(view)
    source = query.args["from_"].this
    where = query.args.get("where")
    if where is not None and where.find(exp.Query) is not None:
        raise _refused()
    alias = fold(_target(tree).alias_or_name)
    columns = {
        fold(item.alias_or_name): _of_view(item, source, alias) for item in query.expressions
    }
    _rename(tree, columns, alias)
    _name_columns(tree, columns)
    own = exp.Table(this=source.this.copy(), db=source.args.get("db"))
    own.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
    _target(tree).replace(own)
    if where is not None and not isinstance(tree, exp.Insert):
        condition = _of_view(where.this, source, alias)
        before = tree.args.get("where")
        both = condition if before is None else exp.and_(before.this, condition)
        tree.set("where", exp.Where(this=both))
    return own


def _target(tree: exp.Expr) -> exp.Expr:
    """The node of the table that is changed."""
    target: exp.Expr = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return target


def query_of(view: HomeObject) -> exp.Select:
    """The query of a view of one table or view; raises for any other."""
    tokens = lexer.tokens(view.sql)
    start = next((t.end + 1 for t in tokens if fold(t.text) == "as"), 0)
    (text,) = lexer.split(view.sql[start:].strip().rstrip(";")) or (None,)
    plain = "" if text is None else text.plain
    cut = fold(plain).rfind("with ")
    if cut >= 0 and fold(plain[cut:]).rstrip().endswith("check option"):
        plain = plain[:cut]
    query = parse(plain)
    clause = query.args.get("from_") if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or clause is None or query.args.get("joins"):
        raise _refused()
    if not isinstance(clause.this, exp.Table) or query.find(exp.Star) is not None:
        raise _refused()
    return query


def _of_view(item: exp.Expr, source: exp.Table, alias: str) -> exp.Expr:
    """A view's expression over the table by the name that the change has for it."""
    inner = item.this if isinstance(item, exp.Alias) else item
    if inner.find(exp.Query) is not None:
        raise _refused()

    def qualified(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return exp.column(node.this.copy(), table=exp.to_identifier(alias))
        return node

    results: exp.Expr = inner.copy().transform(qualified)
    return results


def _rename(tree: exp.Expr, columns: Mapping[str, exp.Expr], alias: str) -> None:
    """Say the table's columns where the view's are said."""
    same = all(isinstance(c, exp.Column) and fold(c.name) == name for name, c in columns.items())
    if same:
        return
    if tree.find(exp.Query) is not None or tree.args.get("from_") or tree.args.get("using"):
        # A name without its table may be another one's.
        raise _refused()
    for node in list(tree.find_all(exp.Column)):
        _put(node, columns, alias, node.replace)


def _put(
    node: exp.Column, columns: Mapping[str, exp.Expr], alias: str, put: Callable[[exp.Expr], object]
) -> None:
    given = columns.get(fold(node.name))
    if given is None or fold(node.table) not in ("", alias, "excluded"):
        return
    above = node.parent
    is_target = isinstance(above, exp.EQ) and above.this is node
    set_ = is_target and above is not None and isinstance(above.parent, _SETS)
    if isinstance(given, exp.Column):
        table = "" if set_ else node.table
        put(exp.column(given.this.copy(), table=exp.to_identifier(table) if table else None))
    elif set_ or fold(node.table) == "excluded":
        raise _refused()
    else:
        put(exp.paren(given.copy()))


def _name_columns(tree: exp.Expr, columns: Mapping[str, exp.Expr]) -> None:
    """INSERT with the table's columns, of which the view may have some, in another order."""
    if not isinstance(tree, exp.Insert):
        return
    listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    wanted = [fold(item.name) for item in listed] or [*columns]
    own = [columns.get(name) for name in wanted]
    if tree.args.get("default") or any(not isinstance(c, exp.Column) for c in own):
        if listed or not tree.args.get("default"):
            raise _refused()
        return
    names = [exp.to_identifier(c.name, quoted=True) for c in own if isinstance(c, exp.Column)]
    tree.set("this", exp.Schema(this=_target(tree).copy(), expressions=names))
    conflict = tree.args.get("conflict")
    for key in (conflict.args.get("conflict_keys") or []) if conflict is not None else ():
        given = columns.get(fold(key.name))
        if key.find(exp.Column) is not None:
            continue
        if not isinstance(given, exp.Column):
            raise _refused()
        key.replace(exp.to_identifier(given.name))
