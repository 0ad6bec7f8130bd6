"""The methods of a provider: Describe, Prepare, Answer; each one message in, messages out.

All are declared as streams, which look the same on the wire, because the wait for a stream's
message can be limited here: a client that never sends or reads what it should does not hold its
slot. Only the method and size of a request are ever logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_all
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc

from louver import errors
from louver.untrusted.providers.interruption import Interruption
from louver.untrusted.providers.versions import Versions
from louver.untrusted.servers.fair_queue import Turns
from louver.untrusted.servers.provider_limits import (
    Client,
    Gate,
    address_of,
    answering,
    preparing,
)
from louver.untrusted.servers.provider_options import Limits
from louver.untrusted.servers.record import Record
from louver.wire import question_codec as codec
from louver.wire.questions import Ask

LOG = logging.getLogger("louver.serve")
SERVICE = "louver.Provider"
_Found = TypeVar("_Found")
_TELL_SECONDS = 0.5
#: A quicker preparation has found its tables prepared, and is not counted.
_QUICK_SECONDS = 0.05
_MOST_MESSAGE_CHARACTERS = 1_000
_STATUS = {
    "serve.denied": grpc.StatusCode.UNAUTHENTICATED,
    "serve.busy": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "serve.large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "provider.large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "serve.slow": grpc.StatusCode.DEADLINE_EXCEEDED,
    "serve.ending": grpc.StatusCode.UNAVAILABLE,
    "provider.slow": grpc.StatusCode.DEADLINE_EXCEEDED,
    "provider.version": grpc.StatusCode.FAILED_PRECONDITION,
    "provider.shape": grpc.StatusCode.FAILED_PRECONDITION,
    "provider.replayed": grpc.StatusCode.ALREADY_EXISTS,
}


@dataclass(frozen=True, slots=True)
class _Call:
    """One request: the client, its address, the request's bytes, and the response."""

    client: Client
    address: str
    data: bytes
    context: Any
    hold: Callable[[int], None]


class Service:
    """Everything behind the port of a provider."""

    def __init__(
        self, versions: Versions, limits: Limits, secret: str | None, address: str,
        record: Record | None = None,
    ) -> None:  # fmt: skip
        """`record` stores every request's bytes."""
        self._versions = versions
        self._limits = limits
        self._gate = Gate(limits, secret, address)
        self._record = record
        self._answers = _Work(answering(limits), "answer")
        self._prepares = _Work(preparing(), "prepare")

    def handler(self) -> Any:
        """The methods, in gRPC's form."""
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

    def end(self, *, answers: bool) -> None:
        """End preparations soon, and with `answers` all other work too."""
        self._prepares.end()
        if answers:
            self._answers.end()

    def close(self, seconds: float) -> bool:
        """Wait for the running threads; returns whether all have ended."""
        ended = [work.close(seconds) for work in (self._prepares, self._answers)]
        return all(ended)

    async def _serve(
        self, name: str, work: Callable[[_Call], Awaitable[None]], context: Any
    ) -> None:
        size, address = 0, address_of(context.peer())
        try:
            self._gate.require_secret(_authorizations(context))
            with (
                self._gate.admitted(address) as client,
                self._gate.memory(client) as hold,
            ):
                data = await self._read(context)
                size = len(data)
                hold(size)
                if self._record is not None:
                    record = self._record
                    await asyncio.to_thread(record.write, name, data)
                await work(_Call(client, address, data, context, hold))
            return
        except Exception as error:  # noqa: BLE001 - a request must not end the provider
            reported = _ours(error)
            if reported.code == "internal":
                _log(name, size, error)
        await context.abort(*_status_and_body(reported))

    async def _describe(self, call: _Call) -> None:
        if call.data != bytes((codec.VERSION,)):
            raise errors.make("wire.format", detail="not a request for a description")
        await self._write(call, codec.encode(self._versions.describe()))

    async def _answer(self, call: _Call) -> None:
        call.client.asks.take()

        def work(ended: Interruption) -> bytes:
            return codec.encode(self._versions.answer(codec.decode(Ask, call.data), ended))

        job = self._answers.run(call.address, work)
        await self._write(call, await _in_time(job, self._limits.answer_seconds))

    async def _prepare(self, call: _Call) -> None:
        call.client.shapes.take()
        preparation = codec.decode(codec.Preparation, call.data)
        ready = await asyncio.to_thread(self._known, preparation)
        if ready is not None:
            # It costs nothing, so it does not wait in the queue.
            call.client.shapes.give_back()
            await self._write(call, ready)
            return
        last = codec.Progress("waiting", 0.0)

        def progress(stage: str, share: float) -> None:
            nonlocal last
            last = codec.Progress(stage[:200], min(1.0, max(0.0, share)))

        def work(ended: Interruption) -> bytes:
            prepared = self._versions.prepare(
                preparation.shape, preparation.version, progress, ended
            )
            return codec.encode(prepared)

        begin, most = time.monotonic(), self._limits.queue_seconds + self._limits.prepare_seconds
        job = asyncio.create_task(self._prepares.run(call.address, work))
        said = None
        try:
            while not (await asyncio.wait({job}, timeout=_TELL_SECONDS))[0]:
                if time.monotonic() - begin > most:
                    raise errors.make("provider.slow", seconds=int(most))
                if last != said:
                    said = last
                    await self._write(call, codec.encode(said))
            await self._write(call, job.result())
        finally:
            job.cancel()
        if time.monotonic() - begin < _QUICK_SECONDS:
            call.client.shapes.give_back()

    def _known(self, preparation: codec.Preparation) -> bytes | None:
        prepared = self._versions.known(codec.shape_id(preparation.shape), preparation.version)
        return None if prepared is None else codec.encode(prepared)

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


