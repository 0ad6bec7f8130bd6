"""Files of a warehouse over HTTP: read by ranges, written once. See spec/prune.md.

Only tables' own files are served; the catalog's and the control tables' are not.
"""

from __future__ import annotations

import json
import mmap
import re
import tempfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from louver import errors
from louver.untrusted.lake.objects import Objects, Range, translated
from louver.untrusted.servers.limits import Work, body, chunks

#: Bytes per read.
PIECE_BYTES = 1 << 20
MAX_RANGES = 65_536
MAX_RANGES_BYTES = 1 << 30
_MAX_LIST_BYTES = 8 << 20
_SPOOL_BYTES = 8 << 20
_PATH = re.compile(r"louver/t[0-9]{1,19}/(data|metadata)/[A-Za-z0-9._-]{1,200}")
_FOLDER = re.compile(r"(louver/(t[0-9]{1,19}/((data|metadata)/)?)?)?")
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")


class Files:
    """The endpoints below /v1/objects."""

    def __init__(self, objects: Objects, work: Work) -> None:
        """Serve these files."""
        self._objects = objects
        self._work = work
        # Free space must suffice for a file of this size.
        self._folder = None if "://" in objects.location else objects.location

    def routes(self) -> list[Route]:
        """The routes to mount."""
        path = "/v1/objects/{path:path}"
        return [
            Route("/v1/objects", self.listed, methods=["GET"]),
            Route("/v1/ranges", self.ranges, methods=["POST"]),
            Route(path, self.get, methods=["GET", "HEAD"]),
            Route(path, self.put, methods=["PUT"]),
            Route(path, self.delete, methods=["DELETE"]),
        ]

    async def get(self, request: Request) -> Response:
        """A file or one range of it; HEAD returns size and time only."""
        path = self._path(request.path_params["path"])
        size = await self._work.run(lambda: self._objects.size(path))
        headers = {"accept-ranges": "bytes", "content-length": str(size)}
        if request.method == "HEAD":
            modified = await self._work.run(lambda: self._objects.modified(path))
            return Response(headers=headers | {"louver-modified": f"{modified:.6f}"})
        range_header = request.headers.get("range")
        start, end = _span(range_header, size)
        headers["content-length"] = str(end - start)
        if range_header:
            headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
        pieces = [(path, at, min(PIECE_BYTES, end - at)) for at in range(start, end, PIECE_BYTES)]
        return await self._streamed(pieces, headers, 206 if range_header else 200)

    async def ranges(self, request: Request) -> Response:
        """Many ranges of many files, concatenated in one response."""
        data = await body(request, self._work, _MAX_LIST_BYTES)
        wanted = _ranges(data)
        wanted = [(self._path(path), start, length) for path, start, length in wanted]
        total = sum(length for _, _, length in wanted)
        if total > MAX_RANGES_BYTES:
            raise errors.make("serve.large", limit_bytes=MAX_RANGES_BYTES)
        pieces = [
            (path, at, min(PIECE_BYTES, start + length - at))
            for path, start, length in wanted
            for at in range(start, start + length, PIECE_BYTES)
        ]
        return await self._streamed(pieces, {"content-length": str(total)}, 200)

    async def put(self, request: Request) -> Response:
        """Write a file that does not exist yet, completely or not at all."""
        path = self._path(request.path_params["path"])
        work = self._work
        spool: IO[bytes] | None = None
        held: list[bytes] = []
        try:
            async for piece in chunks(request, work.limits.file_bytes, work.limits.idle_seconds):
                work.hold(request.scope, len(piece))
                held.append(piece)
                if request.scope["louver.held"] > _SPOOL_BYTES:
                    if spool is None:
                        spool = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                    await work.run(partial(spool.writelines, held))
                    work.let_go(request.scope)
                    held = []
            await work.run(lambda: self._create(path, spool, held))
        except OSError as error:
            raise translated(error, path, "the service") from error
        finally:
            if spool is not None:
                spool.close()
        return Response(status_code=201)

    async def delete(self, request: Request) -> Response:
        """Remove a file; a missing one is not an error."""
        path = self._path(request.path_params["path"])
        await self._work.run(lambda: self._objects.delete(path))
        return Response(status_code=204)

    async def listed(self, request: Request) -> Response:
        """The paths below a folder, as a JSON array."""
        prefix = request.query_params.get("prefix", "")
        folder = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        if not _FOLDER.fullmatch(folder):
            raise errors.make("lake.path", path=f"{prefix!r:.200}", place="the service")
        paths = await self._work.run(lambda: list(self._objects.list(folder)))
        return JSONResponse([path for path in paths if _PATH.fullmatch(path)])

    def _create(self, path: str, spool: IO[bytes] | None, held: list[bytes]) -> None:
        if spool is None:
            self._objects.create(path, b"".join(held))
            return
        spool.writelines(held)
        spool.flush()
        with mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            self._objects.create(path, whole)

    async def _streamed(
        self, pieces: list[Range], headers: dict[str, str], status: int
    ) -> StreamingResponse:
        """Read pieces in groups of limited size; the first before the response starts."""
        groups = _grouped(pieces)
        first = await self._read(groups[0]) if groups else b""

        async def parts() -> AsyncIterator[bytes]:
            yield first
            for group in groups[1:]:
                yield await self._read(group)

        kind = "application/octet-stream"
        return StreamingResponse(parts(), status, headers, media_type=kind)

    async def _read(self, group: list[Range]) -> bytes:
        return await self._work.run(lambda: b"".join(self._objects.read_many(group)))

    def _path(self, path: str) -> str:
        if not _PATH.fullmatch(path) or Path(path).name in (".", ".."):
            raise errors.make("lake.path", path=f"{path!r:.200}", place="the service")
        return path


def _grouped(pieces: list[Range]) -> list[list[Range]]:
    groups: list[list[Range]] = []
    room = 0
    for piece in pieces:
        if piece[2] > room or not groups:
            groups.append([])
            room = PIECE_BYTES
        groups[-1].append(piece)
        room -= piece[2]
    return groups


def _span(header: str | None, size: int) -> tuple[int, int]:
    """Start and end of the range in a header; the whole file without one."""
    if header is None:
        return 0, size
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        raise errors.make("serve.request", detail="a range that is not one range of bytes")
    first, last, tail = match.groups()
    if tail is not None:
        return max(0, size - int(tail)), size
    start, end = int(first), min(size, int(last) + 1 if last else size)
    if start >= size or end <= start:
        raise errors.make("lake.short", path="the file", place="the service")
    return start, end


def _ranges(data: bytes) -> list[Range]:
    try:
        listed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise errors.make("serve.request", detail="a list of ranges that is not JSON") from error
    if not isinstance(listed, list) or len(listed) > MAX_RANGES:
        raise errors.make("serve.request", detail="not a list of ranges, or too many ranges")
    ranges: list[Range] = []
    for item in listed:
        match item:
            case [str(path), int(start), int(length)] if (
                0 <= start < 1 << 60 and 0 <= length <= MAX_RANGES_BYTES
            ):
                ranges.append((path, start, length))
            case _:
                raise errors.make("serve.request", detail="a range is not [path, offset, length]")
    return ranges
