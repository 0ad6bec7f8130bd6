"""Terminal output of the commands: colours, JSON lines, errors, hex dumps."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import os
import sys
import uuid
from collections.abc import Iterable
from typing import Any

from louver import errors

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def coloured(stream: Any = None) -> bool:
    """Whether the stream shows colours and the environment allows them."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(stream.isatty())


def styled(text: str, style: str, stream: Any = None) -> str:
    """Text in a style if the stream shows colours, else the text itself."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if coloured(stream) else text


def say(text: str) -> None:
    """Print a message to stderr; stdout is for data only."""
    print(text, file=sys.stderr)


def note(text: str) -> None:
    """Print a notice of a statement to stderr."""
    say(f"{styled('note:', 'yellow', sys.stderr)} {text}")


def out(text: str) -> None:
    """Print data to stdout."""
    print(text)


def out_json(body: dict[str, Any]) -> None:
    """Print one answer as one line of JSON."""
    print(json.dumps(body, default=plain, ensure_ascii=False, allow_nan=False))


def fail(error: errors.Error, as_json: bool) -> int:
    """Report an error and return the exit code."""
    if as_json:
        out_json(error.as_dict())
        sys.stdout.flush()
    else:
        label = styled("louver:", "red", sys.stderr)
        say(f"{label} {error}")
    if error.code in ("interrupted", "load.interrupted"):
        return 130
    return 2 if error.code == "usage" else error.exit_code


def interrupted(as_json: bool) -> int:
    """Report Ctrl-C in one line."""
    if as_json:
        out_json(errors.make("interrupted").as_dict())
    else:
        say("\nlouver: interrupted")
    return 130


def plain(value: object) -> object:
    """A value without a JSON type as one that has a JSON type."""
    if isinstance(value, decimal.Decimal | uuid.UUID | datetime.timedelta):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


def jsonable(value: Any) -> Any:
    """A value in which NaN and infinities are text, since JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return value


def rows_json(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """Rows as lists of JSON values."""
    return [[jsonable(value) for value in row] for row in rows]


def hex_lines(data: bytes, most: int = 32, indent: str = "") -> list[str]:
    """The first bytes as a hex dump, 16 per line."""
    lines = []
    for start in range(0, min(len(data), most), 16):
        part = data[start : min(start + 16, most)]
        digits = " ".join(f"{byte:02x}" for byte in part)
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{indent}{start:04x} {digits:<47} {letters}")
    if len(data) > most:
        lines.append(f"{indent}     … {len(data) - most:,} bytes more")
    return lines


def clean(text: str) -> str:
    """Untrusted text with its control characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
