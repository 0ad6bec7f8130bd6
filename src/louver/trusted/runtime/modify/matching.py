"""What a change shows of encrypted columns by the rows that it touches.

The server sees which rows come and go, and what stands in their plain columns. Where encrypted
columns chose these rows, it learns which rows they chose; where they were compared with plain
columns, it learns of values that they are equal. What is not understood counts as compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from louver import errors
from louver.trusted.planner import lexer
from louver.trusted.planner.types import tells_rows
from louver.trusted.runtime import guard
from louver.trusted.runtime.modify import pieces
from louver.trusted.runtime.modify.sending import hides_rows
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.facts import fact, table_name
from louver.trusted.vault.levels import allows

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

Place = tuple[Table, Column]
_CONNECTORS = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Where, exp.Having, exp.Qualify)
#: Parts of a subquery whose columns are not what the subquery gives.
_INNER = (exp.From, exp.Join, exp.Where, exp.Having, exp.Qualify, exp.Group, exp.Order, exp.With)


def require(
    session: Session,
    words: pieces.Words,
    tree: exp.Expr | None,
    table: Table,
    read: Sequence[Table],
) -> None:
    """Check a change and record what its choice of rows shows; refuse above a ceiling."""
    if not _visible(tree, table) or not _chooses(tree, words):
        return
    others = [one for one in read if one.id != table.id]
    found = compared(session, words, tree, [table, *others])
    found += _keys_met(session, tree, table, others)
    _permit(found, "equality", "rows.match", table, session)
    chosen = [(one, c) for one in others for c in one.columns if c.encrypted]
    if others or _macros(session) & words.names() or not _plain_only(tree, table):
        for column in table.columns:
            if column.encrypted and not allows(column.ceiling, "access"):
                raise refusal(table, column, "access")
    _permit(chosen, "access", "rows.chosen", table, session)


def require_copy(
    session: Session, words: pieces.Words, tree: exp.Expr | None, table: Table, read: list[Table]
) -> None:
    """Check a query whose plain values go into a table: its joins show which values are equal."""
    _permit(compared(session, words, tree, read), "equality", "rows.match", table, session)


def refusal(table: Table, column: Column, level: str) -> errors.Error:
    """The error of a column that may not show this much."""
    return errors.make(
        "leak.refused",
        table=table.label,
        column=column.name,
        level=level,
        ceiling=column.ceiling,
    )


def _permit(
    places: Iterable[Place], level: str, kind: str, target: Table, session: Session
) -> None:
    named: dict[int, tuple[Table, list[Column]]] = {}
    for table, column in places:
        if not allows(column.ceiling, level):
            raise refusal(table, column, level)
        columns = named.setdefault(table.id, (table, []))[1]
        if column not in columns:
            columns.append(column)
    words = {"target": table_name(target)}
    facts = [fact(kind, table, columns, **words) for table, columns in named.values()]
    if facts:
        session.ledger.record(facts, f"a change of {target.label}")


def _visible(tree: exp.Expr | None, table: Table) -> bool:
    """Whether the server can tell which rows of the target were touched: by their numbers, or,
    where every row comes anew, by their plain columns and by lengths.
    """
    if not hides_rows(table):
        return True
    if not any(map(tells_rows, table.columns)):
        return False
    if not isinstance(tree, exp.Update):
        return True
    for item in tree.expressions:
        column = table.column(item.this.name) if isinstance(item, exp.EQ) else None
        if column is None or tells_rows(column):
            return True
    return False


def _chooses(tree: exp.Expr | None, words: pieces.Words) -> bool:
    """Whether the statement may touch some rows and leave others."""
    if words.find("TRUNCATE") == 0:
        return False
    if isinstance(tree, exp.Insert) and isinstance(tree.args.get("expression"), exp.Values):
        verb = words.find("INSERT")
        return tree.args.get("conflict") is not None or words.upper(verb + 1) == "OR"
    if isinstance(tree, exp.Update):
        return any(tree.args.get(part) for part in ("where", "from_", "from", "with_", "with"))
    return True


def _plain_only(tree: exp.Expr | None, table: Table) -> bool:
    """Whether plain columns of the target alone choose the rows; it is all that is read."""
    if isinstance(tree, exp.Insert):
        conflict = tree.args.get("conflict")
        keys = conflict.args.get("conflict_keys") if conflict else None
        parts: list[exp.Expr] = list(keys or [])
        if conflict is None or not parts:
            return False
        if (where := conflict.args.get("where")) is not None:
            parts.append(where)
    elif isinstance(tree, exp.Update | exp.Delete) and not tree.args.get("using"):
        where = tree.args.get("where")
        parts = [where] if where is not None else []
    else:
        return False
    if any(True for part in parts for _ in part.find_all(exp.Star, exp.Columns, exp.Anonymous)):
        return False
    names = {name for part in parts for name in _names_in(part)}
    columns = [table.column(name) for name in names]
    return all(column is not None and not column.encrypted for column in columns)


def _macros(session: Session) -> set[str]:
    """Views and macros: what they compare does not stand in the statement."""
    return {o.name.lower() for o in session.catalog.objects if o.kind in ("VIEW", "MACRO")}


def _names_in(node: exp.Expr) -> Iterator[str]:
    for found in node.find_all(exp.Column, exp.Identifier):
        inside = isinstance(found, exp.Identifier) and isinstance(found.parent, exp.Column)
        if not inside and not found.name.lower().startswith(lexer.PARAMETER_PREFIX):
            yield found.name


def _keys_met(
    session: Session, tree: exp.Expr | None, table: Table, others: Sequence[Table]
) -> list[Place]:
    """Encrypted keys that INSERT compares with plain values of other tables."""
    plain = any(not column.encrypted for one in others for column in one.columns)
    if not isinstance(tree, exp.Insert) or not plain:
        return []
    keys = {name.lower() for name in guard.rules(session, table).key_columns()}
    return [(table, c) for c in table.columns if c.encrypted and c.name.lower() in keys]


def compared(
    session: Session, words: pieces.Words, tree: exp.Expr | None, tables: Sequence[Table]
) -> list[Place]:
    """The encrypted columns that a statement may compare with plain columns."""
    every = [(table, c) for table in tables for c in table.columns if c.encrypted]
    if not every or all(column.encrypted for table in tables for column in table.columns):
        return []
    if tree is None or isinstance(tree, exp.Command) or _macros(session) & words.names():
        return every
    renamed, free = _renamed(tree)
    found: list[Place] = []
    for names in _comparisons(tree):
        plain, secret = False, []
        for name in names:
            meant = [(t, c) for t in tables if (c := t.column(name)) is not None]
            if not meant and name in free:
                continue
            if not meant or name in renamed:
                plain, secret = True, every
                break
            plain = plain or any(not column.encrypted for _, column in meant)
            secret = secret + [place for place in meant if place[1].encrypted]
        if plain:
            found += secret
    return found


def _renamed(tree: exp.Expr) -> tuple[set[str], set[str]]:
    """Names that the statement gives to what may be of tables, and others to constants."""
    renamed: set[str] = set()
    free: set[str] = set()
    for item in tree.find_all(exp.Alias):
        (free if _constant(item.this) else renamed).add(item.alias.lower())
    for names in tree.find_all(exp.TableAlias):
        source = names.parent
        constant = isinstance(source, exp.Values) and all(map(_constant, source.expressions))
        (free if constant else renamed).update(column.name.lower() for column in names.columns)
    return renamed, free - renamed


def _constant(value: exp.Expr) -> bool:
    columns = value.find_all(exp.Column, exp.Query, exp.Table, exp.Star)
    return all(found.name.lower().startswith(lexer.PARAMETER_PREFIX) for found in columns)


def _comparisons(tree: exp.Expr) -> Iterator[set[str]]:
    """The names of columns that stand in one comparison, for every comparison."""
    for node in tree.walk():
        if isinstance(node, exp.Join):
            for name in node.args.get("using") or []:
                yield {name.name.lower()}
            if node.args.get("method"):
                yield {"*"}
            yield from _atoms(node.args.get("on"))
        elif isinstance(node, exp.Merge):
            yield from _atoms(node.args.get("on"))
            if node.args.get("using_cond"):
                yield {"*"}
        elif isinstance(node, exp.When):
            yield from _atoms(node.args.get("condition"))
        elif isinstance(node, exp.Where | exp.Having | exp.Qualify):
            yield from _atoms(node)
        elif isinstance(node, exp.SetOperation):
            yield _columns(node)


def _atoms(condition: exp.Expr | None) -> Iterator[set[str]]:
    if condition is None:
        return
    if isinstance(condition, _CONNECTORS):
        for part in condition.iter_expressions():
            yield from _atoms(part)
        return
    yield _columns(condition)


def _columns(node: exp.Expr) -> set[str]:
    """The columns of an expression, and of its subqueries those that these give."""
    found: set[str] = set()
    for one in node.walk(prune=lambda n: isinstance(n, _INNER)):
        if isinstance(one, exp.Star):
            found.add("*" if not isinstance(one.parent, exp.Count) else "")
        elif isinstance(one, exp.Column) and not isinstance(one.this, exp.Star):
            found.add(one.name.lower())
        elif isinstance(one, exp.Table | exp.Columns):
            found.add("*")
    return {name for name in found if name and not name.startswith(lexer.PARAMETER_PREFIX)}
