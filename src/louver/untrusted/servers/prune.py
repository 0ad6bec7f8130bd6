"""The pruning service: `python -m louver.untrusted.servers.prune WAREHOUSE`.

It has no key and loads none of Louver's trusted code. It serves one warehouse: its tables as an
Iceberg REST catalog, their files, the encrypted control tables, and plans by token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import socket
import ssl
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from pyiceberg.catalog import Catalog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from louver import coredumps, errors
from louver.untrusted.addresses import host_and_port, is_loopback, joined, read_secret
from louver.untrusted.lake.control import Control, ControlFile
from louver.untrusted.lake.warehouse import Warehouse
from louver.untrusted.servers.files import Files
from louver.untrusted.servers.limits import Guard, Work, body
from louver.untrusted.servers.options import Limits, add_options
from louver.untrusted.servers.tables import Tables
from louver.wire import control as wire

_BACKLOG = 256
_GRACE_SECONDS = 10
#: Clients reuse a connection that was idle for less.
LEAST_LOOK_SECONDS = 6.0
_MOST_CONNECTIONS = 2_048
#: For the last response to leave, and for a client to close its connection.
_FAREWELL_SECONDS = 0.5


def application(
    warehouse: Warehouse, control: Control, limits: Limits, secret: str | None = None,
    scope: str = "the service",
) -> ASGIApp:  # fmt: skip
    """The service as an ASGI application."""
    work = Work(limits)

    async def controlled(request: Request) -> Response:
        """Run a batch on the control tables; only the statements of `wire.control` are allowed."""
        batch = wire.Batch.decode(await body(request, work, wire.MAX_BYTES))
        answers = await work.run(lambda: wire.encode_answers(control.perform(batch)))
        return Response(answers, media_type="application/octet-stream")

    routes = [
        *Tables(warehouse, work).routes(),
        *Files(warehouse.objects, work).routes(),
        Route("/v1/control", controlled, methods=["POST"]),
    ]
    return Guard(Router(routes, redirect_slashes=False), work, secret, scope)


def main(given: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit code."""
    if given is None:
        coredumps.switch_off()
    options = _parser().parse_args(given)
    logging.basicConfig(level=logging.ERROR, format="%(asctime)s %(message)s", stream=sys.stderr)
    # Uvicorn would log addresses with their parameters, and tracebacks.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    try:
        return _serve(options)
    except errors.Error as error:
        text = json.dumps(error.as_dict()) if options.json else f"error: {error}"
        (sys.stdout if options.json else sys.stderr).write(f"{text}\n")
        return 1


def _serve(options: argparse.Namespace) -> int:
    host, port = host_and_port(options.listen)
    secure = _certificate(options.certificate, options.key)
    if not secure and not is_loopback(host) and not options.insecure:
        raise errors.make("serve.plain", address=options.listen)
    secret = None if options.authorization is None else read_secret(options.authorization)
    properties = _properties(options.properties)
    limits = Limits(options.requests, options.plans, options.memory, options.largest_file,
                    options.idle_seconds, options.plan_seconds)  # fmt: skip
    warehouse = Warehouse.open(_place(options.warehouse), properties)
    if not isinstance(getattr(warehouse, "catalog", None), Catalog):
        raise errors.make("usage", detail="only warehouses of Iceberg tables can be served")
    control = ControlFile(_control_folder(options, warehouse))
    listening = _listening(host, port, options.listen)
    url = f"{'https' if secure else 'http'}://{joined(host, listening.getsockname()[1])}"
    app = application(warehouse, control, limits, secret, url)
    look_seconds = max(options.idle_seconds, LEAST_LOOK_SECONDS)
    patient = type("Patient", (Connection,), {"look_seconds": look_seconds})
    config = uvicorn.Config(
        app, http=patient, ws="none", lifespan="off", log_config=None, access_log=False,
        ssl_certfile=options.certificate, ssl_keyfile=options.key, server_header=False,
        limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=75, backlog=_BACKLOG,
        timeout_graceful_shutdown=_GRACE_SECONDS, date_header=False,
    )  # fmt: skip
    if options.json:
        sys.stdout.write(json.dumps({"ok": True, "url": url}) + "\n")
        sys.stdout.flush()
    else:
        sys.stderr.write(f"listening at {url}\n")
        sys.stderr.flush()
    # Uvicorn raises the signal again after everything is closed; it has no effect then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        _Server(config).run(sockets=[listening])
    finally:
        listening.close()
        control.close()
    return 0


class _Server(uvicorn.Server):
    """Ends without waiting for the TLS shutdown of idle clients."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close connections, and wait for current requests."""
        aborting = asyncio.create_task(self._abort_closing())
        try:
            await super().shutdown(sockets)
        finally:
            aborting.cancel()

    async def _abort_closing(self) -> None:
        """Abort connections that were closing at two checks."""
        before: set[Any] = set()
        while True:
            await asyncio.sleep(_FAREWELL_SECONDS)
            closing = {c for c in self.server_state.connections if c.transport.is_closing()}
            for connection in closing & before:
                connection.transport.abort()
            before = closing


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="louver serve prune", description=__doc__)
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="address and errors as JSON")
    return parser


def _certificate(certificate: str | None, key: str | None) -> bool:
    if certificate is None and key is None:
        return False
    if certificate is None or key is None:
        raise errors.make("serve.certificate", detail="give both --certificate and --key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or type(error).__name__
        raise errors.make("serve.certificate", detail=detail) from error
    return True


def _properties(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        properties: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        # The file's content may be secret; the error does not repeat it.
        detail = getattr(error, "strerror", None) or "not TOML"
        raise errors.make("lake.io", place=path, detail=detail) from error
    return {str(key): str(value) for key, value in properties.items()}


def _place(warehouse: str) -> str:
    if "://" not in warehouse and not Path(warehouse).is_dir():
        raise errors.make("lake.io", place=warehouse, detail="the directory does not exist")
    return warehouse


def _control_folder(options: argparse.Namespace, warehouse: Warehouse) -> str:
    if options.control is not None:
        return str(options.control)
    if "://" in warehouse.location:
        raise errors.make("usage", detail="a warehouse in an object store needs --control DIR")
    return warehouse.location


def _listening(host: str, port: int, shown: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise errors.make("serve.listen", address=shown, detail=error.strerror or "") from error


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


if __name__ == "__main__":
    sys.exit(main())
