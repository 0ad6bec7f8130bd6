"""The methods of a provider: Describe, Prepare, Answer, each one message in, messages out.

All are declared as streams, which look the same on the wire, because a stream's message is waited
for here and with an end: a client that never sends, or never takes, what it should does not keep
its place. Nothing of a request but its method and size is ever logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from louver import errors
from louver.untrusted.providers.versions import Versions
from louver.untrusted.servers.provider_limits import (
    PREPARING,
    Client,
    Gate,
    address_of,
    answering,
)
from louver.untrusted.servers.provider_options import Limits
from louver.untrusted.servers.record import Record
from louver.wire import question_codec as codec
from louver.wire.questions import Ask

LOG = logging.getLogger("louver.serve")
SERVICE = "louver.Provider"
_Found = TypeVar("_Found")
_TELL_SECONDS = 0.5
#: Preparations at the same time; one client never has all of them.
_PREPARING = PREPARING + 1
#: A preparation that took less has found its tables; it costs nothing.
_QUICK_SECONDS = 0.05
_MOST_MESSAGE_CHARACTERS = 1_000
_STATUS = {
    "serve.denied": grpc.StatusCode.UNAUTHENTICATED,
    "serve.busy": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "serve.large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "provider.large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "serve.slow": grpc.StatusCode.DEADLINE_EXCEEDED,
    "provider.slow": grpc.StatusCode.DEADLINE_EXCEEDED,
    "provider.version": grpc.StatusCode.FAILED_PRECONDITION,
    "provider.shape": grpc.StatusCode.FAILED_PRECONDITION,
    "provider.replayed": grpc.StatusCode.ALREADY_EXISTS,
}


@dataclass(frozen=True, slots=True)
class _Call:
    """One request: who asks, its bytes, and the way back."""

    client: Client
    data: bytes
    context: Any
    hold: Callable[[int], None]


class Service:
    """Everything behind the port of a provider."""

    def __init__(
        self, versions: Versions, limits: Limits, secret: str | None, place: str,
        record: Record | None = None,
    ) -> None:  # fmt: skip
        """`record` keeps every request's bytes."""
        self._versions = versions
        self._limits = limits
        self._gate = Gate(limits, secret, place)
        self._record = record
        self._answers = ThreadPoolExecutor(answering(limits) + 1, "answer")
        self._prepares = ThreadPoolExecutor(_PREPARING, "prepare")

    def handler(self) -> Any:
        """The methods, as gRPC wants them."""
        methods: dict[str, Callable[[_Call], Awaitable[None]]] = {
            "Describe": self._describe, "Prepare": self._prepare, "Answer": self._answer,
        }  # fmt: skip

        def declared(name: str) -> Any:
            async def serve(_: Any, context: Any) -> None:
                await self._serve(name, methods[name], context)

            return grpc.stream_stream_rpc_method_handler(serve)

        return grpc.method_handlers_generic_handler(
            SERVICE, {name: declared(name) for name in methods}
        )

    def close(self) -> None:
        """Wait for what runs in threads; what waits for one is dropped."""
        for pool in (self._answers, self._prepares):
            pool.shutdown(wait=True, cancel_futures=True)

    async def _serve(
        self, name: str, work: Callable[[_Call], Awaitable[None]], context: Any
    ) -> None:
        size = 0
        try:
            self._gate.require_secret(_authorizations(context))
            with (
                self._gate.admitted(address_of(context.peer())) as client,
                self._gate.memory() as hold,
            ):
                data = await self._read(context)
                size = len(data)
                hold(size)
                if self._record is not None:
                    record = self._record
                    await asyncio.to_thread(record.write, name, data)
                await work(_Call(client, data, context, hold))
            return
        except Exception as error:  # noqa: BLE001 - a request must not end the provider
            found = _ours(error)
            if found.code == "internal":
                _log(name, size, error)
        await context.abort(*_told(found))

    async def _describe(self, call: _Call) -> None:
        if call.data != bytes((codec.VERSION,)):
            raise errors.make("wire.format", detail="no request for a description")
        await self._write(call, codec.encode(self._versions.describe()))

    async def _answer(self, call: _Call) -> None:
        call.client.asks.take()

        def work() -> bytes:
            return codec.encode(self._versions.answer(codec.decode(Ask, call.data)))

        # Evaluation cannot be stopped; an address that does not wait for it holds its place still.
        turn, seconds = call.client.answering, self._limits.answer_seconds
        await _in_time(turn.acquire(), seconds)
        job = _in(self._answers, work)
        job.add_done_callback(lambda _: turn.release())
        await self._write(call, await _in_time(asyncio.shield(job), seconds))

    async def _prepare(self, call: _Call) -> None:
        call.client.shapes.take()
        asked = codec.decode(codec.Preparation, call.data)
        last, gone = codec.Progress("waiting", 0.0), False

        def told(stage: str, share: float) -> None:
            nonlocal last
            if gone:
                # Nobody waits for the rest of this work.
                raise errors.make("interrupted")
            last = codec.Progress(stage[:200], min(1.0, max(0.0, share)))

        begin = time.monotonic()

        async def prepare() -> bytes:
            async with call.client.preparing:
                return await _in(
                    self._prepares,
                    lambda: codec.encode(self._versions.prepare(asked.shape, asked.version, told)),
                )

        job = asyncio.create_task(prepare())
        said = None
        try:
            while not (await asyncio.wait({job}, timeout=_TELL_SECONDS))[0]:
                if time.monotonic() - begin > self._limits.prepare_seconds:
                    raise errors.make("provider.slow", seconds=int(self._limits.prepare_seconds))
                if last != said:
                    said = last
                    await self._write(call, codec.encode(said))
            await self._write(call, job.result())
        finally:
            gone = True
            job.cancel()
        if time.monotonic() - begin < _QUICK_SECONDS:
            call.client.shapes.give_back()

    async def _read(self, context: Any) -> bytes:
        idle = self._limits.idle_seconds
        try:
            data = await asyncio.wait_for(context.read(), idle)
        except TimeoutError as error:
            raise errors.make("serve.slow", seconds=int(idle)) from error
        if not isinstance(data, bytes):
            raise errors.make("serve.request", detail="it has no message")
        return data

    async def _write(self, call: _Call, data: bytes) -> None:
        call.hold(len(data))
        try:
            await asyncio.wait_for(call.context.write(data), self._limits.idle_seconds)
        except TimeoutError as error:
            raise errors.make("serve.slow", seconds=int(self._limits.idle_seconds)) from error


