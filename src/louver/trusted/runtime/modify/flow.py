"""Whether a change would carry encrypted values into plain columns on the server.

Only what is proved to come from plain columns and the statement's own words may go there. What
is not understood counts as carrying every encrypted column that the statement can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from louver import errors
from louver.trusted.planner import lexer, selection
from louver.trusted.planner.trees import parse
from louver.trusted.runtime.ledger import Fact
from louver.trusted.runtime.modify import matching, pieces
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.levels import allows

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

Tables = Mapping[str, Table | None]
"""Names usable before a column: a table of the catalog, `_FREE`, or None for anything else."""
Limits = Mapping[str, str]
"""Columns that are written, in lower case: the ceiling that what goes there must have at the
least, or "" where nothing encrypted may go. A column that is not named takes anything.
"""
_FREE = Table("", "", 0)
"""Stands for a source that reads no table: VALUES, or a query of constants."""
_TABLE_PARTS = {"this", "alias", "db", "sample", "only"}
_SELECT_PARTS = {"expressions", "from_", "from", "joins", "where", "kind"}
_WORDS = (*selection.VOCABULARY, exp.DPipe, exp.Interval, exp.Var, exp.Func)
_REFUSED = (exp.Query, exp.Star, exp.Window, exp.AggFunc, exp.Lambda, exp.Anonymous, exp.Distinct)


def require_insert(
    session: Session,
    table: Table,
    words: pieces.Words,
    parts: pieces.Insert,
    sql: str,
    values: list[object],
) -> None:
    """Check INSERT … SELECT. A query that reads no encrypted column carries none."""
    targets = _targets(table, words, parts)
    places = [i for i, column in enumerate(targets) if column is None or not column.encrypted]
    if not places and not _may_fall(session.catalog.tables.values(), targets):
        return
    (text,) = lexer.split(sql)
    bound = [values[key - 1] for key in text.parameters if isinstance(key, int)]
    plan, _ = session.planner.plan(text, bound, session.catalog)
    if not plan.reads_secret:
        return
    read = list({s.table.id: s.table for remote in plan.remotes for s in remote.sources}.values())
    tree = parse(text.plain)
    for place, column in enumerate(targets):
        if column is not None and column.encrypted and _may_fall(read, [column]):
            carried = parts.by_name or not _carries_none(session, tree, [place], column.ceiling)
            if carried:
                raise _fallen(read, column)
    if not places:
        return
    if parts.by_name or not _carries_none(session, tree, places):
        permit(session, table, read)
        return
    where = tree.args.get("where") if tree else None
    joins = [on for j in (tree.args.get("joins") or []) if (on := j.args.get("on"))] if tree else []
    if where is not None or joins:
        _note_selection(session, read)
        matching.require_copy(session, words, tree, table, read)


def require_set(
    session: Session, table: Table, tree: exp.Expr | None, read: Sequence[Table]
) -> None:
    """Check UPDATE, MERGE and INSERT … ON CONFLICT on a tree of the whole statement."""
    seen = list({t.id: t for t in (table, *read)}.values())
    limits = {
        c.name.lower(): c.ceiling if c.encrypted else ""
        for c in table.columns
        if not c.encrypted or _may_fall(seen, [c])
    }
    if not limits or not any(t.has_encrypted for t in seen):
        return
    if isinstance(tree, exp.Update) and _update_clean(session, tree, table, limits):
        return
    if isinstance(tree, exp.Insert) and _upsert_clean(session, tree, table, limits):
        return
    if isinstance(tree, exp.Merge) and _merge_clean(session, tree, table, limits):
        return
    for column in table.columns:
        if limits.get(column.name.lower()):
            raise _fallen(seen, column)
    permit(session, table, seen)


def _may_fall(tables: Iterable[Table], targets: Iterable[Column | None]) -> bool:
    """Whether values of some column under a lower ceiling could come under a higher one."""
    ceilings = [c.ceiling for table in tables for c in table.columns if c.encrypted]
    return any(
        not allows(ceiling, column.ceiling)
        for column in targets
        if column is not None and column.encrypted
        for ceiling in ceilings
    )


def _fallen(tables: Iterable[Table], target: Column) -> errors.Error:
    """The refusal of values whose ceiling is lower than that of the column they would go to."""
    for table in tables:
        for column in table.columns:
            if column.encrypted and not allows(column.ceiling, target.ceiling):
                return matching.refusal(table, column, target.ceiling)
    return errors.make("internal", detail="no column has a lower ceiling")


def permit(session: Session, table: Table, read: Iterable[Table]) -> None:
    """Refuse unless every encrypted column may be known whole; then the ledger says so."""
    for source in read:
        for column in source.columns:
            if column.encrypted and not allows(column.ceiling, "plaintext"):
                raise matching.refusal(source, column, "plaintext")
    facts = [
        Fact(
            source.label,
            (c.name,),
            "plaintext",
            "write.plain",
            f"values of {c.name} of {source.label} may have been written into plain columns "
            f"of {table.label}",
        )
        for source in read
        for c in source.columns
        if c.encrypted
    ]
    session.ledger.record(facts, f"a change of {table.label}")


def _note_selection(session: Session, read: Iterable[Table]) -> None:
    """Plain values of chosen rows show which rows were chosen."""
    for table in read:
        names = tuple(c.name for c in table.columns if c.encrypted)
        for column in table.columns:
            if column.encrypted and not allows(column.ceiling, "access"):
                raise matching.refusal(table, column, "access")
        if names:
            text = f"the server can tell which rows of {table.label} were copied in plain"
            session.ledger.record(
                [Fact(table.label, names, "access", "rows.copied", text)], "INSERT (SELECT)"
            )


def _targets(table: Table, words: pieces.Words, parts: pieces.Insert) -> list[Column | None]:
    """The columns that the source's columns go into, in order."""
    listed: list[str] = []
    place = parts.after_name
    while place < parts.source and words.upper(place) != "(":
        place += 1
    while place < parts.source:
        if words.found[place].text not in ("(", ")", ","):
            listed.append(words.found[place].text)
        place += 1
    return [table.column(name) for name in listed] if listed else list(table.columns)


