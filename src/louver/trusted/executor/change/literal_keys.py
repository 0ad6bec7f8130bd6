"""The keys of new rows that are written as literals or parameters, without a local engine. A
statement that DuckDB would refuse is refused when it runs; until then its keys are only asked for.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import constant_rows, known_values, statement_parts
from louver.trusted.executor.context import Context


class Values(Protocol):
    """INSERT … VALUES of constants: the columns that it gives, by name and type."""

    @property
    def words(self) -> statement_parts.Words: ...
    @property
    def parts(self) -> statement_parts.Insert: ...
    @property
    def rules(self) -> constraint_check.Rules: ...
    @property
    def given(self) -> tuple[tuple[str, str], ...]: ...


def keys_of(context: Context, item: Values) -> pa.Table | None:
    """The key columns of the new rows, in their types; None where the local engine must tell."""
    rows = constant_rows.items_of(item.words, item.parts, len(item.given))
    if not rows:
        return None
    keyed, arrays = set(item.rules.key_columns()), dict[str, pa.Array]()
    for (name, type_), items in zip(item.given, zip(*rows, strict=True), strict=True):
        if name not in keyed:
            continue
        values = constant_rows.values_of(items, [item.words.parameters])
        array = known_values.array(type_, context.local.arrow_field(type_).type, values)
        if array is None:
            return None
        arrays[name] = array
    return pa.table(arrays)
