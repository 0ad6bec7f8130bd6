"""Rows by their keys, of a statement that comes again: one call of the compiled module seals the
keys, and one opens, verifies and decides again what the server answers. It is the same as what
`Columns` and `ServerStorage` do, without an Arrow table for each step; what it does not know, or
refuses, is left to them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from louver.trusted.executor import constant_encoding
from louver.trusted.executor.context import Context
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import SEALED, Code, Output, Plan, RemoteQuery
from louver.trusted.planner.operators import keys
from louver.trusted.planner.render import answer_name
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native, scheme, schemes
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import code_domain, is_as_written, is_integer, value_range
from louver.untrusted.engines.engine import Replying
from louver.wire.messages import Statement

#: A constant of a condition that is a number of the statement as it is.
LITERAL = re.compile(r"\(*(?:CAST\()?⟪([0-9]+)⟫(?: AS (?:uuid|numeric)\))?\)*")
#: Values of different widths have plans of their own.
_MOST_POINTS = 8
_QUERY = re.compile(r"SELECT [^\n]+\nFROM ([^\n]+ AS t0\nWHERE [^\n]+)")
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
Positions = tuple[tuple[tuple[int, ...], ...], ...]
"""Of each key, and each constant, the literals of the statement that are its columns' values."""


@dataclass(frozen=True, slots=True)
class PointRead:
    """What runs one plan: a text for the server and what opens its answers."""

    #: the connection, which is `Replying`
    engine: Any
    sql: str
    handle: Any
    positions: Positions
    remote: RemoteQuery
    #: the names of the opened columns, and which of them are the answer's, in its order
    names: list[str]
    shown: list[int]
    #: the encrypted columns that are opened, by the ids of table and column
    opens: frozenset[tuple[int, int]]

    @property
    def removing(self) -> str | None:
        """What removes the rows of one table that it reads, where it is known by its form."""
        parts = _QUERY.fullmatch(self.sql)
        return None if parts is None else f"DELETE FROM {parts[1]}"

    def tags(self, context: Context, shape: lexer.Shape, parameters: Sequence[object]) -> Any:
        """The tags of the statement's values; None where a value is not taken as it is."""
        first = len(shape.literals) - len(parameters)

        def value(position: int) -> object:
            if position >= first:
                known = parameters[position - first]
                return known if type(known) is int else _written(known)
            return whole_number(shape.literals[position])

        values = [
            [tuple(map(value, columns)) for columns in constants] for constants in self.positions
        ]
        return context.columns.keyring.look_up_tags(self.handle, values)

    def opened(self, context: Context, tags: Any) -> Any | None:
        """Ask the server, in one round trip with what waits, and open its rows; None where the
        general way is to open them, or to say what is wrong with them.
        """
        reply = self.engine.reply(Statement(self.sql, tuple(tags.texts())))
        context.columns.opened |= self.opens
        return context.columns.keyring.look_up_rows(self.handle, reply, tags)

    def table(self, opened: Any) -> pa.Table:
        """Opened rows as a table, behind its columns the numbers of the rows."""
        return pa.table([*opened.arrays(), opened.row_ids()], [*self.names, ROW_ID])


def _written(value: object) -> str | None:
    """A value as PostgreSQL writes it; None of any that Python writes otherwise."""
    if isinstance(value, str):
        return value if lexer.is_open_text(value) else None
    if type(value) is Decimal:
        return f"{value:f}" if value.is_finite() else None
    return str(value) if type(value) is UUID else None


def whole_number(text: str) -> int | None:
    """A literal that is a whole number of 64 bits under any settings."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else None


class Points:
    """Plans that ran, and what runs each of them by one call each way, if there is such."""

    def __init__(self) -> None:
        """None is known at first."""
        self._known: list[tuple[Plan, PointRead | None]] = []

    def of(self, plan: Plan) -> tuple[bool, PointRead | None]:
        """Whether a plan was looked at, and what runs it."""
        for known, point in self._known:
            if known is plan:
                return True, point
        for position, (known, point) in enumerate(self._known):
            if known == plan:  # of another version of the catalog
                self._known[position] = plan, point
                return True, point
        return False, None

    def note(self, plan: Plan, point: PointRead | None) -> None:
        """What runs a plan."""
        self._known.insert(0, (plan, point))
        del self._known[_MOST_POINTS:]

    def clear(self) -> None:
        """Know none any more: their catalog has gone."""
        self._known.clear()


Limits = tuple[tuple[int, int, int], ...]
"""Of parameters, by their places, least and largest number of their columns' types."""


