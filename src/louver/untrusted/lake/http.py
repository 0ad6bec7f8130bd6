"""A warehouse behind `louver serve prune`: its files, tables, plans and control tables over HTTP.

Responses are size-limited before they are stored, and are trusted no more than a disk: the client
checks signatures and decrypts as with a local warehouse.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, cast
from urllib.parse import quote, urlsplit

import requests
from requests.adapters import HTTPAdapter

from louver import errors
from louver.untrusted.addresses import is_loopback
from louver.untrusted.engines.engine import Traffic
from louver.untrusted.lake.objects import Buffer, Range, parts_of, side_by_side
from louver.untrusted.lake.stores import CACHE_BYTES, ByteCache
from louver.wire import control as wire
from louver.wire import prune
from louver.wire.control import Batch
from louver.wire.messages import Count, Rows
from louver.wire.prune import FilePlan, Where

CONNECT_SECONDS = 10
READ_SECONDS = 300
#: Idle connections are not reused after this time; a service waits longer.
FRESH_SECONDS = 4.0
MAX_JSON_BYTES = 256 << 20
MAX_CONTROL_BYTES = 1 << 30
#: Most ranges of one request, and their bytes.
GROUP_RANGES = 4_096
GROUP_BYTES = 16 << 20
_PIECE_BYTES = 1 << 20
_POOL = 32
_BINARY = {"Content-Type": "application/octet-stream"}


class Service:
    """One service, and its traffic."""

    def __init__(
        self, url: str, authorization: str | None = None, certificates: str | None = None
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: ``http://host:port`` or ``https://host:port``, optionally prefixed by ``lake+``.
            authorization: the service's shared secret. It is sent over TLS or to this machine only.
            certificates: a PEM file with the trusted authorities; the system's by default.
        """
        self.url = url.removeprefix("lake+").rstrip("/")
        split = urlsplit(self.url)
        if split.scheme not in ("http", "https") or not split.hostname or split.username:
            raise errors.make("url.format", detail="write lake+http://host:port")
        if split.path or split.query or split.fragment:
            raise errors.make("url.format", detail="nothing may follow the port in lake+http://")
        plain = split.scheme == "http" and not is_loopback(split.hostname)
        if authorization is not None and plain:
            raise errors.make("serve.plain", address=self.url)
        self.address = f"lake+{self.url}"
        self.traffic = Traffic()
        self._authorization = authorization
        self._certificates = certificates
        self._lock = threading.Lock()
        self._session = self.session()

    def __repr__(self) -> str:
        return f"Service({self.url!r})"

    def session(self) -> requests.Session:
        """A fresh session with the secret, timeouts, and no settings from the environment."""
        session = requests.Session()
        # A .netrc would replace the secret, and a proxy would see the requests.
        session.trust_env = False
        session.verify = self._certificates or True
        if self._authorization is not None:
            session.headers["Authorization"] = f"Bearer {self._authorization}"
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patient(pool_maxsize=_POOL))
        return session

    def ask(
        self, method: str, path: str, limit_bytes: int, data: Buffer | None = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:  # fmt: skip
        """Send a request; returns its whole response, at most `limit_bytes`."""
        with self._answer(method, path, data, headers) as answer:
            chunks: list[bytes] = []
            room = limit_bytes
            for piece in answer.iter_content(_PIECE_BYTES):
                room -= len(piece)
                if room < 0:
                    raise self._strange("it is longer than allowed")
                chunks.append(piece)
        self._count(sum(map(len, chunks)), 0 if data is None else memoryview(data).nbytes)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def json(self, method: str, path: str) -> Any:
        """Send a request with a JSON response."""
        try:
            return json.loads(self.ask(method, path, MAX_JSON_BYTES))
        except (ValueError, RecursionError) as error:
            raise self._strange("it is not JSON") from error

    def head(self, path: str) -> requests.structures.CaseInsensitiveDict[str]:
        """The headers only."""
        with self._answer("HEAD", path, None, None) as answer:
            self._count(0, 0)
            return answer.headers

    def close(self) -> None:
        """Close all connections."""
        self._session.close()

    @contextmanager
    def _answer(
        self, method: str, path: str, data: Buffer | None, headers: dict[str, str] | None
    ) -> Iterator[requests.Response]:
        headers = {"Accept-Encoding": "identity"} | (headers or {})
        # Mapped files and other buffers are sent without a copy.
        body = cast(Any, data)
        try:
            answer = self._session.request(
                method, self.url + path, data=body, headers=headers, stream=True,
                allow_redirects=False,
            )  # fmt: skip
            with closing(answer):
                if not 200 <= answer.status_code < 300:
                    raise self._failure(method, answer)
                yield answer
        except (requests.RequestException, OSError) as error:
            # Its text contains the whole address; its type says what went wrong.
            detail = type(error).__name__
            raise errors.make("serve.unreachable", place=self.address, detail=detail) from error

    def _failure(self, method: str, answer: requests.Response) -> errors.Error:
        """The service's error as one of ours: its code if it is known, and our own text."""
        body: Any = None
        if method != "HEAD":
            raw = answer.raw.read(65_536, decode_content=True)
            try:
                body = json.loads(raw)
            except (ValueError, RecursionError):
                body = None
        code = body.get("code") if isinstance(body, dict) else None
        if method == "HEAD" and answer.status_code == 404:
            code = "lake.missing"
        if code == "serve.denied" or answer.status_code == 401:
            return errors.make("serve.denied", place=self.address)
        row = errors.ERRORS.get(code) if isinstance(code, str) else None
        if row is None or row.code.split(".")[0] not in ("lake", "serve", "wire", "disk"):
            return self._strange(f"status {answer.status_code}")
        detail = body.get("error") if isinstance(body, dict) else None
        detail = detail.get("message") if isinstance(detail, dict) else detail
        words = (
            "".join(c for c in detail[:500] if c.isprintable()) if isinstance(detail, str) else ""
        )
        message = words or errors.make(row.code, place=self.address).message
        return row.cls(message, code=row.code, cause=row.cause, fix=row.fix)

    def _strange(self, detail: str) -> errors.Error:
        return errors.make("serve.reply", place=self.address, detail=detail)

    def _count(self, into: int, out: int) -> None:
        with self._lock:
            self.traffic.statements += 1
            self.traffic.bytes_in += into
            self.traffic.bytes_out += out


class _Patient(HTTPAdapter):
    """Every request, including PyIceberg's, has a timeout and uses a connection that was recently
    active: a service closes idle connections, possibly just when a request is sent.
    """

    _fresh_until = 0.0

    def send(self, *given: Any, **named: Any) -> requests.Response:
        if time.monotonic() > self._fresh_until:
            # Current requests keep their connections.
            self.poolmanager.clear()
            self._fresh_until = time.monotonic() + FRESH_SECONDS
        named["timeout"] = named.get("timeout") or (CONNECT_SECONDS, READ_SECONDS)
        return super().send(*given, **named)


class HttpObjects:
    """The files of a warehouse behind a service."""

    def __init__(self, service: Service, cache_bytes: int = CACHE_BYTES) -> None:
        """`cache_bytes` is the limit of `map`'s cache."""
        self._service = service
        self._cache = ByteCache(cache_bytes)
        self.location = service.address
        self.traffic = service.traffic

    def size(self, path: str) -> int:
        """Length in bytes."""
        text = self._headers(path).get("content-length", "")
        if not text.isdecimal() or len(text) > 18:
            raise self._short(path)
        return int(text)

    def modified(self, path: str) -> float:
        """When a file was written, in seconds since 1970."""
        try:
            return float(self._headers(path).get("louver-modified", "0"))
        except ValueError as error:
            raise self._short(path) from error

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        if not length:
            return b"" if offset <= self.size(path) else self._raise(path)
        span = {"Range": f"bytes={offset}-{offset + length - 1}"}
        with _at(path, self.location):
            data = self._service.ask("GET", self._url(path), length, headers=span)
        if len(data) != length:
            raise self._short(path)
        return data

    def read_many(self, ranges: Sequence[Range]) -> list[bytes]:
        """Several ranges, many per request and several requests in parallel."""
        groups: list[list[Range]] = []
        room = 0
        for each in ranges:
            parts_of(each[0], self.location)
            if not groups or each[2] > room or len(groups[-1]) >= GROUP_RANGES:
                groups.append([])
                room = GROUP_BYTES
            groups[-1].append(each)
            room -= each[2]
        return [piece for pieces in side_by_side(self._group, groups) for piece in pieces]

    def map(self, path: str) -> Buffer:
        """The whole file; the most recently used ones are cached, up to a limit."""
        return self._cache.get(path, lambda: self._whole(path))

    def create(self, path: str, data: Buffer) -> None:
        """Write a file that does not exist yet."""
        with _at(path, self.location):
            self._service.ask("PUT", self._url(path), 65_536, memoryview(data).cast("B"), _BINARY)

    def delete(self, path: str) -> None:
        """Remove a file."""
        self._cache.drop(path)
        self._service.ask("DELETE", self._url(path), 65_536)

    def _group(self, group: Sequence[Range]) -> list[bytes]:
        total = sum(length for _, _, length in group)
        payload = json.dumps([list(each) for each in group]).encode()
        data = self._service.ask("POST", "/v1/ranges", total, payload)
        if len(data) != total:
            raise self._short(group[0][0])
        ranges, at = [], 0
        for _, _, length in group:
            ranges.append(data[at : at + length])
            at += length
        return ranges

    def list(self, prefix: str) -> Iterator[str]:
        """The paths of all files below a folder, sorted."""
        paths = self._service.json("GET", f"/v1/objects?prefix={quote(prefix, safe='')}")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise errors.make("serve.reply", place=self.location, detail="not a list of paths")
        for path in sorted(paths):
            parts_of(path, self.location)
            yield path

    def _whole(self, path: str) -> bytes:
        with _at(path, self.location):
            return self._service.ask("GET", self._url(path), MAX_CONTROL_BYTES)

    def _headers(self, path: str) -> requests.structures.CaseInsensitiveDict[str]:
        with _at(path, self.location):
            return self._service.head(self._url(path))

    def _url(self, path: str) -> str:
        return "/v1/objects/" + "/".join(map(quote, parts_of(path, self.location)))

    def _short(self, path: str) -> errors.Error:
        return errors.make("lake.short", path=path, place=self.location)

    def _raise(self, path: str) -> bytes:
        raise self._short(path)


class RemotePruner:
    """Plans computed by the service."""

    def __init__(self, service: Service) -> None:
        """Use this service."""
        self._service = service

    def plan(self, table: str, snapshot_id: int, where: Where) -> FilePlan:
        """The files of a snapshot of `table` (its name, ``t<id>``) that match a condition."""
        path = f"/v1/namespaces/louver/tables/{quote(table, safe='')}/plan"
        data = self._service.ask(
            "POST", f"{path}?snapshot-id={snapshot_id}", prune.MAX_PLAN_BYTES,
            prune.encode(where), _BINARY,
        )  # fmt: skip
        reply = FilePlan.decode(data)
        if reply.snapshot_id != snapshot_id:
            raise errors.make("serve.reply", place=self._service.address, detail="another snapshot")
        return reply


class RemoteControl:
    """Control tables behind a service, used by `LakeEngine`."""

    #: Other clients may have created the tables at any time.
    created = False

    def __init__(self, service: Service) -> None:
        """Use this service."""
        self._service = service
        self.address = service.address
        self._open = True

    def perform(self, batch: Batch) -> list[Rows | Count]:
        """Run a batch in one request."""
        if not self._open:
            raise errors.make("database.closed")
        ask: Callable[..., bytes] = self._service.ask
        data = ask("POST", "/v1/control", MAX_CONTROL_BYTES, batch.encode(), _BINARY)
        return wire.decode_answers(data, len(batch.statements))

    def interrupt(self) -> None:
        """Nothing to do: requests are short."""

    def close(self) -> None:
        """Close the connections."""
        self._open = False
        self._service.close()


@contextmanager
def _at(path: str, base: str) -> Iterator[None]:
    """Errors of one file name it as the client does."""
    try:
        yield
    except errors.Error as error:
        if error.code in ("lake.missing", "lake.exists", "lake.short"):
            raise errors.make(error.code, path=path, place=base) from error
        raise
