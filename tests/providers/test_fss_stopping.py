"""An evaluation ends soon after another thread says so, whatever it computes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from louver._rust import fss, server
from louver.untrusted.providers import native

#: Measured: below 20 ms. That it is stopped at all is the point, and machines of tests are busy
#: with other things too.
SOON_SECONDS = 30
POINTS = np.arange(1 << 19, dtype=np.uint64)
SEED = np.random.default_rng(1)


def shares(function: Callable[[], Any], count: int) -> list[bytes]:
    return [bytes(function().shares()[0]) for _ in range(count)]


def selected(parties: int, count: int, width: int, points: int) -> Callable[..., Any]:
    scheme = "tree" if parties == 2 else "owf"
    given = shares(partial(fss.Point, 20, 5, parties, scheme), count)
    records, tags = np.zeros(points * width, np.uint8), np.zeros(points * 16, np.uint8)
    return partial(native.select, given, POINTS[:points], points, records, width, tags)


def summed() -> Callable[..., Any]:
    """Few points with very many entries each."""
    entries = 1 << 19
    starts = np.array([0, entries, 2 * entries], np.uint32)
    groups = SEED.integers(0, 1 << 10, 2 * entries).astype(np.uint32)
    values = np.ones(8 * entries, np.int64)
    given = shares(partial(fss.Sum, 20, 5, 1_000), 512)
    return partial(native.sum_columns, given, POINTS[:2], starts, groups, values, 4, 1 << 10)


def bounded() -> Callable[..., Any]:
    given = shares(partial(fss.Sum, 20, 5, 1_000), 128)
    return partial(native.sum_columns, given, POINTS, None, None, None, 1, 1)


def sums_of_many() -> Callable[..., Any]:
    groups = SEED.integers(0, 64, 1 << 15).astype(np.uint32)
    given = shares(partial(fss.PaillierSum, 16, 5, 1_000, 3), 2)
    values = np.ones(4 << 15, np.int64)
    return partial(native.paillier_columns, given, POINTS[: 1 << 15], None, groups, values, 4, 64)


def searched() -> Callable[..., Any]:
    given = shares(partial(fss.PointSum, 39, 5), 1_024)
    return partial(native.search, given, POINTS, 20, 19, 19)


def gathered() -> Callable[..., Any]:
    given = [bytes(share[0]) for share in fss.Sample([(39, 5)] * 4).shares()]
    width, seeds = 1 << 10, list(range(64))
    records, tags = np.zeros(len(POINTS) * width, np.uint8), np.zeros(len(POINTS) * 16, np.uint8)
    form = (POINTS, 20, 19, [19] * 4)
    return partial(native.sample, given, *form, records, width, tags, 100, seeds)


WORK: dict[str, Callable[[], Callable[..., Any]]] = {
    "narrow records": partial(selected, 2, 1_024, 16, 1 << 19),
    "wide records": partial(selected, 2, 64, 1 << 20, 1 << 9),
    "three parties": partial(selected, 3, 512, 16, 1 << 19),
    "many entries": summed,
    "intervals": bounded,
    "paillier": sums_of_many,
    "search": searched,
    "sample": gathered,
}


@pytest.mark.alone
@pytest.mark.parametrize("name", WORK)
def test_an_evaluation_ends_when_it_is_told_to(name: str) -> None:
    work, stop = WORK[name](), native.new_stop()
    ended: list[float] = []

    def end() -> None:
        ended.append(time.monotonic())
        stop.set()

    timer = threading.Timer(0.05, end)
    timer.start()
    with pytest.raises(server.Stopped):
        work(stop=stop)
    assert time.monotonic() - ended[0] < SOON_SECONDS
    begin = time.monotonic()
    with pytest.raises(server.Stopped):
        work(stop=stop)
    assert time.monotonic() - begin < SOON_SECONDS, "who was told before does not begin"


def test_a_flag_stays_set() -> None:
    stop = server.Stop()
    assert not stop.is_set()
    stop.set()
    stop.set()
    assert stop.is_set()
