"""Limits of a provider: for each client's address and for all together.

Everything here runs in one thread, that of the event loop.
"""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address

from louver import errors
from louver.untrusted.servers.fair_queue import Turns
from louver.untrusted.servers.provider_options import Limits

#: The most addresses remembered; the longest inactive ones are dropped.
_MOST_CLIENTS = 4_096
#: The share of the memory that one address may use.
_CLIENT_MEMORY = 0.75
#: Concurrent preparations, those of one address, and the number that may wait.
_PREPARING = 3
_PREPARING_EACH = 2
_PREPARING_WAITING = 8


def preparing() -> Turns:
    """The queue of preparations."""
    return Turns(_PREPARING, _PREPARING_EACH, _PREPARING_WAITING)


def answering(limits: Limits) -> Turns:
    """The queue of evaluations: one address leaves one slot to others."""
    each = max(2, limits.cores)
    return Turns(each + 1, each, limits.client_requests)


class Bucket:
    """A token bucket, refilled at a constant rate."""

    def __init__(self, most: float, a_second: float, clock: Callable[[], float]) -> None:
        """Full at first."""
        self._most = most
        self._a_second = a_second
        self._clock = clock
        self._room = most
        self._then = clock()

    def take(self) -> None:
        """Take one; `serve.busy` if it is empty."""
        now = self._clock()
        self._room = min(self._most, self._room + (now - self._then) * self._a_second)
        self._then = now
        if self._room < 1:
            raise errors.make("serve.busy")
        self._room -= 1

    def give_back(self) -> None:
        """Return what was taken but not used."""
        self._room = min(self._most, self._room + 1)


class Client:
    """The current requests of one address, and its remaining allowance."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        """A client without requests."""
        self.running = 0
        self.held = 0
        self.asks = Bucket(2 * limits.asks, limits.asks, clock)
        self.shapes = Bucket(limits.shapes, limits.shapes / 60, clock)


class Gate:
    """The checks before every request."""

    def __init__(
        self, limits: Limits, secret: str | None, scope: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`secret` None admits every client; `scope` is the provider's address."""
        self._limits = limits
        self._expected = None if secret is None else f"Bearer {secret}".encode()
        self._place = scope
        self._clock = clock
        self._clients: OrderedDict[str, Client] = OrderedDict()
        self._running = 0
        self._held = 0

    def require_secret(self, given: list[bytes]) -> None:
        """`serve.denied` unless exactly one authorization was sent and is right."""
        if self._expected is None:
            return
        if len(given) != 1 or not hmac.compare_digest(given[0], self._expected):
            raise errors.make("serve.denied", place=self._place)

    @contextmanager
    def admitted(self, address: str) -> Iterator[Client]:
        """Admit a request if there is room for it; otherwise `serve.busy`.

        Some room is reserved for addresses without current requests.
        """
        client = self._client(address)
        most = self._limits
        room = most.requests if client.running else most.requests + most.requests // 2
        if self._running >= room or client.running >= most.client_requests:
            raise errors.make("serve.busy")
        self._running += 1
        client.running += 1
        try:
            yield client
        finally:
            self._running -= 1
            client.running -= 1

    @contextmanager
    def memory(self, client: Client) -> Iterator[Callable[[int], None]]:
        """Count bytes in memory until the request ends; `serve.busy` if there are too many.

        The requests of one client together never use all of it.
        """
        held = 0

        def hold(count: int) -> None:
            nonlocal held
            most = self._limits.memory
            share = most if client.running < 2 else most * _CLIENT_MEMORY
            if self._held + count > most or client.held + count > share:
                raise errors.make("serve.busy")
            self._held += count
            client.held += count
            held += count

        try:
            yield hold
        finally:
            self._held -= held
            client.held -= held

    def _client(self, address: str) -> Client:
        client = self._clients.pop(address, None) or Client(self._limits, self._clock)
        self._clients[address] = client
        if len(self._clients) > _MOST_CLIENTS:
            # An address with current requests keeps its counts.
            idle = (name for name, entry in self._clients.items() if not entry.running)
            oldest = next(idle, None)
            if oldest is not None:
                del self._clients[oldest]
        return client


def address_of(peer: str) -> str:
    """The machine in gRPC's name of a client (``ipv4:1.2.3.4:567``, ``ipv6:%5B::1%5D:567``).

    IPv6 addresses count by their first 64 bits, since one client controls all the others.
    """
    kind, _, rest = peer.partition(":")
    host = rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "").strip("[]")
    if kind != "ipv6":
        return host or kind
    try:
        ipv6 = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = ipv6.ipv4_mapped
    return str(mapped) if mapped is not None else ipv6.packed[:8].hex()
