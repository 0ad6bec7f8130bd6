"""Look-ups in two steps: the columns of a condition are read first, the others of the rows that
pass it, by their numbers.

This is for conditions that the server cannot decide, or may not: on sealed columns without codes,
patterns, expressions. They are decided locally, and which rows are asked for afterwards shows which
ones passed. So every column that is read must admit that the server sees which rows a query
touches; else the table is read as a whole. As with pushes, a superset of the rows is right: what is
not understood is left out of an AND, and an OR is kept only if each of its sides leaves something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from louver.names import fold
from louver.trusted.planner import cost
from louver.trusted.planner.ir import LOOKUP_ROWS, Lookup, Output, RemoteQuery
from louver.trusted.planner.operators import codes
from louver.trusted.planner.split.scans.conditions import Conditions, parts
from louver.trusted.planner.split.scans.query_blocks import Block, Occurrence
from louver.trusted.planner.sql import lexer, placeholders
from louver.trusted.planner.sql.scope import Source
from louver.trusted.planner.sql.trees import local_text
from louver.trusted.vault.types import is_collated

#: What a condition may consist of: its text means what the user's text means, at any time.
_VOCABULARY = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.And, exp.Or,
    exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Add, exp.Sub, exp.Mul, exp.Div,
    exp.IntDiv, exp.Mod, exp.Neg, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Case,
    exp.If, exp.Coalesce, exp.Abs, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Round, exp.Upper,
    exp.Lower, exp.Length, exp.DPipe,
)  # fmt: skip
_CAST_TYPES = frozenset(
    ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL")
    + ("DATE", "TIMESTAMP", "TEXT", "VARCHAR")
)


def planned(
    remote: RemoteQuery,
    scanned: Source,
    owners: Sequence[Occurrence],
    blocks: Sequence[Block],
    conditions: Conditions,
    link: cost.Link,
    *,
    may_show: bool,
) -> RemoteQuery:
    """A scan as a look-up by what the ``owners``, all occurrences of its table, ask for, if that is
    expected to pay; ``may_show`` tells whether the server may see which rows are read.
    """
    if not scanned.backend.computes:
        return remote
    chosen = conditions_of(scanned, owners, blocks, conditions, pushed=bool(remote.where))
    if chosen is None:
        return remote
    matches = remote.rows * min(chosen.left, 1.0)
    first, rest = _steps(remote, chosen.names, matches)
    if rest is not None:
        pays = cost.looks_up(rest, remote.rows, matches, link, scanned.backend.costs)
        remote = replace(remote, weighed=True)
        if not may_show or not pays or chosen.left > scanned.backend.costs.most_left:
            return remote
    return replace(remote, lookup=Lookup(first, rest, chosen.condition, matches))


@dataclass(frozen=True, slots=True)
class Chosen:
    """What rows must meet to matter: a condition as `ir.Lookup` has it, the folded names of the
    columns that it is on, and the share of rows that it is expected to leave.
    """

    condition: str
    names: frozenset[str]
    left: float


def conditions_of(
    scanned: Source,
    owners: Sequence[Occurrence],
    blocks: Sequence[Block],
    conditions: Conditions,
    *,
    pushed: bool,
) -> Chosen | None:
    """What the ``owners``, all occurrences of a table, ask for that can be decided locally; with
    ``pushed`` beside what the server decides. None where one of them may need any row.
    """
    required = [_required(owner, blocks, conditions, pushed=pushed) for owner in owners]
    if not owners or not all(required):
        return None
    names: set[str] = set()
    left, texts = 0.0, []
    for owner, wanted in zip(owners, required, strict=True):
        scope = conditions.scope({owner.slot: scanned.slot})
        share = 1.0
        for node in wanted:
            share *= cost.fraction(node, scope)
            names |= {fold(column.name) for column in node.find_all(exp.Column)}
        left += share
        text = _text(wanted, conditions)
        if text is None:
            return None
        if text not in texts:
            texts.append(text)
    return Chosen(" OR ".join(f"({text})" for text in texts), frozenset(names), left)


def _steps(
    remote: RemoteQuery, names: frozenset[str], matches: float
) -> tuple[RemoteQuery, RemoteQuery | None]:
    """What is read of all rows, for a condition on columns of these folded names, and afterwards,
    of so many rows.
    """
    read = [out for out in remote.outputs if out.kind != "absent"]
    others = tuple(out for out in read if fold(out.name) not in names)

    def step(outputs: tuple[Output, ...], rows: float) -> RemoteQuery:
        query = replace(remote, outputs=outputs, whole_table=True, rows=rows)
        return replace(query, width=cost.row_bytes(query))

    first = step(tuple(out for out in read if out not in others), remote.rows)
    return first, step(others, matches) if others else None


def _required(
    owner: Occurrence, blocks: Sequence[Block], conditions: Conditions, *, pushed: bool
) -> list[exp.Expr]:
    """The conditions on one occurrence alone that a row of it must meet to matter; with ``pushed``
    without those that the server decides.
    """
    nodes: list[exp.Expr] = []
    alone = frozenset({owner.slot})
    for block in blocks:
        for context in block.contexts:
            if owner.slot not in context.targets:
                continue
            for part in parts(context.condition, block):
                node = _weakened(part, owner, block, conditions)
                if node is None or node in nodes:
                    continue
                if not pushed or not conditions.decides(node, alone):
                    nodes.append(node)
    return nodes


def _weakened(
    node: exp.Expr, owner: Occurrence, block: Block, conditions: Conditions
) -> exp.Expr | None:
    """What a condition says of an occurrence alone, as far as it can be decided by itself."""
    if isinstance(node, exp.Paren):
        return _weakened(node.this, owner, block, conditions)
    if isinstance(node, exp.And | exp.Or):
        left, right = (
            _weakened(side, owner, block, conditions) for side in (node.this, node.expression)
        )
        if isinstance(node, exp.And) and (left is None or right is None):
            return left if left is not None else right
        if left is None or right is None:
            return None
        return exp.Paren(this=type(node)(this=left, expression=right))
    bound = conditions.bound(node, block)
    if bound is None or bound[1] != {owner.slot}:
        return None
    return bound[0] if _is_known(bound[0], owner) else None


def _is_known(node: exp.Expr, owner: Occurrence) -> bool:
    for part in node.walk():
        if not isinstance(part, _VOCABULARY) or isinstance(part, exp.TryCast):
            return False
        if isinstance(part, exp.Cast) and _type_name(part) not in _CAST_TYPES:
            return False
        if isinstance(part, exp.Column) and not placeholders.is_placeholder(part):
            column = owner.table.column(part.name)
            if column is None or is_collated(column.type):
                return False
    return True


def _type_name(cast: exp.Cast) -> str:
    """The name of the type that is cast to; "" of one that sqlglot has no number for."""
    kind = cast.to.this
    return kind.name if isinstance(kind, exp.DType) else ""


def _text(nodes: Sequence[exp.Expr], conditions: Conditions) -> str | None:
    """Conditions as one local text with the statement's numbers left open; None where a bound value
    has no such text.
    """
    texts: list[str] = []
    starts = conditions.shape.starts
    for node in nodes:
        copy = exp.Paren(this=node.copy())
        for part in list(copy.find_all(exp.Literal, exp.Column)):
            if isinstance(part, exp.Column) and placeholders.is_placeholder(part):
                value = _value(placeholders.place_of(part), conditions)
                if value is None:
                    return None
                part.replace(exp.Var(this=value))
            elif isinstance(part, exp.Column):
                part.set("table", exp.to_identifier(LOOKUP_ROWS))
            elif not part.is_string and part.meta.get("start") in starts:
                part.replace(exp.Var(this=f"⟪{starts.index(part.meta['start'])}⟫"))
        texts.append(local_text(copy))
    return " AND ".join(texts)


def _value(position: int, conditions: Conditions) -> str | None:
    """A bound value as a constant of the type that the local engine binds it with; whole numbers
    and texts are left open.
    """
    values = conditions.parameters
    index = len(conditions.shape.literals) - len(values) + position
    if isinstance(values, lexer.Values) and values.is_text(position):
        return f"CAST(⟪{index}⟫ AS VARCHAR)"
    value = values[position]
    if isinstance(value, str):
        return f"CAST(⟪{index}⟫ AS VARCHAR)" if lexer.is_open_text(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 1 << 63:
            return None
        type_ = "INTEGER" if -(1 << 31) <= value < 1 << 31 else "BIGINT"
        return f"CAST(⟪{index}⟫ AS {type_})"
    # Any other value is part of the plan's key.
    return codes.written(value)
