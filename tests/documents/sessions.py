"""A page's terminal and its Python session, in a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.documents.pages import Step
from tests.front_door.drivers import fetched
from tests.postgres import servers
from tests.sources import ROOT

_SENTINEL = "louver-documents-end"
_TIMEOUT_S = 120
#: How long a service without a stated output is waited for, when it is recorded.
_SILENCE_S = 5.0
_PORT = re.compile(r"""(?:(?<=127\.0\.0\.1:)|(?<="PORT": "))7\d\d\d\b""")
#: How a failed command of Louver begins its message.
_FAILED = ("louver: ", "error: ")


class Terminal:
    """A bash in which variables and background processes live on from command to command."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment,
            start_new_session=True,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line.rstrip("\n"))

    def run(self, command: str, least_lines: int) -> list[str]:
        """The output of a command; of one in the background, its first lines."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(f"{{ {command.rstrip()}\n}} </dev/null\nprintf '\\n{_SENTINEL} %d\\n' $?\n")
        stdin.flush()
        background = command.rstrip().endswith("&")
        lines: list[str] = []
        code: int | None = None
        until = time.monotonic() + _TIMEOUT_S
        while code is None or (background and len(lines) < least_lines):
            line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            if line.startswith(_SENTINEL):
                code = int(line.rpartition(" ")[2])
            elif line or not background:
                lines.append(line)
        with contextlib.suppress(queue.Empty):
            while background and not least_lines:
                lines.append(self._lines.get(timeout=_SILENCE_S))
        while lines and not lines[-1]:
            lines.pop()  # the line before the sentinel, and others without text
        assert not code or any(line.startswith(_FAILED) for line in lines), (command, code, lines)
        return lines

    def close(self) -> None:
        """End the shell and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(_TIMEOUT_S)


#: Pages of drivers of other languages, which `make drivers` fetches.
LANGUAGES = {"connect-jdbc": "java", "connect-pgx": "go", "connect-node-postgres": "node"}


def _of_language(language: str, folder: Path, path: str) -> dict[str, str]:
    """A page's folder has the driver, as if the user had installed it there."""
    source = fetched(language)
    if language == "java":
        (folder / "postgresql.jar").symlink_to(source / "postgresql.jar")
    elif language == "node":
        (folder / "node_modules").symlink_to(source / "node_modules")
    else:
        for name in ("go.mod", "go.sum"):
            shutil.copy(ROOT / "tests/front_door/drivers/go" / name, folder)
    programs = [str(Path(shutil.which(name) or "").parent) for name in LANGUAGES.values()]
    environment = {"PATH": os.pathsep.join([path, *programs])}
    if language == "go":
        for name in ("GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"):
            done = subprocess.run(["go", "env", name], capture_output=True, text=True, check=True)
            environment[name] = done.stdout.strip()
        environment["GOTOOLCHAIN"] = "local"
    return environment


#: Executes blocks of Python from stdin, each a JSON string, and prints their output as JSON.
_INTERPRETER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    kind, text = json.loads(line)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            if kind == "python":
                exec(compile(text, "<page>", "exec"), names)
            elif "con" in names:
                names["con"].sql(text).show()
            else:
                output = None
        except Exception as error:
            output.write("".join(traceback.format_exception_only(error)))
    sys.stdout.write(json.dumps(output and output.getvalue()) + "\\n")
    sys.stdout.flush()
"""


class Interpreter:
    """A Python session in a process of its own; its warnings are not part of the output."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _INTERPRETER], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, cwd=folder, env=environment,
        )  # fmt: skip

    def run(self, kind: str, text: str) -> list[str] | None:
        """The output of a block of Python; of SQL, if the session has a connection `con`."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps([kind, text]) + "\n")
        stdin.flush()
        output = json.loads(stdout.readline())
        return None if output is None else str(output).splitlines()

    def close(self) -> None:
        """End the session; connections close with it."""
        self._process.communicate(timeout=_TIMEOUT_S)


class Session:
    """Executes the steps of one page; addresses of services get free ports."""

    def __init__(self, folder: Path, page: str = "") -> None:
        self._folder = folder
        self._environment = _environment(folder)
        name = Path(page).stem
        if name in ("postgres", "front-door") or name.startswith("connect-"):
            self._environment |= servers.environment(self._environment["PATH"])
        if name in LANGUAGES:
            self._environment |= _of_language(LANGUAGES[name], folder, self._environment["PATH"])
        self._terminal = Terminal(folder, self._environment)
        self._interpreter: Interpreter | None = None
        self._ports: dict[str, str] = {}

    def execute(self, step: Step) -> list[str]:
        """The lines that a step prints."""
        text = _PORT.sub(self._port, step.text)
        shown = {port: name for name, port in self._ports.items()}
        return [
            re.sub(r"(?<=127\.0\.0\.1:)\d+\b", lambda m: shown.get(m[0], m[0]), line).rstrip()
            for line in self._output(step, text)
        ]

    def _output(self, step: Step, text: str) -> list[str]:
        if step.kind == "file":
            (self._folder / step.name).write_text(text, encoding="utf-8")
            return []
        if step.kind == "console":
            return self._terminal.run(text, len(step.expected))
        if step.kind == "python" and self._interpreter is None:
            self._interpreter = Interpreter(self._folder, self._environment)
        output = None if self._interpreter is None else self._interpreter.run(step.kind, text)
        # Without a connection in Python, SQL is for the command.
        return output if output is not None else self._terminal.run(_command(text), 0)

    def _port(self, match: re.Match[str]) -> str:
        return self._ports.setdefault(match[0], str(_free_port()))

    def close(self) -> None:
        """Close connections and end services."""
        if self._interpreter is not None:
            self._interpreter.close()
        self._terminal.close()


def _command(sql: str) -> str:
    return f"louver sql {shlex.quote(sql)}"


def _environment(folder: Path) -> dict[str, str]:
    """Of a user who has nothing configured; `louver` is that of this checkout."""
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir()
    command = programs / "louver"
    python = shlex.quote(sys.executable)
    command.write_text(f'#!/bin/sh\nexec {python} -m louver.trusted.apps.cli "$@"\n')
    command.chmod(0o755)
    return {
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin",
        "HOME": str(folder.parent / f"{folder.name}-home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "LANG": "C.UTF-8",
        "COLUMNS": "100",
        "LINES": "40",
        "TZ": "UTC",
    }


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
