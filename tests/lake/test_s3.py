"""A lake in an object store: data and metadata in S3, the catalog and the control tables here."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from louver import errors
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.lake.http import RemotePruner, Service
from louver.untrusted.lake.objects import Objects
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything, Hit
from tests.lake.services import serving
from tests.lake.tables import known_key, new_table, numbers, once, read, rows, span

PLACE = "s3://bucket/some/prefix"
CREDENTIALS = {
    "s3.access-key-id": "someone",
    "s3.secret-access-key": "something",
    "s3.region": "us-east-1",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def properties(endpoint: str, tmp_path: Path) -> dict[str, str]:
    system = store_system(endpoint)
    system.create_dir("bucket")
    system.delete_dir_contents("bucket")
    return CREDENTIALS | {
        "s3.endpoint": endpoint,
        "catalog": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.sqlite?timeout=60",
    }


def store_system(endpoint: str) -> fs.S3FileSystem:
    return fs.S3FileSystem(
        access_key="someone", secret_key="something", region="us-east-1",
        endpoint_override=endpoint, allow_bucket_creation=True,
    )  # fmt: skip


def store_of(tmp_path: Path, warehouse: Warehouse, service: Service | None = None) -> LakeStore:
    key = tmp_path / "key"
    if not key.exists():
        known_key(str(key))
    ring = KeyRing.open(str(key))
    pin = Pins(ring, tmp_path / "pins").pin("database")
    return LakeStore(warehouse, ring, pin, RemotePruner(service) if service else None)


def test_a_lake_in_a_bucket(tmp_path: Path, endpoint: str, properties: dict[str, str]) -> None:
    store = store_of(tmp_path, Warehouse.open(PLACE, properties))
    table = new_table(store)
    store.append(table, once(rows(0, 500)), 50)
    store.append(table, once(rows(500, 100)), 50)
    snapshot = store.snapshot(table)
    assert (snapshot.files_total, snapshot.rows) == (12, 600)
    plan = store.plan(table, snapshot, Hit(store.token(table, span(120, 180))))
    assert {2, 3} <= {file.number for file in plan.files}
    assert len(plan.files) < 12
    assert set(numbers(read(store, table, span(120, 180)))) >= set(range(120, 181))
    gone = read(store, table).slice(0, 10).column("row_id").combine_chunks()
    store.replace(table, snapshot, gone, once(rows(1_000, 3)))
    store.add_column(table, table.columns[0])
    expected = [*range(10, 600), 1_000, 1_001, 1_002]
    assert numbers(read(store, table)) == expected
    assert numbers(read(store, table, snapshot=snapshot)) == list(range(600))
    store.compact(table, 1_000)
    store.expire(table, 1)
    store.clean(table, 0)
    # Another client, with nothing but the key and the address.
    again = store_of(tmp_path, Warehouse.open(PLACE, properties))
    assert numbers(read(again, table)) == expected
    objects = store_system(endpoint).get_file_info(fs.FileSelector("bucket", recursive=True))
    files = [info.path for info in objects if info.type == fs.FileType.File]
    assert files
    assert all(path.startswith("bucket/some/prefix/louver/t5/") for path in files)
    assert sum(path.endswith(".parquet") for path in files) == 1
    assert not list(tmp_path.rglob("*.parquet"))
    again.drop(table)
    assert not list(again.warehouse.objects.list(""))


def test_writers_race_in_a_bucket(tmp_path: Path, properties: dict[str, str]) -> None:
    stores = [store_of(tmp_path, Warehouse.open(PLACE, properties)) for _ in range(3)]
    table = new_table(stores[0])

    def work(number: int) -> None:
        for step in range(2):
            stores[number].append(table, once(rows(100 * number + 10 * step, 10)), 5)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(100 * writer + n for writer in range(3) for n in range(20))
    assert numbers(read(stores[1], table)) == expected


def test_a_bucket_behind_the_service(tmp_path: Path, properties: dict[str, str]) -> None:
    """Clients of the service need no credentials of the bucket."""
    options = tmp_path / "properties.toml"
    options.write_text("".join(f'"{key}" = "{value}"\n' for key, value in properties.items()))
    with serving(PLACE, "--properties", str(options), "--control", str(tmp_path)) as running:
        service = Service(running.url)
        store = store_of(tmp_path, RemoteWarehouse(service), service)
        table = new_table(store)
        store.append(table, once(rows(0, 200)), 20)
        assert set(numbers(read(store, table, span(50, 60)))) >= set(range(50, 61))
        assert len(store.plan(table, store.snapshot(table), Everything()).files) == 10
        assert numbers(read(store, table)) == list(range(200))
    assert "something" not in running.output
    assert running.output == "trusted: []\n"


@pytest.fixture
def objects(properties: dict[str, str]) -> Objects:
    return Warehouse.open(PLACE, properties).objects


def test_objects_of_a_bucket(objects: Objects) -> None:
    data = bytes(range(256)) * 100_000
    objects.create("louver/t1/data/a", data)
    objects.create("louver/t1/data/empty", b"")
    assert objects.size("louver/t1/data/a") == len(data)
    wanted = [("louver/t1/data/a", at * 1_000, 1_500) for at in range(40)]
    assert objects.read_many(wanted) == [data[at : at + size] for _, at, size in wanted]
    assert bytes(objects.map("louver/t1/data/a")) == data
    assert bytes(objects.map("louver/t1/data/empty")) == b""
    assert objects.modified("louver/t1/data/a") > 1.7e9
    assert list(objects.list("louver/t1")) == ["louver/t1/data/a", "louver/t1/data/empty"]
    assert list(objects.list("louver/t2")) == []
    with pytest.raises(errors.IntegrityError):
        objects.create("louver/t1/data/a", b"")
    for attempt, code in (
        (lambda: objects.read("louver/t1/data/a", len(data), 1), "lake.short"),
        (lambda: objects.read("louver/t1/data/none", 0, 1), "lake.missing"),
        (lambda: objects.size("louver/t1/data/none"), "lake.missing"),
        (lambda: objects.map("louver/t1/data/none"), "lake.missing"),
    ):
        with pytest.raises(errors.Error) as caught:
            attempt()
        assert caught.value.code == code
    objects.delete("louver/t1/data/a")
    objects.delete("louver/t1/data/a")
    objects.delete("louver/t1/data/empty")


def test_a_store_that_refuses(tmp_path: Path, properties: dict[str, str]) -> None:
    unknown = Warehouse.open("s3://no-such-bucket/x", properties)
    with pytest.raises(errors.OperationalError) as refused:
        unknown.objects.create("louver/t1/data/a", b"x")
    assert refused.value.code in ("lake.io", "lake.missing")
    assert "something" not in str(refused.value)
    with pytest.raises(errors.Error) as nobody:
        Warehouse.open(PLACE, properties | {"s3.endpoint": "http://127.0.0.1:1"}).objects.size("a")
    assert nobody.value.code == "lake.io"
    with pytest.raises(errors.ProgrammingError):
        Warehouse.open(PLACE)
