"""What tests reach behind a connection, without its types: they break what is there."""

from __future__ import annotations

from typing import Any

from louver.trusted.client import inside
from louver.trusted.client.dbapi import Connection


def session_of(connection: Connection) -> Any:
    """The session of a connection."""
    return inside.session_of(connection)


def context_of(connection: Connection) -> Any:
    """The context of a connection's session, of providers too."""
    return inside.session_of(connection).context
