"""Queries of the rows of one table whose columns have certain values, for the compiled module: what
it sends in the place of the values, and what it decides, orders and takes of the opened rows.

The general way runs them too, and shows the server the same: the text is its own, but that it asks
for no more rows than the module takes, and that values of plain columns go beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot.tokens import Token

from louver.trusted.executor import constant_encoding, point_reads
from louver.trusted.executor.binding import Bound
from louver.trusted.executor.context import Context
from louver.trusted.executor.local import exact
from louver.trusted.executor.local.postgres.equalities import Condition, Given, Query
from louver.trusted.planner.ir import Code, Node, Plan, RemoteQuery, Sql
from louver.trusted.planner.operators import keys
from louver.trusted.planner.operators.codes import fill
from louver.trusted.planner.sql import lexer
from louver.trusted.vault import native, scheme, schemes
from louver.trusted.vault.catalog import Catalog, Table
from louver.trusted.vault.scheme import has_shares
from louver.trusted.vault.types import code_domain, is_as_sent, is_integer, value_range
from louver.wire.messages import Statement

MOST_ROWS = 4_096
"""Of more rows the answer is the general way's."""
_INT8, _TEXT = 20, 25
_LARGEST = (1 << 63) - 1
_COMPARISONS = (r"\({} = (.+)\)", r"\((.+) = {}\)", r"\({} IN \((.+)\)\)")
Source = object
"""`(position of a parameter, its type, its limits)`, or a constant."""


@dataclass(frozen=True, slots=True)
class EqualRows:
    """A query that just ran by a plan: the statement that its server was sent."""

    text: lexer.Text
    plan: Plan
    catalog: Catalog
    table: Table
    literals: Sequence[str]
    #: how many of these are of the text, not of its parameters
    own: int
    statement: Statement

    @property
    def remote(self) -> RemoteQuery:
        """What the server is asked."""
        return self.plan.remotes[0]


@dataclass(frozen=True, slots=True)
class Read:
    """How the module runs one: the server's text, what opens the answers and finishes them, the
    positions of the answer's columns among those that are opened, and the encrypted ones, by id.
    """

    sql: str
    handle: Any
    finish: Any
    shown: list[int]
    opens: frozenset[tuple[int, int]]


def noted(
    context: Context, text: lexer.Text, tokens: Sequence[Token], ready: Bound
) -> EqualRows | None:
    """A query that ran, if its plan reads rows of one table by codes that are compared, and by
    nothing that depends on others; None of any other.
    """
    plan = ready.plan
    if len(plan.remotes) != 1 or not plan.reads_secret:
        return None
    (remote,), (statement,) = plan.remotes, ready.statements
    if len(remote.sources) != 1 or not remote.where or not isinstance(statement, Statement):
        return None
    if remote.joins or remote.inner or remote.probes or remote.lookup is not None:
        return None
    if remote.grouped or remote.having or remote.order or remote.limit or remote.filters:
        return None
    table = context.catalog.by_id(remote.sources[0].table)
    if remote.counted or has_shares(table) or any(map(exact.may_change, plan.types)):
        return None
    own = len(lexer.shape(text.plain, tokens).literals)
    return EqualRows(text, plan, context.catalog, table, ready.literals, own, statement)


def prepared(
    context: Context, noted: EqualRows, query: Query, parameters: Sequence[int]
) -> Read | None:
    """How the module runs it, with parameters of these types; None where Python must."""
    remote, table = noted.remote, noted.table
    if query.table != (table.schema, table.name):
        return None
    outputs = [output for output in remote.outputs if output.kind != "absent"]
    names = [output.name for output in outputs]
    used = {*query.shown, *(item.column for item in query.conditions)}
    used |= {item.column for item in query.order}
    columns = [point_reads.column_of(context, remote, table, output) for output in outputs]
    known = [column for column in columns if column is not None]
    if not used.issubset(names) or len(known) < len(columns):
        return None
    shown = [names.index(name) for name in query.shown]
    fields = [context.local.arrow_field(type_).type for type_ in noted.plan.types]
    if [known[at][2] for at in shown] != fields:
        return None
    sent = _Sending(context, noted, query, parameters).sent()
    if sent is None:
        return None
    sql, constants = sent
    conditions = [
        (names.index(item.column), item.kind.name, item.kind.trims,
         [source(value, parameters, None) for value in item.values])
        for item in query.conditions
    ]  # fmt: skip
    order = [
        (names.index(item.column), item.trims, item.descends, item.nulls_first)
        for item in query.order
    ]
    counts = [
        None if count is None else source(count, parameters, None)
        for count in (query.limit, query.offset)
    ]
    finish = native.module().proxy.Finish(
        constants, conditions, order, *counts, bool(noted.plan.opens)
    )
    handle = native.module().look_ups.LookUp(f"r{remote.sources[0].slot}", known, [], MOST_ROWS)
    opens = frozenset(column[1][:2] for column in known if column[1] is not None)
    return Read(f"{sql}\nLIMIT {MOST_ROWS + 1}", handle, finish, shown, opens)


def source(given: Given, parameters: Sequence[int], limits: tuple[int, int] | None) -> Source:
    """Where a value comes from, as the module knows it."""
    if given.parameter < 0:
        return given.value
    return given.parameter, parameters[given.parameter], limits


