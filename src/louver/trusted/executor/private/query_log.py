"""Query log: what providers have learned; the ledger of a connection without keys.

Data at providers is public. They learn about questions: the shape with all its literals, and how
often it was sent; never a secret and never an answer. There is no key to encrypt a ledger with, so
it lasts as long as the connection.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable

import pyarrow as pa

from louver.trusted.executor.ledger import TABLE_SCHEMA, Fact


class QueryLog:
    """Every fact that questions have revealed to each provider, in order of first occurrence."""

    def __init__(self) -> None:
        self._facts: dict[Fact, tuple[datetime.datetime, str]] = {}
        #: how often each statement shape was sent
        self.times: dict[str, int] = {}

    def facts(self, _kinds: Collection[str] = (), /) -> list[Fact]:
        """Every fact, in the order in which it was revealed."""
        return list(self._facts)

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that are not known yet, each once."""
        return [fact for fact in dict.fromkeys(facts) if fact not in self._facts]

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        """Record what a question is about to reveal."""
        fresh = self.new(facts)
        now = datetime.datetime.now(datetime.UTC)
        for fact in fresh:
            self._facts[fact] = (now, statement_shape)
        self.times[statement_shape] = self.times.get(statement_shape, 0) + 1
        return fresh

    def conditions(self, _fact: Fact) -> int:
        """Always 0: questions are separate facts."""
        return 0

    def gone(self, _fact: Fact) -> bool:
        """Always False: providers' tables are not dropped here."""
        return False

    def refresh(self) -> None:
        """Nothing to do: only this connection writes its log."""

    def table(self) -> pa.Table:
        """The ledger as an Arrow table, with the columns of every other ledger."""
        rows = [
            {
                "sequence": number, "when": when, "table_name": fact.table,
                "columns": list(fact.columns), "level": fact.level, "kind": fact.kind,
                "reveals": fact.text, "statement": statement, "conditions": None,
            }
            for number, (fact, (when, statement)) in enumerate(self._facts.items(), 1)
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, TABLE_SCHEMA)
