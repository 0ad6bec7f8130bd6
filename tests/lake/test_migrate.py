"""A plaintext Iceberg table becomes an encrypted one; a run that was cut short goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as IcebergTable

from louver import errors
from louver.trusted.lake import data
from louver.trusted.lake.migrate import columns_of
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Column, Table
from louver.wire.prune import Hit
from tests.lake.tables import new_store, new_table, numbers, once, read, rows, span

FILES = 7


@pytest.fixture
def source(tmp_path: Path) -> IcebergTable:
    folder = tmp_path / "plain"
    folder.mkdir()
    catalog = SqlCatalog("plain", uri=f"sqlite:///{folder}/c.sqlite", warehouse=str(folder))
    catalog.create_namespace("n")
    table = catalog.create_table("n.source", rows(0, 0).schema)
    for place_ in range(FILES):
        table.append(rows(10 * place_, 10))
    return table


@pytest.fixture
def store(tmp_path: Path) -> LakeStore:
    return new_store(tmp_path)


@pytest.fixture
def table(store: LakeStore) -> Table:
    return new_table(store)


def test_every_file_becomes_one(store: LakeStore, table: Table, source: IcebergTable) -> None:
    seen: list[tuple[int, int]] = []
    done = store.encrypt_iceberg(source, table, lambda a, b: seen.append((a, b)), 3)
    assert (done.done, done.total) == (FILES, FILES)
    assert seen == [(0, 7), (3, 7), (6, 7), (7, 7)]
    snapshot = store.snapshot(table)
    assert (snapshot.files_total, snapshot.rows, snapshot.sequence) == (7, 70, 3)
    answer = read(store, table)
    assert answer.drop_columns(["row_id"]).sort_by("n").equals(rows(0, 70))
    plan = store.plan(table, snapshot, Hit(store.token(table, span(25, 25))))
    assert len(plan.files) < 4
    again = store.encrypt_iceberg(source, table)
    assert again == done
    assert store.snapshot(table).sequence == 3


def test_a_run_that_stops_anywhere_goes_on(
    store: LakeStore, table: Table, source: IcebergTable, monkeypatch
) -> None:
    write = data.write_one
    for step in range(1, 12):
        left = [step]

        def stopping(*args, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return write(*args)

        with monkeypatch.context() as patch:
            patch.setattr(data, "write_one", stopping)
            try:
                store.encrypt_iceberg(source, table, files_per_commit=2)
            except KeyboardInterrupt:
                continue
        break
    assert step > 1
    assert numbers(read(store, table)) == list(range(70))
    assert store.snapshot(table).files_total == FILES


def test_others_may_write_meanwhile(store: LakeStore, table: Table, source: IcebergTable) -> None:
    def also(done: int, _: int) -> None:
        store.append(table, once(rows(1_000 + done, 1)))
        if done == 2:
            answer = read(store, table)
            gone = answer.filter(pc.field("n") == 1_000).column("row_id").combine_chunks()
            store.replace(table, store.snapshot(table), gone, once())

    store.encrypt_iceberg(source, table, also, 2)
    assert numbers(read(store, table)) == [*range(70), 1_002, 1_004, 1_006, 1_007]


def test_rows_deleted_at_the_source_stay_away(
    store: LakeStore, table: Table, source: IcebergTable
) -> None:
    source.delete("n < 15")
    store.encrypt_iceberg(source, table)
    assert numbers(read(store, table)) == list(range(15, 70))


def test_what_does_not_fit_is_refused(
    store: LakeStore, table: Table, source: IcebergTable, tmp_path: Path
) -> None:
    table.columns.append(Column("more", "INTEGER", 70))
    with pytest.raises(errors.OperationalError, match="more"):
        store.encrypt_iceberg(source, table)
    table.columns.pop()

    def stop(done: int, _: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.encrypt_iceberg(source, table, stop, 2)
    other = source.catalog.create_table("n.other", rows(0, 0).schema)
    with pytest.raises(errors.OperationalError, match="another source"):
        store.encrypt_iceberg(other, table)
    store.encrypt_iceberg(source, table)
    source.append(rows(500, 1))
    with pytest.raises(errors.OperationalError, match="changed since"):
        store.encrypt_iceberg(source, table)
    assert store.encrypt_iceberg(other, table).total == 0


def test_columns_have_duckdb_types(source: IcebergTable) -> None:
    assert columns_of(source) == [("n", "BIGINT"), ("d", "DATE"), ("t", "VARCHAR")]
    wide = pa.schema(
        [
            ("a", pa.decimal128(12, 2)), ("b", pa.timestamp("us", "UTC")), ("c", pa.float64()),
            ("e", pa.bool_()), ("f", pa.list_(pa.int32())), ("g", pa.int32()), ("h", pa.binary()),
        ]
    )  # fmt: skip
    table = source.catalog.create_table("n.wide", wide)
    assert [type_ for _, type_ in columns_of(table)] == [
        "DECIMAL(12,2)", "TIMESTAMP WITH TIME ZONE", "DOUBLE", "BOOLEAN", "INTEGER[]", "INTEGER",
        "BLOB",
    ]  # fmt: skip
