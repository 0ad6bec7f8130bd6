"""The connection to one provider: gRPC over TLS, bytes in and bytes out.

Responses are size-limited before they are stored, and decoded by `louver.wire.question_codec`; they
are not trusted any further. The trusted side verifies the answers.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

# Failures are reported by our own errors; gRPC would also write them to stderr.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

from louver import errors
from louver.untrusted.addresses import is_loopback
from louver.untrusted.engines.engine import Traffic
from louver.wire import question_codec as codec
from louver.wire.questions import Ask, Dataset, Prepared, Reply, Shape

SERVICE = "louver.Provider"
_Found = TypeVar("_Found")
_METADATA_BYTES = 16 << 10
_SHOWN_CHARACTERS = 300
#: gRPC's message for a message that is too large for the other side.
_LARGE = re.compile(r"larger than max \(\d+ vs\. (\d+)\)")
#: The prefix of the cause of a failed connection, and the meaning of causes.
_NOWHERE = "failed to connect to all addresses; last error: "
_PLAINLY = (
    ("Connection refused", "no service listens there (connection refused)"),
    ("Failed parsing HTTP/2", "what listens there is no provider"),
    ("Domain name not found", "there is no host of this name"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate is of no authority that is trusted; LOUVER_CERTIFICATES names a file of "
        "those to trust",
    ),
)
_WARNED: set[str] = set()
_WARNING = threading.Lock()
#: A provider's errors are of these kinds; other codes are not accepted.
_KINDS = ("provider", "serve", "wire")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds.

    Attributes:
        connect: for a connection.
        describe: for the description of a data set.
        prepare: for a whole preparation.
        answer: for an answer.
    """

    connect: float = 10.0
    describe: float = 30.0
    prepare: float = 1_800.0
    answer: float = 300.0


