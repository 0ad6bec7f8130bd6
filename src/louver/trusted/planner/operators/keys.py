"""Look-ups by key: a condition that gives a value to every column of a key is one comparison of
the key's tag with the tag of the values, which the server's unique index answers.

before  WHERE K = 5                      after  WHERE T_key = $1          $1 the tag of (5)
before  WHERE K IN (5, 7)                after  WHERE T_key IN ($1, $2)
before  WHERE A = 5 AND B = 'x'          after  WHERE T_key = $1          (A, B) is the key
before  WHERE K = 5 OR K = 7             after  WHERE T_key IN ($1, $2)
before  WHERE (A, B) = (5, 'x')          after  WHERE T_key = $1          (A, B) is the key
before  WHERE (A, B) IN ((5, 'x'), …)    after  WHERE T_key IN ($1, …)
Leaks: level access: which row was asked for, and that a key is asked for again. No layer opens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp

from louver.names import fold
from louver.trusted.backends.backend import Backend
from louver.trusted.planner.ir import Code, Node, RemoteQuery, Sql
from louver.trusted.planner.ir import Column as StoredColumn
from louver.trusted.planner.operators import codes
from louver.trusted.planner.sql import placeholders, selection
from louver.trusted.planner.sql.lexer import PARAMETER_PREFIX
from louver.trusted.planner.sql.scope import Scope, Source, typed
from louver.trusted.planner.sql.values import EncodedColumn, Predicate
from louver.trusted.vault import facts
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.scheme import key_within, scheme_of, tagging
from louver.trusted.vault.types import code_domain

Owner = TypeVar("Owner")
Find = Callable[[exp.Column], tuple[Owner, Table] | None]
"""Whose a column of a condition is: something that tells table occurrences apart, and its table."""


def equals(column: exp.Column, value: exp.Expr, scope: Scope) -> Predicate | None:
    """``column = constant`` where the column is a key by itself."""
    match = _of_key(column, scope)
    return None if match is None else _looked_up(match[0], [{match[1].id: value}], "=", scope)


def member(column: exp.Column, values: Sequence[exp.Expr], scope: Scope) -> Predicate | None:
    """``column IN (constants)`` where the column is a key by itself."""
    match = _of_key(column, scope)
    if match is None:
        return None
    return _looked_up(match[0], [{match[1].id: value} for value in values], "IN", scope)


def conjunction(node: exp.And, scope: Scope) -> Predicate | None:
    """``a = constant AND b = constant`` where these columns, and no other, are a key."""
    parts = selection.conjuncts(node)
    values: dict[int, exp.Expr] = {}
    sources: list[Source] = []
    for part in parts:
        sides = _sides(part)
        match = scope.find(sides[0]) if sides is not None else None
        if sides is None or match is None or match[1].id in values:
            return None
        values[match[1].id] = sides[1]
        sources.append(match[0])
    if len({source.slot for source in sources}) != 1:
        return None
    key = key_within(sources[0].table, values)
    if key is None or len(key[1]) != len(values):
        return None
    return _looked_up(sources[0], [values], "=", scope)


def rows(
    columns: exp.Tuple, members: Sequence[exp.Expr], sign: str, scope: Scope
) -> Predicate | None:
    """``(a, b) = (constant, constant)``, and IN, where the columns hold those of a key. The rows
    are compared locally again.
    """
    matches = [_match(column.unnest(), scope) for column in columns.expressions]
    known = [match for match in matches if match is not None]
    ids = [column.id for _, column in known]
    if len(known) != len(matches) or len({source.slot for source, _ in known}) != 1:
        return None
    if len(set(ids)) != len(ids):
        return None
    given: list[dict[int, exp.Expr]] = []
    for member in members:
        row = member.unnest()
        if not isinstance(row, exp.Tuple) or len(row.expressions) != len(ids):
            return None
        if not all(
            _tells(value, column, scope)
            for value, (_, column) in zip(row.expressions, known, strict=True)
        ):
            return None
        given.append(dict(zip(ids, row.expressions, strict=True)))
    condition = _looked_up(known[0][0], given, sign, scope)
    return None if condition is None else replace(condition, exact=False)


def _tells(value: exp.Expr, column: Column, scope: Scope) -> bool:
    """Whether a constant within a row is compared as it would be by itself: there a NULL may equal
    NULL, and DuckDB rounds 1.5 to meet a whole number.
    """
    if any(_is_null(part, scope) for part in value.walk()):
        return False
    return codes.holds(column.type, codes.constant_type(value, scope))


def _is_null(part: exp.Expr, scope: Scope) -> bool:
    if not placeholders.is_placeholder(part):
        return isinstance(part, exp.Null)
    return typed(scope.parameters, placeholders.place_of(part)) is None


def grouped(parts: Sequence[exp.Expr], find: Find[Owner]) -> list[exp.Expr]:
    """The parts that AND joins, in which the equalities that make up a key of several columns are
    one part.
    """
    places: dict[Owner, dict[int, int]] = {}
    tables: dict[Owner, Table] = {}
    for position, part in enumerate(parts):
        sides = _sides(part)
        match = find(sides[0]) if sides is not None else None
        column = match[1].column(sides[0].name) if sides is not None and match else None
        if match is not None and column is not None:
            places.setdefault(match[0], {}).setdefault(column.id, position)
            tables[match[0]] = match[1]
    results = list(parts)
    gone: set[int] = set()
    for owner, columns in places.items():
        key = key_within(tables[owner], columns)
        if key is not None and len(key[1]) > 1:
            first, *rest = sorted(columns[id_] for id_ in key[1])
            results[first] = _joined([parts[position] for position in (first, *rest)])
            gone.update(rest)
    return [part for position, part in enumerate(results) if position not in gone]


def regrouped(node: exp.And, find: Find[Owner]) -> exp.Expr:
    """An AND in which what makes up a key of several columns is one side."""
    parts = selection.conjuncts(node)
    together = grouped(parts, find)
    return _joined(together) if 1 < len(together) < len(parts) else node


def finds(scope: Scope) -> Find[int]:
    """Whose the columns of a condition are in a scope."""

    def find(column: exp.Column) -> tuple[int, Table] | None:
        match = scope.find(column)
        return None if match is None else (match[0].slot, match[0].table)

    return find


def codes_of(node: Node) -> list[Code]:
    """The constants that a condition compares one stored column with, by ``=`` or IN; none of any
    other condition.
    """
    if not isinstance(node, Sql) or len(node.children) < 2:
        return []
    stored, *constants = node.children
    if node.text not in (_EQUAL, _in(len(constants))) or not isinstance(stored, StoredColumn):
        return []
    known = [item for item in constants if isinstance(item, Code)]
    return known if len(known) == len(constants) else []


def most_rows(remote: RemoteQuery) -> int | None:
    """How many rows a query of one table can have at most, because it asks for so many keys; None
    where that is not said.
    """
    if len(remote.sources) != 1 or remote.grouped:
        return None
    counts = [looks_up(node) for node in remote.where]
    return min((count for count in counts if count), default=None)


def looks_up(node: Node) -> int:
    """How many keys a condition asks for; 0 of any other condition."""
    constants = codes_of(node)
    tags = bool(constants) and all(scheme_of(item.onion).tags for item in constants)
    return len(constants) if tags else 0


def sieved(text: str, count: int, backend: Backend) -> str:
    """IN with so many codes, none of them a tag, as a condition of WHERE. With ``IS TRUE`` an
    engine that ``sieves`` decides it while it scans the column, and reads other columns where it
    has met a code; IN alone it decides when it has read all columns, by hashing, which pays where
    there are many. Of any other engine no index would serve it.
    """
    if not backend.sieves:
        return text
    return f"({text}) IS TRUE" if 1 < count <= _MOST_SIEVED else text


def either(left: Node, right: Node) -> Sql | None:
    """Two look-ups by one key as one, for an index serves no OR; None of anything else."""
    if not (looks_up(left) and looks_up(right)):
        return None
    if not isinstance(left, Sql) or not isinstance(right, Sql):
        return None
    (stored, *first), (other, *second) = left.children, right.children
    constants = tuple(dict.fromkeys((*first, *second)))
    return Sql(_in(len(constants)), (stored, *constants)) if stored == other else None


_EQUAL = "⟦0⟧ = ⟦1⟧"
_MOST_SIEVED = 32


def _in(count: int) -> str:
    listed = ", ".join(f"⟦{index}⟧" for index in range(1, count + 1))
    return f"⟦0⟧ IN ({listed})"


def _joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    joined = parts[0].copy()
    for part in parts[1:]:
        joined = exp.And(this=joined, expression=part.copy())
    return joined


def _sides(part: exp.Expr) -> tuple[exp.Column, exp.Expr] | None:
    """Column and constant of an equality; None of anything else."""
    part = part.unnest()
    if not isinstance(part, exp.EQ):
        return None
    for column, value in ((part.this, part.expression), (part.expression, part.this)):
        beside = any(_is_column(node) or isinstance(node, exp.Query) for node in value.walk())
        if _is_column(column) and not beside:
            return column, value
    return None


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.name.startswith(PARAMETER_PREFIX)


def _match(column: exp.Expr, scope: Scope) -> tuple[Source, Column] | None:
    """The stored column that a tree stands for."""
    if not isinstance(column, exp.Column) or not _is_column(column):
        return None
    if isinstance(column.this, exp.Star):
        return None
    if not column.table and fold(column.name) in scope.virtual:
        return None
    return scope.find(column)


def _of_key(column: exp.Column, scope: Scope) -> tuple[Source, Column] | None:
    """A column that has tags of its own, and is encrypted or else looked up in the same way."""
    match = _match(column, scope)
    if match is None or not (match[1].encrypted or _looks_up_plain(match[0])):
        return None
    key = key_within(match[0].table, {match[1].id})
    return match if key is not None else None


def _looks_up_plain(source: Source) -> bool:
    """Whether rows are looked up by the tags of plain keys too."""
    return source.backend.tags_plain_keys


def _looked_up(
    source: Source, rows: Sequence[dict[int, exp.Expr]], sign: str, scope: Scope
) -> Predicate | None:
    """That a row has one of these keys, each given as a value by column."""
    scheme, table = tagging(), source.table
    key = key_within(table, rows[0])
    if scheme is None or key is None:
        return None
    columns = [next(c for c in table.columns if c.id == id_) for id_ in key[1]]
    is_secret = any(column.encrypted for column in columns)
    if not is_secret and not _looks_up_plain(source):
        return None
    representation = scheme.representations[0].name
    constants: list[Node] = []
    for values in rows:
        parts = [
            codes.constant(_value(source, column), values[column.id], representation, "=", scope)
            for column in columns
        ]
        known = [part for part in parts if part is not None]
        if len(known) != len(parts):
            return None
        constants.append(replace(known[0], more=tuple(known[1:])))
    answer = scheme.answers[sign]
    text = _EQUAL if sign == "=" else _in(len(constants))
    if is_secret:
        scope.collected.leak(facts.fact(answer.leak, table, columns))
    nullable = any(column.nullable for column in columns)
    node = Sql(text, (StoredColumn(source.server_alias, key[0]), *constants))
    return Predicate(node, True, answer.exact and not (answer.hides_nulls and nullable))


def _value(source: Source, column: Column) -> EncodedColumn:
    """A column of a key as what constants are brought to."""
    return EncodedColumn(
        source.slot,
        source.table.id,
        column.id,
        source.server_alias,
        column.type,
        code_domain(column.type) or "",
        "",
        (),
        0,
        0,
        column.nullable,
    )