def _carries_none(
    session: Session, tree: exp.Expr | None, places: Sequence[int], limit: str = ""
) -> bool:
    """Whether the items of a plain SELECT at these places come from plain columns only, or from
    such whose ceiling is the limit at the least.
    """
    if not isinstance(tree, exp.Select) or set(filter(tree.args.get, tree.args)) - _SELECT_PARTS:
        return False
    clause = tree.args.get("from_") or tree.args.get("from")
    nodes = [clause.this] if clause else []
    for join in tree.args.get("joins") or []:
        if join.args.get("using") or join.args.get("method"):
            return False
        nodes.append(join.this)
    tables = _tables(session, nodes)
    only = next(iter(tables.values())) if len(tables) == 1 else None
    if only and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        stored = [only.columns[place] for place in places if place < len(only.columns)]
        return all(_passes(column, limit) for column in stored)
    aliases = {i.alias.lower() for i in tree.expressions if isinstance(i, exp.Alias)}
    for item in tree.expressions:
        if isinstance(item, exp.Star) or (
            isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        ):
            return False
        value = item.this if isinstance(item, exp.Alias) else item
        for column in value.find_all(exp.Column):
            same = isinstance(item, exp.Alias) and item.alias.lower() == column.name.lower()
            if not column.table and column.name.lower() in aliases and not same:
                return False
    if max(places) >= len(tree.expressions):
        return True
    return all(_clean(session, _value(tree.expressions[i]), tables, limit) for i in places)


