"""Whose work is next: places are few, and no address keeps the others from them.

Who has used places least goes first; time that was waited counts against time that was used, so
that nobody waits for ever. Everything here runs in one thread, that of the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from louver import errors

#: What was used is half forgotten after so long, and wholly once nobody knows the address.
_HALF_SECONDS = 300.0
_MOST_ADDRESSES = 4_096


@dataclass(slots=True)
class _Address:
    """What one address has under way and has used.

    Attributes:
        begun: when each of its places was taken.
        waiting: who waits, and since when.
        used: seconds, as of `then`.
        then: when `used` was last counted.
    """

    then: float
    begun: list[float] = field(default_factory=list)
    waiting: deque[tuple[float, asyncio.Future[float]]] = field(default_factory=deque)
    used: float = 0.0

    def fade(self, now: float) -> float:
        """Seconds used before, with those of what is under way."""
        self.used *= 0.5 ** ((now - self.then) / _HALF_SECONDS)
        self.then = now
        return self.used + sum(now - begun for begun in self.begun)


class Turns:
    """So many places, which addresses take in turn."""

    def __init__(
        self, places: int, each: int, waiting: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Nobody is there.

        Args:
            places: at the same time, of all together.
            each: of one address.
            waiting: requests of one address that may wait; `serve.busy` is told to more.
            clock: seconds.
        """
        self.places = self._free = places
        self._each = each
        self._waiting = waiting
        self._clock = clock
        self._known: OrderedDict[str, _Address] = OrderedDict()

    async def take(self, address: str) -> Callable[[], None]:
        """Wait for a place.

        Returns:
            What gives the place back; to be called once.

        Raises:
            errors.Error: `serve.busy`, if too many of this address wait.
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
                # It was given a place, and is gone.
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
        """Give free places to those whose turn it is."""
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
