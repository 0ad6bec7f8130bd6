"""The flow rule: what a change may reveal to a server about encrypted columns.

A target column may depend on an encrypted column, by its values or by which rows are written, only
if its own protection is at least as good: it is ENC, and its ceiling is not above the other's.
There are two exceptions, which follow from the meaning of a ceiling: a column under `plaintext` may
flow anywhere, and which rows of a table were changed or copied by a comparison of an encrypted
column with constants is `access`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.sql import lexer, trees
from louver.trusted.planner.write import grammar, relation
from louver.trusted.planner.write.reads import Reads, Secrets, names_of
from louver.trusted.planner.write.relation import Scope
from louver.trusted.planner.write.values import (
    CONSTANT,
    NONE,
    Relation,
    Rows,
    Source,
    Value,
    by_condition,
    of_relation,
    of_table,
    union,
    unknown,
    unknown_rows,
)
from louver.trusted.vault.catalog import Table

_INSERT = {"this", "expression", "by_name", "default", "alternative", "conflict", "with_"}
_INSERT |= {"returning"}
_CONFLICT = {"conflict_keys", "constraint", "expressions", "action", "where", "index_predicate"}
_UPDATE = {"this", "expressions", "from_", "where", "with_", "returning"}
_DELETE = {"this", "using", "where", "with_", "returning", "tables"}
_MERGE = {"this", "using", "on", "using_cond", "whens", "with_", "returning"}


@dataclass(slots=True)
class Flow:
    """What the target of a change depends on.

    ``values`` by folded column name; ``written`` decides which new rows exist, ``touched`` which
    old rows are replaced or removed. ``assigned`` are the columns that an UPDATE sets; None for
    others. ``unchanged`` decides which rows are given the values that they have: old ones are
    compared with new ones.
    """

    values: dict[str, Secrets] = field(default_factory=dict)
    written: Rows = field(default_factory=Rows)
    touched: Rows = field(default_factory=Rows)
    assigned: set[str] | None = None
    unchanged: Rows = field(default_factory=Rows)


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a change writes: its columns' defaults by folded name, and its keys."""

    table: Table
    defaults: Mapping[str, str] = field(default_factory=dict)
    keys: Sequence[str] = ()


def of_change(reads: Reads, target: Target) -> Flow:
    """What the target of INSERT, UPDATE, DELETE or MERGE depends on."""
    tree, known = reads.tree, None
    if isinstance(tree, exp.Expr) and not reads.has_macros:
        scope = Scope(reads)
        if relation.take_queries(tree, scope):
            if isinstance(tree, exp.Insert) and not _odd(tree, _INSERT):
                known = _insert(tree, scope, target)
            elif isinstance(tree, exp.Update) and not _odd(tree, _UPDATE):
                known = _update(tree, scope, target)
            elif isinstance(tree, exp.Delete) and not _odd(tree, _DELETE):
                known = _delete(tree, scope, target)
            elif isinstance(tree, exp.Merge) and not _odd(tree, _MERGE):
                known = _merge(tree, scope, target)
    return known if known is not None else _nothing_known(reads, target)


def _odd(tree: exp.Expr, parts: set[str]) -> bool:
    return bool(set(filter(tree.args.get, tree.args)) - parts)


def _nothing_known(reads: Reads, target: Target) -> Flow:
    """The flow of a statement outside of the grammar."""
    secrets, rows = reads.every_column, unknown_rows(reads.every_column)
    values = {
        name: secrets.union(of_default(reads, text) if text else NONE)
        for name in (fold(column.name) for column in target.table.columns)
        for text in (target.defaults.get(name, ""),)
    }
    return Flow(values, rows, rows, unchanged=rows)


def _insert(tree: exp.Insert, scope: Scope, target: Target) -> Flow | None:
    source, table = tree.args.get("expression"), target.table
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    listed = [fold(item.name) for item in named]
    listed = listed or [fold(c.name) for c in table.columns if not c.expression]
    if isinstance(source, exp.Values):
        given = relation.values(source, scope, None)
    elif source is not None:
        given = relation.query(source, scope.reads, scope)
    else:
        given = Relation()
    values: dict[str, Value] = {}
    for position, name in enumerate(listed if source is not None else ()):
        values[name] = given.named(name) if tree.args.get("by_name") else given.at(position)
    defaults = tree.args.get("by_name") or _uses_defaults(source)
    for column in table.columns:
        name = fold(column.name)
        if name not in values or defaults:
            default = _default(scope, target, name)
            values[name] = values.get(name, CONSTANT) | default
    flow = Flow({name: value.secrets for name, value in values.items()}, given.rows)
    if tree.args.get("conflict") is not None or tree.args.get("alternative"):
        return _conflict(tree, scope, target, values, flow)
    return flow


