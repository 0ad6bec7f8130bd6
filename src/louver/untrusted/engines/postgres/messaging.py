"""What goes with a session of the server, and not with its transactions: channels that it listens
to, and locks that it holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from louver import errors
from louver._rust import postgres
from louver.untrusted.engines.postgres.failures import translated
from louver.untrusted.engines.postgres.pipeline import Reply


class Messaging(ABC):
    """The part of an engine that is `louver.untrusted.engines.engine.Messaging`."""

    address: str
    in_transaction: bool
    _session: postgres.Session | None

    def __init__(self) -> None:
        """It listens to nothing, and holds nothing."""
        self._channels: dict[str, None] = {}
        self._holds = False

    @abstractmethod
    def _send(self, sql: str, bound: Sequence[Any], *, writes: bool) -> Reply:
        """Send a statement with what waits before it."""

    def listen(self, channel: str) -> None:
        """See `Messaging`."""
        self._send(_listen(channel), (), writes=False)
        self._channels[channel] = None

    def unlisten(self, channel: str) -> None:
        """See `Messaging`."""
        self._send("UNLISTEN *" if not channel else f"UN{_listen(channel)}", (), writes=False)
        if channel:
            self._channels.pop(channel, None)
        else:
            self._channels.clear()

    def arrived(self) -> list[tuple[str, str]]:
        """See `Messaging`; they come with any answer."""
        if not self.in_transaction:
            self._send("SELECT 1", (), writes=False)
        session = self._session
        if session is None:
            return []
        with translated(self.address):
            return session.notifications()

    def keep_session(self, held: bool) -> None:
        """See `Messaging`."""
        self._holds = held

    def _resume(self, session: postgres.Session) -> None:
        """A session that takes the place of a lost one listens to the same."""
        with translated(self.address):
            for channel in self._channels:
                session.run([(_listen(channel), [])])

    def _require_kept(self) -> None:
        """Raise, once, where a lost session held something."""
        if self._holds:
            self._holds = False
            raise errors.make(
                "server.lost", place=self.address, detail="with it the locks of the session"
            )


def _listen(channel: str) -> str:
    if not channel.isalnum():
        raise errors.make("internal", detail="the name of a channel in clear")
    return f'LISTEN "{channel}"'
