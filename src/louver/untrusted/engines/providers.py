"""The way to one provider: gRPC over TLS, bytes in and bytes out.

What comes back is bounded before it is kept and decoded by `louver.wire.question_codec`; it is
believed no further than that. Whether an answer is right is found out where the secret is.
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

# What goes wrong is said in errors of ours; gRPC would write it to stderr as well.
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
#: How gRPC itself says that a message is too large for the other side.
_LARGE = re.compile(r"larger than max \(\d+ vs\. (\d+)\)")
#: What stands before the cause of a failed connection, and what causes mean.
_NOWHERE = "failed to connect to all addresses; last error: "
_PLAINLY = (
    ("Connection refused", "nobody listens there (connection refused)"),
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
#: A provider's errors are of these kinds; another code is not believed.
_KINDS = ("provider", "serve", "wire")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds.

    Attributes:
        connect: for a connection.
        describe: for the description of a data set.
        prepare: for a preparation from its beginning to its end.
        answer: for an answer.
    """

    connect: float = 10.0
    describe: float = 30.0
    prepare: float = 1_800.0
    answer: float = 300.0


class _Line:
    """A channel of gRPC with its methods; a call ends when its line is closed."""

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.calls = 0
        self.over = False
        self.describe = channel.unary_unary(f"/{SERVICE}/Describe")
        self.prepare = channel.unary_stream(f"/{SERVICE}/Prepare")
        self.answer = channel.unary_unary(f"/{SERVICE}/Answer")


