"""Clients of a pruning service that lies, breaks off or never ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from louver import errors
from louver.untrusted.engines.lake import LakeEngine
from louver.untrusted.lake import http
from louver.untrusted.lake.http import HttpObjects, RemotePruner, Service
from louver.untrusted.lake.remote import RemoteWarehouse
from louver.wire import control
from louver.wire.messages import Count, Rows
from louver.wire.prune import Everything, FilePlan

Answer = tuple[int, dict[str, str], bytes]
PATH = "louver/t1/data/a"


class Liar:
    """A service that answers whatever a test wants."""

    def __init__(self) -> None:
        self.answer: Answer | Callable[[str], Answer] = (200, {}, b"")
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        liar = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self) -> None:
                liar.seen.append((self.command, self.path, dict(self.headers)))
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                answer = liar.answer
                status, headers, body = answer(self.path) if callable(answer) else answer
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def liar() -> Iterator[Liar]:
    liar = Liar()
    yield liar
    liar.server.shutdown()
    liar.server.server_close()


def code(attempt: Callable[[], object]) -> str:
    with pytest.raises(errors.Error) as caught:
        attempt()
    return caught.value.code


def failure(name: str, message: str = "words") -> bytes:
    return json.dumps({"ok": False, "code": name, "error": message, "fix": ""}).encode()


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}, b""),
        (200, {}, b"<html>"),
        (302, {"Location": "http://127.0.0.1:1/"}, b""),
        (404, {}, b"{"),
        (500, {}, failure("no.such.code")),
        (500, {}, failure("key.wrong")),
        (500, {}, b"[]"),
        (500, {}, b'{"code": 7}'),
        (500, {}, b"[" * 60_000),
        (200, {}, b"[" * 60_000),
        (200, {}, b'{"defaults": {"warehouse": 7}}'),
        (200, {}, b'{"defaults": []}'),
        (200, {}, b"{}"),
        (204, {}, b""),
    ],
)
def test_strange_answers(liar: Liar, answer: Answer) -> None:
    liar.answer = answer
    assert code(lambda: RemoteWarehouse(Service(liar.url))) == "serve.reply"


def test_words_of_a_server_are_cleaned(liar: Liar) -> None:
    liar.answer = (409, {}, failure("lake.conflict", "bad \x1b[31mwords\n" + "x" * 10_000))
    with pytest.raises(errors.OperationalError) as caught:
        Service(liar.url).ask("GET", "/", 100)
    assert caught.value.code == "lake.conflict"
    assert caught.value.message.startswith("bad [31mwordsxxx")
    assert len(caught.value.message) < 600
    assert caught.value.fix == errors.ERRORS["lake.conflict"].fix


def test_answers_are_bounded(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_JSON_BYTES", 1_000)
    monkeypatch.setattr(http, "MAX_CONTROL_BYTES", 1_000)
    liar.answer = (200, {}, b"x" * 10_000)
    service = Service(liar.url)
    objects = HttpObjects(service)
    for attempt in (
        lambda: service.json("GET", "/"),
        lambda: objects.read(PATH, 0, 9_999),
        lambda: objects.map(PATH),
        lambda: objects.read_many([(PATH, 0, 5_000), (PATH, 0, 4_999)]),
        lambda: LakeEngine("", liar.url).table_names(),
    ):
        assert code(attempt) == "serve.reply"


def test_short_answers(liar: Liar) -> None:
    liar.answer = (206, {}, b"x" * 10)
    objects = HttpObjects(Service(liar.url))
    assert code(lambda: objects.read(PATH, 0, 11)) == "lake.short"
    assert code(lambda: objects.read_many([(PATH, 0, 6), (PATH, 0, 5)])) == "lake.short"
    liar.answer = (200, {"Content-Length": "100"}, b"x" * 10)
    assert code(lambda: objects.map(PATH)) == "serve.unreachable"
    for strange in ("-1", "x", "9" * 30):
        liar.answer = (200, {"Content-Length": strange}, b"")
        assert code(lambda: objects.size(PATH)) in ("lake.short", "serve.unreachable")
    liar.answer = (200, {"louver-modified": "never"}, b"")
    assert code(lambda: objects.modified(PATH)) == "lake.short"


@pytest.mark.parametrize("listed", [b"{}", b"[1]", b"7", b"null"])
def test_lists_that_are_none(liar: Liar, listed: bytes) -> None:
    liar.answer = (200, {}, listed)
    assert code(lambda: list(HttpObjects(Service(liar.url)).list("louver"))) == "serve.reply"


def test_paths_of_a_server_lead_nowhere_else(liar: Liar) -> None:
    for path in ("/etc/passwd", "../x", "a\x00b"):
        liar.answer = (200, {}, json.dumps([path]).encode())
        with pytest.raises(errors.OperationalError) as outside:
            list(HttpObjects(Service(liar.url)).list("louver"))
        assert outside.value.code == "lake.path"
    before = len(liar.seen)
    assert code(lambda: HttpObjects(Service(liar.url)).read("../x", 0, 1)) == "lake.path"
    assert code(lambda: HttpObjects(Service(liar.url)).create("a/../b", b"")) == "lake.path"
    assert len(liar.seen) == before


def test_plans_of_a_liar(liar: Liar) -> None:
    pruner = RemotePruner(Service(liar.url))
    for answer in (b"", b"\xff" * 100, FilePlan(2, 0, ()).encode()[:-1]):
        liar.answer = (200, {}, answer)
        assert code(lambda: pruner.plan("t1", 1, Everything())) == "wire.format"
    liar.answer = (200, {}, FilePlan(2, 0, ()).encode())
    assert code(lambda: pruner.plan("t1", 1, Everything())) == "serve.reply"


def test_control_answers_of_a_liar(liar: Liar) -> None:
    engine = LakeEngine("", liar.url)
    strange: list[list[Rows | Count]] = [[], [Count(1)], [Count(1), Count(1)]]
    for answers in strange:
        liar.answer = (200, {}, control.encode_answers(answers))
        assert code(lambda: engine.query(control.CATALOG_READ)) in ("wire.format", "reply.format")
        assert code(engine.table_names) in ("wire.format", "reply.format")
    liar.answer = (409, {}, failure("lake.race"))
    assert code(lambda: engine.run(control.EPOCH_CREATE)) == "lake.race"
    engine.begin()
    liar.answer = (200, {}, control.encode_answers([Count(0)]))
    engine.run(control.EPOCH_CREATE)
    liar.answer = (409, {}, failure("lake.race"))
    assert code(engine.commit) == "catalog.conflict"
    engine.close()
    assert code(lambda: engine.run(control.EPOCH_CREATE)) == "database.closed"


def test_a_configuration_runs_nothing(liar: Liar) -> None:
    hostile = {
        "auth": {"type": "custom", "impl": "builtins.print", "custom": {}},
        "py-io-impl": "builtins.print",
        "uri": "http://127.0.0.1:1/",
        "header.X-Strange": "1",
        "token": "stolen",
        "rest.sigv4-enabled": "true",
    }

    def answer(path: str) -> Answer:
        if path.startswith("/v1/config"):
            config: dict[str, Any] = {"defaults": hostile | {"warehouse": "/w"}}
            return 200, {}, json.dumps(config | {"overrides": hostile}).encode()
        return 409, {}, b'{"error": {"message": "", "type": "", "code": 409}}'

    liar.answer = answer
    warehouse = RemoteWarehouse(Service(liar.url, "correct-horse-battery"))
    assert set(warehouse.catalog.properties) & set(hostile) == {"uri", "py-io-impl"}
    assert warehouse.catalog.properties["uri"] == liar.url
    assert "louver.untrusted" in warehouse.catalog.properties["py-io-impl"]
    assert code(lambda: warehouse.table("t1"))
    assert all(headers["Authorization"].endswith("battery") for _, _, headers in liar.seen)
    assert not any("X-Strange" in headers for _, _, headers in liar.seen)


@pytest.mark.parametrize(
    "url",
    ["lake+http://", "lake+ftp://h:1", "lake+http://h:1/path", "lake+http://u:p@h:1", "lake:///w",
     "http://h?x=1", "lake+http://h:1#x", "nonsense"],
)  # fmt: skip
def test_urls(url: str) -> None:
    assert code(lambda: Service(url)) == "url.format"


def test_secrets_go_to_nobody_else() -> None:
    assert code(lambda: Service("lake+http://h.example:1", "correct-horse")) == "serve.plain"
    service = Service("lake+https://h.example:1", "correct-horse")
    assert "horse" not in repr(service)
    assert service.address == "lake+https://h.example:1"
    for url in ("http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1"):
        Service(url, "correct-horse")
    assert code(lambda: Service("http://127.example.com:1", "correct-horse")) == "serve.plain"


def test_nobody_answers() -> None:
    engine = LakeEngine("", "http://127.0.0.1:1")
    assert code(lambda: engine.value(control.CATALOG_VERSION)) == "serve.unreachable"
    engine.interrupt()
