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
from louver.untrusted.engines.postgres.pipeline import Reply, Step


class Messaging(ABC):
    """The part of an engine that is `louver.untrusted.engines.engine.Messaging`."""

    address: str
    in_transaction: bool
    _session: postgres.Session | None
    _begun: bool
    _lock_ms: int

    def __init__(self) -> None:
        """It listens to nothing, holds nothing, and waits as long as it takes."""
        self._channels: dict[str, None] = {}
        self._holds = False
        self._limits: dict[str, str] = {}
        #: those that the session knows of, outside of transactions
        self._known: dict[str, str] = {}

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

    @property
    def holds_session(self) -> bool:
        """See `Messaging`."""
        return self._holds

    def keep_session(self, held: bool) -> None:
        """See `Messaging`."""
        self._holds = held

    def limit(self, name: str, value: str | None) -> None:
        """See `Limited`."""
        if value is not None and not value.isalnum():
            raise errors.make("internal", detail=f"{name} is not a time")
        if value is None:
            self._limits.pop(name, None)
        else:
            self._limits[name] = value
        if self.in_transaction and self._begun:
            self._send(f"SET LOCAL {name} = {self._within(name)}", (), writes=False)

    @property
    def limits(self) -> tuple[tuple[str, str], ...]:
        """Limits that the user has set."""
        return tuple(self._limits.items())

    def _limits_within(self) -> list[Step]:
        """What a transaction begins with."""
        names = {"lock_timeout", *self._limits, *self._known}
        return [(f"SET LOCAL {name} = {self._within(name)}", []) for name in sorted(names)]

    def _limits_alone(self) -> list[tuple[str, str]] | None:
        """The same as names and values, for the first statement to set; None where that is too late
        for one of them: a statement's own time runs when it sets anything.
        """
        if {"lock_timeout"} >= {*self._limits, *self._known}:
            return [("lock_timeout", self._within("lock_timeout").strip("'"))]
        return None

    def _limits_outside(self) -> list[Step]:
        """What goes before a statement outside of a transaction. A pooler would give the session to
        others.
        """
        session = self._session
        if self._known == self._limits or session is None or not session.keeps_statements():
            return []
        names = sorted({*self._limits, *self._known})
        return [(f"SET {name} = {self._limit_value(name, 'DEFAULT')}", []) for name in names]

    def _limits_sent(self, opening: Sequence[Step]) -> None:
        """The session knows of what went before a statement."""
        if opening and not self.in_transaction:
            self._known = dict(self._limits)

    def _within(self, name: str) -> str:
        return self._limit_value(name, str(self._lock_ms) if name == "lock_timeout" else "DEFAULT")

    def _limit_value(self, name: str, default: str) -> str:
        return f"'{self._limits[name]}'" if name in self._limits else default

    def _resume(self, session: postgres.Session) -> None:
        """A session that takes the place of a lost one listens to the same."""
        self._known = {}
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
