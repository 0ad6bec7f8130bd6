"""Where the shell prints: to the terminal, through a pager if it is taller, or to a file."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from louver import errors

#: What `less` needs: keep colours, leave at once if all fits, do not wrap tables.
_LESS = "FRSX"


class _Captured(io.StringIO):
    """Text that is printed later to a terminal, so it may have colours."""

    def isatty(self) -> bool:
        """As the terminal is one."""
        return True


class Output:
    """The target of answers."""

    def __init__(self) -> None:
        self.paging = True
        self._file: TextIO | None = None

    def to_file(self, name: str | None) -> None:
        """Write answers to a file that only its owner can read; None: to the terminal again."""
        self.close()
        if name is None:
            return
        try:
            descriptor = os.open(
                Path(name).expanduser(), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600
            )
        except OSError as error:
            detail = f"{name} cannot be written: {error.strerror}"
            raise errors.make("usage", detail=detail) from None
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Send what is printed to the target."""
        if self._file is not None:
            with contextlib.redirect_stdout(self._file):
                yield
            self._file.flush()
            return
        if not (self.paging and sys.stdin.isatty() and sys.stdout.isatty()):
            yield
            return
        captured = _Captured()
        try:
            with contextlib.redirect_stdout(captured):
                yield
        finally:
            _print(captured.getvalue())


def _print(text: str) -> None:
    """Print a text, through the pager if it is taller than the terminal."""
    command = pager()
    if text.count("\n") < shutil.get_terminal_size().lines or not command:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    environment = {**os.environ, "LESS": os.environ.get("LESS", _LESS)}
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own choice
            command, stdin=subprocess.PIPE, text=True, env=environment
        )
    except OSError:
        sys.stdout.write(text)
        return
    # A reader may leave before the end.
    with contextlib.suppress(BrokenPipeError):
        process.communicate(text)


def pager() -> list[str]:
    """The command of the pager: PAGER, else less, else nothing."""
    chosen = os.environ.get("PAGER")
    if chosen is not None:
        return shlex.split(chosen)
    less = shutil.which("less")
    return [less] if less else []
