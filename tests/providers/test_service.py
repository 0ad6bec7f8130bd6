"""A provider as a process: what clients can do through it, and loading again under way."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from louver import errors
from louver.untrusted.engines.providers import Channel, Timeouts
from louver.untrusted.servers.provider_data import _SWEEP_SECONDS
from louver.wire import question_codec as codec
from louver.wire import questions as q
from tests.providers.services import (
    SHAPE,
    Held,
    Running,
    ask_of,
    prepared,
    serving,
    starting,
    until,
    write,
)

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "t.parquet", 100)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A provider for tests that leave it as it was."""
    data = write(tmp_path_factory.mktemp("data") / "t.parquet", 100)
    with serving(data, "--asks=100000") as service:
        yield service
    assert (service.code, service.output) == (0, "trusted: []\n")


def test_describe_prepare_answer(running: Running) -> None:
    channel = running.channel()
    dataset = channel.describe()
    assert [(table.name, table.rows) for table in dataset.tables] == [("t", 100)]
    assert dataset.tables[0].columns == (("a", "BIGINT"),)
    assert len(dataset.instance) == 16
    assert dataset.versions[0].hex() == running.events[-1]["version"]
    shape = prepared(channel)
    assert (shape.shape_id, shape.version) == (codec.shape_id(SHAPE), dataset.versions[0])
    for size in (0, 1, 100_000, 5_000_000):
        share = os.urandom(size)
        assert channel.answer(ask_of(shape, share)).data == share[::-1]
    many = tuple(bytes([number % 256]) for number in range(5_000))
    assert channel.answer(ask_of(shape, *many)).data == b"".join(many)
    assert len(channel.answer(ask_of(shape, b"big:100000000")).data) == 100_000_000
    traffic = channel.traffic
    assert traffic.statements == 9
    assert traffic.bytes_in > 105_000_000 > traffic.bytes_out > 5_000_000
    assert (channel.address, "127.0.0.1" in repr(channel)) == (running.address, True)
    channel.close()
    channel.close()
    with pytest.raises(errors.Error) as closed:
        channel.describe()
    assert closed.value.code == "database.closed"


def test_progress_of_a_preparation(running: Running) -> None:
    channel = running.channel()
    stages: list[tuple[str, float]] = []
    version = channel.describe().versions[0]
    shape = replace(SHAPE, source="sleep:1.2")
    channel.prepare(shape, version, lambda stage, share: stages.append((stage, share)))
    assert stages
    assert {stage for stage, _ in stages} <= {"waiting", "sleeping"}
    assert [share for _, share in stages] == sorted(share for _, share in stages)


def test_many_threads_on_one_channel(running: Running) -> None:
    channel = running.channel()
    shape = prepared(channel)

    def work(number: int) -> None:
        for step in range(20):
            share = b"%d/%d" % (number, step)
            assert channel.answer(ask_of(shape, share)).data == share[::-1]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))


def test_what_is_under_way_is_interrupted(running: Running, tmp_path: Path) -> None:
    answering, preparing = Held(tmp_path / "answering"), Held(tmp_path / "preparing")
    with ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        shape = prepared(channel)
        slow = replace(SHAPE, source=preparing.source)
        for held, work in (
            (answering, lambda: channel.answer(ask_of(shape, answering.share))),
            (preparing, lambda: channel.prepare(slow, shape.version)),
        ):
            job = pool.submit(work)
            held.begun()
            channel.interrupt()
            error = job.exception(120)
            assert isinstance(error, errors.Error)
            assert error.code == "interrupted"
        assert channel.answer(ask_of(shape, b"ab")).data == b"ba", "the channel lives on"
        answering.let_go()