def _in(pool: ThreadPoolExecutor, work: Callable[[], _Found]) -> asyncio.Future[_Found]:
    return asyncio.get_running_loop().run_in_executor(pool, work)


async def _in_time(job: Awaitable[_Found], seconds: float) -> _Found:
    try:
        return await asyncio.wait_for(job, seconds)
    except TimeoutError as error:
        raise errors.make("provider.slow", seconds=int(seconds)) from error


def _authorizations(context: Any) -> list[bytes]:
    found = context.invocation_metadata() or ()
    return [
        value.encode() if isinstance(value, str) else bytes(value)
        for key, value in found
        if key == "authorization"
    ]


def _ours(error: Exception) -> errors.Error:
    if isinstance(error, errors.Error):
        return error
    # Its text could hold a value or a path of this machine; its type cannot.
    return errors.make("internal", detail=type(error).__name__)


def _told(error: errors.Error) -> tuple[grpc.StatusCode, str]:
    """An error as gRPC sends it: a status, and a bounded JSON object."""
    said = error.as_dict()
    said["error"] = str(said["error"])[:_MOST_MESSAGE_CHARACTERS]
    status = _STATUS.get(error.code)
    if status is None:
        ours = error.code.startswith(("provider.", "wire.", "serve."))
        status = grpc.StatusCode.INVALID_ARGUMENT if ours else grpc.StatusCode.INTERNAL
    return status, json.dumps({key: said[key] for key in ("ok", "code", "error")})


def _log(name: str, size: int, error: BaseException) -> None:
    """One line, with nothing of the request but its method and size."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)
        where = f" in {file}, line {trace.tb_lineno}"
    LOG.error("%s of %d bytes failed: %s%s", name, size, type(error).__name__, where)
