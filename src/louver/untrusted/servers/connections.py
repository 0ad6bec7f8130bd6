"""HTTP connections with a time limit for a request to begin."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Clients reuse a connection that was idle for less.
LEAST_LOOK_SECONDS = 6.0


class Connection(H11Protocol):
    """Uvicorn's connection, with a limit for headers that arrive slowly."""

    #: A connection without a request at two checks in a row is closed.
    look_seconds = 30.0

    def connection_made(self, transport: Any) -> None:
        """Start the checks."""
        super().connection_made(transport)
        # Head and body are two writes; the second must not wait for the acknowledgement of the
        # first.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._idle_before = False
        self._watch: asyncio.TimerHandle = self.loop.call_later(self.look_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the checks."""
        self._watch.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle = getattr(self, "cycle", None)
        idle = cycle is None or cycle.response_complete
        if idle and self._idle_before:
            self.transport.close()
            return
        self._idle_before = idle
        self._watch = self.loop.call_later(self.look_seconds, self._look)