def _uses_defaults(source: exp.Expr | None) -> bool:
    return source is not None and any(fold(n.name) == "default" for n in source.find_all(exp.Var))


def _default(scope: Scope, target: Target, name: str) -> Value:
    """What the default of a column is computed from."""
    text = target.defaults.get(name, "")
    return Value(of_default(scope.reads, text)) if text else CONSTANT


def of_default(reads: Reads, text: str) -> Secrets:
    """What a default depends on: nothing, or also the context of the statement."""
    tree = trees.parse(f"SELECT {text}")
    if not isinstance(tree, exp.Select) or names_of(lexer.tokens(text)) & reads.macros:
        return reads.everything | reads.context
    known = all(grammar.understood(node) for item in tree.expressions for node in item.walk())
    return NONE if known else reads.everything | reads.context


def _conflict(
    tree: exp.Insert, scope: Scope, target: Target, values: dict[str, Value], flow: Flow
) -> Flow | None:
    """ON CONFLICT and OR REPLACE: keys of old rows are compared with those of new ones."""
    table, conflict = target.table, tree.args.get("conflict")
    named = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    old = of_table(table, next(scope.numbers), fold(named.alias_or_name))
    listed = tuple((name, _given(old, name, value)) for name, value in values.items())
    new = of_relation(Relation(listed), next(scope.numbers), "excluded", [])
    scope.sources = [old, new]
    keys = list(target.keys)
    if conflict is not None and (said := conflict.args.get("conflict_keys")):
        keys = [column.name for key in said for column in key.find_all(exp.Column)]
    for key in map(fold, keys):
        met = old.columns.get(key, CONSTANT) | values.get(key, CONSTANT)
        flow.touched = flow.touched | by_condition(met)
    if conflict is None:
        for name, value in values.items():
            flow.unchanged = flow.unchanged | by_condition(old.columns.get(name, CONSTANT) | value)
        return flow
    # A constraint that is named is one of the keys, of which all are judged.
    if _odd(conflict, _CONFLICT):
        return None
    for part in ("where", "index_predicate"):
        flow.touched = flow.touched | scope.condition(conflict.args.get(part))
    return flow if _assign(conflict.expressions, scope, old, target, flow) else None


def _given(old: Source, name: str, value: Value) -> Value:
    """A new value as ``excluded``: a value for an encrypted column counts as one of its values."""
    stored = old.columns.get(name, CONSTANT)
    return value | stored if stored.secrets else value


def _assign(
    items: Sequence[exp.Expr], scope: Scope, old: Source, target: Target, flow: Flow
) -> bool:
    """Add the assignments of SET; False if one is outside of the grammar.

    A value that does not come from the row itself reveals which other rows it was joined with.
    """
    for item in items:
        if not isinstance(item, exp.EQ):
            return False
        targets = item.this.expressions if isinstance(item.this, exp.Tuple) else [item.this]
        given = item.expression
        if isinstance(item.this, exp.Tuple) and isinstance(given, exp.Tuple):
            parts = given.expressions
        else:
            parts = [given] * len(targets)
        if len(parts) != len(targets):
            return False
        for column, part in zip(targets, parts, strict=True):
            if not isinstance(column, exp.Column) or column.args.get("db"):
                return False
            name = fold(column.name)
            value = _default(scope, target, name) if is_default(part) else scope.single(part)
            secrets = value.secrets
            if (value.holders | value.plains) - {old.number}:
                secrets = secrets | flow.touched.joined
            flow.values[name] = flow.values.get(name, NONE) | secrets
            flow.unchanged = flow.unchanged | by_condition(old.columns.get(name, CONSTANT) | value)
    return True


def _target_source(node: exp.Expr, scope: Scope, target: Target) -> Source:
    source = of_table(target.table, next(scope.numbers), fold(node.alias_or_name))
    scope.sources.append(source)
    return source


def _update(tree: exp.Update, scope: Scope, target: Target) -> Flow | None:
    old = _target_source(tree.this, scope, target)
    clause = tree.args.get("from_")
    if clause is not None and not relation.add_sources(clause.this, [], scope):
        return None
    flow = Flow(touched=scope.rows | scope.condition(tree.args.get("where")))
    if scope.outer:
        flow.touched = flow.touched.all_shown()
    if not _assign(tree.expressions, scope, old, target, flow):
        return None
    flow.touched = flow.touched | Rows(shown=scope.rows.shown, counted=scope.rows.counted)
    flow.assigned = set(flow.values)
    return flow