class _Sending:
    """What the server is sent: the text, and what the module makes of the values beside it."""

    def __init__(
        self, context: Context, noted: EqualRows, query: Query, parameters: Sequence[int]
    ) -> None:
        self._context, self._noted, self._parameters = context, noted, parameters
        self._conditions: dict[str, Condition] = {}
        for item in query.conditions:
            # Of two conditions on one column the server was sent one, whichever.
            self._conditions.setdefault(item.column, item)
        self._counts = Counter(item.column for item in query.conditions)
        self._codes: list[Code] = []
        self._constants: list[tuple[object, ...]] = []
        self._plain: list[tuple[str, str, list[tuple[object, ...]]]] = []

    def sent(self) -> tuple[str, list[tuple[object, ...]]] | None:
        """The text with the constants; None where the server decides more than the query's own
        conditions, or what it is sent is another thing.
        """
        noted = self._noted
        if not all(map(self._take, noted.remote.where)):
            return None
        columns, literals = self._context.columns, noted.literals
        # The general way has bound the same codes, in the same order.
        bound = [columns.constant(item, literals) for item in self._codes]
        if bound != list(noted.statement.constants):
            return None
        sql, constants = noted.statement.sql, self._constants
        for before, name, more in self._plain:
            if sql.count(before) != 1:
                return None
            numbers = range(len(constants) + 1, len(constants) + len(more) + 1)
            constants = [*constants, *more]
            sql = sql.replace(before, f"({name} IN ({', '.join(f'${n}' for n in numbers)}))")
        return sql, constants

    def _take(self, node: Node) -> bool:
        """A condition of the text for the server; whether the query has it too."""
        codes = keys.codes_of(node)
        if not codes:
            return self._take_plain(node)
        table = self._noted.table
        columns = constant_encoding.columns_of(table, codes[0])
        tags = scheme.scheme_of(codes[0].onion).tags
        if len(columns) > 1 and len(codes) > 1:
            return False
        domains = [code_domain(column.type) or "" for column in columns]
        if not all(map(is_as_sent, domains)):
            return False
        # Of the only condition on a column, whatever the text has in the place of its values.
        only = self._only_values(columns[0].name) if len(columns) == 1 else ()
        given = [[value] for value in only] if len(only) == len(codes) else []
        for item in () if given else codes:
            known = [self._given(part.text) for part in (item, *item.more)]
            given.append([value for value in known if value is not None])
        owners = [constant_encoding.columns_of(table, item) for item in codes]
        if any(item.onion != codes[0].onion for item in codes) or owners != [columns] * len(codes):
            return False
        if any(len(row) != len(columns) for row in given):
            return False
        for at, column in enumerate(columns):
            condition = self._conditions.get(column.name)
            values = {row[at] for row in given}
            if condition is None or not values.issuperset(condition.values):
                return False
        for item, row in zip(codes, given, strict=True):
            pairs = zip(row, columns, strict=True)
            sources = [
                source(value, self._parameters, _limits(column.type)) for value, column in pairs
            ]
            if tags:
                label = schemes.key_label(table, columns)
                self._constants.append((label, domains, sources))
            else:
                step = schemes.constant_step(table, columns[0], item.onion)
                if step is None:
                    return False
                self._constants.append((*step, sources[0]))
            self._codes.append(item)
        return True

    def _only_values(self, name: str) -> tuple[Given, ...]:
        """The values of the only condition on a column; none where there is another one."""
        return self._conditions[name].values if self._counts[name] == 1 else ()

    def _take_plain(self, node: Node) -> bool:
        """A condition on a column that is not encrypted: the numbers or texts that the text of the
        general way has in it go beside it.
        """
        if not isinstance(node, Sql) or node.children:
            return False
        alias = self._noted.remote.sources[0].server_alias
        for name, condition in self._conditions.items():
            column, values = self._noted.table.column(name), self._only_values(name)
            if column is None or column.encrypted or not (condition.is_whole or condition.is_text):
                continue
            quoted = name.replace('"', '""')
            stored = f'{alias}."{quoted}"'
            beside = _beside(node.text, stored)
            if beside is None:
                continue
            if not values or f"{alias}." in beside:
                return False
            type_ = _INT8 if condition.is_whole else _TEXT
            limits = _limits(column.type) if condition.is_whole else None
            sources = [source(value, self._parameters, limits) for value in values]
            constants: list[tuple[object, ...]] = [(type_, item) for item in sources]
            self._plain.append((fill(node.text, list(self._noted.literals)), stored, constants))
            return True
        return False

    def _given(self, text: str) -> Given | None:
        """What a constant of a condition is; None where it is worked out."""
        noted = self._noted
        match = point_reads.LITERAL.fullmatch(text)
        if match is None:
            return None
        position = int(match[1])
        if position >= noted.own:
            return Given(position - noted.own)
        number = point_reads.whole_number(noted.literals[position])
        return None if number is None else Given(value=number)


def _beside(text: str, stored: str) -> str | None:
    """What a condition compares a column with; None of another one."""
    for pattern in _COMPARISONS:
        match = re.fullmatch(pattern.format(re.escape(stored)), text, re.DOTALL)
        if match is not None:
            return match[1]
    return None


def _limits(type_: str) -> tuple[int, int] | None:
    """Least and largest number of a type of whole numbers."""
    limits = value_range(type_) if is_integer(type_) else None
    return None if limits is None else (max(limits[0], -_LARGEST - 1), min(limits[1], _LARGEST))
