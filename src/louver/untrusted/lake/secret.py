"""The secret shared by a pruning service and its clients, read from a file."""

from __future__ import annotations

import stat
from pathlib import Path

from louver import errors


def read_secret(path: str) -> str:
    """The shared secret in a file; `serve.secret` unless only its owner can read it."""
    file = Path(path).expanduser()
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or "not text"
        raise errors.make("serve.secret", path=path, detail=detail) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise errors.make("serve.secret", path=path, detail=f"mode {mode & 0o777:04o}")
    if not 16 <= len(text) <= 1_024 or not text.isprintable() or " " in text:
        raise errors.make("serve.secret", path=path, detail="its length or form is not valid")
    return text
