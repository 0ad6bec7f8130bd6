"""The pruning service as a process: what clients can do through it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog

import louver
from louver import errors
from louver.trusted.executor.ledger import Fact, Ledger
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.engines.lake import LakeEngine
from louver.untrusted.lake.http import HttpObjects, RemotePruner, Service
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.wire.messages import Statement
from louver.wire.prune import All, Everything, Hit
from louver.wire.prune import Any as AnyOf
from tests.lake.conftest import Filled
from tests.lake.services import Running, serving
from tests.lake.tables import known_key, new_store, new_table, numbers, once, read, rows, span

DATA = "louver/t5/data/"


def remote(folder: Path, url: str) -> LakeStore:
    """A store of the same keys, all by way of the service."""
    service = Service(url)
    ring = KeyRing.open(str(folder / "key"))
    pin = Pins(ring, folder / "pins").pin("database")
    return LakeStore(RemoteWarehouse(service), ring, pin, RemotePruner(service))


def test_plans_are_those_made_here(folder: Path, filled: Filled, service: Running) -> None:
    table, store = filled.table, remote(folder, service.url)
    snapshot = store.snapshot(table)
    assert snapshot.id == filled.store.snapshot(table).id
    token = Hit(store.token(table, span(250, 449)))
    other = Hit(store.token(table, span(900, 950)))
    for where in (token, Everything(), All((token, other)), AnyOf((token, other)), AnyOf(())):
        plan = store.plan(table, snapshot, where)
        assert plan == filled.store.plan(table, snapshot, where)
    assert {2, 3, 4} <= {file.number for file in store.plan(table, snapshot, token).files}
    assert set(numbers(read(store, table, span(250, 449)))) >= set(range(250, 450))


def test_tables_are_made_changed_and_dropped(folder: Path, service: Running) -> None:
    store = remote(folder, service.url)
    table = new_table(store, 31)
    store.append(table, once(rows(0, 100)), 10)
    store.append(table, once(rows(100, 100)), 50)
    assert numbers(read(store, table)) == list(range(200))
    snapshot = store.snapshot(table)
    gone = read(store, table).slice(10, 20).column("row_id").combine_chunks()
    store.replace(table, snapshot, gone, once(rows(500, 5)))
    assert len(numbers(read(store, table))) == 185
    assert numbers(read(store, table, snapshot=snapshot)) == list(range(200))
    store.compact(table, 1_000)
    store.expire(table, 1)
    assert len(numbers(read(store, table))) == 185
    assert store.history(table).num_rows >= 1
    store.clean(table, 0)
    assert len(numbers(read(store, table))) == 185
    store.drop(table)
    assert not list((folder / "lake/louver/t31").rglob("*.parquet"))


def test_writers_race(folder: Path, service: Running) -> None:
    table = new_table(remote(folder, service.url), 32)
    stores = [remote(folder, service.url), new_store(folder), remote(folder, service.url)]

    def work(number: int) -> None:
        for step in range(3):
            stores[number].append(table, once(rows(1_000 * number + 10 * step, 10)), 5)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    ids = numbers(read(stores[0], table))
    assert ids == sorted(1_000 * w + n for w in range(3) for n in range(30))


def test_pyicebergs_own_client_reads_the_tables(service: Running, filled: Filled) -> None:
    catalog = RestCatalog("any", uri=service.url)
    assert ("louver", "t5") in catalog.list_tables("louver")
    assert catalog.list_namespaces() == [("louver",)]
    assert catalog.namespace_exists("louver")
    assert not catalog.namespace_exists("other")
    assert catalog.table_exists("louver.t5")
    table = catalog.load_table("louver.t5")
    assert len(list(table.scan().plan_files())) == 10
    assert not catalog.table_exists("louver.t999")


def test_control_tables(folder: Path, service: Running) -> None:
    ring = KeyRing.open(str(folder / "key"))
    pins = Pins(ring, folder / "pins")
    engine = LakeEngine("", remote=service.url)
    assert engine.address == f"lake+{service.url}"
    store = CatalogStore(engine, ring, pins)
    catalog = store.load()
    engine.begin()
    store.save(catalog)
    ledger = Ledger(engine.side(), ring, pins.pin("other"))
    fact = Fact("t", ("c",), "access", "eds", "which files a query kept")
    assert ledger.record([fact], "SELECT ?") == [fact]
    engine.commit()
    store.committed()
    second = CatalogStore(LakeEngine(folder / "lake"), ring, pins)
    assert second.load().version == 2
    second.save(second.load())
    second.committed()
    with pytest.raises(errors.OperationalError) as lost:
        store.save(catalog)
    assert lost.value.code == "catalog.conflict"
    assert RowIds(engine.side(), pins.pin("other")).claim(Catalog("x")) == 1
    drop = Statement("DROP TABLE louver_ledger", kind="ddl")
    with pytest.raises(errors.OperationalError) as refused:
        engine.run(drop)
    assert refused.value.code == "wire.format"
    engine.close()


def test_files(service: Running, folder: Path) -> None:
    objects = HttpObjects(Service(service.url))
    path = DATA + "f" * 32 + ".parquet"
    data = bytes(range(256)) * 80_000
    objects.create(path, data)
    assert objects.size(path) == len(data)
    assert objects.read(path, 255, 3) == b"\xff\x00\x01"
    assert objects.read(path, 7, 0) == b""
    wanted = [(path, at, 5_000_000) for at in range(0, 15_000_000, 1_000_000)]
    wanted += [(path, at, 3) for at in range(5_000)]
    assert objects.read_many(wanted) == [data[at : at + size] for _, at, size in wanted]
    assert objects.map(path) == data
    assert abs(objects.modified(path) - time.time()) < 600
    assert path in list(objects.list("louver/t5"))
    for offset, length in ((len(data), 1), (len(data) - 1, 2)):
        with pytest.raises(errors.VerificationError) as short:
            objects.read(path, offset, length)
        assert short.value.code == "lake.short"
    with pytest.raises(errors.VerificationError):
        objects.read_many([(path, 0, 1), (path, len(data), 1)])
    with pytest.raises(errors.IntegrityError) as exists:
        objects.create(path, b"")
    assert exists.value.code == "lake.exists"
    objects.delete(path)
    objects.delete(path)
    for attempt in (lambda: objects.size(path), lambda: objects.read(path, 0, 1)):
        with pytest.raises(errors.OperationalError) as missing:
            attempt()
        assert missing.value.code == "lake.missing"
    empty = DATA + "empty"
    objects.create(empty, b"")
    assert (objects.size(empty), objects.map(empty), objects.read(empty, 0, 0)) == (0, b"", b"")
    objects.delete(empty)


def test_sessions_through_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL by way of the service and past it, on the same warehouse."""
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("LOUVER_AUTHORIZATION", raising=False)
    monkeypatch.delenv("LOUVER_CERTIFICATES", raising=False)
    key = str(tmp_path / "key")
    known_key(key)
    (tmp_path / "lake").mkdir()
    with serving(tmp_path / "lake") as running:
        with louver.connect(f"lake+{running.url}", keys=key) as con:
            con.execute("CREATE TABLE staff (name TEXT ENC, salary BIGINT ENC)")
            con.execute("INSERT INTO staff SELECT 'n' || i, i * 10 FROM range(1000) t(i)")
            con.execute("BEGIN")
            con.execute("INSERT INTO staff VALUES ('x', 5)")
            con.execute("ROLLBACK")
        for url in (f"lake+{running.url}", f"lake:///{tmp_path}/lake"):
            with louver.connect(url, keys=key) as con:
                query = "SELECT count(*), sum(salary) FROM staff WHERE salary BETWEEN 50 AND 200"
                assert con.execute(query).fetchall() == [(16, 2_000)]
                con.execute("DELETE FROM staff WHERE salary = 9990")
                assert con.execute("SELECT count(*) FROM staff").fetchall() == [(999,)]
    assert running.output == "trusted: []\n"
