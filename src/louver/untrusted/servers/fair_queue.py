"""A fair queue: limited slots, which no address can take from all others.

The address with the least use goes first; waiting time counts against used time, so that no address
waits forever. Everything here runs in one thread, that of the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from louver import errors

#: The half-life of recorded use; it is dropped when the address is removed.
_HALF_SECONDS = 300.0
_MOST_ADDRESSES = 4_096


@dataclass(slots=True)
class _Address:
    """The current work and past use of one address.

    Attributes:
        begun: when each of its slots was taken.
        waiting: its waiting requests, and since when.
        used: seconds, as of `then`.
        then: when `used` was last updated.
    """

    then: float
    begun: list[float] = field(default_factory=list)
    waiting: deque[tuple[float, asyncio.Future[float]]] = field(default_factory=deque)
    used: float = 0.0

    def fade(self, now: float) -> float:
        """Seconds of past use, including current work."""
        self.used *= 0.5 ** ((now - self.then) / _HALF_SECONDS)
        self.then = now
        return self.used + sum(now - begun for begun in self.begun)


class Turns:
    """So many places, which addresses take in turn."""

    def __init__(
        self, places: int, each: int, waiting: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """An empty queue.

        Args:
            places: slots for all addresses together.
            each: slots for one address.
            waiting: requests of one address that may wait; more get `serve.busy`.
            clock: seconds.
        """
        self.places = self._free = places
        self._each = each
        self._waiting = waiting
        self._clock = clock
        self._known: OrderedDict[str, _Address] = OrderedDict()

    async def take(self, address: str) -> Callable[[], None]:
        """Wait for a slot.

        Returns:
            A function that releases the slot; to be called once.

        Raises:
            errors.Error: `serve.busy`, if too many requests of this address wait.
        """
        known = self._address(address)
        if len(known.waiting) >= self._waiting:
            raise errors.make("serve.busy")
        mine: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        known.waiting.append((self._clock(), mine))
        self._next()
        try:
            begun = await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                known.waiting = deque(turn for turn in known.waiting if turn[1] is not mine)
            else:
                # It was given a slot, but its client has left.
                self._give_back(known, mine.result())
            raise
        given = False

        def give_back() -> None:
            nonlocal given
            if not given:
                given = True
                self._give_back(known, begun)

        return give_back

    def _give_back(self, known: _Address, begun: float) -> None:
        now = self._clock()
        known.fade(now)
        known.begun.remove(begun)
        known.used += now - begun
        self._free += 1
        self._next()

    def _next(self) -> None:
        """Give free slots to the addresses that are next."""
        now = self._clock()
        while self._free:
            ready = [
                address
                for address in self._known.values()
                if address.waiting and len(address.begun) < self._each
            ]
            if not ready:
                return
            address = min(ready, key=lambda address: address.fade(now) + address.waiting[0][0])
            _, future = address.waiting.popleft()
            if future.cancelled():
                continue
            address.begun.append(now)
            self._free -= 1
            future.set_result(now)

    def _address(self, name: str) -> _Address:
        address = self._known.pop(name, None) or _Address(self._clock())
        self._known[name] = address
        if len(self._known) > _MOST_ADDRESSES:
            idle = (
                at for at, entry in self._known.items() if not entry.begun and not entry.waiting
            )
            oldest = next(idle, None)
            if oldest is not None:
                del self._known[oldest]
        return address