def is_default(value: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT, which names no column without quotes."""
    if isinstance(value, exp.Var):
        return fold(value.name) == "default"
    return isinstance(value, exp.Column) and fold(value.name) == "default" and not value.this.quoted


def _is_default(item: exp.Expr) -> bool:
    return any(fold(node.name) == "default" for node in item.find_all(exp.Var, exp.Column))


def _delete(tree: exp.Delete, scope: Scope, target: Target) -> Flow | None:
    _target_source(tree.this, scope, target)
    for node in tree.args.get("using") or []:
        if not relation.add_sources(node, [], scope):
            return None
    rows = scope.condition(tree.args.get("where"))
    rows = rows | scope.rows
    return Flow(touched=rows.all_shown() if scope.outer else rows)


def _merge(tree: exp.Merge, scope: Scope, target: Target) -> Flow | None:
    old = _target_source(tree.this, scope, target)
    if not relation.add_sources(tree.args["using"], [], scope):
        return None
    flow = Flow(touched=scope.rows | scope.condition(tree.args.get("on")))
    for name in tree.args.get("using_cond") or []:
        met = union(v for s in scope.sources if (v := s.get(fold(name.name))) is not None)
        flow.touched = flow.touched | by_condition(met)
    whens = tree.args.get("whens")
    for when in whens.expressions if whens is not None else ():
        flow.touched = flow.touched | scope.condition(when.args.get("condition"))
    for when in whens.expressions if whens is not None else ():
        if not _merged(when.args.get("then"), scope, old, target, flow):
            return None
    flow.touched = flow.touched | Rows(shown=scope.rows.shown, counted=scope.rows.counted)
    flow.written = Rows(shown=flow.touched.shown, counted=flow.touched.counted)
    return flow


def _merged(then: exp.Expr | None, scope: Scope, old: Source, target: Target, flow: Flow) -> bool:
    """Add one WHEN of MERGE; False if it is outside of the grammar."""
    if isinstance(then, exp.Update):
        if not then.expressions:
            return _whole(scope, old, target, flow)
        return _assign(then.expressions, scope, old, target, flow)
    if isinstance(then, exp.Insert):
        given, named = then.args.get("expression"), then.this
        if not given and (named is None or named.sql() == "(BY AS NAME)"):
            return _whole(scope, old, target, flow)
        if not isinstance(given, exp.Tuple):
            return False
        listed = [fold(item.name) for item in named.expressions] if named is not None else []
        listed = listed or [fold(c.name) for c in target.table.columns if not c.expression]
        if len(listed) < len(given.expressions):
            return False
        for name, part in zip(listed, given.expressions, strict=False):
            flow.values[name] = flow.values.get(name, NONE) | scope.single(part).secrets
        for name in {fold(c.name) for c in target.table.columns}:
            if name not in listed or _is_default(given):
                default = _default(scope, target, name).secrets
                flow.values[name] = flow.values.get(name, NONE) | default
        return True
    return isinstance(then, exp.Var) and keyword(then.name) in ("DELETE", "DO NOTHING")


def _whole(scope: Scope, old: Source, target: Target, flow: Flow) -> bool:
    """UPDATE or INSERT of a whole row, by name or by position: any column may be any other."""
    given = union(source.whole for source in scope.sources if source is not old)
    for column in target.table.columns:
        name = fold(column.name)
        value = given | _default(scope, target, name)
        secrets = value.secrets | flow.touched.joined
        flow.values[name] = flow.values.get(name, NONE) | secrets
        flow.unchanged = flow.unchanged | by_condition(old.columns.get(name, CONSTANT) | value)
    return True


def of_query(reads: Reads) -> Relation:
    """What each column of a query, and its rows, depend on."""
    if reads.tree is None:
        return Relation(rest=unknown(reads.anything), rows=unknown_rows(reads.everything))
    return relation.query(reads.tree, reads, None)


def of_expression(reads: Reads, text: str, table: Table, without: Iterable[str] = ()) -> Secrets:
    """What an expression over the columns of one table depends on."""
    tree = trees.parse(f"SELECT {text}")
    if not isinstance(tree, exp.Select) or reads.has_macros:
        return reads.anything
    scope = Scope(reads)
    scope.sources.append(of_table(table, next(scope.numbers), fold(table.name)))
    for name in map(fold, without):
        scope.sources[0].columns.pop(name, None)
    return union(map(scope.value, tree.expressions)).secrets
