"""`louver serve pg --status`: asks a front door that runs, at the address of its `--metrics`."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.pgproxy.options import Address

_PATIENCE_S = 5.0
_MOST_BYTES = 1 << 16
#: What the table shows, by the members of the answer.
_ROWS = (
    ("upstream", "server behind"), ("draining", "draining"), ("uptime_seconds", "seconds up"),
    ("clients", "clients"), ("clients_total", "clients let in"), ("refused_total", "refused"),
    ("cancelled_total", "cancellations"), ("statements_total", "statements"),
    ("failed_total", "failed"), ("direct_total", "without the planner"),
    ("audit_lines_total", "lines of the audit"),
)  # fmt: skip


class _Local(http.client.HTTPConnection):
    """A connection over a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_PATIENCE_S)
        self.sock.connect(self._path)


def state_of(address: Address) -> dict[str, Any]:
    """The state of the front door whose monitor has an address.

    Raises:
        errors.Error: `serve.status` where none answers.
    """
    name, port = address
    shown = name if port is None else f"{name}:{port}"
    connection = (
        _Local(name)
        if port is None
        else http.client.HTTPConnection(name, port, timeout=_PATIENCE_S)
    )
    try:
        connection.request("GET", "/status")
        answer = connection.getresponse()
        body = json.loads(answer.read(_MOST_BYTES)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise errors.make("serve.status", place=shown, detail=str(error)) from None
    finally:
        connection.close()
    if not isinstance(body, dict) or body.get("version") != 1:
        raise errors.make("serve.status", place=shown, detail="it is not a front door's monitor")
    return body


def show(address: Address, *, as_json: bool) -> int:
    """Print it; 0 where the server behind answers, else 1."""
    body = state_of(address)
    is_well = body.get("upstream") == 1
    if as_json:
        terminal.out_json({"ok": is_well, **body})
    else:
        terminal.out(_table(body))
    return 0 if is_well else 1


def _table(body: dict[str, Any]) -> str:
    shown = {"upstream": ("does not answer", "answers"), "draining": ("no", "yes")}
    rows = []
    for key, label in _ROWS:
        value = int(body.get(key, 0))
        rows.append((label, shown[key][bool(value)] if key in shown else str(value)))
    width = max(len(label) for label, _ in rows)
    most = max(len(value) for _, value in rows)
    lines = [f" {'state':<{width}} | value", f"{'-' * (width + 2)}+{'-' * (most + 2)}"]
    lines += [f" {label:<{width}} | {value}" for label, value in rows]
    return "\n".join([*lines, f"({len(rows)} rows)"])
