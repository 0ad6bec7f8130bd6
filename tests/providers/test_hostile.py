"""A provider as a process: what strangers cannot do to it, and what it cannot do to a client."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import grpc
import pytest

from louver import errors
from louver.untrusted.engines.providers import Channel, Timeouts
from louver.wire import question_codec as codec
from louver.wire import questions as q
from tests.providers.echo import SECRET
from tests.providers.services import SHAPE, Running, asked, prepared, serving

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS a FROM range(100) r(i)) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[Running]:
    with serving(data, "--asks=100000", "--shapes=100000", "--idle-seconds=1.5") as found:
        yield found
    assert found.code == 0
    assert "Traceback" not in found.told
    assert SECRET not in found.told


@contextmanager
def raw(running: Running) -> Iterator[Any]:
    """A gRPC channel without manners."""
    with grpc.insecure_channel(running.address) as channel:
        yield channel


def failure(call: Callable[[], Any]) -> tuple[grpc.StatusCode, Any]:
    with pytest.raises(grpc.RpcError) as found:
        call()
    error: Any = found.value
    details = error.details()
    assert len(details) < 2_000
    with suppress(ValueError):
        details = json.loads(details)
    return error.code(), details


def alive(running: Running) -> None:
    channel = running.channel()
    assert channel.answer(asked(prepared(channel), b"ab")).parts == (b"ba",)
    channel.close()


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(errors.Error) as found:
        call()
    return found.value.code


def test_hostile_bytes(running: Running) -> None:
    chance = random.Random(7)
    ask = codec.encode(q.Ask(b"i" * 16, b"v" * 32, b"s" * 32, 0, (b"share",) * 3))
    shape = codec.encode(codec.Preparation(b"v" * 32, SHAPE))
    with raw(running) as channel:
        for method in ("Describe", "Prepare", "Answer"):
            call = channel.unary_unary(f"/louver.Provider/{method}")
            for _ in range(60):
                whole = bytearray(chance.choice([ask, shape]))
                for _ in range(chance.randrange(4)):
                    whole[chance.randrange(len(whole))] = chance.randrange(256)
                bad = chance.choice(
                    [
                        bytes(whole[: chance.randrange(len(whole))]),
                        chance.randbytes(chance.randrange(300)),
                        bytes(whole) + b"\0",
                        b"\x01\x05" + b"\xff" * chance.randrange(300),
                    ]
                )
                if method == "Describe" and bad == b"\x01":
                    continue
                status, told = failure(partial(call, bad, timeout=10))
                assert status in (
                    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
                )  # fmt: skip
                assert set(told) == {"ok", "code", "error"}
                assert told["code"] in ("wire.format", "provider.version")
    alive(running)


def test_methods_and_heads_that_are_not_ours(running: Running) -> None:
    with raw(running) as channel:
        for method in ("/louver.Provider/Other", "/other.Service/Answer", "/x"):
            status, _ = failure(partial(channel.unary_unary(method), b"", timeout=5))
            assert status == grpc.StatusCode.UNIMPLEMENTED
        describe = channel.unary_unary("/louver.Provider/Describe")
        status, _ = failure(lambda: describe(b"\x01", metadata=[("x", "y" * 100_000)], timeout=5))
        assert status != grpc.StatusCode.OK
        many = channel.stream_stream("/louver.Provider/Describe")
        assert len(list(many(iter([b"\x01"] * 50), timeout=5))) == 1, "one message is read"
        status, told = failure(lambda: list(many(iter([]), timeout=5)))
        assert told["code"] == "serve.request"
    alive(running)


def test_a_share_is_used_once(running: Running) -> None:
    channel = running.channel()
    shape = prepared(channel)
    ask = asked(shape, b"once")
    channel.answer(ask)
    for again in (ask, replace(ask, shares=(b"other",))):
        assert code(partial(channel.answer, again)) == "provider.replayed"
    assert channel.answer(replace(ask, step=1)).parts == (b"ecno",), "another round"
    failed = asked(shape, b"boom")
    assert code(lambda: channel.answer(failed)) == "provider.reply"
    assert code(lambda: channel.answer(failed)) == "provider.replayed", "tried is used"
    assert code(lambda: channel.answer(replace(ask, version=b"v" * 32))) == "provider.version"
    other = replace(asked(shape, b"x"), shape_id=b"s" * 32)
    assert code(lambda: channel.answer(other)) == "provider.shape"
    none = replace(SHAPE, source="none")
    with pytest.raises(errors.ProgrammingError, match="no table none") as refused:
        channel.prepare(none, shape.version)
    assert refused.value.code == "provider.refused"


def test_slow_clients_do_not_keep_their_places(data: Path) -> None:
    limits = ("--idle-seconds=1", "--requests=4", "--client-requests=4", "--memory=70000000")
    with serving(data, *limits) as running, raw(running) as channel:
        shape = prepared(running.channel())
        call = channel.stream_stream("/louver.Provider/Answer")
        ended = threading.Event()

        def nothing() -> Iterator[bytes]:
            ended.wait(20)
            yield from ()

        silent = [call(nothing(), timeout=20) for _ in range(4)]
        time.sleep(0.3)
        assert code(running.channel().describe) == "serve.busy"
        for one in silent:
            status, told = failure(partial(list, one))
            assert (status, told["code"]) == (grpc.StatusCode.DEADLINE_EXCEEDED, "serve.slow")
        ended.set()
        # Asks for much and takes nothing: its bytes are let go of.
        large = codec.encode(asked(shape, b"big:60000000"))
        greedy = call(iter([large]), timeout=20)
        time.sleep(0.5)
        assert code(lambda: running.channel().answer(asked(shape, b"big:20000000"))) == "serve.busy"
        time.sleep(1.5)
        assert len(running.channel().answer(asked(shape, b"big:60000000")).parts[0]) == 60_000_000
        greedy.cancel()
        alive(running)


def test_no_client_takes_all(data: Path) -> None:
    limits = ("--asks=5", "--shapes=3", "--client-requests=3", "--largest-request=2000")
    with serving(data, *limits) as running:
        channel = running.channel()
        shape = prepared(channel)
        assert code(lambda: channel.answer(asked(shape, bytes(2_000)))) == "serve.large"
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(channel.answer, asked(shape, b"sleep:1")) for _ in range(8)]
            failed = [job.exception() for job in jobs]
        busy = [error for error in failed if error is not None]
        assert (len(busy), {getattr(error, "code", "") for error in busy}) == (5, {"serve.busy"})
        time.sleep(2)
        codes = []
        for _ in range(30):
            try:
                channel.answer(asked(shape, b"x"))
            except errors.Error as error:
                codes.append(error.code)
        assert set(codes) == {"serve.busy"}
        assert 5 < len(codes) < 25
        slow = [replace(SHAPE, source=f"sleep:0.{n}") for n in range(1, 6)]
        version = shape.version
        for one in slow[:2]:
            channel.prepare(one, version)
        assert code(lambda: [channel.prepare(one, version) for one in slow]) == "serve.busy"


def test_floods_of_connections(data: Path) -> None:
    with serving(data, "--connections=40") as running, ExitStack() as stack:
        channel = running.channel()
        shape = prepared(channel)
        chance = random.Random(1)
        for number in range(400):
            with suppress(OSError):
                other = socket.create_connection(("127.0.0.1", running.port), timeout=2)
                stack.callback(other.close)
                if number % 3 == 1:
                    other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                elif number % 3 == 2:
                    other.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + chance.randbytes(200))
        for _ in range(20):
            assert channel.answer(asked(shape, b"ab")).parts == (b"ba",), "who was there is served"
        stack.close()
        for _ in range(50):
            with suppress(errors.OperationalError):
                alive(running)
                return
            time.sleep(0.2)
        alive(running)


def test_hostile_shares(data: Path) -> None:
    """The real core behind the real port: every share is refused or answered, none is fatal."""
    chance = random.Random(3)
    with serving(data, "--asks=100000", fake=False) as running:
        channel = running.channel()
        version = channel.describe().versions[0]
        for protocol, given in (
            (q.Protocol.SELECT, {"equal": ("a",)}),
            (q.Protocol.SUM, {"interval": "a"}),
            (q.Protocol.NODES, {"interval": "a"}),
        ):
            partials = (q.Partial("count"),)
            shape = q.Shape(protocol, "t", partials=partials, **given)
            known = channel.prepare(shape, version)
            for _ in range(60):
                share = bytes([1, chance.randrange(5)]) + chance.randbytes(chance.randrange(600))
                form = tuple(chance.randrange(1 << 63) for _ in range(chance.randrange(3)))
                ask = replace(asked(known, share, step=chance.randrange(3)), form=form)
                with suppress(errors.Error):
                    channel.answer(ask)
        assert channel.prepare(shape, version) == known
        for bad in ("t; DROP TABLE t", "read_csv('/etc/passwd')", "(SELECT 1)", "t, t AS u", ""):
            wrong = replace(shape, source=bad)
            with suppress(errors.ProgrammingError):
                channel.prepare(wrong, version)
        assert channel.describe().versions == (version,)
    assert (running.code, running.told) == (0, "trusted: []\n")


def test_bugs_show_nothing(data: Path) -> None:
    with serving(data) as running, raw(running) as channel:
        shape = prepared(running.channel())
        ask = codec.encode(asked(shape, b"boom"))
        status, told = failure(lambda: channel.unary_unary("/louver.Provider/Answer")(ask))
        assert (status, told["code"]) == (grpc.StatusCode.INTERNAL, "internal")
        assert SECRET not in json.dumps(told)
        alive(running)
    lines = running.told.splitlines()
    assert lines[0].endswith(f"Answer of {len(ask)} bytes failed: RuntimeError in echo.py, line 55")
    assert lines[1:] == ["trusted: []"]


Behave = Callable[[bytes, Any], Iterator[bytes]]


@contextmanager
def posing(behave: Behave) -> Iterator[str]:
    """Something that listens like a provider and behaves as it likes; its address."""
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_metadata_size", 1 << 20)])
    handler = grpc.unary_stream_rpc_method_handler(behave)
    names = ("Describe", "Prepare", "Answer")
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("louver.Provider", dict.fromkeys(names, handler)),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


ASK = q.Ask(b"i" * 16, b"v" * 32, b"s" * 32, 0, (b"share",))
DONE = q.Prepared(
    b"v" * 32, codec.shape_id(SHAPE), b"d" * 32, q.KeyCodes((), None, b"", False, 1), (), (), 1
)
GARBAGE: list[list[bytes]] = [
    [],
    [b""],
    [b"\x01"],
    [b"\xff" * 5_000],
    [codec.encode(q.Reply(b"j" * 16, b"v" * 32, ()))],
    [codec.encode(q.Reply(b"i" * 16, b"w" * 32, ()))],
    [codec.encode(ASK)],
    [codec.encode(DONE), codec.encode(DONE)],
    [codec.encode(replace(DONE, version=b"w" * 32))],
    [codec.encode(replace(DONE, shape_id=b"t" * 32))],
    [codec.encode(codec.Progress("\x1b[2J", 0.5)), b"\x01\x03"],
]


@pytest.mark.parametrize("answers", GARBAGE)
def test_answers_that_are_none(answers: list[bytes]) -> None:
    def behave(_: bytes, context: Any) -> Iterator[bytes]:
        yield from answers

    told: list[str] = []
    with posing(behave) as address:
        # What comes after the one answer is waited for by gRPC itself.
        channel = Channel(address, timeouts=Timeouts(describe=2, answer=2, prepare=2))
        for call in (
            channel.describe,
            lambda: channel.answer(ASK),
            lambda: channel.prepare(SHAPE, b"v" * 32, lambda stage, share: told.append(stage)),
        ):
            waited = ("provider.unreachable",) if len(answers) > 1 else ()
            assert code(call) in ("provider.reply", *waited)
        channel.close()
    assert set(told) <= {"[2J"}, "nothing that a terminal obeys"


@pytest.mark.parametrize(
    ("status", "details", "expected"),
    [
        ("UNAVAILABLE", "x\x1b[2J\n" * 500, "provider.unreachable"),
        ("INTERNAL", "nonsense", "provider.reply"),
        ("UNKNOWN", "[" * 5_000, "provider.reply"),
        ("UNKNOWN", '{"ok": false, "code": "key.mode", "error": "x"}', "provider.reply"),
        ("UNKNOWN", '{"ok": false, "code": "provider.nonsense"}', "provider.reply"),
        ("UNKNOWN", '{"ok": false, "code": ["provider.lied"]}', "provider.reply"),
        ("UNKNOWN", '{"ok": false, "code": "provider.shape", "error": 7}', "provider.shape"),
        ("CANCELLED", '{"ok": false, "code": "interrupted"}', "provider.reply"),
        ("CANCELLED", "", "provider.unreachable"),
        ("RESOURCE_EXHAUSTED", "larger than max (70 vs. 60)", "serve.large"),
        (
            "UNKNOWN",
            json.dumps({"ok": False, "code": "provider.refused", "error": "a\x1b[2Jb" * 900}),
            "provider.refused",
        ),
    ],
)
def test_failures_in_strange_words(status: str, details: str, expected: str) -> None:
    def behave(_: bytes, context: Any) -> Iterator[bytes]:
        context.abort(grpc.StatusCode[status], details)
        yield b""

    with posing(behave) as address:
        channel = Channel(address)
        for call in (lambda: channel.answer(ASK), lambda: channel.prepare(SHAPE, b"v" * 32)):
            with pytest.raises(errors.Error) as found:
                call()
            assert found.value.code == expected
            assert len(str(found.value)) < 2_000
            assert found.value.message.isprintable()
        channel.close()


def test_a_preparation_without_end() -> None:
    def behave(_: bytes, context: Any) -> Iterator[bytes]:
        while context.is_active():
            yield codec.encode(codec.Progress("still", 0.1))
            time.sleep(0.05)

    with posing(behave) as address:
        channel = Channel(address, timeouts=Timeouts(prepare=1))
        begin = time.monotonic()
        assert code(lambda: channel.prepare(SHAPE, b"v" * 32)) == "provider.unreachable"
        assert time.monotonic() - begin < 5
        channel.close()
