"""The tables of a lake (see `executor.storage.Storage`): tokens out, encrypted files back.

A change is written as files at once and committed at the end: then the table's next snapshot names
them. What a transaction reads is one snapshot per table and its own files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.lake import range_predicates
from louver.trusted.executor.lake import request as requests
from louver.trusted.executor.lake.fetched import Fetched
from louver.trusted.executor.lake.options import Options
from louver.trusted.executor.lake.pending import Pending
from louver.trusted.executor.lake.probing import Probing
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.storage import ROW_ID, Answers, Narrow, Parts, Request
from louver.trusted.lake.settings import IndexSettings
from louver.trusted.lake.store import LakeStore, Snapshot
from louver.trusted.planner.ir import SEALED, RemoteQuery, RowFilter
from louver.trusted.planner.lake_explain import column_ids
from louver.trusted.vault.catalog import Column, Table
from louver.wire.prune import FileEntry

_TABLE_OPTIONS = ("lake_filter", "lake_nulls")
_NOTHING = "louver_c0"
"""The column of an answer of which only the number of rows matters."""


def _key(key: tuple[str, str]) -> tuple[str, str]:
    return fold(key[0]), fold(key[1])


class LakeStorage:
    """All tables of one lake, for one session."""

    def __init__(self, parts: Parts, store: LakeStore) -> None:
        self._parts = parts
        self.store = store
        self.options = Options()
        self.count_false_positives = False
        self.fetched: list[Fetched] = []
        self._pending: dict[int, Pending] = {}
        self._after_commit: list[Callable[[], None]] = []
        self._after_failure: list[Callable[[], None]] = []

    def create(self, table: Table) -> None:
        table.lake = table.lake or self._settings().as_dict()
        self.store.create(table)
        self._after_failure.append(lambda: self.store.drop(table))

    def index(self, _table: Table, _before: Collection[tuple[str, ...]]) -> None:
        """A lake's index is made with its files."""

    def drop(self, table: Table) -> None:
        self._pending.pop(table.id, None)
        self._after_commit.append(lambda: self.store.drop(table))

    def drop_schema(self, schema: str) -> None:
        """Schemas are on the client only."""

    def rename(self, before: Table, table: Table) -> None:
        """A lake knows no names."""

    def drop_columns(self, table: Table, names: Sequence[str]) -> None:
        """Old files keep a column that nothing reads any more, until they are compacted."""

    def add_column(self, table: Table, column: Column) -> bool:
        self.store.add_column(table, column)
        return True

    # ------------------------------------------------------------------ changes

    def append(self, table: Table, batches: Iterator[pa.Table]) -> None:
        pending = self._of(table)
        rows = self.options.number("lake_rows_per_file")
        pending.add(self.store.write(table, batches, rows))
        table.row_count = pending.rows()

    def remove(self, table: Table, row_ids: pa.Array) -> None:
        pending = self._of(table)
        pending.gone.append(row_ids)
        table.row_count = pending.rows()

    def replace(self, table: Table, row_ids: pa.Array, rows: pa.Table) -> None:
        self.remove(table, row_ids)
        self.append(table, iter([rows]))

    def takes_row(self, _table: Table, _values: Sequence[object]) -> bool:
        return False

    def append_row(self, *_: object) -> bool:
        return False

    replace_row = append_row

    def remove_row(self, table: Table, number: int) -> None:
        self.remove(table, pa.array([number], pa.int64()))

    def flush(self, is_keyed: Callable[[Table], bool]) -> None:
        """Commit what is pending; at most one table's change, for each commits by itself."""
        changed = [other for other in self._pending.values() if other.changed()]
        if len(changed) > 1:
            names = ", ".join(sorted(other.table.label for other in changed))
            raise errors.make("lake.transaction", tables=names)
        for pending in changed:
            self._rewrite_own(pending)
            gone, alone = pending.gone_of_snapshot(), is_keyed(pending.table)
            self.store.commit(pending.table, pending.snapshot, gone, pending.written, alone)

    def committed(self) -> None:
        """The catalog has been committed too."""
        self._ended(self._after_commit)

    def undone(self) -> None:
        """The change has failed or was rolled back: what was written is dropped."""
        for pending in self._pending.values():
            with suppress(errors.Error):
                self.store.discard(pending.table, pending.written)
        self._ended(self._after_failure)

    def _ended(self, actions: list[Callable[[], None]]) -> None:
        todo = list(actions)
        self._pending.clear()
        self._after_commit.clear()
        self._after_failure.clear()
        for action in todo:
            with suppress(errors.Error):
                action()

    def _rewrite_own(self, pending: Pending) -> None:
        """Files of this transaction that lost rows again are written without these."""
        gone = pending.gone_of_written()
        if not len(gone):
            return
        table, old = pending.table, list(pending.written)
        batches = self._read(table, old, table.columns, row_ids=True)
        left = (pending.left(rows, ROW_ID).drop_columns([ROW_ID]) for rows in batches)
        written = self.store.write(table, left)
        self.store.discard(table, old)
        pending.written = []
        pending.gone = [pending.gone_of_snapshot()]
        pending.add(written)

    def _of(self, table: Table) -> Pending:
        if self._at() is not None:
            raise errors.make("lake.past", snapshot=self.options.text("lake_snapshot"))
        cached = self._pending.get(table.id)
        if cached is None:
            cached = self._pending[table.id] = Pending(table, self.store.snapshot(table))
        return cached

    # ------------------------------------------------------------------ reading

    def refresh(self, tables: Sequence[Table]) -> None:
        """Take over how many rows the tables have now."""
        # A statement that failed before its change may have left what it read.
        self.undone()
        self.fetched.clear()
        for table in tables:
            # A table that the past state has not is an error only for who reads it.
            with suppress(errors.ProgrammingError):
                table.row_count = self.row_count(table)

    def stamp(self, table: Table) -> str:
        pending = self._pending.get(table.id)
        written = (len(pending.written), len(pending.gone)) if pending else ()
        return f"{self._snapshot(table).id} {written}"

    def row_count(self, table: Table) -> int:
        pending = self._pending.get(table.id)
        return pending.rows() if pending else self._snapshot(table).rows

    def request(self, remote: RemoteQuery, literals: Sequence[str]) -> requests.Request:
        table = self._parts.state.catalog.by_id(remote.sources[0].table)
        held = {column.id: column for column in table.columns}
        columns = [held[number] for number in column_ids(remote)]
        evaluate = self._parts.local.value
        condition: range_predicates.Condition = range_predicates.ALWAYS
        if self._prunes(table):
            condition = range_predicates.condition(remote.where, table, literals, evaluate)
        entries = self.request_of(table, columns, condition)
        labels = {other.key: other.label for other in self._parts.state.catalog.tables.values()}
        awaited = tuple(
            f"c{probe.column} IN (keys read of {labels.get(_key(probe.home), probe.home[1])})"
            for probe in remote.probes
            if self._prunes(table)
        )
        return replace(entries, awaited=awaited)

    def _prunes(self, table: Table) -> bool:
        """Whether tokens may be shown: queries may, and there is an index to show them to."""
        return self.options.switch("lake_pruning") and bool(table.lake.get("on", True))

    def request_of(
        self, table: Table, columns: Sequence[Column], condition: range_predicates.Condition
    ) -> requests.Request:
        """A question to files of a table."""
        return requests.build(table, columns, condition, lambda span: self.store.token(table, span))

    def answer(
        self, remote: RemoteQuery, request: Request, _literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        if not isinstance(request, requests.Request):
            raise errors.make("internal", detail="a lake received an unknown request")
        with clock.step("server"):
            files = self._kept(request)
        if self.options.switch("lake_plan_only"):
            files = []
        with clock.step("open"):
            rows = self._rows(request, files)
        held = {column.id: column.name for column in request.columns}
        new_rows = {
            out.name: rows.column(held[out.column])
            if out.kind == SEALED
            else pa.nulls(rows.num_rows)
            for out in remote.outputs
        }
        return pa.table(new_rows or {_NOTHING: pa.nulls(rows.num_rows, pa.int32())})

    def sent(self, _remote: RemoteQuery, request: Request, _rows: float) -> str:
        return request.sql

    def narrowing(self, literals: Sequence[str]) -> Narrow:
        probing = Probing(self._parts.local, self._parts.state.catalog, literals)
        self.fetched.clear()

        def narrow(remote: RemoteQuery, request: Request, answers: Answers) -> Request:
            if not isinstance(request, requests.Request) or not self._prunes(request.table):
                return request
            if not remote.probes:
                return request
            results = range_predicates.every(
                [request.condition, probing.condition(remote, answers)]
            )
            return self.request_of(request.table, request.columns, results)

        return narrow

    def batches(
        self, table: Table, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        wanted = [c for c in table.columns if columns is None or c.name in columns]
        condition: range_predicates.Condition = range_predicates.ALWAYS
        if where is not None and self._prunes(table):
            evaluate = self._parts.local.value
            condition = range_predicates.condition(where.nodes, table, where.literals, evaluate)
        pending = self._of(table)
        files = self._kept(self.request_of(table, wanted, condition))
        empty = True
        for rows in self._read(table, files, wanted, row_ids=True):
            empty = False
            yield pending.left(rows, ROW_ID)
        if empty:
            yield self._none(wanted, row_ids=True)

    def _kept(self, request: requests.Request) -> list[FileEntry]:
        """The files that may hold what is wanted; first the ledger, then the question."""
        table = request.table
        self._parts.ledger.record(request.facts(), "a question to a lake")
        snapshot, pending = self._snapshot(table), self._pending.get(table.id)
        before = self.store.traffic_bytes()
        existing_rows = self.store.plan(
            table, snapshot, request.where, self.options.switch("lake_verify")
        )
        files = [*existing_rows.files, *(pending.written if pending else ())]
        self.fetched.append(
            Fetched(
                table.label,
                snapshot.files_total + (len(pending.written) if pending else 0),
                len(files),
                tuple(entry.path for entry in files),
                self.store.traffic_bytes() - before,
                snapshot.bytes,
            )
        )
        return files

    def _rows(self, request: requests.Request, files: Sequence[FileEntry]) -> pa.Table:
        table, columns = request.table, request.columns
        pending = self._pending.get(table.id)
        hidden = pending is not None and bool(pending.gone)
        if not columns and not hidden:
            return pa.table({ROW_ID: pa.nulls(sum(entry.rows for entry in files), pa.int64())})
        before = self.store.traffic_bytes()
        read = self._read(table, files, columns, row_ids=hidden)
        results = [pending.left(rows, ROW_ID) if pending and hidden else rows for rows in read]
        last = self.fetched[-1]
        spent = last.fetched_bytes + self.store.traffic_bytes() - before
        useless = self._useless(request, results) if self.count_false_positives else None
        self.fetched[-1] = replace(last, fetched_bytes=spent, false_positives=useless)
        return pa.concat_tables(results) if results else self._none(columns, row_ids=hidden)

    def _useless(self, request: requests.Request, values: Sequence[pa.Table]) -> int:
        """How many of the files that were read hold no row that meets the ranges' hull."""
        names = {column.id: column for column in request.columns}
        return sum(not range_predicates.may_hold(request.condition, names, rows) for rows in values)

    def _read(
        self, table: Table, files: Sequence[FileEntry], columns: Sequence[Column], *, row_ids: bool
    ) -> Iterator[pa.Table]:
        for rows in self.store.read(table, files, columns, row_ids=row_ids):
            yield rows.rename_columns(
                [ROW_ID if name == "row_id" else name for name in rows.column_names]
            )

    def _none(self, columns: Sequence[Column], *, row_ids: bool) -> pa.Table:
        field = self._parts.local.arrow_field
        fields = [pa.field(c.name, field(c.type).type) for c in columns]
        if row_ids:
            fields.append(pa.field(ROW_ID, pa.int64()))
        return pa.schema(fields).empty_table()

    def _snapshot(self, table: Table) -> Snapshot:
        pending, when = self._pending.get(table.id), self._at()
        if pending is None and when is None and self._parts.state.in_transaction:
            # What a transaction has read once it reads again.
            pending = self._of(table)
        return pending.snapshot if pending else self.store.snapshot(table, when)

    def shows(self, request: Request) -> list[Fact]:
        known = {table.id for table in self._parts.state.catalog.tables.values()}
        if isinstance(request, requests.Request) and request.table.id in known:
            return request.facts()
        return []

    def measure(self, on: bool) -> list[str]:
        self.count_false_positives = on
        return [line for other in self.fetched for line in other.lines()]

    # ------------------------------------------------------------------ settings

    def option(self, name: str) -> str:
        return self.options.text(name)

    def change_option(self, name: str, value: str | None) -> None:
        self.options.change(name, value, self._require)

    def _require(self, name: str, text: str) -> None:
        """Refuse a value that is none."""
        if name == "lake_snapshot" and text:
            self._moment(text)
        elif name in _TABLE_OPTIONS:
            self._settings(**{name: text})

    def _settings(self, **given: str) -> IndexSettings:
        """How tables made now are indexed."""
        texts = {name: given.get(name) or self.options.text(name) for name in _TABLE_OPTIONS}
        kind, _, bits = texts["lake_filter"].partition(" ")
        if bits and not (bits.strip().isascii() and bits.strip().isdigit()):
            raise errors.make("lake.setting", name="lake_filter", allowed="a kind and its bits")
        return IndexSettings(
            self.options.switch("lake_index"),
            kind,
            int(bits or IndexSettings().bits),
            nulls=texts["lake_nulls"],
        )

    def _at(self) -> int | datetime | None:
        text = self.options.text("lake_snapshot")
        return self._moment(text) if text else None

    @staticmethod
    def _moment(text: str) -> int | datetime:
        if text.isascii() and text.isdigit():
            return int(text)
        try:
            results = datetime.fromisoformat(text)
            return results if results.tzinfo else results.astimezone()
        except (ValueError, OverflowError):
            known = "a snapshot's number, or a time as '2026-01-31 12:00:00'"
            raise errors.make(
                "setting.value", name="lake_snapshot", value=text, known=known
            ) from None

    def checkpoint(self) -> None:
        """Files lie where they are to stay."""

    def opened(self) -> dict[tuple[str, str], float]:
        """The share of all bits of each index that the tokens sent so far have opened to who kept
        them, by table and column.
        """
        by_name: dict[tuple[str, str], float] = {}
        facts = self._parts.ledger.facts()
        for table in self._parts.state.catalog.tables.values():
            shown = requests.shown_spans(table, facts) if table.lake else []
            names = {column.id: column.name for column in table.columns}
            for number, share in self.store.opened_share(table, shown).items():
                by_name[table.label, names[number]] = share
        return by_name