class _Work:
    """Work of one kind in threads: its queue, and its interruption."""

    def __init__(self, turns: Turns, name: str) -> None:
        """With as many threads as slots."""
        self._turns = turns
        self._pool = ThreadPoolExecutor(turns.places, name)
        self._under_way: set[Interruption] = set()
        self._jobs: set[Future[bytes]] = set()
        self._over = False

    async def run(self, address: str, work: Callable[[Interruption], bytes]) -> bytes:
        """Run work in a thread when the address has a slot; it ends if its client leaves."""
        with self._ending() as ended:
            give_back = await self._turns.take(address)
            if self._over:
                give_back()
                raise errors.make("serve.ending")

            def job() -> bytes:
                ended.check()
                return work(ended)

            running = self._pool.submit(job)
            self._jobs.add(running)
            future = asyncio.wrap_future(running)

            def over(future: asyncio.Future[bytes]) -> None:
                self._jobs.discard(running)
                give_back()
                # The client may have left.
                _ = future.cancelled() or future.exception()

            future.add_done_callback(over)
            try:
                return await asyncio.shield(future)
            except errors.Error as error:
                if error.code == "interrupted":
                    raise errors.make("serve.ending") from error
                raise

    def end(self) -> None:
        """End all of it soon."""
        self._over = True
        for future in list(self._under_way):
            future.end()

    def close(self, seconds: float) -> bool:
        """Wait for the running work; returns whether all has ended."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait_for_all(list(self._jobs), seconds).not_done

    @contextmanager
    def _ending(self) -> Iterator[Interruption]:
        ended = Interruption()
        self._under_way.add(ended)
        try:
            yield ended
        finally:
            # If the work continues, its client has hung up or waited too long.
            ended.end()
            self._under_way.discard(ended)


async def _in_time(job: Awaitable[_Found], seconds: float) -> _Found:
    try:
        return await asyncio.wait_for(job, seconds)
    except TimeoutError as error:
        raise errors.make("provider.slow", seconds=int(seconds)) from error


def _authorizations(context: Any) -> list[bytes]:
    metadata = context.invocation_metadata() or ()
    return [
        value.encode() if isinstance(value, str) else bytes(value)
        for key, value in metadata
        if key == "authorization"
    ]


def _ours(error: Exception) -> errors.Error:
    if isinstance(error, errors.Error):
        return error
    # Its text could contain a value or a path of this machine; its type cannot.
    return errors.make("internal", detail=type(error).__name__)


def _status_and_body(error: errors.Error) -> tuple[grpc.StatusCode, str]:
    """An error as gRPC sends it: a status, and a size-limited JSON object."""
    said = error.as_dict()
    said["error"] = str(said["error"])[:_MOST_MESSAGE_CHARACTERS]
    status = _STATUS.get(error.code)
    if status is None:
        ours = error.code.startswith(("provider.", "wire.", "serve."))
        status = grpc.StatusCode.INVALID_ARGUMENT if ours else grpc.StatusCode.INTERNAL
    return status, json.dumps({key: said[key] for key in ("ok", "code", "error")})


def _log(name: str, size: int, error: BaseException) -> None:
    """One line, with only the method and size of the request."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        file = os.path.basename(trace.tb_frame.f_code.co_filename)
        where = f" in {file}, line {trace.tb_lineno}"
    LOG.error("%s of %d bytes failed: %s%s", name, size, type(error).__name__, where)
