"""`louver inspect --share FILE`: what the messages of one provider reveal.

A file is a request recorded by `louver serve provider --record DIR`, or a single share. A share
reveals only its header, which follows from the shape of the question: scheme, width of the domain,
party, length. Its body is compared with shares of random secrets under the same header.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from louver import errors
from louver.trusted.vault.schemes import fss
from louver.untrusted.providers.native import share_header
from louver.wire.question_codec import Preparation, decode
from louver.wire.questions import Ask

_SHOWN_BYTES = 16
_DESCRIBE = b"\1"
_HEADER_BYTES = 8
_OTHERS = 100
_MOST_BYTES = 128 << 20
_REVEALS = (
    "A share reveals its length and header, both determined by the public shape. Its body is "
    "pseudorandom for every secret; tests/providers/test_privacy.py tries to distinguish secrets "
    "by it."
)


def files(names: Sequence[str]) -> list[Path]:
    """The named files, and the files of the named folders."""
    paths: list[Path] = []
    for path in map(Path, names):
        inside = sorted(filter(Path.is_file, path.iterdir())) if path.is_dir() else [path]
        if not inside:
            raise errors.make("usage", detail=f"{path} contains no recorded request")
        paths += inside
    return paths


def inspected(path: Path) -> dict[str, Any]:
    """The content of one file as plain data."""
    data = read(path)
    message = _message(data)
    if data == _DESCRIBE:
        return {"file": path.name, "kind": "describe"}
    if isinstance(message, Preparation):
        return {"file": path.name, "kind": "shape", "public": statement(message)}
    shares = message.shares if isinstance(message, Ask) else (data,)
    return {
        "file": path.name,
        "kind": "shares" if isinstance(message, Ask) else "share",
        "bytes": len(data),
        "shares": [_share(share, path) for share in shares],
    }


def lines(contents: Sequence[dict[str, Any]]) -> list[str]:
    """The contents of several files as text."""
    text_lines = [line for content in contents for line in _lines(content)]
    if any("shares" in content for content in contents):
        text_lines.append(_REVEALS)
    return text_lines


def _lines(content: dict[str, Any]) -> list[str]:
    if content["kind"] == "describe":
        return ["a request for the description of the data"]
    if content["kind"] == "shape":
        return [f"the public shape of a question: {content['public']}"]
    shares = content["shares"]
    text_lines = [f"{content['file']}: {len(shares)} share(s), {content['bytes']:,} bytes in all"]
    for share in shares:
        text_lines += [
            f"  {share['scheme']} share of party {share['party']}, domain of {share['bits']} bits, "
            f"{share['bytes']:,} bytes: {share['begins']}…"
        ]
        if "deviations" in share:
            text_lines.append(
                f"    {share['ones']:,} of its bits are 1; of {share['compared_with']} shares of "
                f"fresh random secrets, {share['mean_ones']:,} on average "
                f"({share['deviations']:+.1f} standard deviations)"
            )
    return text_lines


def views(paths: Sequence[Path]) -> list[str]:
    """A summary of what a provider saw of one question, from its recorded requests."""
    text_lines: list[str] = []
    for path in paths:
        message = _message(read(path))
        if isinstance(message, Preparation):
            text_lines.append(f"shape: {statement(message)}")
        elif isinstance(message, Ask):
            for number, share in enumerate(message.shares[:3], 1):
                body = share[_HEADER_BYTES : _HEADER_BYTES + _SHOWN_BYTES].hex()
                text_lines.append(
                    f"round {message.step + 1}, share {number} of {len(message.shares)}, "
                    f"{len(share):,} bytes: {body}…"
                )
    return text_lines


def statement(message: Preparation) -> str:
    """The public part of a question as SQL."""
    from louver.trusted.planner.private import describe

    return describe.statement(message.shape)


def read(path: Path) -> bytes:
    """The bytes of a file that is not too large to be a message."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        detail = f"{path} cannot be read: {error.strerror}"
        raise errors.make("usage", detail=detail) from None
    if not data or len(data) > _MOST_BYTES:
        raise errors.make("usage", detail=f"{path} is empty or too large to be a share")
    return data


def _message(data: bytes) -> Preparation | Ask | None:
    with suppress(errors.Error):
        return decode(Ask, data)
    with suppress(errors.Error):
        return decode(Preparation, data)
    return None


def _share(share: bytes, path: Path) -> dict[str, Any]:
    try:
        header = share_header(share)
    except ValueError as error:
        detail = f"{path} is neither a request to a provider nor a share: {error}"
        raise errors.make("usage", detail=detail) from None
    body = share[_HEADER_BYTES:]
    others = [other[_HEADER_BYTES:] for _ in range(_OTHERS) for other in _like(header)]
    counts = [_ones(other) for other in others if len(other) == len(body)]
    description = {
        "scheme": header["scheme"],
        "group": header["group"],
        "bits": header["bits"],
        "party": header["party"],
        "bytes": len(share),
        "begins": body[:_SHOWN_BYTES].hex(),
        "ones": _ones(body),
    }
    if counts:
        mean, spread = statistics.fmean(counts), statistics.pstdev(counts)
        description["compared_with"] = len(counts)
        description["mean_ones"] = round(mean, 1)
        distance = description["ones"] - mean
        description["deviations"] = round(distance / spread, 2) if spread else 0.0
    return description


def _like(header: dict[str, Any]) -> list[bytes]:
    """The shares of one random secret under the same header, for all providers."""
    bits, parties = int(header["bits"]), int(header["parties"])
    at = secrets.randbelow(1 << bits)
    kind = (header["scheme"], header["group"])
    if kind == ("point", "tag"):
        return fss.Point(bits, at, 2, "tree").shares()
    if kind == ("point", "wide"):
        return fss.PointSum(bits, at).shares()
    if kind == ("interval", "wide"):
        return fss.Sum(bits, *sorted((at, secrets.randbelow(1 << bits)))).shares()
    if kind == ("less", "wide"):
        return fss.Below(bits, at).shares()
    return fss.Point(bits, at, parties, "owf").shares() if header["scheme"] == "owf" else []


def _ones(data: bytes) -> int:
    return int.from_bytes(data, "big").bit_count()
