"""UPDATE and DELETE by keys that come again in a language of which Louver does not know by itself
what expressions become: the engine has run the text once. What is deleted then depends on the keys
alone, and what is set to parameters, constants, other columns and sums of whole numbers is known
wherever all values are of the columns' own types. With any other value, and of any other UPDATE of
these rows, the engine runs the text again.

Whether it does may depend on stored values only where the statement fails for them: a sum that its
column does not take, NULL where there must be none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from sqlglot import exp

from louver.names import fold
from louver.trusted.executor import constraint_check
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import (
    judged_rows,
    known_values,
    read_off,
    returned_columns,
    simple_terms,
    statement_parts,
)
from louver.trusted.executor.change.column_kinds import Kind
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.executor.local import transaction_time
from louver.trusted.executor.local.changed_rows import Changed, Filled
from louver.trusted.executor.raw_rows import OneRow, RawRow, raw, table_of
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import ChangePlan
from louver.trusted.planner.split import table_scans
from louver.trusted.planner.sql.trees import parse
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.types import value_range

#: The parts of a statement of the grammar, and those of its table's name.
_PARTS, _OF_NAME = {"this", "expressions", "where", "returning"}, {"this", "db", "alias"}
_MOST_ROWS = 64
"""Rows that values are worked out for one by one."""


@dataclass(frozen=True, slots=True)
class Form:
    """An UPDATE or DELETE that the engine has run, without the values of its parameters; ``terms``
    are what it sets, none of a DELETE, ``kinds`` those of the columns, and ``where`` is
    the condition, which the server need not decide as a whole with values of other types.
    """

    terms: tuple[simple_terms.Term, ...]
    kinds: Mapping[str, Kind]
    where: exp.Where | None
    #: whether a column of a key is set, whose values are compared row by row
    is_of_key: bool = False
    #: whether all columns that terms read are of the types of those that are set
    is_of_one_type: bool = False
    returned: returned_columns.Returned | None = None

    def decided(
        self, context: Context, words: statement_parts.Words, plan: ChangePlan, rows: pa.Table,
        literals: Sequence[str], again: bool,
    ) -> Difference | None:  # fmt: skip
        """What the change does to the rows that it read; None where only the engine tells."""
        table = context.catalog.by_id(plan.target)
        if plan.rows is None or not take(self.terms, self.kinds, words.parameters):
            return None
        if self.terms and rows.num_rows > _MOST_ROWS:
            return None
        (remote,) = plan.rows.remotes
        if not table_scans.decided_by_codes(remote, self.where):
            return None
        rows = rows if rows.num_rows < 2 else rows.sort_by(ROW_ID)
        before = (
            rows
            if again
            else context.columns.decided_again(remote, {table.id: table}, rows, literals)
        )
        if before is None or (self.is_of_key and before.num_rows > 1):
            return None
        numbers = pa.array(range(before.num_rows), pa.int64())
        if not self.terms:
            gone = before.column(ROW_ID).combine_chunks()
            return Difference(gone, before.slice(0, 0), self._answer(before))
        after = simple_terms.changed(self.terms, before, None, words.parameters)
        field_of = context.local.arrow_field
        if after is None or any(
            after.schema.field(column.name).type != field_of(column.type).type
            for column in table.columns
        ):
            return None
        # As the engine does it, a row that gets the values that it has is written anew.
        return read_off.difference(table, before, Changed(numbers, after), self._answer(after))

    def _answer(self, rows: pa.Table) -> Answer:
        if self.returned is None:
            return Answer(affected=rows.num_rows)
        shown = self.returned.of(rows)
        return Answer(shown, list(self.returned.described), rows.num_rows)

    def decided_of_row(
        self, context: Context, table: Table, parameters: Sequence[object], names: Sequence[str],
        opened: tuple[int, list[object]],
    ) -> OneRow | None:  # fmt: skip
        """The same of one row, given by its number and the raw values of the columns of these
        names, of a plan that codes decide; None where Arrow is needed.
        """
        number, values = opened
        if self.returned is not None:
            return None
        if not self.terms:
            return None if table.counted else OneRow(number, None, Answer(affected=1))
        if not self.is_of_one_type or not takes_raw(self.terms, self.kinds, parameters):
            return None
        old = dict(zip(names, values, strict=True))
        new = dict(old)
        for term in self.terms:
            value = term.raw_value(old, parameters)
            if value is None:
                return None
            (new[term.name],) = value
        fresh = [new[column.name] for column in table.columns]
        if not context.storage.takes_row(table, fresh):
            return None
        row = RawRow(fresh, lambda: table_of(context.local.arrow_field, table, fresh))
        return OneRow(number, row, Answer(affected=1))


def takes_raw(
    terms: Sequence[simple_terms.Term], kinds: Mapping[str, Kind], parameters: Sequence[object]
) -> bool:
    """The same as `take` of what is stored as raw values, whose bounds are looked at behind."""
    for term in terms:
        limits = value_range(term.type) if term.sign else None
        for part in term.constants():
            value = parameters[part] if isinstance(part, int) else part[0]
            if value is None:
                continue
            if not kinds[term.name].takes(value):
                return False
            number = cast(int, raw(value, term.type))
            if limits is not None and not limits[0] <= number <= limits[1]:
                return False
    return True


def take(
    terms: Sequence[simple_terms.Term], kinds: Mapping[str, Kind], parameters: Sequence[object]
) -> bool:
    """Whether all constants of terms are stored, or added, as they are."""
    for term in terms:
        for part in term.constants():
            value = parameters[part] if isinstance(part, int) else part[0]
            if value is None:
                continue
            if not kinds[term.name].takes(value):
                return False
            # An operand is of the column's type as well.
            if known_values.array(term.type, term.field_type, [value]) is None:
                return False
    return True


def rehearsed(
    context: Context, words: statement_parts.Words, plan: ChangePlan, rows: pa.Table,
    _literals: Sequence[str], _again: bool,
) -> Difference | None:  # fmt: skip
    """What a change does to the rows that it read, as the engine tells it at once; None where it is
    to be run step by step.
    """
    if context.in_transaction and _reads_time(context, words):
        return None  # which is that of its begin, as the general way sets it
    table = context.catalog.by_id(plan.target)
    rows = rows if rows.num_rows < 2 else rows.sort_by(ROW_ID)
    filled = Filled(table.schema, table.name, rows.drop_columns([ROW_ID]))
    outcome = read_off.at_once(context, words, [filled])
    if outcome is None:
        return None
    answer = Answer(affected=outcome.affected)
    if outcome.rows is not None:
        answer = Answer(outcome.rows, outcome.columns, outcome.affected)
    return read_off.difference(table, rows, outcome.changed[table.schema, table.name], answer)


def _reads_time(context: Context, words: statement_parts.Words) -> bool:
    return transaction_time.reads_time(context.catalog, words.tokens, words.parameters)


def form_of(context: Context, words: statement_parts.Words, plan: ChangePlan) -> Form | None:
    """The form of a change by keys that the engine has just run; None where values are cast,
    computed or checked beyond their types.
    """
    tree, table = parse(words.plain), context.catalog.by_id(plan.target)
    if not isinstance(tree, exp.Update | exp.Delete) or not _is_plain(tree) or plan.rows is None:
        return None
    (remote,), where = plan.rows.remotes, tree.args.get("where")
    if not table_scans.decided_by_codes(remote, where):
        return None
    kinds, known_as = judged_rows.kinds_of(context, table), fold(tree.this.alias or table.name)
    returned = None
    if tree.args.get("returning"):
        returned = returned_columns.of(context, words, table, kinds, known_as)
        if returned is None:
            return None
    if isinstance(tree, exp.Delete):
        return Form((), {}, where, returned=returned)
    rules = constraint_check.rules(context, table)
    if not judged_rows.is_readable(words, *plan.free):
        return None
    if rules.generated or rules.deciding or judged_rows.indexes_expressions(context, table):
        return None
    names = [fold(column.name) for column in table.columns]
    if len({*names}) < len(names) or any(column.expression for column in table.columns):
        return None
    terms = simple_terms.terms_of(
        words, plan.free, table, (known_as,), rules.required, context.local.arrow_field
    )
    if not terms or not all(is_known(term, kinds) for term in terms):
        return None
    keyed = {fold(name) for name in rules.key_columns()}
    types = {column.name: column.type for column in table.columns}
    alike = all(types[name] == term.type for term in terms for name in term.columns())
    sets_key = any(fold(term.name) in keyed for term in terms)
    return Form(terms, kinds, where, sets_key, alike, returned)


def _is_plain(tree: exp.Update | exp.Delete) -> bool:
    """Whether a statement has no more parts than those that are understood."""
    target, alias = tree.this, tree.this.args.get("alias")
    if {name for name, part in tree.args.items() if part} - _PARTS:
        return False
    if not isinstance(target, exp.Table) or not isinstance(target.this, exp.Identifier):
        return False
    if {name for name, part in target.args.items() if part} - _OF_NAME:
        return False
    return alias is None or not alias.args.get("columns")


def is_known(term: simple_terms.Term, kinds: Mapping[str, Kind]) -> bool:
    """Whether a term is of values that are stored as they are, and its sum exact."""
    kind = kinds.get(term.name)
    if kind is None or (term.sign and not (kind.adds and term.columns())):
        return False
    if any(kinds.get(name) != kind for name in term.columns()):
        return False
    return all(judged_rows.takes_constant(kind, item) for item in term.constants())
