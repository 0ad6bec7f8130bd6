"""DuckLake as a lake's format: the same answers, and a catalog that tells DuckDB nothing."""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver
from louver import errors
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.lake.ducklake import DuckLakeWarehouse
from louver.untrusted.lake.warehouse import DUCKLAKE_FILE, Warehouse
from louver.wire.prune import All, Any, Hit
from tests.lake.tables import known_key, new_table, numbers, once, read, rows, span


def new_store(folder: Path) -> LakeStore:
    if not (folder / "key").exists():
        known_key(folder / "key")
    ring = KeyRing.open(folder / "key")
    pin = Pins(ring, folder / "pins").pin("database")
    return LakeStore(Warehouse.open(str(folder / "lake"), {"format": "ducklake"}), ring, pin)


@pytest.fixture
def store(tmp_path: Path) -> LakeStore:
    return new_store(tmp_path)


@pytest.fixture
def table(store: LakeStore) -> Table:
    return new_table(store)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its DuckLake extension, as somebody without keys has it."""
    connection = duckdb.connect()
    for name in ("sqlite_scanner", "ducklake"):
        package = importlib.util.find_spec(f"duckdb_extension_{name}")
        assert package is not None
        assert package.submodule_search_locations
        (file,) = Path(package.submodule_search_locations[0]).rglob("*.duckdb_extension")
        connection.execute(f"LOAD '{file}'")
    yield connection
    connection.close()


def attach(stranger: duckdb.DuckDBPyConnection, store: LakeStore) -> None:
    file = Path(store.warehouse.location) / DUCKLAKE_FILE
    stranger.execute(f"ATTACH 'ducklake:sqlite:{file}' AS lake (READ_ONLY)")


def test_rows_come_back_and_files_are_skipped(store: LakeStore, table: Table) -> None:
    assert isinstance(store.warehouse, DuckLakeWarehouse)
    assert store.append(table, once(rows(0, 600), rows(600, 400)), 100) == 1_000
    snapshot = store.snapshot(table)
    assert (snapshot.files_total, snapshot.rows, snapshot.unindexed) == (10, 1_000, 0)
    answer = read(store, table)
    assert answer.select(["n", "d", "t"]).sort_by("n").equals(rows(0, 1_000))
    for low, high in ((0, 99), (150, 349), (999, 999), (-5, -1), (2_000, 3_000)):
        wanted = {n // 100 for n in range(1_000) if low <= n <= high}
        plan = store.plan(table, snapshot, Hit(store.token(table, span(low, high))))
        assert plan.total == 10
        assert wanted <= {entry.number for entry in plan.files}
        assert len(plan.files) <= len(wanted) + 1
        inside = [n for n in numbers(read(store, table, span(low, high))) if low <= n <= high]
        assert inside == [n for n in range(1_000) if low <= n <= high]
    first, other = (Hit(store.token(table, span(n, n))) for n in (5, 905))
    assert len(store.plan(table, snapshot, Any((first, other))).files) in (2, 3)
    assert len(store.plan(table, snapshot, All((first, other))).files) in (0, 1)


def test_what_duckdb_sees(
    store: LakeStore, table: Table, stranger: duckdb.DuckDBPyConnection
) -> None:
    """Tables, snapshots, files, sizes and rows; pseudonyms, and nothing of what is in them."""
    store.append(table, once(rows(0, 1_000)), 100)
    first = store.snapshot(table)
    store.replace(table, first, read(store, table).column("row_id").slice(5, 1), once())
    attach(stranger, store)
    listed = (
        "SELECT data_file_size_bytes, octet_length(data_file_encryption_key) "
        "FROM ducklake_list_files"
    )
    entries = stranger.execute(f"FROM ({listed}('lake', 't5', schema => 'louver'))").fetchall()
    assert len(entries) == 10
    assert {key for _, key in entries} == {61}
    described = stranger.execute("DESCRIBE lake.louver.t5").fetchall()
    assert [row[:2] for row in described] == [("c7", "BLOB"), ("c8", "BLOB"), ("c9", "BLOB")]
    snapshots = stranger.execute("FROM lake.snapshots()").fetchall()
    assert len(snapshots) == 4
    before = f"{listed}('lake', 't5', schema => 'louver', snapshot_version => {first.id})"
    old = stranger.execute(f"FROM ({before})").fetchall()
    assert len(old) == 10
    assert sorted(old) != sorted(entries)
    info = stranger.execute("FROM ducklake_table_info('lake')").fetchall()
    assert info[0][0] == "t5"
    for query in (
        "SELECT count(c7) FROM lake.louver.t5",
        "SELECT * FROM lake.louver.t5 WHERE c7 = 'x'::BLOB",
        "SELECT min(c8), max(c9) FROM lake.louver.t5",
    ):
        with pytest.raises(duckdb.Error, match=r"(?i)key|encrypt"):
            stranger.execute(query).fetchall()


def test_the_catalog_has_no_bounds(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 300)), 100)
    file = Path(store.warehouse.location) / DUCKLAKE_FILE
    with sqlite3.connect(file) as connection:
        stats = connection.execute("SELECT * FROM ducklake_file_column_stats").fetchall()
        assert len(stats) == 9
        assert {value for row in stats for value in row[3:]} == {None}
        stats = connection.execute("SELECT * FROM ducklake_table_column_stats").fetchall()
        assert {value for row in stats for value in row[2:]} == {None}
        assert connection.execute("SELECT * FROM ducklake_table_stats").fetchone()[1] == 300
    connection.close()
    data = file.read_bytes()
    for word in (b"table5", b"text 1", b"main.table"):
        assert word not in data


def test_a_table_of_someone_else_lies_beside(
    store: LakeStore, table: Table, stranger: duckdb.DuckDBPyConnection
) -> None:
    """DuckDB writes into the same catalog, and both go on."""
    store.append(table, once(rows(0, 100)), 100)
    file = Path(store.warehouse.location) / DUCKLAKE_FILE
    stranger.execute("SET force_mbedtls_unsafe = 'true'")
    stranger.execute(f"ATTACH 'ducklake:sqlite:{file}' AS lake")
    stranger.execute("CREATE TABLE lake.main.plain AS SELECT range AS i FROM range(1000)")
    assert store.append(table, once(rows(100, 100)), 100) == 100
    assert stranger.execute("SELECT sum(i) FROM lake.main.plain").fetchone() == (499_500,)
    stranger.execute("INSERT INTO lake.main.plain SELECT range FROM range(1000)")
    store.append(table, once(rows(200, 100)), 100)
    assert stranger.execute("SELECT count(i) FROM lake.main.plain").fetchone() == (2_000,)
    assert numbers(read(store, table)) == list(range(300))
    assert store.warehouse.tables() == ["t5"]


def test_replacing_time_travel_and_expiry(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 300)), 100)
    first = store.snapshot(table)
    gone = read(store, table, span(100, 199))
    ids = gone.filter(pa.compute.equal(gone.column("n"), 150)).column("row_id")
    assert store.replace(table, first, ids, once(rows(1_000, 1))) == 1
    now = [n for n in range(300) if n != 150] + [1_000]
    assert numbers(read(store, table)) == now
    assert numbers(read(store, table, snapshot=store.snapshot(table, first.id))) == [*range(300)]
    before = first.created_at + timedelta(milliseconds=0)
    assert store.snapshot(table, before).id == first.id
    with pytest.raises(errors.ProgrammingError) as caught:
        store.snapshot(table, datetime(2000, 1, 1, tzinfo=UTC))
    assert caught.value.code == "lake.snapshot"
    with pytest.raises(errors.OperationalError) as conflict:
        store.replace(table, first, ids, once(rows(2_000, 1)))
    assert conflict.value.code == "lake.conflict"
    assert store.history(table).column("rows").to_pylist() == [300, 300]
    assert store.expire(table, 1) == 1
    assert store.history(table).num_rows == 1
    assert numbers(read(store, table)) == now
    assert store.clean(table, 0) == []
    objects = store.warehouse.objects
    assert len([p for p in objects.list("louver/t5/") if p.endswith(".parquet")]) == 4
    with pytest.raises(errors.ProgrammingError):
        store.snapshot(table, first.id)


def test_an_added_column_and_a_dropped_table(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 10)))
    column = Column("x", "INTEGER", 12, encrypted=True, ceiling="access")
    table.columns.append(column)
    store.add_column(table, column)
    store.add_column(table, column)
    more = rows(10, 5).append_column("x", pa.array(range(5), pa.int32()))
    store.append(table, once(more))
    assert read(store, table).column("x").null_count == 10
    with pytest.raises(errors.IntegrityError):
        store.create(table)
    store.drop(table)
    store.drop(table)
    assert list(store.warehouse.objects.list("louver/t5/")) == []
    with pytest.raises(errors.OperationalError) as caught:
        store.snapshot(table)
    assert caught.value.code == "lake.table"
    again = new_table(store, 6)
    store.append(again, once(rows(0, 10)))
    assert numbers(read(store, again)) == list(range(10))


def test_compaction(store: LakeStore, table: Table) -> None:
    for first in range(0, 200, 20):
        store.append(table, once(rows(first, 20)))
    assert store.snapshot(table).files_total == 10
    store.compact(table, 100)
    assert store.snapshot(table).files_total == 2
    assert numbers(read(store, table)) == list(range(200))
    store.compact(table, 50, [table.columns[1]])
    assert numbers(read(store, table)) == list(range(200))
    store.expire(table)
    assert store.clean(table, 0) == []


def test_writers_at_once_and_another_process(tmp_path: Path, store: LakeStore) -> None:
    table = new_table(store)
    stores = [store, new_store(tmp_path)]

    def work(number: int) -> None:
        stores[number % 2].append(table, once(rows(10 * number, 10)))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(12)))
    assert numbers(read(new_store(tmp_path), table)) == list(range(120))
    assert store.history(table).num_rows == 12


def test_a_keeper_who_lies_is_found_out(store: LakeStore, table: Table, tmp_path: Path) -> None:
    store.append(table, once(rows(0, 100)), 50)
    old = store.snapshot(table)
    store.append(table, once(rows(100, 100)), 50)
    file = Path(store.warehouse.location) / DUCKLAKE_FILE

    def changed(sql: str, undo: str) -> str:
        with sqlite3.connect(file) as connection:
            connection.execute(sql)
        connection.close()
        try:
            with pytest.raises(errors.Error) as caught:
                read(new_store(tmp_path), table, span(0, 150))
        finally:
            with sqlite3.connect(file) as connection:
                connection.execute(undo)
            connection.close()
        return caught.value.code

    newest = store.snapshot(table).id
    hidden = f"FROM louver_snapshot WHERE snapshot_id = {newest}"
    with sqlite3.connect(file) as connection:
        row = connection.execute(f"SELECT * {hidden}").fetchone()
    connection.close()
    back = f"INSERT INTO louver_snapshot VALUES ({row[0]}, {row[1]}, '{row[2]}')"
    assert changed(f"DELETE {hidden}", back) == "lake.rollback"
    swap = "UPDATE louver_snapshot SET root = '{}' WHERE snapshot_id = {}"
    other = store.warehouse.listing("t5").snapshots[0]
    assert other.id == old.id
    code = changed(swap.format(other.root_path, newest), swap.format(row[2], newest))
    assert code in ("lake.rollback", "lake.tampered")
    flip = "UPDATE louver_index SET bytes = CAST(substr(bytes, 1, {0}) || x'{1}' || "
    flip += "substr(bytes, {0} + 2) AS BLOB) WHERE path LIKE '%.root'"
    with sqlite3.connect(file) as connection:
        saved = connection.execute("SELECT * FROM louver_index").fetchall()
        connection.execute(flip.format(60, "ff"))
    connection.close()
    with pytest.raises(errors.Error) as caught:
        read(new_store(tmp_path), table)
    assert caught.value.code in ("lake.tampered", "lake.format")
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM louver_index")
        connection.executemany("INSERT INTO louver_index VALUES (?, ?, ?)", saved)
    connection.close()
    assert numbers(read(new_store(tmp_path), table)) == list(range(200))


def test_nonsense_in_the_catalog_is_an_error(
    store: LakeStore, table: Table, tmp_path: Path
) -> None:
    store.append(table, once(rows(0, 10)))
    file = Path(store.warehouse.location) / DUCKLAKE_FILE
    for sql in (
        "UPDATE louver_file SET size = 'many'",
        "UPDATE louver_index SET bytes = 'text'",
        "UPDATE ducklake_snapshot SET snapshot_time = 'noon'",
        "UPDATE louver_snapshot SET root = 7",
        "UPDATE ducklake_table SET table_id = 'none'",
        "DROP TABLE louver_snapshot",
        "DELETE FROM ducklake_snapshot",
    ):
        saved = file.read_bytes()
        with sqlite3.connect(file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            saved = file.read_bytes()
            connection.execute(sql)
        connection.close()
        with pytest.raises(errors.Error) as caught:
            read(new_store(tmp_path), table)
        assert caught.value.code in ("lake.format", "lake.io", "lake.table", "lake.rollback"), sql
        for ending in ("-wal", "-shm"):
            file.with_name(file.name + ending).unlink(missing_ok=True)
        file.write_bytes(saved)


def test_sessions(tmp_path: Path) -> None:
    """SQL on it, by its URL; the second time the directory itself says what it is."""
    known_key(tmp_path / "key")
    rows = (
        "SELECT i AS id, DATE '2020-01-01' + i::INT AS day, 'name ' || i AS name "
        "FROM range(500) r(i)"
    )
    url = f"lake:///{tmp_path}/lake"
    with louver.connect(f"{url}?format=ducklake", keys=str(tmp_path / "key")) as connection:
        connection.execute(f"CREATE TABLE t AS {rows}")
        connection.execute("DELETE FROM t WHERE id BETWEEN 100 AND 199")
        connection.execute("UPDATE t SET name = 'other' WHERE id = 7")
    with louver.connect(url, keys=str(tmp_path / "key")) as connection:
        answer = connection.execute("SELECT count(*), sum(id), max(name) FROM t WHERE id < 250")
        assert answer.fetchall() == [(150, sum(range(250)) - sum(range(100, 200)), "other")]
        assert connection.execute(
            "SELECT name FROM t WHERE day = DATE '2020-01-11'"
        ).fetchall() == [("name 10",)]
    assert (tmp_path / "lake" / DUCKLAKE_FILE).exists()
    assert not (tmp_path / "lake" / "catalog.sqlite").exists()


def test_formats_are_named(tmp_path: Path) -> None:
    for properties in ({"format": "delta"}, {"format": "ducklake", "uri": "x"}):
        with pytest.raises(errors.ProgrammingError):
            Warehouse.open(str(tmp_path), properties)
    with pytest.raises(errors.ProgrammingError):
        Warehouse.open("s3://bucket/place", {"format": "ducklake"})
