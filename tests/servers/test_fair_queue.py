"""Places for work are few, and every address gets its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from louver import errors
from louver.untrusted.servers.fair_queue import Turns


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def soon() -> None:
    """Let everything happen that can."""
    for _ in range(5):
        await asyncio.sleep(0)


def running(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(work())


def test_an_address_has_its_places_and_no_more() -> None:
    async def work() -> None:
        turns = Turns(3, 2, 1)
        first, _ = await turns.take("a"), await turns.take("a")
        third = asyncio.create_task(turns.take("a"))
        await soon()
        assert not third.done()
        with pytest.raises(errors.Error) as caught:
            await turns.take("a")
        assert caught.value.code == "serve.busy"
        await turns.take("b")
        first()
        first()
        await soon()
        assert third.done(), "what is given back twice is one place"
        assert turns._free == 0

    running(work)


def test_who_used_least_is_next() -> None:
    async def work() -> None:
        clock = Clock()
        turns = Turns(1, 1, 10, clock)
        order: list[str] = []

        async def job(name: str, seconds: float) -> None:
            give_back = await turns.take(name)
            order.append(name)
            clock.now += seconds
            give_back()

        held = await turns.take("greedy")
        jobs = [asyncio.create_task(job("greedy", 100)) for _ in range(3)]
        await soon()
        clock.now += 30
        jobs += [asyncio.create_task(job(name, 1)) for name in ("a", "b", "a")]
        await soon()
        clock.now += 30
        held()
        await asyncio.gather(*jobs)
        assert sorted(order[:3]) == ["a", "a", "b"]
        assert order[3:] == ["greedy"] * 3

    running(work)


def test_nobody_waits_for_ever() -> None:
    """New addresses come and come; one that has used much is served all the same."""

    async def work() -> None:
        clock = Clock()
        turns = Turns(1, 1, 10, clock)
        give_back = await turns.take("used")
        clock.now += 100
        give_back()
        give_back = await turns.take("other")
        waiting = asyncio.create_task(turns.take("used"))
        await soon()
        others = 0
        while not waiting.done():
            following = asyncio.create_task(turns.take(f"new {others}"))
            await soon()
            clock.now += 10
            give_back()
            await soon()
            others += 1
            if following.done():
                give_back = following.result()
            assert others < 30
        assert others > 3

    running(work)


def test_who_hangs_up_keeps_no_place() -> None:
    async def work() -> None:
        turns = Turns(1, 1, 10)
        give_back = await turns.take("a")
        gone, given, last = (asyncio.create_task(turns.take(name)) for name in ("b", "c", "d"))
        await soon()
        gone.cancel()
        await soon()
        give_back()
        # It has its place, and is gone before it hears of it.
        given.cancel()
        await soon()
        assert (given.cancelled(), last.done(), turns._free) == (True, True, 0)
        last.result()()
        assert turns._free == 1
        assert not any(turn.begun or turn.waiting for turn in turns._known.values())

    running(work)


def test_addresses_are_forgotten() -> None:
    async def work() -> None:
        turns = Turns(2, 1, 10)
        turn = await turns.take("kept")
        for number in range(10_000):
            (await turns.take(str(number)))()
        assert len(turns._known) <= 4_097
        turn()
        assert turns._free == 2

    running(work)