def test_a_provider_that_is_slow_or_gone(data: Path, tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    # A place that no connection of anybody's gets from the system while nobody listens there.
    with serving(data, f"--listen=127.0.0.1:{lasting_port()}") as running:
        patient, hasty = (
            running.channel(timeouts=Timeouts(answer=seconds, connect=1)) for seconds in (300, 0.5)
        )
        shape = prepared(patient)

        def code(channel: Channel, share: bytes) -> str:
            with pytest.raises(errors.OperationalError) as caught:
                channel.answer(ask_of(shape, share))
            assert running.address in caught.value.message
            return caught.value.code

        def answered(channel: Channel) -> bool:
            with suppress(errors.OperationalError):
                return channel.answer(ask_of(shape, b"ab")).data == b"ba"
            return False

        assert code(hasty, held.share) == "provider.unreachable"
        os.kill(running.process.pid, signal.SIGSTOP)
        assert code(hasty, b"x") == "provider.unreachable"
        os.kill(running.process.pid, signal.SIGCONT)
        until(lambda: answered(hasty))
        with ThreadPoolExecutor(1) as pool:
            last = Held(tmp_path / "last")
            job = pool.submit(code, patient, last.share)
            last.begun()
            running.process.kill()
            assert job.result(120) == "provider.unreachable"
        assert code(patient, b"x") == "provider.unreachable"
        running.code = -9
    with starting("--data", str(data), "--listen", running.address) as again:
        assert again.event("listening")["address"] == running.address
        # Found again by itself; nobody has prepared the shape for this one yet.
        prepared(running.channel())
        until(lambda: answered(patient))
        assert prepared(patient) == shape


def lasting_port() -> int:
    """A port that is free, and below those that the system gives to connections."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(min(20_000, lowest - 1_000), lowest), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def test_nobody_listens_there() -> None:
    begin = time.monotonic()
    with pytest.raises(errors.OperationalError) as caught:
        Channel("127.0.0.1:1", timeouts=Timeouts(connect=120, describe=120)).describe()
    assert caught.value.code == "provider.unreachable"
    assert time.monotonic() - begin < 60, "nothing is waited for"


def test_loading_again_under_load(data: Path) -> None:
    """Old versions answer on while new ones come; no question fails."""
    with serving(data, "--asks=100000", "--watch=0.2") as running:
        first = prepared(running.channel())
        ended = threading.Event()
        counts = [0] * 4

        def work(worker: int) -> None:
            channel = running.channel()
            while not ended.is_set():
                newest = prepared(channel)
                for shape in (first, newest):
                    assert channel.answer(ask_of(shape, b"abc")).data == b"cba"
                    counts[worker] += 1

        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(work, number) for number in range(4)]
            try:
                versions = [first.version]
                for number in range(3):
                    counts[:] = [0] * len(counts)
                    until(lambda: min(counts) > 1 or any(job.done() for job in jobs))
                    write(data, 200_000 + number)
                    if number == 2:
                        running.process.send_signal(signal.SIGHUP)
                    said = running.event("reloaded")
                    assert (said["changed"], said["tables"]) == (True, {"t": 200_000 + number})
                    versions.insert(0, bytes.fromhex(said["version"]))
                    assert running.channel().describe().versions == tuple(versions)
            finally:
                ended.set()
            for job in jobs:
                job.result()


def test_an_old_version_ends_after_its_time(data: Path, tmp_path: Path) -> None:
    held = Held(tmp_path / "held")
    with serving(data, "--keep-seconds=0.1") as running, ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        first = prepared(channel)
        slow = pool.submit(channel.answer, ask_of(first, held.share))
        held.begun()
        write(data, 50)
        running.process.send_signal(signal.SIGHUP)
        running.event("reloaded")
        # Its time, and that in which old versions are looked for.
        time.sleep(_SWEEP_SECONDS + 0.2)
        assert len(channel.describe().versions) == 2, "a question is still under way"
        held.let_go()
        assert slow.result(120).data == held.share[::-1]
        until(lambda: len(channel.describe().versions) == 1)
        with pytest.raises(errors.OperationalError) as caught:
            channel.answer(ask_of(first, b"x"))
        assert caught.value.code == "provider.version"
        with pytest.raises(errors.OperationalError) as caught:
            channel.prepare(SHAPE, first.version)
        assert caught.value.code == "provider.version"


def test_data_that_comes_back_is_its_old_version(data: Path) -> None:
    with serving(data) as running:
        channel = running.channel()
        first = prepared(channel)
        versions = []
        for rows in (10, 100, 100):
            write(data, rows)
            running.process.send_signal(signal.SIGHUP)
            said = running.event("reloaded")
            versions.append((said["changed"], channel.describe().versions))
        other = versions[0][1][0]
        assert versions[0] == (True, (other, first.version))
        assert versions[1] == (True, (first.version, other))
        assert versions[2] == (False, (first.version, other))
        assert channel.answer(ask_of(first, b"ab")).data == b"ba", "what was prepared is there"


def test_a_load_that_fails_changes_nothing(data: Path) -> None:
    with serving(data, "--watch=0.2") as running:
        channel = running.channel()
        first = prepared(channel)
        (data.parent / "bad").write_bytes(b"PAR1 nothing of the kind")
        os.replace(data.parent / "bad", data)
        said = running.event("reload")
        assert (said["ok"], said["code"], said["event"]) == (False, "provider.data", "reload")
        data.unlink()
        running.process.send_signal(signal.SIGHUP)
        assert "there is no file" in running.event("reload")["error"]
        assert channel.answer(ask_of(first, b"ab")).data == b"ba"
        write(data, 5)
        assert running.event("reloaded")["tables"] == {"t": 5}


def test_requests_are_recorded(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    for _ in range(2):
        with serving(data, f"--record={folder}") as running:
            channel = running.channel()
            shape = prepared(channel)
            ask = ask_of(shape, b"share one", b"share two")
            channel.answer(ask)
    names = [f"00000{n}-{name}.bin" for n, name in enumerate(["Describe", "Prepare", "Answer"] * 2)]
    names = [f"{int(name[:6]) + 1:06d}{name[6:]}" for name in names]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert codec.decode(q.Ask, (folder / names[-1]).read_bytes()) == ask
    assert codec.decode(codec.Preparation, (folder / names[1]).read_bytes()).shape == SHAPE
    assert (folder / names[0]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_is_under_way_end(data: Path, tmp_path: Path, number: int) -> None:
    private = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    held = Held(tmp_path / "held")
    with serving(data, env=private) as running, ThreadPoolExecutor(1) as pool:
        channel = running.channel()
        shape = prepared(channel)
        assert len(list((tmp_path / "tmp").iterdir())) == 1
        job = pool.submit(channel.answer, ask_of(shape, held.share))
        held.begun()
        running.process.send_signal(number)
        time.sleep(0.5)
        held.let_go()
        assert job.result(120).data == held.share[::-1]
        running.process.wait(120)
        running.output, running.code = running._rest(), running.process.returncode
    assert (running.code, running.output) == (0, "trusted: []\n")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_signal_ends_a_load(tmp_path: Path) -> None:
    private = {"TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with duckdb.connect() as connection:
        # Quickly written, and slow to load: every text is hashed.
        query = "SELECT i AS a, repeat('x', 1000) AS b FROM range(500000) r(i)"
        connection.execute(f"COPY ({query}) TO '{tmp_path}/large.parquet'")
    with starting(f"--data={tmp_path}/large.parquet", env=private) as running:
        assert running.event("progress")["share"] < 1
        begin = time.monotonic()
        running.end()
        assert time.monotonic() - begin < 60
    assert (running.code, running.output) == (0, "trusted: []\n")
    assert list((tmp_path / "tmp").iterdir()) == []
