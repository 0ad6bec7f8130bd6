"""The pruning service as a process: what nobody can do to it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.lake.http import HttpObjects, RemotePruner, Service
from louver.untrusted.lake.objects import LocalObjects
from louver.wire import prune
from louver.wire.prune import Everything, Hit
from tests.lake.conftest import Filled
from tests.lake.services import Running, chunked_put, raw, serving
from tests.lake.tables import span

DATA = "louver/t5/data/"
PLAN = "/v1/namespaces/louver/tables/t5/plan?snapshot-id="
BINARY = {"Content-Type": "application/octet-stream"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/", None, 404, "serve.request"),
        ("GET", "/v1/none", None, 404, "serve.request"),
        ("POST", "/v1/config", b"", 405, "serve.request"),
        ("TRACE", "/v1/config", None, 405, "serve.request"),
        ("POST", PLAN + "1", b"", 400, "wire.format"),
        ("POST", PLAN + "1", b"\x01\x04", 404, "lake.snapshot"),
        ("POST", PLAN + "1", b"\xff" * 1000, 400, "wire.format"),
        ("POST", PLAN + "1" * 30, b"\x01\x04", 400, "serve.request"),
        ("POST", PLAN + "x", b"\x01\x04", 400, "serve.request"),
        ("POST", PLAN.replace("t5", "t77") + "1", b"\x01\x04", 404, "lake.table"),
        ("POST", PLAN.replace("t5", "x") + "1", b"\x01\x04", 404, "lake.table"),
        ("GET", "/v1/namespaces/louver/tables/t77", None, 404, "lake.table"),
        ("GET", "/v1/namespaces/louver/tables/..%2Ft5", None, 404, "serve.request"),
        ("GET", "/v1/namespaces/other/tables/t5", None, 404, "lake.table"),
        ("DELETE", "/v1/namespaces/louver/tables/t77", None, 404, "lake.table"),
        ("POST", "/v1/namespaces/louver/tables/t5", b"{", 400, "serve.request"),
        ("POST", "/v1/namespaces/louver/tables/t5", b"[" * 100_000, 400, "serve.request"),
        ("POST", "/v1/namespaces/louver/tables", b"{}", 400, "serve.request"),
        ("POST", "/v1/control", b"", 400, "wire.format"),
        ("POST", "/v1/control", b"\x01" * 5_000, 400, "wire.format"),
        ("POST", "/v1/ranges", b"{}", 400, "serve.request"),
        ("POST", "/v1/ranges", b"[" * 100_000, 400, "serve.request"),
        ("POST", "/v1/ranges", b'[["a", 0]]', 400, "serve.request"),
        ("POST", "/v1/ranges", b'[["/etc/passwd", 0, 1]]', 400, "lake.path"),
        ("POST", "/v1/ranges", b'[["louver/t5/data/x", 0, 99999999999]]', 400, "serve.request"),
        ("POST", "/v1/ranges", b'[["louver/t5/data/x", 0, 1]]', 404, "lake.missing"),
        ("GET", "/v1/objects/louver/t5/data/none", None, 404, "lake.missing"),
        ("GET", "/v1/objects/louver.sqlite", None, 400, "lake.path"),
        ("GET", "/v1/objects/catalog.sqlite", None, 400, "lake.path"),
        ("GET", "/v1/objects//etc/passwd", None, 400, "lake.path"),
        ("GET", "/v1/objects/../louver.sqlite", None, 400, "lake.path"),
        ("GET", "/v1/objects/louver/t5/data/../../../louver.sqlite", None, 400, "lake.path"),
        ("GET", "/v1/objects/louver/t5/data/..%2f..%2f..%2flouver.sqlite", None, 400, "lake.path"),
        ("GET", "/v1/objects/louver/t5/data/%2e%2e", None, 400, "lake.path"),
        ("GET", "/v1/objects/louver/t5/data/a%00b", None, 400, "lake.path"),
        ("GET", "/v1/objects/louver/t5/data/a%0ab", None, 404, "serve.request"),
        ("PUT", "/v1/objects/louver/t5/data/../../../../x", b"x", 400, "lake.path"),
        ("PUT", "/v1/objects/louver.sqlite-wal", b"x", 400, "lake.path"),
        ("DELETE", "/v1/objects/louver.sqlite", None, 400, "lake.path"),
        ("DELETE", "/v1/objects/louver/t5", None, 400, "lake.path"),
        ("GET", "/v1/objects?prefix=../", None, 400, "lake.path"),
        ("GET", "/v1/objects?prefix=/etc", None, 400, "lake.path"),
    ],
)
def test_hostile_requests(
    service: Running, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    actual, error = raw(service, method, path, body, BINARY)
    assert (actual, error["code"]) == (status, code)
    assert error["ok"] is False
    assert error["fix"]
    if "namespaces" in path and "plan" not in path and code != "serve.request":
        assert error["error"]["code"] == status, "as Iceberg's clients want it"
    assert raw(service, "GET", "/v1/config")[0] == 200


def change(*updates: dict[str, Any]) -> bytes:
    import json

    identifier = {"namespace": ["louver"], "name": "t5"}
    return json.dumps({"identifier": identifier, "requirements": [], "updates": updates}).encode()


@pytest.mark.parametrize(
    "update",
    [
        {"action": "set-location", "location": "/etc"},
        {"action": "set-properties", "updates": {"py-io-impl": "subprocess.Popen"}},
        {
            "action": "set-properties",
            "updates": {"write.py-location-provider.impl": "builtins.exec"},
        },
        {"action": "set-statistics", "statistics": {}},
        {"action": "unknown"},
    ],
)
def test_changes_that_are_not_for_tables_of_ours(service: Running, update: dict[str, Any]) -> None:
    status, error = raw(service, "POST", "/v1/namespaces/louver/tables/t5", change(update))
    assert (status, error["code"] in ("serve.request", "lake.format")) == (400, True)
    assert raw(service, "GET", "/v1/namespaces/louver/tables/t5")[0] == 200


def test_tokens_of_others(folder: Path, filled: Filled, service: Running) -> None:
    table = filled.table
    snapshot = filled.store.snapshot(table)
    pruner = RemotePruner(Service(service.url))
    for token, code in (
        (b"", "wire.format"),
        (b"\xff" * 3_000, "wire.format"),
        (other_token(folder, table), "lake.token"),
    ):
        with pytest.raises(errors.Error) as refused:
            pruner.plan("t5", snapshot.id, Hit(token))
        assert refused.value.code == code
    good = filled.store.token(table, span(0, 1))
    for cut in (good[:-1], good + b"\0", good[:40]):
        with pytest.raises(errors.Error) as refused:
            pruner.plan("t5", snapshot.id, Hit(cut))
        assert refused.value.code in ("wire.format", "lake.format")


def other_token(folder: Path, table: Any) -> bytes:
    KeyRing.create(str(folder / "other"))
    keys = KeyRing.open(str(folder / "other")).lake_table(table.id)
    from louver.trusted.lake.settings import IndexSettings

    return keys.token(7, 0, IndexSettings.of(table.lake).spec, 1, 2, False)


def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in the end; the time bounds a test that fails."""
    last = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < last, "it did not happen"
        time.sleep(0.1)


