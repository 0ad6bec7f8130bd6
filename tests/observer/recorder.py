"""A recorder of everything that a server sees, and, kept apart from it, of the truth behind it.

What the server sees: every message of every connection (the tap's records), and its own database
after every statement, uncommitted changes included: all tables but Louver's sealed bookkeeping.
The truth, the names behind pseudonyms and the ledger are for the judge alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.trusted.client.connect import opened
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Append, Message, Statement
from louver.wire.tap import Tap

Values = dict[int, Any]
"""What a stored column holds, by row id."""

Snapshot = dict[str, Values]
"""Stored columns of tables that have row ids, by "table.column" as the server names them."""

_COLUMNS = (
    "SELECT schema_name, table_name, list(column_name ORDER BY column_index) AS names"
    " FROM duckdb_columns() WHERE NOT internal AND database_name = current_database()"
    " AND NOT starts_with(table_name, 'louver_') GROUP BY ALL"
)


@dataclass(frozen=True, slots=True)
class Named:
    """The declared column behind a stored one. Ids outlast renames."""

    table: str
    column: str
    type: str
    representation: str
    ids: tuple[int, int]


@dataclass(slots=True)
class Step:
    """One statement: what crossed, what the server held afterwards, what the ledger said then."""

    sql: str
    error: errors.Error | None
    messages: list[Message]
    snapshot: Snapshot
    facts: list[Fact]
    named: dict[str, Named]
    rows: list[tuple[Any, ...]] = field(default_factory=list)


class Recorder:
    """A session behind a tap, with the steps of everything that was run."""

    def __init__(
        self, key_file: Path | str, profile: str, path: Path | str = ":memory:",
        policy: Policy | None = None,
    ) -> None:  # fmt: skip
        self.engine = DuckDBEngine(path)
        self.tap = Tap(self.engine)
        chosen = policy or Policy(profile)
        self.session = Session(
            self.tap, KeyRing.open(key_file), chosen, modulus_bits=512, opener=opened
        )
        # A slow link, so that all that ceilings allow goes to the server.
        self.session.execute("SET link_bandwidth = '1KB/s'")
        self.session.execute("SET link_latency = '0.01ms'")
        self.steps: list[Step] = []
        #: for the judge
        self.named: dict[str, Named] = {}
        self.ever_named: set[tuple[str, str]] = set()
        self.truth: dict[tuple[int, int], Values] = {}
        self._seen_messages = 0

    def run(self, *texts: str, parameters: Sequence[object] | None = None) -> list[Any]:
        """Run statements that must succeed; the rows of the last one."""
        for sql in texts:
            step = self.attempt(sql, parameters)
            if step.error is not None:
                raise step.error
        return self.steps[-1].rows

    def attempt(self, sql: str, parameters: Sequence[object] | None = None) -> Step:
        """Run a statement that may fail."""
        error, answer = None, Answer()
        try:
            answer = self.session.execute(sql, parameters)
        except errors.Error as caught:
            error = caught
        messages = self.tap.sent()[self._seen_messages :]
        self._seen_messages += len(messages)
        snapshot = self.steps[-1].snapshot if self.steps else {}
        # An aborted transaction cannot be looked at: the server sees nothing new in it.
        with contextlib.suppress(errors.Error):
            snapshot = self._look()
        step = Step(
            sql, error, messages, snapshot, self.session.context.ledger.facts(), dict(self.named)
        )
        if answer.rows is not None:
            step.rows = list(self.session.python_rows(answer.rows))
        self.steps.append(step)
        return step

    def close(self) -> None:
        """End the session."""
        self.session.close()

    def _look(self) -> Snapshot:
        snapshot: Snapshot = {}
        tables = {table.local_name: table for table in self.session.context.catalog.tables.values()}
        for row in self.engine.query(Statement(_COLUMNS)).to_pylist():
            server = f"{quoted(row['schema_name'])}.{quoted(row['table_name'])}"
            held = self.engine.query(Statement(f"SELECT * FROM {server}"))
            if "row_id" not in held.column_names:
                continue
            ids = held.column("row_id").to_pylist()
            for name in held.column_names:
                if name != "row_id":
                    values = held.column(name).to_pylist()
                    snapshot[f"{server}.{name}"] = dict(zip(ids, values, strict=True))
            if server in tables:
                self._learn(tables[server], server, held)
        return snapshot

    def _learn(self, table: Table, server: str, held: pa.Table) -> None:
        """The names and the truth, for the judge."""
        for column in table.columns:
            ids = (table.id, column.id)
            self.ever_named.add((table.label, column.name))
            for representation, stored in column.stored.items():
                now = Named(table.label, column.name, column.type, representation, ids)
                # What a column was called before is that column still.
                for name, entry in self.named.items():
                    if (entry.ids, entry.representation) == (ids, representation):
                        self.named[name] = now
                self.named[f"{server}.{stored}"] = now
            self._open(table, column, held, self.truth.setdefault(ids, {}))

    def _open(self, table: Table, column: Column, held: pa.Table, known: Values) -> None:
        new = [n for n, row in enumerate(held.column("row_id").to_pylist()) if row not in known]
        if not new:
            return
        rows = held.take(new)
        ids = rows.column("row_id").combine_chunks()
        values = rows.column(column.stored["plain" if not column.encrypted else "rnd"])
        opened: pa.Array = values.combine_chunks()
        if column.encrypted:
            shape = self.session.context.local.arrow_field(column.type)
            opened = self.session.context.columns.open_column(table, column, opened, ids, shape)
        known.update(zip(ids.to_pylist(), opened.to_pylist(), strict=True))

    def sent(self, step: Step) -> list[Statement]:
        """The statements of a step that touch user tables."""
        return [
            message
            for message in step.messages
            if isinstance(message, Statement) and "louver_ledger" not in message.sql
            and "louver_catalog" not in message.sql
        ]  # fmt: skip

    def appended(self, step: Step) -> list[Append]:
        """The rows that a step sent."""
        return [message for message in step.messages if isinstance(message, Append)]
