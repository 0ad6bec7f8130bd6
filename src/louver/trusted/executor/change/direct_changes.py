"""Changes of one row that come again, for the compiled module to run in one call.

It does what `change.repeated_changes` does, for rows and values that `raw_rows` takes. What it does
not take, it leaves to Python.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from louver._rust.proxy import Reserve
from louver.trusted.executor import direct, raw_rows, row_writer
from louver.trusted.executor.answer import Answer, Clock
from louver.trusted.executor.change import (
    constant_rows,
    flow,
    judged_changes,
    judged_rows,
    repeated_rows,
)
from louver.trusted.executor.change.returned_columns import Returned
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Ledger
from louver.trusted.executor.schema import numbers_ahead
from louver.trusted.vault import native
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.epochs import COUNTER_BITS
from louver.trusted.vault.facts import Fact, with_condition
from louver.trusted.vault.types import value_range
from louver.wire.messages import Statement

#: After so many runs under one catalog it is looked for what runs a change.
_LEARNS = (1, 2, 4, 16)
#: Numbers that new rows are given at once.
_BLOCK = 1024
_GivenTerm = tuple[int, object, bool, tuple[int, int] | None, list[object], int]


@dataclass(slots=True)
class _Tables:
    """What a session's changes take and leave behind: numbers of new rows, and rows by table."""

    numbers: Any = field(default_factory=lambda: native.module().proxy.RowNumbers())
    growth: dict[int, Any] = field(default_factory=dict)
    #: of each table there the ids of its columns, by the places that it knows them by
    columns: dict[int, list[int]] = field(default_factory=dict)
    _epoch: int = -1

    def numbers_of(self, context: Context, epoch: int) -> Any:
        """Numbers of this epoch, which is the session's now."""
        if self.numbers.left() < _BLOCK // 2 or self._epoch != epoch:
            first = context.row_ids.take(_BLOCK, context.catalog)[0].as_py()
            self.numbers.begin(first, _BLOCK)
            self._epoch = first >> COUNTER_BITS
        return self.numbers

    def renew(self, context: Context) -> bool:
        """Further numbers, if they are of the same epoch."""
        first = context.row_ids.take(_BLOCK, context.catalog)[0].as_py()
        if first >> COUNTER_BITS != self._epoch:
            return False
        self.numbers.begin(first, _BLOCK)
        return True

    def of(self, context: Context, table: Table) -> Any:
        """Where the rows of a table are counted."""
        growth = self.growth.get(table.id)
        if growth is None:
            growth = self.growth[table.id] = native.module().proxy.Growth()
        self._take_over(context, table, growth)
        growth.know([raw_rows.seen(column) for column in table.columns])
        self.columns[table.id] = [column.id for column in table.columns]
        return growth

    def count(self, context: Context) -> None:
        """Take over how many rows were added and removed."""
        for table in context.catalog.tables.values():
            growth = self.growth.get(table.id)
            if growth is not None:
                self._take_over(context, table, growth)

    def _take_over(self, context: Context, table: Table, growth: Any) -> None:
        count, marks = growth.taken()
        known = {column.id: column for column in table.columns}
        for position, mark in marks:
            column = known.get(self.columns[table.id][position])
            if column is not None:
                column.see([mark])
        if count:
            context.state.growth.add(table, count)
            context.state.growth.committed()
            table.kept_complete |= count > 0 and not table.kept
        noted = context.state.growth.noted.get(table.id, table.row_count)
        growth.begin((1 << noted.bit_length()) - 1 - table.row_count)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """How rows are chosen, the facts that further conditions are of, the columns, by the ids of
    table and column, that are opened, and what removes the rows without a look at them.
    """

    rows: Any = None
    facts: Sequence[Fact] = ()
    opens: frozenset[tuple[int, int]] = frozenset()
    removing: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What runs a change, and what that shows."""

    write: Any
    chosen: _Chosen

    def note(self, context: Context) -> None:
        """It has run, or tried to: what was opened and newly shown."""
        opened, counts = self.write.taken()
        context.columns.opened |= self.chosen.opens if opened else frozenset()
        ledger = context.ledger
        if isinstance(ledger, Ledger):
            for fact, count in zip(self.chosen.facts, counts, strict=True):
                ledger.news.note([fact] * count)


@dataclass(slots=True)
class Direct:
    """A change of a table by its form, as a session runs it again and again."""

    key: tuple[str, str]
    form: judged_rows.Form | repeated_rows.Change
    parameters: int
    _change: Change | None = None
    _basis: tuple[object, ...] = ()
    _runs: int = 0

    def run(self, context: Context, parameters: Sequence[object]) -> Answer | None:
        """Run it in one call; None where it takes the general way, which nothing was done for."""
        change = self._change
        if change is None or context.in_transaction:
            return None
        if self._basis != direct.basis(context):
            self._change = None
            return None
        clock = Clock()
        try:
            with clock.step("server"):
                done, is_stale = cast(Any, context.engine).applied(change.write, parameters)
        finally:
            change.note(context)
        if is_stale:
            self._change = None
        if done is None:
            return None
        count(context)
        return Answer(affected=done, times_ms=clock.times_ms)

    def learn(self, context: Context) -> None:
        """It has run in the general way: so it is known what runs it in one call."""
        if context.in_transaction:
            return
        if self._change is not None:
            self._change.write.recorded()
            return
        basis = direct.basis(context)
        if basis != self._basis:
            self._basis, self._runs = basis, 0
        self._runs += 1
        if self._runs in _LEARNS:
            # The types of the parameters tell how messages are read.
            self._change = of(context, self.key, self.form, (0,) * self.parameters)


def count(context: Context) -> None:
    """Take over how many rows were added and removed, and what was drawn of sequences."""
    numbers_ahead.take_over(context)
    context.state.cache(_Tables).count(context)


def renumber(context: Context) -> bool:
    """More numbers for the rows of changes that are known; whether these can take them."""
    return context.state.cache(_Tables).renew(context)


Shown = Sequence[tuple[tuple[str, int, int, int, int, int, int], bool]]
"""Columns as clients learn of them, and whether their texts are printed without Python."""


def of(
    context: Context, key: tuple[str, str], form: object, types: Sequence[int], shown: Shown = ()
) -> Change | None:
    """What runs a change of a table by its form, with parameters of these types, and what it gives
    back ``shown`` so; None where only Python does, or does not know yet.
    """
    table = context.catalog.tables.get(key)
    if table is None or not context.state.writable or context.state.only_reads:
        return None
    if isinstance(form, judged_rows.Form):
        return _inserting(context, types, table, form, shown)
    if not isinstance(form, repeated_rows.Change) or form.form is None:
        return None
    if form.plan.rows is None or form.catalog is not context.catalog:
        return None
    return _changing(context, types, table, form, form.form, shown)


def _inserting(
    context: Context, types: Sequence[int], table: Table, form: judged_rows.Form, shown: Shown
) -> Change | None:
    terms = list[_GivenTerm]()
    pairs = zip(form.form.columns, form.kinds, strict=True)
    for position, (column, kind) in enumerate(pairs):
        if len(column.items) != 1:
            return None
        parts: list[object] = [_part(column.items[0], column.type, types)]
        if column.name in form.draws:
            numbers = numbers_ahead.of(context, form.draws[column.name])
            if numbers is None:
                return None
            parts = [numbers]
        terms.append((position, kind.for_module(), column.required, None, parts, 0))
    new_row = _new_row(context, table, terms)
    if new_row is None:
        return None
    sealed, row = new_row
    text = context.backend.insert_row(table, sealed.names())
    names = [column.name for column in table.columns]
    given_back = _returning(context, table, form.returned, names, shown)
    return _writing(context, table, ("INSERT", text, None), _Chosen(), row, given_back)


def _changing(
    context: Context, types: Sequence[int], table: Table,
    item: repeated_rows.Change, form: judged_changes.Form, shown: Shown,
) -> Change | None:  # fmt: skip
    read = [column.name for column in table.columns]
    if not form.terms:
        read = [] if form.returned is None else list(dict.fromkeys(form.returned.names))
    # What others have committed of the row by then is what is changed.
    lock = "FOR NO KEY UPDATE" if form.terms else "FOR UPDATE"
    chosen = _chosen(context, types, table, item, read, lock)
    if chosen is None:
        return None
    given_back = _returning(context, table, form.returned, read, shown)
    engine: Any = context.engine
    if not form.terms:
        if table.counted:
            return None
        few = Statement(context.backend.delete_few(table, 1), (0,), kind="write")
        text, _ = engine.checked(few, 1)
        delete = ("DELETE", text, chosen.removing)
        return _writing(context, table, delete, chosen, None, given_back)
    if not form.is_of_one_type or not context.backend.replaces or not table.tags or table.kept:
        return None
    names = [column.name for column in table.columns]
    terms = list[_GivenTerm]()
    for term in form.terms:
        if term.reads_given:
            return None
        parts = [
            names.index(part) if isinstance(part, str) else _part(part, term.type, types)
            for part in term.parts()
        ]
        limits = value_range(term.type) if term.sign else None
        kind = form.kinds[term.name].for_module()
        terms.append((names.index(term.name), kind, term.required, limits, parts, term.sign))
    new_row = _new_row(context, table, terms)
    if new_row is None:
        return None
    sealed, row = new_row
    text = context.backend.replace_row(table, sealed.names())
    text = engine.checked_row(text, sealed, (0,))
    return _writing(context, table, ("UPDATE", text, None), chosen, row, given_back)


def _part(item: constant_rows.Item, type_: str, types: Sequence[int]) -> object:
    """A parameter with the number of its type, or a constant of a column of a type."""
    if isinstance(item, int):
        return item, types[item]
    return (raw_rows.raw(item[0], type_),)


def _chosen(
    context: Context, types: Sequence[int], table: Table, item: repeated_rows.Change,
    read: Sequence[str], lock: str,
) -> _Chosen | None:  # fmt: skip
    """How the rows are chosen, of which these columns are read; None where that is not by one call
    each way.
    """
    plan = item.plan.rows
    _, point = item.points.of(plan) if plan is not None else (False, None)
    verdict = context.state.flows.get((table.key, item.shape.key))
    ledger = context.ledger
    if plan is None or point is None or point.engine is not context.engine or verdict is None:
        return None
    if not item.is_decided(point.remote) or not isinstance(ledger, Ledger):
        return None
    sources = direct.sources_of(item.shape, point.positions, types, item.limits)
    stated = ledger.reserves(context.stated(plan, direct.bound(item.shape, len(types))))
    judged, touched = ledger.reserves(flow.again(verdict)), ledger.reserves(_touched(table))
    if sources is None or stated is None or judged is None or touched is None:
        return None
    if not set(read) <= set(point.names):
        return None
    places = [point.names.index(name) for name in read]
    rows = native.module().proxy.Chosen(
        point.handle, f"{point.sql} {lock}", sources, places, (_leaking(stated), _leaking(judged)),
        _leaking(touched), direct.names(context.catalog, point.opens),
    )  # fmt: skip
    facts = [fact for _, fact in (*stated, *judged, *touched)]
    return _Chosen(rows, facts, point.opens, point.removing)


def _leaking(reserves: Sequence[tuple[Reserve, Fact]]) -> list[tuple[Reserve, direct.Leak]]:
    return [(reserve, direct.leak(fact)) for reserve, fact in reserves]


def _touched(table: Table) -> list[Fact]:
    return with_condition(row_writer.touched(table), secrets.token_hex(8))


def _new_row(context: Context, table: Table, terms: Sequence[_GivenTerm]) -> tuple[Any, Any] | None:
    """A sealed row of NULLs, which is never sent, and how new rows are made."""
    bounds = [raw_rows.bounds(column) for column in table.columns]
    if table.counted or table.kept or not getattr(context.engine, "takes_rows", False):
        return None
    if not context.columns.recipes.seals_rows(table):
        return None
    recipe = context.columns.recipes.of(table)
    types = [context.local.arrow_field(column.type).type for column in table.columns]
    if recipe.form is None:
        recipe.make_form(table, types)
    nothing = [None] * len(table.columns)
    number = context.row_ids.take_one(context.catalog)
    sealed = context.columns.keyring.seal_raw(recipe, nothing, number)
    if sealed is None:
        return None
    numbers = context.state.cache(_Tables).numbers_of(context, number >> COUNTER_BITS)
    try:
        row = native.module().proxy.NewRow(
            terms, types, bounds, recipe.form, recipe.places, numbers
        )
    except ValueError:
        return None  # a column is of a type whose values are not taken so
    return sealed, row


def _returning(
    context: Context, table: Table, returned: Returned | None, names: Sequence[str], shown: Shown
) -> Any:
    """What is given back of a row that has the columns of these names."""
    if returned is None:
        return None
    types = {column.name: context.local.arrow_field(column.type).type for column in table.columns}
    return native.module().proxy.Returning([
        (names.index(name), types[name], *column)
        for name, column in zip(returned.names, shown, strict=True)
    ])  # fmt: skip


def _writing(
    context: Context, table: Table, texts: tuple[str, str, str | None], chosen: _Chosen,
    new_row: Any, returning: Any,
) -> Change | None:  # fmt: skip
    sent = opening(context)
    if sent is None:
        return None
    write = context.columns.keyring.direct(
        native.module().proxy.Write, *sent, *texts, chosen.rows, new_row,
        counted_in(context, table), returning,
    )  # fmt: skip
    return Change(write, chosen)


def opening(context: Context) -> tuple[Any, list[Any], Any] | None:
    """The server's session, what begins a transaction on it and at last enters its token, and what
    does that but for BEGIN in one statement; None where there is none.
    """
    direct = getattr(context.engine, "direct_change", None)
    writers = context.store.writers
    token = None if writers is None else writers.token
    return None if direct is None or token is None else direct(token, 1)


def numbers(context: Context) -> Any:
    """Numbers for rows that are new, or become other ones."""
    number = context.row_ids.take_one(context.catalog)
    return context.state.cache(_Tables).numbers_of(context, number >> COUNTER_BITS)


def counted_in(context: Context, table: Table) -> Any:
    """Where a table's rows are counted."""
    return context.state.cache(_Tables).of(context, table)
