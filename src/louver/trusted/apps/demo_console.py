"""Shared by the demonstrations: the console, local services, and the comparison of answers."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.client.relation import Relation

_WIDEST = 120
_STOP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Question:
    """A query with a ? for each private parameter, its explanation, and the parameters."""

    title: str
    why: str
    sql: str
    parameters: tuple[object, ...]


class Console:
    """Prints titled sections at the width of the terminal, or nothing if quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self.width = min(shutil.get_terminal_size((100, 24)).columns, _WIDEST)

    def say(self, text: str, style: str = "") -> None:
        """One line."""
        if not self._quiet:
            terminal.out(terminal.styled(text, style) if style else text)

    def title(self, text: str) -> None:
        """The title of a section, with a rule to the end of the line."""
        self.say(terminal.styled(f"── {text} " + "─" * max(2, self.width - len(text) - 4), "bold"))

    def fill(self, text: str, first: str = "", rest: str = "") -> None:
        """A paragraph, its first line indented by `first` and the others by `rest`."""
        self.say(textwrap.fill(text, self.width, initial_indent=first, subsequent_indent=rest))

    def code(self, sql: str, style: str = "cyan") -> None:
        """Lines of SQL; long lines are broken between words."""
        for line in sql.splitlines():
            for part in textwrap.wrap(
                line, self.width - 4, subsequent_indent="    ", break_long_words=False
            ) or [""]:
                self.say(f"  {part}", style)

    def beside(self, left: Sequence[str], right: Sequence[str]) -> None:
        """Two texts side by side, each in half of the width: lines are broken, of tables cut."""
        half = (self.width - 3) // 2
        folded = [part for line in left for part in _folded(line, half)]
        for ours, theirs in zip_longest(folded, right, fillvalue=""):
            self.say(f"{ours:<{half}} │ {_cut(theirs, half)}".rstrip())

    def answer(self, relation: Relation) -> None:
        """The rows of a query as a table."""
        for line in relation.text(max_width=self.width - 2).splitlines():
            self.say("  " + line)

    def equal(self, is_equal: bool, rest: str = "", *, whose: str = "plaintext DuckDB") -> None:
        """Report that an answer equals the plaintext's; a difference ends the demonstration."""
        if not is_equal:
            raise errors.make("internal", detail=f"an answer differs from {whose}'s")
        mark = terminal.styled("equal", "green")
        self.say(f"  {mark} to {whose}'s answer{rest}\n")


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _folded(line: str, width: int) -> list[str]:
    if len(line) <= width or " | " in line or "-+-" in line:
        return [_cut(line, width)]
    return textwrap.wrap(line, width, subsequent_indent="  ")


def same(mine: Sequence[Sequence[Any]], theirs: Sequence[Sequence[Any]]) -> bool:
    """Whether two answers are equal, up to the last bits of means (order of summation)."""
    if len(mine) != len(theirs):
        return False
    return all(
        math.isclose(a, b, rel_tol=1e-12)
        if isinstance(a, float) and isinstance(b, float)
        else a == b
        for row, other in zip(mine, theirs, strict=True)
        for a, b in zip(row, other, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: the JSON object it printed when it began to listen, and its process."""

    announcement: dict[str, Any]
    pid: int

    @property
    def address(self) -> str:
        """Host and port."""
        return str(self.announcement["address"])


@contextmanager
def services(*commands: Sequence[str]) -> Iterator[list[Service]]:
    """Start services together, wait until all of them listen, and stop them at the end.

    Each command is one of `service`; a prefix such as `taskset -c 0` is allowed.
    """
    with ExitStack() as stack:
        started = [stack.enter_context(_process(command)) for command in commands]
        yield [Service(_announcement(process), process.pid) for process in started]


def service(module: str, *options: str) -> list[str]:
    """The command that runs one of our services on a free local port."""
    name = f"louver.untrusted.servers.{module}"
    return [sys.executable, "-m", name, *options, "--listen", "127.0.0.1:0", "--json"]


@contextmanager
def _process(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    # Some services end when this pipe does, which the death of this process closes.
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)  # noqa: S603 - our own
    try:
        yield process
    finally:
        if process.stdin:
            process.stdin.close()
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _announcement(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The line a service prints when it listens; it may print its loading progress before that."""
    line = ""
    for line in process.stdout or ():
        announcement: dict[str, Any] = json.loads(line)
        if not announcement.get("ok"):
            break
        if not announcement.keys().isdisjoint(("address", "url", "listen")):
            return announcement
    raise errors.make("internal", detail=f"a service did not start: {line.strip()}")