class Channel:
    """A connection to one provider, for any number of threads. Nothing is sent before it is used.

    Raises:
        louver.errors.Error: `serve.plain` for a secret that would go over a network in the clear;
            `provider.authorities` for authorities that cannot be read.
    """

    def __init__(
        self, address: str, certificates: str | None = None, authorization: str | None = None,
        secure: bool | None = None, timeouts: Timeouts | None = None,
    ) -> None:  # fmt: skip
        """What it takes to reach a provider.

        Args:
            address: ``host:port``.
            certificates: a PEM file with the authorities to trust; the system's by default.
            authorization: the provider's shared secret. It goes over TLS or to this machine only.
            secure: TLS or not; by default not for addresses of this machine only.
            timeouts: how long to wait.
        """
        host = address.rpartition(":")[0].strip("[]")
        here = is_loopback(host)
        tls = not here if secure is None else secure
        if authorization is not None and not tls and not here:
            raise errors.make("serve.plain", address=address)
        if not tls:
            _warn(address, here)
        self._tls = tls
        self.place = address
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
        return f"Channel({self.place!r})"

    def describe(self) -> Dataset:
        """What the provider holds."""
        request = bytes((codec.VERSION,))
        data = self._single("describe", request, self._timeouts.describe)
        return self._decoded(partial(codec.decode, Dataset), data)

    def prepare(
        self, shape: Shape, version: bytes, told: Callable[[str, float], None] | None = None
    ) -> Prepared:
        """Have a shape prepared on one version; `told` hears how far it has come."""
        request = codec.encode(codec.Preparation(version, shape))
        found: Prepared | None = None
        seconds = self._timeouts.prepare
        with self._under_way(len(request), seconds) as line:
            call = line.prepare(request, timeout=seconds, metadata=self._metadata)
            try:
                for data in call:
                    self._count(len(data), 0, 0)
                    message = self._decoded(codec.decode_prepare, data)
                    if found is not None:
                        raise self._strange("something after the end of a preparation")
                    if isinstance(message, Prepared):
                        found = message
                    elif told is not None:
                        told("".join(filter(str.isprintable, message.stage)), message.share)
            finally:
                # Ends a stream that was left before its end.
                call.cancel()
        if found is None:
            raise self._strange("a preparation without an end")
        if found.version != version or found.shape_id != codec.shape_id(shape):
            raise self._strange("another shape's preparation")
        return found

    def answer(self, ask: Ask) -> Reply:
        """Have shares evaluated."""
        data = self._single("answer", codec.encode(ask), self._timeouts.answer)
        return self._decoded(partial(codec.decode, Reply), data)

    def interrupt(self) -> None:
        """Cancel what is under way; may be called from another thread."""
        with self._lock:
            ended = self._line
            if not ended.calls or ended.over:
                return
            ended.over = True
            self._line = _Line(self._dial())
        ended.channel.close()

    def close(self) -> None:
        """Hang up; may be called twice."""
        with self._lock:
            self._open = False
            self._line.over = True
        self._line.channel.close()

    def _single(self, name: str, request: bytes, seconds: float) -> bytes:
        with self._under_way(len(request), seconds) as line:
            method = getattr(line, name)
            # A call that is waited for in its own thread; one that could be cancelled by itself
            # goes through two threads more.
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
            # gRPC's word for a channel that was closed meanwhile.
            if not line.over:
                raise
            raise self._ended() from error
        finally:
            with self._lock:
                line.calls -= 1

    def _ended(self) -> errors.Error:
        return errors.make("interrupted" if self._open else "database.closed")

    def _failure(self, error: Any, cancelled: bool, seconds: float) -> errors.Error:
        """The failure as one of our errors: the provider's own if we know its code."""
        status, text = error.code(), error.details() or ""
        if cancelled:
            return errors.make("interrupted")
        if status == grpc.StatusCode.DEADLINE_EXCEEDED:
            return self._unreachable(f"no answer within {seconds:g} seconds")
        found = _told(text)
        if found is not None:
            return self._remote(found)
        shown = "".join(c for c in text[:_SHOWN_CHARACTERS] if c.isprintable())
        if status in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return self._unreachable(self._plainly(shown) or status.name)
        large = _LARGE.search(shown)
        if status == grpc.StatusCode.RESOURCE_EXHAUSTED and large:
            return errors.make("serve.large", limit_bytes=large[1])
        return self._strange(f"{status.name} {shown}".strip())

    def _plainly(self, shown: str) -> str:
        """What gRPC says of a failed connection, in words for who wrote the address."""
        if not self._tls and "Socket closed" in shown:
            return f"{shown} (perhaps it speaks TLS: write ?tls=on)"
        meant = (words for found, words in _PLAINLY if found in shown)
        return next(meant, shown.removeprefix(_NOWHERE))

    def _remote(self, found: dict[str, Any]) -> errors.Error:
        code, told = found.get("code"), found.get("error")
        if code == "serve.denied":
            return errors.make(code, place=self.place)
        row = errors.ERRORS.get(code) if isinstance(code, str) else None
        if row is None or row.code.split(".")[0] not in _KINDS:
            # It says that it failed, and not how.
            return self._strange("it failed")
        words = "".join(filter(str.isprintable, told[:1_000])) if isinstance(told, str) else ""
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
        return errors.make("provider.unreachable", place=self.place, detail=detail)

    def _strange(self, detail: str) -> errors.Error:
        return errors.make("provider.reply", place=self.place, detail=detail)

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
        # A proxy, a service configuration or a retry would be somebody else's decision.
        ("grpc.enable_http_proxy", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.enable_retries", 0),
        # The first is how long a connection may take; who comes back is found soon.
        ("grpc.min_reconnect_backoff_ms", int(timeouts.connect * 1_000)),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        # A machine that is gone is noticed while an answer is waited for.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def _roots(path: str) -> bytes:
    try:
        found = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise errors.make("provider.authorities", path=path, detail=error.strerror or "") from error
    if b"-----BEGIN CERTIFICATE-----" not in found:
        raise errors.make("provider.authorities", path=path, detail="no certificates in PEM form")
    return found


def _told(text: str) -> dict[str, Any] | None:
    """The error that a provider of ours sends, or None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("ok") is False else None


def _warn(address: str, here: bool) -> None:
    """Say once of each address that everyone on the way reads along."""
    with _WARNING:
        if address in _WARNED:
            return
        _WARNED.add(address)
    if here:
        text = f"{address} is asked without TLS: it is an address of this machine."
    else:
        text = f"{address} is asked without TLS: whoever reads all shares on the way knows them."
    errors.warn(text)