class _Line:
    """A gRPC channel with its methods; a call ends when its line is closed."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.calls = 0
        self.over = False
        self.describe = channel.unary_unary(f"/{SERVICE}/Describe")
        self.prepare = channel.unary_stream(f"/{SERVICE}/Prepare")
        self.answer = channel.unary_unary(f"/{SERVICE}/Answer")


class Channel:
    """A connection to one provider, for any number of threads. Nothing is sent before its first
    use.

    Raises:
        louver.errors.Error: `serve.plain` for a secret that would be sent over a network in the
            clear; `provider.authorities` for authorities that cannot be read.
    """

    def __init__(
        self, address: str, certificates: str | None = None, authorization: str | None = None,
        secure: bool | None = None, timeouts: Timeouts | None = None,
    ) -> None:  # fmt: skip
        """Prepare a connection.

        Args: address: ``host:port``. certificates: a PEM file with the trusted authorities; the
        system's by default. authorization: the provider's shared secret. It is sent over TLS or to
        this machine only. secure: whether to use TLS; by default not for addresses of this machine
        only. timeouts: time limits.
        """
        host = address.rpartition(":")[0].strip("[]")
        here = is_loopback(host)
        tls = not here if secure is None else secure
        if authorization is not None and not tls and not here:
            raise errors.make("serve.plain", address=address)
        if not tls:
            _warn(address, here)
        self._tls = tls
        self.address = address
        self.traffic = Traffic()
        self._timeouts = timeouts or Timeouts()
        self._metadata = (
            () if authorization is None else (("authorization", f"Bearer {authorization}"),)
        )
        self._lock = threading.Lock()
        self._open = True
        options = _options(self._timeouts)
        if tls:
            roots = None if certificates is None else _roots(certificates)
            trusted = grpc.ssl_channel_credentials(roots)
            self._dial = partial(grpc.secure_channel, address, trusted, options=options)
        else:
            self._dial = partial(grpc.insecure_channel, address, options=options)
        self._line = _Line(self._dial())

    def __repr__(self) -> str:
        return f"Channel({self.address!r})"

    def describe(self) -> Dataset:
        """Describe the provider's data set."""
        request = bytes((codec.VERSION,))
        data = self._single("describe", request, self._timeouts.describe)
        return self._decoded(partial(codec.decode, Dataset), data)

    def prepare(
        self, shape: Shape, version: bytes, hear: Callable[[str, float], None] | None = None
    ) -> Prepared:
        """Prepare a shape on one version of the data; `hear` receives the progress."""
        request = codec.encode(codec.Preparation(version, shape))
        prepared: Prepared | None = None
        seconds = self._timeouts.prepare
        with self._under_way(len(request), seconds) as line:
            call = line.prepare(request, timeout=seconds, metadata=self._metadata)
            try:
                for data in call:
                    self._count(len(data), 0, 0)
                    message = self._decoded(codec.decode_prepare, data)
                    if prepared is not None:
                        raise self._strange("something after the end of a preparation")
                    if isinstance(message, Prepared):
                        prepared = message
                    elif hear is not None:
                        hear("".join(filter(str.isprintable, message.stage)), message.share)
            finally:
                # Ends a stream that was abandoned.
                call.cancel()
        if prepared is None:
            raise self._strange("a preparation without an end")
        if prepared.version != version or prepared.shape_id != codec.shape_id(shape):
            raise self._strange("another shape's preparation")
        return prepared

    def answer(self, ask: Ask) -> Reply:
        """Have the provider evaluate shares."""
        data = self._single("answer", codec.encode(ask), self._timeouts.answer)
        return self._decoded(partial(codec.decode, Reply), data)

    def interrupt(self) -> None:
        """Cancel the current call; may be called from another thread."""
        with self._lock:
            ended = self._line
            if not ended.calls or ended.over:
                return
            ended.over = True
            self._line = _Line(self._dial())
        ended.channel.close()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        with self._lock:
            self._open = False
            self._line.over = True
        self._line.channel.close()

    def _single(self, name: str, request: bytes, seconds: float) -> bytes:
        with self._under_way(len(request), seconds) as line:
            method = getattr(line, name)
            # A blocking call in its own thread; one that can be cancelled separately would pass
            # through two more threads.
            data: bytes | None = method(request, timeout=seconds, metadata=self._metadata)
        if data is None:
            raise self._strange("nothing")
        self._count(len(data), 0, 0)
        return data

    @contextmanager
    def _under_way(self, size: int, seconds: float) -> Iterator[_Line]:
        """A call that ends with its line, and whose failures become errors."""
        with self._lock:
            if not self._open:
                raise errors.make("database.closed")
            line = self._line
            line.calls += 1
        self._count(0, size, 1)
        try:
            yield line
        except grpc.RpcError as error:
            raise self._failure(error, line.over, seconds) from error
        except ValueError as error:
            # gRPC's error for a channel that was closed meanwhile.
            if not line.over:
                raise
            raise self._ended() from error
        finally:
            with self._lock:
                line.calls -= 1

    def _ended(self) -> errors.Error:
        return errors.make("interrupted" if self._open else "database.closed")

    def _failure(self, error: Any, cancelled: bool, seconds: float) -> errors.Error:
        """The failure as one of our errors: the provider's own if its code is known."""
        status, text = error.code(), error.details() or ""
        if cancelled:
            return errors.make("interrupted")
        if status == grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._unreachable(f"no answer within {seconds:g} seconds")
        body = _error_body(text)
        if body is not None:
            return self._remote(body)
        shown = "".join(c for c in text[:_SHOWN_CHARACTERS] if c.isprintable())
        if status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return self._unreachable(self._plainly(shown) or status.name)
        large = _LARGE.search(shown)
        if status == grpc.StatusCode.RESOURCE_EXHAUSTED and large:
            return errors.make("serve.large", limit_bytes=large[1])
        return self._strange(f"{status.name} {shown}".strip())

    def _plainly(self, shown: str) -> str:
        """The message of gRPC about a failed connection, in terms of the given address."""
        if not self._tls and "Socket closed" in shown:
            return f"{shown} (perhaps it speaks TLS: write ?tls=on)"
        meant = (words for match, words in _PLAINLY if match in shown)
        return next(meant, shown.removeprefix(_NOWHERE))

    def _remote(self, details: dict[str, Any]) -> errors.Error:
        code, message = details.get("code"), details.get("error")
        if code == "serve.denied":
            return errors.make(code, place=self.address)
        row = errors.ERRORS.get(code) if isinstance(code, str) else None
        if row is None or row.code.split(".")[0] not in _KINDS:
            # The message says that it failed, but not how.
            return self._strange("it failed")
        words = (
            "".join(filter(str.isprintable, message[:1_000])) if isinstance(message, str) else ""
        )
        fix = row.fix if "{" not in row.fix else ""
        return row.cls(
            words or errors.make(row.code).message, code=row.code, cause=row.cause, fix=fix
        )

    def _decoded(self, decode: Callable[[bytes], _Found], data: bytes) -> _Found:
        try:
            return decode(data)
        except errors.Error as error:
            raise self._strange(error.message) from error

    def _unreachable(self, detail: str) -> errors.Error:
        return errors.make("provider.unreachable", place=self.address, detail=detail)

    def _strange(self, detail: str) -> errors.Error:
        return errors.make("provider.reply", place=self.address, detail=detail)

    def _count(self, into: int, out: int, statements: int) -> None:
        with self._lock:
            self.traffic.statements += statements
            self.traffic.bytes_in += into
            self.traffic.bytes_out += out


def _options(timeouts: Timeouts) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", codec.MAX_REPLY_BYTES),
        ("grpc.max_send_message_length", codec.MAX_ASK_BYTES),
        ("grpc.max_metadata_size", _METADATA_BYTES),
        # Each channel has its own connection, which ends with it.
        ("grpc.use_local_subchannel_pool", 1),
        # A proxy, a service configuration or a retry would be decided by a third party.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", 0),
        # The first is the time limit for a connection; a machine that returns is found soon.
        ("grpc.min_reconnect_backoff_ms", int(timeouts.connect * 1_000)),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        # A machine that is gone is detected while a call waits for it.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def _roots(path: str) -> bytes:
    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise errors.make("provider.authorities", path=path, detail=error.strerror or "") from error
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise errors.make("provider.authorities", path=path, detail="no certificates in PEM form")
    return data


def _error_body(text: str) -> dict[str, Any] | None:
    """The error sent by a provider of ours, or None."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and body.get("ok") is False else None


def _warn(address: str, here: bool) -> None:
    """Warn once per address that everyone on the network path can read the traffic."""
    with _WARNING:
        if address in _WARNED:
            return
        _WARNED.add(address)
    if here:
        text = f"{address} is asked without TLS: it is an address of this machine."
    else:
        text = f"{address} is used without TLS: an observer of all shares knows the questions."
    errors.warn(text)