def answers(running: Running) -> bool:
    """Whether it has room for a client with manners, who may have to ask again."""
    return raw(running, "GET", "/v1/config")[0] == 200


def test_slow_clients(hasty: Running) -> None:
    begin = time.monotonic()
    body, head, reader = (
        socket.create_connection(("127.0.0.1", hasty.port), timeout=120) for _ in range(3)
    )
    body.sendall(b"POST /v1/control HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc")
    head.sendall(b"GET /v1/config HTT")
    reader.sendall(b"GET /v1/con")
    assert b'"serve.slow"' in b"".join(iter(lambda: body.recv(65_536), b""))
    assert head.recv(65_536) == b"", "it is hung up upon"
    assert time.monotonic() - begin < 60
    for each in (body, head, reader):
        each.close()
    until(lambda: answers(hasty))


def test_a_reader_that_takes_nothing(hasty: Running, folder: Path) -> None:
    objects = LocalObjects(folder / "lake")
    path = DATA + "large"
    objects.create(path, bytes(30_000_000))
    waiting = []
    for _ in range(20):
        each = socket.create_connection(("127.0.0.1", hasty.port), timeout=120)
        each.sendall(f"GET /v1/objects/{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waiting.append(each)
    until(lambda: answers(hasty))
    for each in waiting:
        each.close()
    objects.delete(path)


def test_a_body_that_ends_early_leaves_nothing(service: Running, folder: Path) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=120) as half:
        head = f"PUT /v1/objects/{DATA}half HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\nabc"
        half.sendall(head.encode())
    time.sleep(0.5)
    until(lambda: not list((folder / "lake").rglob(".tmp-*")))
    assert not list((folder / "lake/louver/t5/data").glob("half*"))


