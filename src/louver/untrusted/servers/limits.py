"""Checks before every request to a service: authorization, quantity and time.

Every failure becomes one JSON object, `{"ok": false, "code", "error", "fix"}`, and the service
continues. Only the method and path of a request are ever logged.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from louver import errors
from louver.untrusted.servers.options import Limits

LOG = logging.getLogger("louver.serve")
_Found = TypeVar("_Found")
#: A body may be slow at first; after that it must keep this pace.
_BYTES_A_SECOND = 32_768

_STATUS = {
    "serve.denied": 401, "serve.large": 413, "serve.slow": 408, "serve.busy": 503,
    "serve.time": 504, "wire.format": 400, "lake.path": 400, "lake.token": 400, "lake.missing": 404,
    "lake.table": 404, "lake.snapshot": 404, "lake.exists": 409, "lake.table.exists": 409,
    "lake.race": 409, "lake.conflict": 409, "lake.short": 416, "lake.busy": 503, "disk.full": 507,
    "serve.request": 400, "lake.statement": 400,
}  # fmt: skip


class Work:
    """Threads for blocking work, and the memory limit for bodies."""

    def __init__(self, limits: Limits) -> None:
        """Threads are started on demand."""
        self.limits = limits
        self.plans = CapacityLimiter(limits.plans)
        self.disk = CapacityLimiter(4 * (os.cpu_count() or 1))
        self.held = 0

    async def run(
        self, work: Callable[[], _Found], limiter: CapacityLimiter | None = None
    ) -> _Found:
        """Run in a thread."""
        return await to_thread.run_sync(work, limiter=limiter or self.disk)

    def hold(self, scope: Scope, count: int) -> None:
        """Count bytes in memory until the request ends; `serve.busy` if there are too many."""
        if self.held + count > self.limits.buffered_bytes:
            raise errors.make("serve.busy")
        self.held += count
        scope["louver.held"] = scope.get("louver.held", 0) + count

    def let_go(self, scope: Scope, count: int | None = None) -> None:
        """The request's bytes, or some of them, are no longer in memory."""
        count = scope.get("louver.held", 0) if count is None else count
        self.held -= count
        scope["louver.held"] = scope.get("louver.held", 0) - count


async def chunks(request: Request, limit_bytes: int, idle_seconds: float) -> Any:
    """A body in pieces; `serve.large` beyond the limit, `serve.slow` for a slow client."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit_bytes:
        raise errors.make("serve.large", limit_bytes=limit_bytes)
    begin, count = time.monotonic(), 0
    more = True
    while more:
        allowed = idle_seconds + count / _BYTES_A_SECOND - (time.monotonic() - begin)
        try:
            message = await asyncio.wait_for(request.receive(), min(idle_seconds, max(allowed, 0)))
        except TimeoutError as error:
            raise errors.make("serve.slow", seconds=int(idle_seconds)) from error
        if message["type"] == "http.disconnect":
            raise errors.make("serve.request", detail="its body is cut short")
        piece = message.get("body", b"")
        count += len(piece)
        if count > limit_bytes:
            raise errors.make("serve.large", limit_bytes=limit_bytes)
        more = message.get("more_body", False)
        if piece:
            yield piece


async def body(request: Request, work: Work, limit_bytes: int) -> bytes:
    """A whole body in memory."""
    pieces: list[bytes] = []
    async for piece in chunks(request, limit_bytes, work.limits.idle_seconds):
        work.hold(request.scope, len(piece))
        pieces.append(piece)
    return b"".join(pieces)


class Guard:
    """The outermost layer: secret, number of requests, slow readers, errors."""

    def __init__(self, app: ASGIApp, work: Work, secret: str | None, scope: str) -> None:
        """`secret` None admits every client; `scope` is the service's address."""
        self._app = app
        self._work = work
        self._expected = None if secret is None else f"Bearer {secret}".encode()
        self._place = scope
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        started = False
        idle = self._work.limits.idle_seconds

        async def patient(message: Message) -> None:
            nonlocal started
            started = True
            # A client that reads nothing must not hold its slot forever.
            await asyncio.wait_for(send(message), idle)

        self._running += 1
        try:
            if self._running > self._work.limits.requests:
                raise errors.make("serve.busy")
            self._require_secret(scope)
            # Routes without a match raise, instead of sending Starlette's own response.
            scope["app"] = self
            await self._app(scope, receive, patient)
        except Exception as error:  # noqa: BLE001 - a request must not end the service
            reported = _ours(error)
            status = status_of(reported, error)
            gone = started and isinstance(error, TimeoutError | ConnectionError)
            if status >= 500 and reported.code != "serve.busy" and not gone:
                log(scope, status, reported, error)
            # A partial response is aborted: it must not be mistaken for a complete one.
            if not started:
                with suppress(TimeoutError, OSError):
                    await _reply(patient, scope, status, reported)
        finally:
            self._running -= 1
            self._work.let_go(scope)

    def _require_secret(self, scope: Scope) -> None:
        if self._expected is None:
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._expected):
            raise errors.make("serve.denied", place=self._place)


def status_of(error: errors.Error, cause: BaseException | None = None) -> int:
    """The HTTP status of an error."""
    if isinstance(cause, HTTPException):
        return cause.status_code
    return _STATUS.get(error.code, 500)


def log(scope: Scope, status: int, error: errors.Error, cause: BaseException) -> None:
    """One line, with only the method and path of the request."""
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        name = os.path.basename(trace.tb_frame.f_code.co_filename)
        where = f" ({type(cause).__name__} in {name}, line {trace.tb_lineno})"
    path = ascii(scope.get("path", ""))[:200]
    LOG.error("%s %s %d %s%s", scope.get("method"), path, status, error.code, where)


def _ours(error: Exception) -> errors.Error:
    if isinstance(error, errors.Error):
        return error
    if isinstance(error, HTTPException):
        return errors.make("serve.request", detail=f"{error.status_code} {error.detail}"[:100])
    # Its text could contain a token or a path of this machine; its type cannot.
    return errors.make("internal", detail=type(error).__name__)


async def _reply(send: Send, scope: Scope, status: int, error: errors.Error) -> None:
    payload = error.as_dict()
    if scope.get("louver.iceberg"):
        # Iceberg's clients expect an object here.
        payload["error"] = {"message": error.message, "type": error.code, "code": status}
    data = b"" if scope["method"] == "HEAD" else json.dumps(payload).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
    if status == 503:
        headers.append((b"retry-after", b"1"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 408:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
