"""What statements rely on that the compiled module runs without Python, or with one call of it
(docs/decisions/0034), where the values of their keys come from, and what the audit says of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from louver.trusted.executor import point_reads, repeated
from louver.trusted.executor.context import Context
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.facts import Fact

Leak = tuple[list[str], str, str, int]
"""Columns, level and kind of a fact, and how many conditions are new."""
_MOST = (1 << 63) - 1


def basis(context: Context) -> tuple[object, ...]:
    """What such a statement relies on, as it is now."""
    catalog, engine = context.catalog, context.engine
    _ = context.planning  # which takes notice of columns that were stopped
    # Transactions of Python's open no layers, which is nothing to those that it does not know of.
    # A process that was forked has numbers of rows of its own.
    return (
        id(catalog), catalog.version, context.local.revision, catalog.path, context.state.planning,
        repeated.is_alone(context), context.state.writable, context.state.only_reads, os.getpid(),
        id(getattr(engine, "session", None)), getattr(engine, "limits", None),
        getattr(context.local, "rights", None),
    )  # fmt: skip


def bound(shape: lexer.Shape, parameters: int) -> lexer.Shape:
    """The shape of a statement with some values of its parameters."""
    values: list[object] = [0] * parameters
    return lexer.with_parameters(shape, values)


def sources_of(
    shape: lexer.Shape, positions: point_reads.Positions, types: Sequence[int],
    limits: point_reads.Limits,
) -> list[list[list[object]]] | None:  # fmt: skip
    """Where the values of the keys come from: parameters with their types and limits, or numbers of
    the text; None where a constant is neither.
    """
    first = len(shape.literals)
    bounds = {position: (least, most) for position, least, most in limits}

    def source(position: int) -> object:
        if position >= first:
            at = position - first
            least, most = bounds.get(at, (-_MOST - 1, _MOST))
            return (at, types[at], (max(least, -_MOST - 1), min(most, _MOST)))
        return point_reads.whole_number(shape.literals[position])

    results = [[list(map(source, columns)) for columns in constants] for constants in positions]
    flat = (value for key in results for columns in key for value in columns)
    return None if any(value is None for value in flat) else results


def names(catalog: Catalog, columns: Iterable[tuple[int, int]]) -> list[str]:
    """The names of columns, by the ids of table and column; those that are gone have none."""
    known = {
        (table.id, column.id): f"{table.label}.{column.name}"
        for table in catalog.tables.values()
        for column in table.columns
    }
    return sorted(known[item] for item in columns if item in known)


def leak(fact: Fact, count: int = 1) -> Leak:
    """A fact as the audit has it."""
    columns = [f"{fact.table}.{name}" for name in fact.columns] or [fact.table]
    return columns, fact.level, fact.kind, count