def test_many_clients(service: Running, filled: Filled) -> None:
    table = filled.table
    snapshot = filled.store.snapshot(table)
    token = prune.encode(Hit(filled.store.token(table, span(250, 449))))
    counts: list[int] = []

    def work() -> None:
        for _ in range(10):
            counts.append(raw(service, "POST", f"{PLAN}{snapshot.id}", token, BINARY)[0])

    threads = [threading.Thread(target=work) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 400
    assert set(counts) <= {200, 503}
    assert counts.count(200) > 10
    until(lambda: answers(service))


def test_bodies_are_bounded(folder: Path, filled: Filled) -> None:
    with serving(folder / "lake", "--memory", "1000000", "--largest-file", "2000000") as running:
        path = f"/v1/objects/{DATA}x"
        sizes = {"Content-Length": "2000001"}
        assert raw(running, "PUT", path, b"", sizes)[1]["code"] == "serve.large"
        assert raw(running, "PUT", path, bytes(2_000_001))[0] == 413
        assert raw(running, "POST", "/v1/control", bytes(1_500_000))[1]["code"] == "serve.busy"
        assert raw(running, "POST", "/v1/control", b"", {"Content-Length": "9" * 15})[0] == 413
        body = b"".join(b"10000\r\n" + bytes(65_536) + b"\r\n" for _ in range(40)) + b"0\r\n\r\n"
        assert chunked_put(running, path, body) in (413, 503)
        service = Service(running.url)
        assert len(list(HttpObjects(service).list("louver/t5/data"))) == 10
        with pytest.raises(errors.OperationalError) as large:
            HttpObjects(service).create(f"{DATA}x", bytes(2_000_001))
        assert large.value.code in ("serve.large", "serve.unreachable")
    assert not list((folder / "lake/louver/t5/data").glob("x*"))


def test_plans_have_a_deadline(folder: Path, filled: Filled) -> None:
    table = filled.table
    snapshot = filled.store.snapshot(table)
    with serving(folder / "lake", "--plan-seconds", "0") as running:
        pruner = RemotePruner(Service(running.url))
        with pytest.raises(errors.OperationalError) as late:
            pruner.plan("t5", snapshot.id, Hit(filled.store.token(table, span(0, 1))))
        assert late.value.code == "serve.time"
        assert pruner.plan("t5", snapshot.id, Everything()).total == 10
    assert "504 serve.time" in running.output


FULL = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);" \
       " resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))"  # fmt: skip


def test_a_full_disk(folder: Path, filled: Filled) -> None:
    with serving(folder / "lake", before=FULL) as running:
        objects = HttpObjects(Service(running.url))
        for size in (1_100_000, 20_000_000):
            with pytest.raises(errors.OperationalError) as full:
                objects.create(f"{DATA}full", bytes(size))
            assert full.value.code == "disk.full"
        objects.create(f"{DATA}small", bytes(1_000))
        objects.delete(f"{DATA}small")
    assert not list((folder / "lake").rglob(".tmp-*"))
    assert not list((folder / "lake/louver/t5/data").glob("full*"))
