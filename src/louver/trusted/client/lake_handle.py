"""`Connection.lake`: maintenance of a lake that SQL does not express."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.table import StaticTable

from louver import errors
from louver.names import quoted
from louver.trusted.executor import constraint_check, dispatch, row_writer, seen_state, transaction
from louver.trusted.executor import select as queries
from louver.trusted.executor.context import Context
from louver.trusted.executor.lake.fetched import Fetched
from louver.trusted.executor.lake.storage import LakeStorage
from louver.trusted.lake import migrate
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Column, Table


class LakeHandle:
    """Files, snapshots and maintenance of a lake's tables; tables are named as in SQL."""

    def __init__(self, context: Context) -> None:
        """The lake of a context; raises `lake.only` for other databases."""
        if not isinstance(context.storage, LakeStorage):
            location = context.engine.address or "in memory"
            raise errors.make("lake.only", name="Connection.lake", place=location)
        self._context = context
        self._storage = context.storage

    def files(self, query: str, params: Sequence[object] = ()) -> list[Fetched]:
        """The files of each table that a query would fetch. Sends the tokens; reads no data."""
        texts = lexer.split(query)
        tokens = lexer.tokens(texts[0].plain) if len(texts) == 1 else []
        if not tokens or dispatch.handler(tokens) is not queries.select:
            raise errors.make(
                "sql.unsupported", statement="Listing the files of a statement that is not a query"
            )
        text = texts[0]
        storage = self._storage
        before = storage.options.text("lake_plan_only")
        storage.change_option("lake_plan_only", "on")
        try:
            storage.fetched.clear()
            seen_state.refresh(self._context)
            queries.select(self._context, text, tokens, list(params))
            return list(storage.fetched)
        finally:
            storage.change_option("lake_plan_only", before)

    def fetched(self) -> list[Fetched]:
        """What the last query fetched, by table."""
        return list(self._storage.fetched)

    def history(self, table: str) -> pa.Table:
        """All snapshots, the oldest first: snapshot_id, sequence, made, files, rows, bytes."""
        return self._storage.store.history(self._table(table))

    def compact(
        self, table: str, rows_per_file: int | None = None, order_by: Sequence[str] = ()
    ) -> int:
        """Rewrite small files, or all files if an order is given; the new number of files."""
        target = self._table(table)
        self._require_no_transaction()
        columns = [self._column(target, name) for name in order_by]
        if rows_per_file is not None and not 0 < rows_per_file <= 1 << 30:
            known = "a positive number of rows"
            raise errors.make("setting.value", name="rows", value=rows_per_file, known=known)
        rows = rows_per_file or self._storage.options.number("lake_rows_per_file")
        return self._storage.store.compact(target, rows, columns).files_total

    def reindex(self, table: str) -> int:
        """Rebuild the index of all files without reading data; the number of files."""
        target = self._table(table)
        self._require_no_transaction()
        return self._storage.store.reindex(target).files_total

    def expire(self, table: str, keep_last: int = 1) -> int:
        """Remove all but the last snapshots and the files only they use; the number removed."""
        if keep_last < 1:
            raise errors.make("setting.value", name="keep_last", value=keep_last, known="1 or more")
        self._require_no_transaction()
        return self._storage.store.expire(self._table(table), keep_last)

    def clean(self, table: str, grace_seconds: float | None = None) -> list[str]:
        """Delete files that no snapshot refers to (left by crashed writers) and that are older
        than the grace period (default: one day). Returns their paths.
        """
        target = self._table(table)
        transaction.require_writable(self._context)
        if grace_seconds is None:
            return self._storage.store.clean(target)
        return self._storage.store.clean(target, grace_seconds)

    def encrypt(
        self, metadata: str, table: str, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Append all rows of a plaintext Iceberg table, file by file; the new number of rows.

        Args:
            metadata: the source's metadata file (``*.metadata.json``), a path or a URL.
            table: created with the source's columns if it does not exist. A repeated call
                continues after an interruption.
            progress: called with the number of files done and the total.
        """
        source = _iceberg(metadata, table)
        self._require_no_transaction()
        context = self._context
        seen_state.refresh(context)
        if context.catalog.named("", table) is None:
            listed = ", ".join(f"{quoted(n)} {t}" for n, t in migrate.columns_of(source))
            (text,) = lexer.split(f"CREATE TABLE {quoted(table)} ({listed})")
            context.run(text, [])
        target = self._table(table)
        known = constraint_check.rules(context, target)
        if (
            known.keys
            or known.foreign
            or known.generated
            or not all(column.nullable for column in target.columns)
        ):
            raise errors.make(
                "lake.source", source=metadata, table=target.label,
                detail="the table has constraints, and only INSERT and load() check them",
            )  # fmt: skip
        facts = row_writer.at_rest(target, context.backend)
        context.ledger.record(facts, f"encrypting an Iceberg table as {target.label}")
        self._storage.store.encrypt_iceberg(source, target, progress)
        return self._storage.row_count(target)

    def opened(self) -> dict[tuple[str, str], float]:
        """The share of index bits opened by all tokens so far, by table and column: the knowledge
        of a server that has recorded every token.
        """
        return self._storage.opened()

    def _table(self, name: str) -> Table:
        if not self._context.in_transaction:
            seen_state.refresh(self._context)
        parts = [token.text for token in lexer.tokens(name) if token.text != "."]
        schema, table = (parts[-2], parts[-1]) if len(parts) > 1 else ("", "".join(parts))
        match = self._context.catalog.named(schema, table)
        if match is None:
            raise errors.make("table.missing", table=name)
        return match

    def _require_no_transaction(self) -> None:
        if self._context.in_transaction:
            raise errors.make("transaction.active")
        transaction.require_writable(self._context)

    @staticmethod
    def _column(table: Table, name: str) -> Column:
        column = table.column(name)
        if column is None:
            raise errors.make("column.missing", table=table.label, column=name)
        return column


def _iceberg(metadata: str, table: str) -> StaticTable:
    """A read-only Iceberg table from its metadata file."""
    try:
        return StaticTable.from_metadata(metadata)
    except (OSError, ValueError, ValidationError) as error:
        detail = getattr(error, "strerror", None) or "it is not a metadata file of an Iceberg table"
        raise errors.make("lake.source", source=metadata, table=table, detail=detail) from error