def _value(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _tables(session: Session, nodes: Iterable[exp.Expr]) -> dict[str, Table | None]:
    """What the names of a FROM clause stand for."""
    found: dict[str, Table | None] = {}
    for node in nodes:
        known = None
        alias = node.args.get("alias")
        simple = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        simple = simple and not set(filter(node.args.get, node.args)) - _TABLE_PARTS
        if simple and not (alias and alias.args.get("columns")):
            known = session.catalog.table(node.text("db") or "main", node.name)
        if _reads_nothing(session, node):
            known = _FREE
        found[node.alias_or_name.lower()] = known
    return found


def _reads_nothing(session: Session, node: exp.Expr) -> bool:
    """Whether a source is VALUES or a query of constants: it names no table, and no function
    stands in its FROM. A macro may read tables, so no macro may exist.
    """
    if any(item.kind == "MACRO" for item in session.catalog.objects):
        return False
    if not isinstance(node, exp.Values | exp.Query | exp.Subquery):
        return False
    if any(True for _ in node.find_all(exp.Table, exp.Anonymous, exp.Lateral)):
        return False
    sources = [inner.this for inner in node.find_all(exp.From, exp.Join)]
    return all(isinstance(source, exp.Values | exp.Subquery) for source in sources)


def _clean(session: Session, value: exp.Expr, tables: Tables, limit: str = "") -> bool:
    """Whether an expression is made of constants, plain columns, and encrypted ones whose ceiling
    is the limit at the least.
    """
    if limit:
        return _stays_under(session, value, tables, limit)
    macros = {o.name.lower() for o in session.catalog.objects if o.kind == "MACRO"}
    for node in value.walk():
        if isinstance(node, _REFUSED) or not isinstance(node, _WORDS):
            return False
        if isinstance(node, exp.Func) and macros:
            return False
        if isinstance(node, exp.Column) and not _plain(node, tables, limit):
            return False
    return True


def _stays_under(session: Session, value: exp.Expr, tables: Tables, limit: str) -> bool:
    """Whether every column that an expression names, in subqueries too, has this ceiling at the
    least, whichever table it is of.
    """
    if any(item.kind == "MACRO" for item in session.catalog.objects):
        return False
    named = [session.catalog.table(t.db or "main", t.name) for t in value.find_all(exp.Table)]
    known = [*tables.values(), *named]
    stars = [star for star in value.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if stars or any(table is None for table in known):
        return False
    for node in value.find_all(exp.Column):
        for table in known:
            column = table.column(node.name) if table is not None else None
            if column is not None and not _passes(column, limit):
                return False
    return True


def _plain(node: exp.Column, tables: Tables, limit: str) -> bool:
    name = node.name.lower()
    if name.startswith(lexer.PARAMETER_PREFIX):
        return True
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        return False
    if node.table:
        table = tables.get(node.table.lower())
        if table is _FREE:
            return True
        column = table.column(name) if table else None
        return column is not None and _passes(column, limit)
    if any(table is None for table in tables.values()) or name in tables:
        return False
    found = [c for table in tables.values() if table and (c := table.column(name))]
    free = any(table is _FREE for table in tables.values())
    return (free or bool(found)) and all(_passes(column, limit) for column in found)


def _passes(column: Column, limit: str) -> bool:
    return not column.encrypted or (bool(limit) and allows(column.ceiling, limit))


def _assignments_clean(
    session: Session, items: Iterable[exp.Expr], tables: Tables, limits: Limits
) -> bool:
    for item in items:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            return False
        limit = limits.get(item.this.name.lower())
        if limit is not None and not _clean(session, item.expression, tables, limit):
            return False
    return True


def _update_clean(session: Session, tree: exp.Update, table: Table, limits: Limits) -> bool:
    if tree.args.get("with_") or tree.args.get("with"):
        return False
    nodes = [tree.this]
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is not None:
        nodes += [clause.this, *(j.this for j in clause.this.args.get("joins") or [])]
    tables = _tables(session, nodes)
    tables[tree.this.alias_or_name.lower()] = table
    return _assignments_clean(session, tree.expressions, tables, limits)


def _upsert_clean(session: Session, tree: exp.Insert, table: Table, limits: Limits) -> bool:
    """New values come from the statement's own words; old ones and ``excluded`` by column."""
    source = tree.args.get("expression")
    if tree.args.get("with_") or tree.args.get("with") or source is None:
        return False
    if not _reads_nothing(session, source) and not _values_clean(session, tree, table, limits):
        return False
    conflict = tree.args.get("conflict")
    if conflict is None:
        return True
    tables: dict[str, Table | None] = {"excluded": table, table.name.lower(): table}
    return _assignments_clean(session, conflict.expressions, tables, limits)


def _values_clean(session: Session, tree: exp.Insert, table: Table, limits: Limits) -> bool:
    """Whether what VALUES puts into plain columns reads nothing."""
    source, named = tree.args.get("expression"), tree.this
    if not isinstance(source, exp.Values):
        return False
    names = (
        [c.name for c in named.expressions]
        if isinstance(named, exp.Schema)
        else [column.name for column in table.columns]
    )
    return all(_tuple_clean(session, row, names, {}, limits) for row in source.expressions)


def _merge_clean(session: Session, tree: exp.Merge, table: Table, limits: Limits) -> bool:
    if tree.args.get("with_") or tree.args.get("with"):
        return False
    tables = _tables(session, [tree.this, tree.args["using"]])
    tables[tree.this.alias_or_name.lower()] = table
    whens = tree.args.get("whens")
    for when in whens.expressions if whens else ():
        then = when.args.get("then")
        if isinstance(then, exp.Update):
            if not then.expressions or not _assignments_clean(
                session, then.expressions, tables, limits
            ):
                return False
        elif isinstance(then, exp.Insert):
            if not _merge_insert_clean(session, then, tables, table, limits):
                return False
        elif not isinstance(then, exp.Var) or then.name.upper() not in ("DELETE", "DO NOTHING"):
            return False
    return True


def _merge_insert_clean(
    session: Session, then: exp.Insert, tables: Tables, table: Table, limits: Limits
) -> bool:
    named, values = then.this, then.args.get("expression")
    names = (
        [c.name for c in named.expressions]
        if isinstance(named, exp.Tuple)
        else [column.name for column in table.columns]
    )
    return _tuple_clean(session, values, names, tables, limits)


def _tuple_clean(
    session: Session, values: exp.Expr | None, names: Sequence[str], tables: Tables, limits: Limits
) -> bool:
    """Whether the items of a tuple may go where they go."""
    if not isinstance(values, exp.Tuple) or len(names) < len(values.expressions):
        return False
    for name, value in zip(names, values.expressions, strict=False):
        limit = limits.get(name.lower())
        if limit is not None and not _clean(session, value, tables, limit):
            return False
    return True
