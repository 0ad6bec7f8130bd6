"""ORDER BY … LIMIT on the server: the first rows by order codes or plain columns.

before  SELECT A FROM T ORDER BY B LIMIT 3   after  SELECT A_rnd FROM T ORDER BY B_ord LIMIT 3
the local DuckDB sorts the rows that came once more.
"""

from __future__ import annotations

from sqlglot import exp

from louver.names import fold, keyword
from louver.trusted.planner.ir import Node, Plain, Sql
from louver.trusted.planner.operators import codes
from louver.trusted.planner.operators.encoded import INEXACT
from louver.trusted.planner.split import rewrite
from louver.trusted.planner.sql.scope import Scope
from louver.trusted.planner.sql.values import EncodedColumn


def pushed(select: exp.Select, scope: Scope) -> tuple[list[Node], str]:
    """What the server sorts by, and its limit; no limit where it cannot choose the rows."""
    limit = _number(select.args.get("limit"), scope)
    shown = any(select.args.get(part) for part in ("distinct", "qualify", "windows"))
    if not limit or shown or any(True for _ in select.find_all(exp.Window)):
        return [], ""
    offset = select.args.get("offset")
    if offset is not None:
        more = _number(offset, scope)
        if not more:
            return [], ""
        limit = f"({limit} + {more})"
    before = scope.collected.mark()
    clause = select.args.get("order")
    keys = [_key(item, select, scope) for item in (clause.expressions if clause else ())]
    known = [key for key in keys if key is not None]
    # Without an order the first rows of a join are any rows, and may be others locally.
    if len(known) != len(keys) or (not keys and len(scope.sources) > 1):
        scope.collected.undo(before)
        return [], ""
    return known, limit


def sampled(select: exp.Select, scope: Scope) -> tuple[exp.Select, Node, str] | None:
    """USING SAMPLE of so many rows of one table: the block without it, in which order the server
    takes rows, and how many. DuckDB samples before WHERE. With a seed the sample is DuckDB's own.
    """
    sample = select.args.get("sample")
    if not isinstance(sample, exp.TableSample) or len(scope.sources) != 1:
        return None
    if set(filter(sample.args.get, sample.args)) - {"method", "size"}:
        return None
    size, method = sample.args.get("size"), sample.args.get("method")
    if method is None or keyword(method.name) != "RESERVOIR":
        return None
    limit = _text(size, scope)
    order = scope.operation("random")
    if not limit or order is None:
        return None
    copy = select.copy()
    copy.set("sample", None)
    return copy, order, limit


def _number(clause: exp.Expr | None, scope: Scope) -> str:
    return _text(clause.expression if clause is not None else None, scope)


def _text(value: exp.Expr | None, scope: Scope) -> str:
    if not isinstance(value, exp.Literal) or value.is_string:
        return ""
    start = value.meta.get("start")
    if start not in scope.shape.starts:
        return ""
    index = scope.shape.starts.index(start)
    return f"⟪{index}⟫" if scope.shape.literals[index].isdigit() else ""


def _key(item: exp.Expr, select: exp.Select, scope: Scope) -> Node | None:
    bare = item.this if isinstance(item, exp.Ordered) else item
    if not isinstance(bare, exp.Column) or _is_alias(bare, select):
        return None
    value = rewrite.operand(bare, scope)
    answer = value.answers("ORDER BY") if isinstance(value, EncodedColumn) else None
    if isinstance(value, Plain):
        node = value.node
    elif isinstance(value, EncodedColumn) and answer is not None and orders(value):
        node = codes.shown(value, answer, scope)
    else:
        return None
    down = isinstance(item, exp.Ordered) and item.args.get("desc")
    first = isinstance(item, exp.Ordered) and item.args.get("nulls_first")
    return Sql(f"⟦0⟧ {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}", (node,))


def orders(value: EncodedColumn) -> bool:
    """Whether rows sorted by order codes are sorted by value."""
    return value.domain not in INEXACT and not value.coarse


def _is_alias(column: exp.Column, select: exp.Select) -> bool:
    """Whether a name in ORDER BY means an item of the select list and no column."""
    return any(
        isinstance(item, exp.Alias)
        and fold(item.alias) == fold(column.name)
        and not (isinstance(item.this, exp.Column) and fold(item.this.name) == fold(item.alias))
        for item in select.expressions
    )
