"""A provider as a process: what strangers cannot do to it."""

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
from louver.wire import question_codec as codec
from louver.wire import questions as q
from tests.providers import echo
from tests.providers.echo import SECRET
from tests.providers.services import SHAPE, Held, Running, ask_of, prepared, serving, until

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS a FROM range(100) r(i)) TO '{path}'")
    return path


OTHERS = """
from louver.untrusted.servers import provider_service
provider_service.address_of = lambda peer: peer
"""


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[Running]:
    with serving(data, "--asks=100000", "--shapes=100000") as service:
        yield service
    assert service.code == 0
    assert "Traceback" not in service.output
    assert SECRET not in service.output


@contextmanager
def raw(running: Running) -> Iterator[Any]:
    """A gRPC channel without manners."""
    with grpc.insecure_channel(running.address) as channel:
        yield channel


def failure(call: Callable[[], Any]) -> tuple[grpc.StatusCode, Any]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    error: Any = caught.value
    details = error.details()
    assert len(details) < 2_000
    with suppress(ValueError):
        details = json.loads(details)
    return error.code(), details


def alive(running: Running) -> None:
    channel = running.channel()
    assert channel.answer(ask_of(prepared(channel), b"ab")).data == b"ba"
    channel.close()


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(errors.Error) as caught:
        call()
    return caught.value.code


def ended(call: Callable[[], Any]) -> str:
    """The code of the error with which it ended, if any."""
    try:
        call()
    except errors.Error as error:
        return error.code
    return ""


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
                status, body = failure(partial(call, bad, timeout=120))
                assert status in (
                    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
                )  # fmt: skip
                assert set(body) == {"ok", "code", "error"}
                assert body["code"] in ("wire.format", "provider.version")
    alive(running)


def test_methods_and_heads_that_are_not_ours(running: Running) -> None:
    with raw(running) as channel:
        for method in ("/louver.Provider/Other", "/other.Service/Answer", "/x"):
            status, _ = failure(partial(channel.unary_unary(method), b"", timeout=120))
            assert status == grpc.StatusCode.UNIMPLEMENTED
        describe = channel.unary_unary("/louver.Provider/Describe")
        large = [("x", "y" * 100_000)]
        status, _ = failure(lambda: describe(b"\x01", metadata=large, timeout=120))
        assert status != grpc.StatusCode.OK
        many = channel.stream_stream("/louver.Provider/Describe")
        assert len(list(many(iter([b"\x01"] * 50), timeout=120))) == 1, "one message is read"
        status, body = failure(lambda: list(many(iter([]), timeout=120)))
        assert body["code"] == "serve.request"
    alive(running)


def test_a_share_is_used_once(running: Running) -> None:
    channel = running.channel()
    shape = prepared(channel)
    ask = ask_of(shape, b"once")
    channel.answer(ask)
    for again in (ask, replace(ask, shares=(b"other",))):
        assert code(partial(channel.answer, again)) == "provider.replayed"
    assert channel.answer(replace(ask, step=1)).data == b"ecno", "another round"
    failed = ask_of(shape, b"boom")
    assert code(lambda: channel.answer(failed)) == "provider.reply"
    assert code(lambda: channel.answer(failed)) == "provider.replayed", "tried is used"
    assert code(lambda: channel.answer(replace(ask, version=b"v" * 32))) == "provider.version"
    other = replace(ask_of(shape, b"x"), shape_id=b"s" * 32)
    assert code(lambda: channel.answer(other)) == "provider.shape"
    none = replace(SHAPE, source="none")
    with pytest.raises(errors.ProgrammingError, match="no table none") as refused:
        channel.prepare(none, shape.version)
    assert refused.value.code == "provider.refused"


def test_slow_clients_do_not_keep_their_places(data: Path) -> None:
    limits = ("--idle-seconds=1.5", "--requests=4", "--client-requests=4", "--memory=70000000")
    with serving(data, *limits) as running, raw(running) as channel:
        shape = prepared(running.channel())
        call = channel.stream_stream("/louver.Provider/Answer")
        over = threading.Event()

        def nothing() -> Iterator[bytes]:
            over.wait(250)
            yield from ()

        channel = running.channel()
        silent: list[Any] = []

        def silenced() -> bool:
            """More silent ones keep all places for as long as they may."""
            silent.extend(call(nothing(), timeout=250) for _ in range(4))
            last = time.monotonic() + 2
            while time.monotonic() < last:
                if ended(channel.describe) == "serve.busy":
                    return True
            return False

        until(silenced)
        failed = [failure(partial(list, call)) for call in silent]
        slow = [status for status, body in failed if body["code"] == "serve.slow"]
        assert len(slow) >= 4
        assert set(slow) == {grpc.StatusCode.DEADLINE_EXCEEDED}
        assert {body["code"] for _, body in failed} <= {"serve.slow", "serve.busy"}
        over.set()
        # Asks for much and takes nothing: its bytes are let go of.
        for attempt in range(8):
            greedy = call(iter([codec.encode(ask_of(shape, b"big:60000000"))]), timeout=250)
            # Until its answer is made; one that comes too early would take its room.
            time.sleep(0.5 + attempt / 2)
            if ended(lambda: channel.answer(ask_of(shape, b"big:20000000"))) == "serve.busy":
                break
            greedy.cancel()
        else:
            raise AssertionError("it was never busy")
        until(lambda: not ended(lambda: channel.answer(ask_of(shape, b"big:60000000"))))
        greedy.cancel()
        alive(running)