def limits_of(context: Context, plan: Plan, text: lexer.Shape) -> Limits:
    """Those of the parameters that keys are compared with, of a text by its shape without them: in
    a language that types a parameter by what it is compared with, another number is an error.
    """
    first = len(text.literals)
    results: list[tuple[int, int, int]] = []
    for remote in plan.remotes if context.local.dialect.reads_off else ():
        for item in (code for node in remote.where for code in keys.codes_of(node) or ()):
            table = context.catalog.by_id(item.table)
            columns = constant_encoding.columns_of(table, item)
            for part, column in zip((item, *item.more), columns, strict=True):
                match, limits = LITERAL.fullmatch(part.text), value_range(column.type)
                position = int(match[1]) - first if match is not None else -1
                if position >= 0 and limits is not None and is_integer(column.type):
                    results.append((position, *limits))
    return tuple(results)


def are_within(limits: Limits, parameters: Sequence[object]) -> bool:
    """Whether all whole numbers among the parameters are within their limits."""
    for position, least, most in limits:
        value = parameters[position]
        if isinstance(value, int) and not least <= value <= most:
            return False
    return True


def prepared(
    context: Context,
    plan: Plan,
    shape: lexer.Shape,
    parameters: Sequence[object],
    statement: Statement,
) -> PointRead | None:
    """What runs a plan by keys that just ran as a ``statement``; None where it is more."""
    (remote,) = plan.remotes
    if len(remote.sources) != 1 or remote.grouped or remote.probes or remote.lookup is not None:
        return None
    if not isinstance(context.engine, Replying):
        return None
    table = context.catalog.by_id(remote.sources[0].table)
    outputs = [output for output in remote.outputs if output.kind != "absent"]
    names = [output.name for output in outputs]
    columns = [column_of(context, remote, table, output) for output in outputs]
    given = [_key(table, names, shape, keys.codes_of(node)) for node in remote.where]
    most = keys.most_rows(remote)
    if most is None or not _has_types(context, plan, outputs):
        return None
    known = [column for column in columns if column is not None]
    by = [item for item in given if item is not None]
    if len(known) < len(columns) or len(by) < len(given):
        return None
    handle = native.module().look_ups.LookUp(
        f"r{remote.sources[0].slot}", known, [item[0] for item in by], most
    )
    shown = [names.index(name) for name in plan.columns]
    positions = tuple(item[1] for item in by)
    opens = frozenset(column[1][:2] for column in known if column[1] is not None)
    own = context.engine, statement.sql, handle, positions
    point = PointRead(*own, remote, names, shown, opens)
    tags = point.tags(context, shape, parameters)
    # The general way has bound the same values, in the same order.
    return point if tags is not None and tags.texts() == list(statement.constants) else None


def column_of(
    context: Context, remote: RemoteQuery, table: Table, output: Output
) -> tuple[str, tuple[int, int, int] | None, Any] | None:
    """The name of a column in the answer, its key if it is sealed, and the type of its values."""
    name, field = answer_name(output.name, remote), context.local.arrow_field(output.type)
    if output.summed is not None or output.row is not None:
        return None
    if output.kind == "plain":
        return name, None, field.type
    column = next((c for c in table.columns if c.id == output.column), None)
    if output.kind != SEALED or column is None or not schemes.is_opened_by_row(column):
        return None
    return name, (table.id, column.id, column.generation), field.type


def _key(
    table: Table, names: Sequence[str], shape: lexer.Shape, codes: Sequence[Code]
) -> tuple[tuple[str, list[str], list[int]], tuple[tuple[int, ...], ...]] | None:
    """The key that a condition compares, and the literals that it is compared with."""
    if not codes or not all(scheme.scheme_of(item.onion).tags for item in codes):
        return None
    columns = constant_encoding.columns_of(table, codes[0])
    domains = [code_domain(column.type) or "" for column in columns]
    if not all(map(is_as_written, domains)):
        return None
    if not all(column.name in names for column in columns):
        return None
    positions: list[tuple[int, ...]] = []
    for item in codes:
        if constant_encoding.columns_of(table, item) != columns:
            return None
        matches = [LITERAL.fullmatch(part.text) for part in (item, *item.more)]
        numbers = tuple(int(match[1]) for match in matches if match is not None)
        if len(numbers) < len(matches) or max(numbers) >= len(shape.literals):
            return None
        positions.append(numbers)
    of_key = schemes.key_label(table, columns), domains, [names.index(c.name) for c in columns]
    return of_key, tuple(positions)


def _has_types(context: Context, plan: Plan, outputs: Sequence[Output]) -> bool:
    """Whether the opened columns are of the types that the plan's are."""
    fields = {o.name: context.local.arrow_field(o.type).type for o in outputs}
    wanted = [context.local.arrow_field(type_).type for type_ in plan.types]
    return [fields.get(name) for name in plan.columns] == wanted
