"""The SELECT that needs the rows of its tables which a change needs: what a row cannot do in its
FROM, WHERE and expressions it cannot do in the change either.

UPDATE … FROM and DELETE … USING are products of their tables under WHERE. MERGE joins its source
with the target: to the left where rows of the source that match nothing are inserted. What is not
known is not written as a SELECT, and the change reads its tables whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from louver.names import fold

_PARTS = {"this", "expressions", "from_", "using", "on", "where", "whens", "returning"}
#: What MERGE does without an expression.
_BARE = ("DELETE", "DO NOTHING")
_ACTION = "merge_action"


def select_of(tree: exp.Expr) -> exp.Select | None:
    """The SELECT of an UPDATE, DELETE or MERGE; None of a form that is not known."""
    if set(filter(tree.args.get, tree.args)) - _PARTS or not isinstance(tree.this, exp.Table):
        return None
    if isinstance(tree, exp.Merge):
        return _of_merge(tree)
    if isinstance(tree, exp.Update):
        values = _assigned(tree.expressions)
        clause = tree.args.get("from_")
        sources = [clause.this] if clause is not None else []
    else:
        values, sources = [], list(tree.args.get("using") or [])
    if values is None:
        return None
    select = _over([*sources, tree.this], [*values, *_returned(tree)])
    where = tree.args.get("where")
    if where is not None:
        select.set("where", where.copy())
    return select


def _over(sources: Sequence[exp.Expr], items: Sequence[exp.Expr]) -> exp.Select:
    """A SELECT over a product; joins that a source brings along go before the next one."""
    joins: list[exp.Expr] = []
    first: exp.Expr | None = None
    for source in sources:
        copy = source.copy()
        own = copy.args.get("joins") or []
        copy.set("joins", None)
        if first is None:
            first = copy
        else:
            joins.append(exp.Join(this=copy))
        joins += own
    select = exp.Select(expressions=[item.copy() for item in items] or [exp.Literal.number(1)])
    select.set("from_", exp.From(this=first))
    select.set("joins", joins or None)
    return select


def _assigned(items: Sequence[exp.Expr]) -> list[exp.Expr] | None:
    """What is assigned to columns; None where it is not one expression to each."""
    if not items:
        return None
    if not all(isinstance(i, exp.EQ) and isinstance(i.this, exp.Column) for i in items):
        return None
    return [item.expression for item in items if not _is_default(item.expression)]


def _is_default(value: exp.Expr) -> bool:
    """Whether a value is the word DEFAULT, which names no column without quotes."""
    return isinstance(value, exp.Column) and fold(value.name) == "default" and not value.this.quoted


def _returned(tree: exp.Expr) -> list[exp.Expr]:
    returning = tree.args.get("returning")
    items = returning.expressions if returning is not None else []
    return [item for item in items if not _is_action(item)]


def _is_action(item: exp.Expr) -> bool:
    """Whether RETURNING names what MERGE did with a row, which is a column of no table."""
    return isinstance(item, exp.Column) and fold(item.name) == _ACTION


def _of_merge(tree: exp.Merge) -> exp.Select | None:
    source, on, whens = tree.args.get("using"), tree.args.get("on"), tree.args.get("whens")
    sources = (exp.Table, exp.Subquery, exp.Values)
    if not isinstance(source, sources) or on is None or whens is None:
        return None
    if source.args.get("joins"):
        return None
    items, inserts = _returned(tree), False
    for when in whens.expressions:
        then, condition = when.args.get("then"), when.args.get("condition")
        if when.args.get("source"):
            # Rows of the target that match nothing are changed.
            return None
        values = _done(then)
        if values is None:
            return None
        items += [*values, *([condition] if condition is not None else [])]
        inserts = inserts or not when.args.get("matched")
    select = _over([source], items)
    side = {"side": "LEFT"} if inserts else {}
    select.set("joins", [exp.Join(this=tree.this.copy(), on=on.copy(), **side)])
    return select


def _done(then: exp.Expr | None) -> list[exp.Expr] | None:
    """What a branch of MERGE computes; None where it takes columns without naming them."""
    if isinstance(then, exp.Var) and then.name in _BARE:
        return []
    if isinstance(then, exp.Update):
        return _assigned(then.expressions or [])
    if isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
        return [value for value in then.expression.expressions if not _is_default(value)]
    return None


def branches(tree: exp.Expr) -> list[exp.Expr]:
    """What a change does: itself, or the branches of a MERGE."""
    if not isinstance(tree, exp.Merge):
        return [tree]
    return [when.args["then"] for when in tree.args["whens"].expressions]


def deletes(branch: exp.Expr) -> bool:
    """Whether a branch removes rows."""
    return isinstance(branch, exp.Delete) or (
        isinstance(branch, exp.Var) and branch.name == "DELETE"
    )
