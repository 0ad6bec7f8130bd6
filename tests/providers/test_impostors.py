"""What something that poses as a provider cannot do to a client."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from louver import errors
from louver.untrusted.engines.providers import Channel, Timeouts
from louver.wire import question_codec as codec
from louver.wire import questions as q
from tests.providers.services import SHAPE

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(errors.Error) as caught:
        call()
    return caught.value.code


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
    [codec.encode(q.Dataset(b"i" * 16, ()))[:-1]],
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

    events: list[str] = []
    with posing(behave) as address:
        # What comes after the one answer is waited for by gRPC itself.
        short = Timeouts(describe=2, answer=2, prepare=2) if len(answers) > 1 else None
        channel = Channel(address, timeouts=short)
        for call in (
            channel.describe,
            lambda: channel.answer(ASK),
            lambda: channel.prepare(SHAPE, b"v" * 32, lambda stage, share: events.append(stage)),
        ):
            waited = ("provider.unreachable",) if len(answers) > 1 else ()
            assert code(call) in ("provider.reply", *waited)
        channel.close()
    assert set(events) <= {"[2J"}, "nothing that a terminal obeys"


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
            with pytest.raises(errors.Error) as caught:
                call()
            assert caught.value.code == expected
            assert len(str(caught.value)) < 2_000
            assert caught.value.message.isprintable()
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
        assert time.monotonic() - begin < 60
        channel.close()
