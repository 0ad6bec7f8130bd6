"""What the commands reach behind a connection; no part of what a program calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.trusted.executor.context import Context
    from louver.trusted.executor.front import Front


def session_of(connection: Connection) -> Front:
    """The session of a connection."""
    return connection._session


def context_of(connection: Connection) -> Context:
    """The context of a connection's database; raises ``provider.language`` for providers."""
    return connection._context
