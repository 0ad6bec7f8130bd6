"""What a preparation takes of a provider's machine is bounded, whatever the shape is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver import errors
from louver.untrusted.providers import preparing
from louver.untrusted.providers.bounds import DefaultBounds
from louver.untrusted.providers.dataset import LoadedData, load
from louver.untrusted.providers.provider import Provider
from louver.untrusted.providers.sandbox import Limits, machine_bytes
from louver.wire import questions as q
from tests.providers.services import serving

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")

ROWS = 30_000
BIG = ("big",)
COUNT = (q.Partial("count"),)
LARGEST = (q.Partial("max", BIG),)
SELECT, SUM, NODES, SEARCH = q.Protocol.SELECT, q.Protocol.SUM, q.Protocol.NODES, q.Protocol.SEARCH
ORDER = (q.Order("k", False, False),)
#: All of them would make tables of gigabytes of thirty megabytes of data.
SHAPES = {
    "many texts": q.Shape(SELECT, "t", equal=("id",), columns=BIG * 250, limit=10),
    "many rows of texts": q.Shape(SELECT, "t", equal=("k",), columns=BIG * 250, limit=300),
    "texts of keys": q.Shape(SELECT, "t", equal=("id",), partials=LARGEST * 40),
    "groups of texts": q.Shape(SELECT, "t", equal=("k",), groups=BIG, partials=COUNT * 40),
    "sums of texts": q.Shape(SUM, "t", interval="id", groups=BIG, partials=COUNT),
    "levels of texts": q.Shape(NODES, "t", interval="id", partials=LARGEST * 20),
    "searched texts": q.Shape(SEARCH, "t", equal=("id",), columns=BIG * 30, orders=ORDER, limit=1),
}
#: Known before anything is made.
EARLY = ("many texts", "texts of keys", "levels of texts", "searched texts")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "t.parquet"
    query = f"SELECT i AS id, i % 100 AS k, repeat('x', 1000) || i AS big FROM range({ROWS}) r(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def loaded(data: Path) -> Iterator[LoadedData]:
    loaded = load([str(data)], data.parent)
    yield loaded
    loaded.remove()


def peak_bytes(process: int) -> int:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10


@pytest.mark.alone
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by Linux alone")
def test_memory_is_bounded(data: Path) -> None:
    given = 256 << 20
    limits = (f"--prepare-memory={given}", "--prepare-scratch=500000000", "--threads=2")
    with serving(data, *limits, fake=False) as running:
        channel = running.channel()
        version = channel.describe().versions[0]
        channel.prepare(q.Shape(SELECT, "t", equal=("k",), partials=COUNT), version)
        before = peak_bytes(running.process.pid)
        for name, shape in SHAPES.items():
            with pytest.raises(errors.Error) as caught:
                channel.prepare(shape, version)
            assert caught.value.code in ("provider.large", "provider.refused"), name
            taken = peak_bytes(running.process.pid) - before
            assert taken < given, (name, taken)
        fine = q.Shape(SELECT, "t", equal=("id",), columns=("k",), limit=1)
        assert channel.prepare(fine, version).levels[0].count == ROWS


@pytest.mark.alone
@pytest.mark.parametrize("name", EARLY)
def test_what_can_be_told_is_refused_at_once(loaded: LoadedData, tmp_path: Path, name: str) -> None:
    provider = Provider(loaded, tmp_path, limits=Limits(table_bytes=200 << 20))
    begin = time.monotonic()
    with pytest.raises(errors.Error) as caught:
        provider.prepare(SHAPES[name], loaded.version)
    assert caught.value.code == "provider.large"
    assert time.monotonic() - begin < 20, "measured: half a second; two minutes without"
    provider.close()


def test_texts_of_every_kind_are_measured(loaded: LoadedData, tmp_path: Path) -> None:
    columns = ("'é\\x00' || big", "k", "CASE WHEN k = 1 THEN big END")
    shape = q.Shape(SELECT, "t", equal=("id",), columns=columns, limit=1)
    small = Provider(loaded, tmp_path, limits=Limits(table_bytes=1_900 * ROWS))
    with pytest.raises(errors.Error) as caught:
        small.prepare(shape, loaded.version)
    assert caught.value.code == "provider.large"
    provider = Provider(loaded, tmp_path)
    assert provider.prepare(shape, loaded.version).levels[0].count == ROWS
    provider.close()
    small.close()


def test_dropped_tables_take_no_place(loaded: LoadedData, tmp_path: Path) -> None:
    """A file that is mapped stays on the disk when it is removed; every version lets go of it."""
    bounds = DefaultBounds(cache_bytes=3 << 20)
    providers = [Provider(loaded, tmp_path, bounds) for _ in range(2)]
    for number in range(8):
        shape = q.Shape(SELECT, "t", equal=(f"id + {number}",), partials=COUNT)
        providers[number % 2].prepare(shape, loaded.version)
        files = {path.name for path in tmp_path.glob("*.table")}
        assert 1 <= len(files) < 5
        for provider in providers:
            assert set(provider._cache._shelf._open) <= files
    for provider in providers:
        provider.close()


def test_an_operator_allows_more_time(
    loaded: LoadedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []
    prepare = preparing.prepare

    def noted(*given: Any) -> Any:
        allowed.extend(item.seconds for item in given if isinstance(item, Limits))
        return prepare(*given)

    monkeypatch.setattr(preparing, "prepare", noted)
    provider = Provider(loaded, tmp_path, DefaultBounds(prepare_seconds=900.0))
    provider.prepare(q.Shape(SELECT, "t", equal=("id",), partials=COUNT), loaded.version)
    provider.close()
    assert allowed == [900.0]


def test_a_container_has_less_than_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine_bytes()
    file = tmp_path / "memory.max"
    monkeypatch.setattr("louver.untrusted.providers.sandbox._CONTAINER", (str(file),))
    for text, expected in (("max\n", whole), ("1000000\n", 1_000_000)):
        file.write_text(text)
        assert min(whole, machine_bytes()) == min(whole, expected)
