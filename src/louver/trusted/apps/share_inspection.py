"""`louver inspect --share FILE`: what somebody who holds one provider's messages makes of them.

A file is a request as `louver serve provider --record DIR` keeps it, or a bare share. All that
can be read of a share is its form, which follows from the question's shape: scheme, width of the
domain, party, length. Its body is compared with shares of random secrets in the same form.
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
    "What a share reveals: its length and form, which the public shape fixes. The rest is as "
    "random, whatever the secret is; tests/providers/test_privacy.py tries to tell secrets apart "
    "by it."
)


def files(names: Sequence[str]) -> list[Path]:
    """The files that are named, and those of the folders that are."""
    found: list[Path] = []
    for path in map(Path, names):
        inside = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
        if not inside:
            raise errors.make("usage", detail=f"{path} holds no request of a client yet")
        found += inside
    return found


def inspected(path: Path) -> dict[str, Any]:
    """What one file says, as plain data."""
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
        "shares": [_share(one, path) for one in shares],
    }


def lines(told: Sequence[dict[str, Any]]) -> list[str]:
    """What several files say, for people."""
    found = [line for one in told for line in _lines(one)]
    if any("shares" in one for one in told):
        found.append(_REVEALS)
    return found


def _lines(told: dict[str, Any]) -> list[str]:
    if told["kind"] == "describe":
        return ["somebody asked what the provider holds"]
    if told["kind"] == "shape":
        return [f"the public shape of a question: {told['public']}"]
    found = [f"{told['file']}: {len(told['shares'])} share(s), {told['bytes']:,} bytes in all"]
    for one in told["shares"]:
        found += [
            f"  a {one['scheme']} share of party {one['party']}, domain of {one['bits']} bits, "
            f"{one['bytes']:,} bytes: {one['begins']}…"
        ]
        if "deviations" in one:
            found.append(
                f"    {one['ones']:,} of its bits are 1; of {one['compared_with']} shares of "
                f"random secrets, made just now, {one['mean_ones']:,} in the mean "
                f"({one['deviations']:+.1f} standard deviations)"
            )
    return found


def views(paths: Sequence[Path]) -> list[str]:
    """What a provider saw of one question, from the requests that it recorded, in short."""
    found: list[str] = []
    for path in paths:
        message = _message(read(path))
        if isinstance(message, Preparation):
            found.append(f"shape: {statement(message)}")
        elif isinstance(message, Ask):
            for number, share in enumerate(message.shares[:3], 1):
                body = share[_HEADER_BYTES : _HEADER_BYTES + _SHOWN_BYTES].hex()
                found.append(
                    f"round {message.step + 1}, share {number} of {len(message.shares)}, "
                    f"{len(share):,} bytes: {body}…"
                )
    return found


def statement(message: Preparation) -> str:
    """The public part of a question in words of SQL."""
    from louver.trusted.executor.private.wording import statement as told

    return told(message.shape)


def read(path: Path) -> bytes:
    """A file, if it is not too large to be a message."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        detail = f"{path} cannot be read: {error.strerror}"
        raise errors.make("usage", detail=detail) from None
    if not data or len(data) > _MOST_BYTES:
        raise errors.make("usage", detail=f"{path} is empty or too long to be a share")
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
        detail = f"{path} holds neither a request to a provider nor a share: {error}"
        raise errors.make("usage", detail=detail) from None
    body = share[_HEADER_BYTES:]
    others = [one[_HEADER_BYTES:] for _ in range(_OTHERS) for one in _like(header)]
    counts = [_ones(one) for one in others if len(one) == len(body)]
    told = {
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
        told["compared_with"] = len(counts)
        told["mean_ones"] = round(mean, 1)
        told["deviations"] = round((told["ones"] - mean) / spread, 2) if spread else 0.0
    return told


def _like(header: dict[str, Any]) -> list[bytes]:
    """The shares of one random secret in the same form, for all providers."""
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
