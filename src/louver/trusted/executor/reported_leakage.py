"""SHOW LEAKAGE: the ledger in sentences, and the tables that a server has in plain text."""

from __future__ import annotations

import pyarrow as pa

from louver import errors
from louver.names import fold, is_home
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.context import Context
from louver.trusted.executor.front import Common
from louver.trusted.executor.lake import token_values
from louver.trusted.executor.ledger import MOST_CONDITIONS, Fact
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.levels import LEVELS

_LEAKAGE_SCHEMA = [
    ("table_name", "VARCHAR"),
    ("columns", "VARCHAR"),
    ("level", "VARCHAR"),
    ("reveals", "VARCHAR"),
]


def answer(context: Common, name: str | None) -> Answer:
    """The ledger in sentences, of one table or of all."""
    texts = _told(context)
    sentences = {(fact.table, fact.columns, fact.level, text): fact for fact, text in texts.items()}
    # Two kinds of facts may say the same to people; once is enough.
    entries = [
        (fact.table, ", ".join(fact.columns), fact.level, texts[fact])
        for fact in sentences.values()
    ]
    entries += [
        (
            table.label,
            ", ".join(column.name for column in table.columns),
            LEVELS[-1],
            f"every value of {table.label}, which is stored in plain text: no column is ENC",
        )
        for table in _plain(context)
    ]
    if name is not None:
        label = _label(context, name)
        entries = [entry for entry in entries if fold(entry[0]) == fold(label)]
    rows = pa.table(
        {
            title: pa.array([entry[position] for entry in entries], pa.string())
            for position, (title, _) in enumerate(_LEAKAGE_SCHEMA)
        }
    )
    return Answer(rows, list(_LEAKAGE_SCHEMA))


def _plain(context: Common) -> list[Table]:
    """The tables that a server has as they are. Those of providers are public, and not the
    client's.
    """
    if not isinstance(context, Context):
        return []
    return [table for table in context.catalog.tables.values() if not table.has_encrypted]


def _told(context: Common) -> dict[Fact, str]:
    """Every fact with its sentence. Of a table that was dropped nothing is repeated that is said of
    the one that has its name.
    """
    ledger = context.ledger
    facts = ledger.facts()
    here = {(f.table, f.columns, f.level, f.text) for f in facts if not ledger.gone(f)}
    results = {}
    for fact in facts:
        text = _readable(context, fact) + so_far(ledger.conditions(fact))
        if not ledger.gone(fact):
            results[fact] = text
        elif (fact.table, fact.columns, fact.level, fact.text) not in here:
            results[fact] = f"{text} (of a table that was dropped)"
    return results


def _readable(context: Common, fact: Fact) -> str:
    """The sentence of a fact; the range of a token as values of its column."""
    table = next((t for t in context.catalog.tables.values() if t.label == fact.table), None)
    column = table.column(fact.columns[0]) if table is not None and fact.columns else None
    return fact.text if column is None else token_values.readable(fact.text, column)


def _label(context: Common, name: str) -> str:
    """The label of a table by its name in SQL; a dropped table's facts are still known."""
    parts = [token.text for token in lexer.tokens(name) if token.text != "."]
    schema, table = (parts[-2], parts[-1]) if len(parts) > 1 else ("", parts[-1])
    known = context.catalog.named(schema, table)
    if known is not None:
        return known.label
    label = table if not schema or is_home(schema) else f"{schema}.{table}"
    if any(fold(fact.table) == fold(label) for fact in context.ledger.facts()):
        return label
    raise errors.make("table.missing", table=name)


def so_far(conditions: int) -> str:
    """How often a server was shown the like, of what is counted: for the end of a sentence."""
    if not conditions:
        return ""
    least = "at most " if conditions > MOST_CONDITIONS else ""
    return f", {least}{conditions} condition{'s' if conditions > 1 else ''} so far"
