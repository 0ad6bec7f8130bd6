"""INSERT of one row of parameters with a way out for conflicts that comes again in a language of
which Louver does not know by itself what constants become: the engine has run the text once
(`judged_rows`, `judged_changes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import (
    constant_upserts,
    judged_changes,
    judged_rows,
    statement_parts,
)
from louver.trusted.executor.change.column_kinds import Kind
from louver.trusted.executor.context import Context
from louver.trusted.executor.dry_run import Difference
from louver.trusted.vault.catalog import Table


@dataclass(frozen=True, slots=True)
class Form:
    """Such a statement without the values of its parameters; ``kinds`` are those of the
    columns.
    """

    form: constant_upserts.Form
    rows: judged_rows.Form
    kinds: Mapping[str, Kind]

    def decided(
        self, new: pa.Table, old: pa.Table, parameters: Sequence[object]
    ) -> Difference | None:
        """What the statement does with the old rows that have a key of its new one; None where
        only the engine tells.
        """
        if new.num_rows != 1 or not judged_changes.take(self.form.terms, self.kinds, parameters):
            return None
        # As the engine does it, a row that gets the values that it has is written anew.
        return self.form.decided(new, old, parameters, all_met=True)


def form_of(
    context: Context, words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> Form | None:
    """The form of a statement that the engine has just run; None of any other."""
    rules, field_of = constraint_check.rules(context, table), context.local.arrow_field
    form = constant_upserts.form_of(words, parts, table, rules, field_of)
    if form is None or not judged_rows.is_readable(words, parts.source_end, parts.end):
        return None
    rows, kinds = (
        judged_rows.judged(context, table, form.rows),
        judged_rows.kinds_of(context, table),
    )
    if rows is None or not all(judged_changes.is_known(term, kinds) for term in form.terms):
        return None
    return Form(form, rows, kinds)
