"""A provider's work ends when nobody waits for it any more, and when the provider is to end."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.vault.schemes import fss
from louver.untrusted.providers.dataset import Interruption, load
from louver.untrusted.providers.provider import Provider
from louver.wire import questions as q
from tests.providers.services import SHAPE, Held, ask_of, prepared, serving, until, write

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")

#: A hundred million rows, in the order of their positions: minutes of work.
LONG = q.Shape(
    q.Protocol.SELECT,
    "t AS x CROSS JOIN t AS y",
    equal=("x.a", "y.a"),
    partials=(q.Partial("product", ("CAST(x.a AS DOUBLE)",)),),
)


def code(error: BaseException | None) -> str:
    return getattr(error, "code", "")


def test_who_hangs_up_leaves_no_work_behind(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    with serving(write(tmp_path / "t.parquet", 10), "--threads=1") as running:
        for _ in range(3):
            # All that one address may have under way, and it is never let go.
            channel = running.channel()
            shape = prepared(channel)
            with ThreadPoolExecutor(4) as pool:
                slow = [replace(SHAPE, source=f"{held.source}{end}") for end in ("", "/.")]
                jobs: list[Future[Any]] = [
                    *(pool.submit(channel.answer, ask_of(shape, held.share)) for _ in range(2)),
                    *(
                        pool.submit(channel.prepare, slow_shape, shape.version)
                        for slow_shape in slow
                    ),
                ]
                held.begun()
                time.sleep(0.3)
                channel.interrupt()
                assert {code(job.exception()) for job in jobs} == {"interrupted"}
        channel = running.channel()
        assert channel.answer(ask_of(prepared(channel), b"ab")).data == b"ba"
    assert (running.code, running.output) == (0, "trusted: []\n")


def test_who_takes_too_long_is_ended(tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    prepares = ("--prepare-seconds=0.2", "--queue-seconds=0.1")
    limits = ("--threads=1", "--answer-seconds=0.3", *prepares)
    with serving(write(tmp_path / "t.parquet", 10), *limits) as running:
        channel = running.channel()
        shape = prepared(channel)
        for _ in range(4):
            with pytest.raises(errors.OperationalError) as caught:
                channel.answer(ask_of(shape, held.share))
            assert (
                "no answer within" in caught.value.message or caught.value.code == "provider.slow"
            )
        for number in range(4):
            with pytest.raises(errors.OperationalError) as caught:
                channel.prepare(replace(SHAPE, source=held.source + "/." * number), shape.version)
    assert running.code == 0


def test_an_evaluation_is_ended(tmp_path: Path) -> None:
    data = write(tmp_path / "t.parquet", 300_000)
    folder = tmp_path / "prepared"
    folder.mkdir()
    loaded = load([str(data)], tmp_path)
    provider = Provider(loaded, folder)
    shape = provider.prepare(SHAPE, loaded.version)
    shares = tuple(fss.Point(shape.levels[0].bits, 5, 2).shares()[0] for _ in range(4_000))
    ended = Interruption()
    times: list[float] = []

    def end() -> None:
        times.append(time.monotonic())
        ended.end()

    threading.Timer(0.2, end).start()
    with pytest.raises(errors.Error) as caught:
        provider.answer(ask_of(shape, *shares), ended)
    assert caught.value.code == "interrupted"
    assert time.monotonic() - times[0] < 30
    provider.close()
    loaded.remove()


def test_a_preparation_is_ended(tmp_path: Path) -> None:
    loaded = load([str(write(tmp_path / "t.parquet", 10_000))], tmp_path)
    folder = tmp_path / "prepared"
    folder.mkdir()
    provider = Provider(loaded, folder)
    for wait in (0.0, 0.5, 1.0):
        ended = Interruption()
        threading.Timer(wait, ended.end).start()
        begin = time.monotonic()
        with pytest.raises(errors.Error) as caught:
            provider.prepare(LONG, loaded.version, None, ended)
        assert caught.value.code == "interrupted"
        assert time.monotonic() - begin < wait + 60
        assert list(folder.iterdir()) == []
    provider.close()
    loaded.remove()


GRPC = re.compile(
    r"Traceback \(most recent call last\):\n(  File [^\n]*_cygrpc[^\n]*\n)+"
    r"asyncio\.exceptions\.CancelledError\n"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_preparation(tmp_path: Path, number: int) -> None:
    data = write(tmp_path / "t.parquet", 10_000)
    cache = tmp_path / "cache"
    with serving(data, f"--cache={cache}", fake=False) as running, ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        version = channel.describe().versions[0]
        job = pool.submit(channel.prepare, LONG, version)
        until(lambda: any((cache / "prepared").glob("scratch-*")))
        time.sleep(0.5)
        begin = time.monotonic()
        running.process.send_signal(number)
        assert code(job.exception(60)) in ("serve.ending", "provider.unreachable")
        running.process.wait(60)
        assert time.monotonic() - begin < 60, "measured: below 2 seconds"
        running.output, running.code = running._rest(), running.process.returncode
    # gRPC may tell on stderr of a call that it ended itself; nothing of ours stands there.
    output = GRPC.sub("", running.output)
    assert (running.code, output) == (0, "trusted: []\n")
    assert sorted(path.name for path in cache.iterdir()) == ["lock", "prepared"]
    assert list((cache / "prepared").iterdir()) == []


def test_a_signal_does_not_wait_for_what_cannot_be_ended(tmp_path: Path) -> None:
    """The core sleeps, and does not look whether it is to end."""
    data, cache = write(tmp_path / "t.parquet", 10), tmp_path / "cache"
    with serving(data, f"--cache={cache}") as running, ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        shape = replace(SHAPE, source="sleep:200")
        job = pool.submit(channel.prepare, shape, channel.describe().versions[0])
        time.sleep(0.5)
        begin = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert job.exception(60) is not None
        running.process.wait(60)
        assert time.monotonic() - begin < 90, "measured: 4 seconds"
        running.output, running.code = running._rest(), running.process.returncode
    assert (running.code, running.output) == (0, "")
    assert sorted(path.name for path in cache.iterdir()) == ["lock", "prepared"]


def test_what_a_killed_provider_left_is_removed(tmp_path: Path) -> None:
    data, cache = write(tmp_path / "t.parquet", 10_000), tmp_path / "cache"
    with serving(data, f"--cache={cache}", fake=False) as running, ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        job = pool.submit(channel.prepare, LONG, channel.describe().versions[0])
        until(lambda: any((cache / "prepared").glob("scratch-*")))
        running.process.kill()
        assert code(job.exception(60)) == "provider.unreachable"
        running.process.wait(60)
        running.code = running.process.returncode
    # In a container, every process has the number of the one before.
    (cache / "prepared" / f"writing-{os.getpid()}-x.table").touch()
    assert list((cache / "prepared").glob("scratch-*"))
    with serving(data, f"--cache={cache}", fake=False):
        assert list((cache / "prepared").iterdir()) == []
