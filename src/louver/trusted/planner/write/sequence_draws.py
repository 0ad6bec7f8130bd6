"""Sequences as targets of the flow rule: how many numbers a statement draws stays in the sequence,
whose next number may go to a plain column.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token

from louver import errors
from louver.names import fold
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write import grammar, permit, relation
from louver.trusted.planner.write.grammar import DRAW
from louver.trusted.planner.write.reads import (
    LOST,
    SCHEMA,
    STRINGS,
    Reads,
    Secrets,
    names_of,
    reached,
)
from louver.trusted.vault.catalog import Catalog


def draws(catalog: Catalog, found: Sequence[Token]) -> bool:
    """Whether a statement draws numbers, itself or through the views and macros that it names."""
    return _says(found) or _is_told(catalog, found)


def _is_told(catalog: Catalog, found: Sequence[Token]) -> bool:
    """Whether a view or a macro draws for the statement."""
    if not any(item.kind in ("VIEW", "MACRO") for item in catalog.objects):
        return False
    _, objects = reached(catalog, names_of(found))
    return any(_says(lexer.tokens(item.sql)) for item in objects)


def _says(found: Sequence[Token]) -> bool:
    return any(fold(t.text) == DRAW for t in found if t.token_type not in STRINGS)


def of_drawing(reads: Reads, found: Sequence[Token]) -> Secrets:
    """What the number of drawn numbers depends on.

    One that is drawn for every row depends on what decides about rows; any other, on everything
    that the statement reads.
    """
    tree = reads.tree
    query = tree.expression if isinstance(tree, exp.Insert) and not _odd(tree) else tree
    if not grammar.reads_one_by_one(query) or _is_told(reads.catalog, found):
        return reads.everything
    drawn = [item for item in query.expressions if not isinstance(item.unalias(), exp.Column)]
    calls = [node for node in query.walk() if fold(node.name) == DRAW]
    if len(calls) != len(drawn) or not all(map(grammar.is_draw, drawn)):
        return reads.everything
    return relation.query(query, reads, None).rows.all


def _odd(tree: exp.Insert) -> bool:
    return bool(set(filter(tree.args.get, tree.args)) - {"this", "expression"})


def require(reads: Reads, found: Sequence[Token], told: Sequence[Token] = ()) -> None:
    """Refuse a statement whose draws would show anything of an encrypted column. ``told`` are the
    definitions of what it changes, whose defaults may draw for it.
    """
    by_default = bool(told) and draws(reads.catalog, told)
    if not by_default and not draws(reads.catalog, found):
        return
    secrets = reads.everything if by_default else of_drawing(reads, found)
    for secret in secrets:
        if secret == SCHEMA or secret[0] == LOST:
            raise _refusal(permit.source_of(secret), permit.SCHEMA_CEILING)
    for table in reads.catalog.tables.values():
        for column in table.columns:
            if (table.id, column.id) in secrets and column.ceiling != "plaintext":
                raise _refusal(f"{table.label}.{column.name}", column.ceiling)


def _refusal(source: str, ceiling: str) -> errors.Error:
    return errors.make(
        "leak.flow",
        source=source,
        ceiling=ceiling,
        target=f"The sequence that {DRAW}() draws from",
        fix="Draw the numbers in a separate statement",
    )
