"""Columns with few different values: what equality shows of them is guessed at once.

Anyone who knows that one in three customers lives in France finds France among three values by
counting (docs/attacks.md). So the user learns before it happens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from louver.trusted.executor.ledger import Fact
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.seen_values import MANY, MOST_SEEN
from louver.trusted.vault.types import code_domain, decimal_width

_SHOWN = ("equality", "order")
_FIRST = 512
"""Rows that are looked at before all others: most columns have many values, and show it there."""


def see(column: Column, values: pa.ChunkedArray) -> None:
    """Take new values into a column's count of different values."""
    if column.seen == [MANY] or not column.encrypted:
        return
    if code_domain(column.type) is None:
        column.seen = [MANY]
        return
    for part in (values.slice(0, _FIRST), values.slice(_FIRST)):
        column.see(_marks(part) if len(part) else [])


def _marks(values: pa.ChunkedArray) -> list[str]:
    """Fingerprints of the different values of a type with codes: Arrow tells those apart."""
    if isinstance(values.type, pa.BaseExtensionType):
        storage = values.type.storage_type
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], storage)
    combined = pc.unique(values).drop_null()
    if pa.types.is_temporal(combined.type) and not pa.types.is_interval(combined.type):
        # An infinite date is none of Python's.
        combined = combined.view(pa.int32() if combined.type.bit_width == 32 else pa.int64())
    return list(map(_mark, combined.slice(0, MOST_SEEN + 1).to_pylist()))


def _mark(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def has_seen(column: Column, value: object) -> bool:
    """Whether a raw value (`raw_rows`) is one of the few that a column is known to have."""
    width = decimal_width(column.type)
    if width is not None and type(value) is int:
        value = Decimal(value).scaleb(-width[1])
    return _mark(value) in column.seen


def warned(facts: Iterable[Fact], catalog: Catalog) -> list[str]:
    """Sentences for facts that show equality, or more, of columns with few values."""
    facts, by_name = list(facts), dict[tuple[str, str], str]()
    if not facts:
        return []
    labels = {table.label: table for table in catalog.tables.values()}
    for fact in facts:
        table = labels.get(fact.table)
        if table is None or fact.level not in _SHOWN:
            continue
        for name in fact.columns:
            column = table.column(name)
            if column is not None and column.encrypted and column.cardinality():
                by_name[table.label, column.name] = sentence(table, column, fact.level)
    return list(by_name.values())


def sentence(table: Table, column: Column, level: str) -> str:
    """The warning of one column."""
    count = column.cardinality()
    counted = "only" if count == len(column.seen) else "at most"
    values = f"{counted} {count} different values" if count > 1 else "only one value"
    return (
        f"{table.label}.{column.name} has {values}: who knows how common each of them is can"
        f" name them once their {level} shows"
    )


def declared(table: Table, level: str = "", only: Column | None = None) -> list[str]:
    """Warnings of columns that have few values and may reveal equality or more: of one, under a
    ceiling, or of all under theirs.
    """
    return [
        sentence(table, column, level or column.ceiling)
        for column in ([only] if only is not None else table.columns)
        if column.encrypted and column.cardinality() and (level or column.ceiling) in _SHOWN
    ]