def test_no_client_takes_all(data: Path, tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    limits = ("--asks=10", "--shapes=3", "--client-requests=3", "--largest-request=2000")
    with serving(data, *limits) as running:
        channel = running.channel()
        shape = prepared(channel)
        assert code(lambda: channel.answer(ask_of(shape, bytes(2_000)))) == "serve.large"
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(channel.answer, ask_of(shape, held.share)) for _ in range(8)]
            until(lambda: sum(job.done() for job in jobs) == 5)
            held.let_go()
            failed = [job.exception() for job in jobs]
        busy = [error for error in failed if error is not None]
        assert (len(busy), {getattr(error, "code", "") for error in busy}) == (5, {"serve.busy"})
        # Twenty at once and ten a second: on a machine that stands still, more time goes by.
        time.sleep(1)
        begin, answered, refused = time.monotonic(), 0, 0
        while not refused:
            code_ = ended(lambda: channel.answer(ask_of(shape, b"x")))
            assert code_ in ("", "serve.busy")
            answered, refused = answered + (not code_), refused + bool(code_)
        assert 20 <= answered <= 20 + 10 * (time.monotonic() - begin)
        slow = [replace(SHAPE, source=f"sleep:0.{n}") for n in range(1, 6)]
        version = shape.version
        for pending in slow[:2]:
            channel.prepare(pending, version)
        assert code(lambda: [channel.prepare(pending, version) for pending in slow]) == "serve.busy"


def test_no_client_has_all_preparations(data: Path, tmp_path: Path) -> None:
    held = [Held(tmp_path / f"held{number}") for number in range(4)]
    with serving(data, before=OTHERS) as running:
        channel = running.channel()
        version = channel.describe().versions[0]
        slow = [replace(SHAPE, source=pending.source) for pending in held]
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(channel.prepare, pending, version) for pending in slow]
            until(lambda: sum(pending.has_begun() for pending in held) == 2)
            # OTHERS makes every port an address of its own, as if it came from another machine.
            other = running.channel()
            assert prepared(other).version == version
            assert not any(job.done() for job in jobs)
            while not all(job.done() for job in jobs):
                channel.interrupt()
                time.sleep(0.05)
            assert {getattr(job.exception(), "code", "") for job in jobs} == {"interrupted"}
        # What nobody waits for any more ends at its next step; nobody lets go of them.
        assert prepared(channel).version == version


def test_floods_of_connections(data: Path) -> None:
    with serving(data, "--connections=40") as running, ExitStack() as stack:
        channel = running.channel()
        shape = prepared(channel)
        chance = random.Random(1)
        for number in range(400):
            with suppress(OSError):
                other = socket.create_connection(("127.0.0.1", running.port), timeout=20)
                stack.callback(other.close)
                if number % 3 == 1:
                    other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                elif number % 3 == 2:
                    other.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + chance.randbytes(200))
        for _ in range(20):
            assert channel.answer(ask_of(shape, b"ab")).data == b"ba", "who was there is served"
        stack.close()
        until(lambda: not ended(lambda: alive(running)))


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
                ask = replace(ask_of(known, share, step=chance.randrange(3)), form=form)
                with suppress(errors.Error):
                    channel.answer(ask)
        assert channel.prepare(shape, version) == known
        for bad in ("t; DROP TABLE t", "read_csv('/etc/passwd')", "(SELECT 1)", "t, t AS u", ""):
            wrong = replace(shape, source=bad)
            with suppress(errors.ProgrammingError):
                channel.prepare(wrong, version)
        assert channel.describe().versions == (version,)
    assert (running.code, running.output) == (0, "trusted: []\n")


def test_bugs_show_nothing(data: Path) -> None:
    with serving(data) as running, raw(running) as channel:
        shape = prepared(running.channel())
        ask = codec.encode(ask_of(shape, b"boom"))
        status, body = failure(lambda: channel.unary_unary("/louver.Provider/Answer")(ask))
        assert (status, body["code"]) == (grpc.StatusCode.INTERNAL, "internal")
        assert SECRET not in json.dumps(body)
        alive(running)
    lines = running.output.splitlines()
    source = Path(echo.__file__).read_text().splitlines()
    (line_number,) = (
        number for number, line in enumerate(source, 1) if "raise RuntimeError" in line
    )
    where = f"RuntimeError in echo.py, line {line_number}"
    assert lines[0].endswith(f"Answer of {len(ask)} bytes failed: {where}")
    assert lines[1:] == ["trusted: []"]
