"""A user at a terminal of their own: types into the real shell and reads what it prints."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.client.harness import key_file

_TIMEOUT_S = 60
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>78]|[\r\x08]")
#: What prompt_toolkit prints when it waits for input, in all its forms.
PROMPT = "louver> "


class User:
    """One shell in a pseudo-terminal."""

    def __init__(self, folder: Path, *words: str, lines: int = 40, **environment: str) -> None:
        own = {
            **os.environ, "LOUVER_URL": f"duckdb:///{folder}/cloud.duckdb",
            "LOUVER_KEYS": key_file(), "LOUVER_STATE_DIR": str(folder / "state"),
            "TERM": "xterm", "PAGER": "", "NO_COLOR": "1", **environment,
        }  # fmt: skip
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            command = [sys.executable, "-m", "louver.trusted.apps.cli", *words]
            os.execve(sys.executable, command, own)
        size = struct.pack("HHHH", lines, 100, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        self._lines = lines
        self._raw = b""
        self._read_to = 0
        self.code: int | None = None

    @property
    def screen(self) -> str:
        """Everything printed so far, without control sequences."""
        return _CONTROL.sub("", self._raw.decode(errors="replace"))

    def see(self, text: str) -> str:
        """Wait until a text is printed after what was seen before; returns what precedes it."""
        end = time.monotonic() + _TIMEOUT_S
        while (position := self.screen.find(text, self._read_to)) < 0:
            assert time.monotonic() < end, f"{text!r} is not in {self.screen[self._read_to :]!r}"
            assert self.code is None, f"{text!r} is not in {self.screen[self._read_to :]!r}"
            self._more()
        before = self.screen[self._read_to : position]
        self._read_to = position + len(text)
        return before

    def keys(self, text: str) -> None:
        """Type a text; Enter is ``\\r``, Tab is ``\\t``, Ctrl-C is ``\\x03``."""
        os.write(self._terminal, text.encode())

    def run(self, line: str, expected: str) -> str:
        """Type a line, see a text in its answer, and the prompt again."""
        self.keys(line + "\r")
        # The terminal echoes the line while it is typed and once more when it is accepted.
        before = self.see(expected)
        self.wait()
        return before

    def wait(self) -> None:
        """Let the shell print what it has to, until it is silent at its prompt."""
        end = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < end:
            if not self._more(0.4) or self.code is not None:
                if self.screen.rstrip().endswith(("louver>", "      >", "[c/r/S]")):
                    break
                if self.code is not None:
                    break
        self._read_to = len(self.screen)

    def leave(self) -> int:
        """Wait for the end of the process; returns its exit code."""
        end = time.monotonic() + _TIMEOUT_S
        while self.code is None and time.monotonic() < end:
            self._more()
        assert self.code is not None, self.screen
        return self.code

    def _more(self, seconds: float = 1.0) -> bool:
        """Read what is there; False if nothing came, or the process ended."""
        if self.code is not None:
            return False
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:
            data = b""
        if not data:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            return False
        self._raw += data
        if b"\x1b[6n" in data:
            # prompt_toolkit asks where the cursor is.
            os.write(self._terminal, f"\x1b[{self._lines};1R".encode())
        return True

    def __enter__(self) -> User:
        try:
            self.see(PROMPT.strip())
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if self.code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._terminal)
