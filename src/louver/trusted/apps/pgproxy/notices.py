"""What clients receive beside answers: PostgreSQL's remarks, and Louver's on what is shown."""

from __future__ import annotations

from collections.abc import Sequence

from louver.names import fold
from louver.trusted.apps.pgproxy.failures import Fields
from louver.trusted.executor.answer import Notice
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import given

_SETTING = "client_min_messages"
#: Its values by which of a notice and a warning they let pass.
_PASSING = {"warning": ("WARNING",), "error": (), "fatal": (), "panic": ()}


def fields_of(context: Context, said: Sequence[str]) -> list[Fields]:
    """Those that the client's `client_min_messages` lets pass."""
    passing = _PASSING.get(fold(given.of(context).effective.get(_SETTING, "")))
    results = list[Fields]()
    for text in said:
        # What the server is shown is a notice.
        own = text if isinstance(text, Notice) else Notice.of("01000", text)
        if passing is None or own.severity in passing:
            named: Fields = {
                "severity": own.severity,
                "sqlstate": own.sqlstate,
                "message": str(own),
            }
            more = {"detail": own.detail, "hint": own.hint}
            named |= {name: value for name, value in more.items() if value}
            results.append(named)
    return results
