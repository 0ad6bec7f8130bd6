"""Providers of public data on this machine, for examples, tests and benchmarks.

In earnest the providers are run by different people who do not talk to each other; here they are
processes of one machine: `louver serve provider --data FILE --listen 127.0.0.1:0`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

SERVE = ("-m", "louver.untrusted.servers.provider")
"""What `louver serve provider` starts."""
_STOP_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Provider:
    """One running provider: where it listens, its process, and what it was told to do."""

    address: str
    pid: int


def url(providers: Sequence[Provider], options: str = "") -> str:
    """What to connect to."""
    return "providers://" + ",".join(one.address for one in providers) + options


@contextmanager
def running(
    data: Path | Sequence[Path],
    count: int = 2,
    *,
    options: Sequence[str] = (),
    each: Sequence[Sequence[str]] = (),
    before: Sequence[Sequence[str]] = (),
) -> Iterator[list[Provider]]:
    """Start providers of the same files, and stop them at the end.

    Args:
        data: the file, or the files.
        count: how many providers.
        options: further options of all of them.
        each: further options of every single one, as `--record DIR`.
        before: a command in front of every single one, as `taskset -c 0`.
    """
    files = [data] if isinstance(data, Path) else list(data)
    given = [word for file in files for word in ("--data", str(file))]
    with ExitStack() as stack:
        started = []
        for place in range(count):
            command = [
                *(before[place] if before else ()),
                *(sys.executable, *SERVE, *given, "--listen", "127.0.0.1:0", "--json"),
                *options,
                *(each[place] if each else ()),
            ]
            started.append(stack.enter_context(_process(command)))
        yield [Provider(_address(one), one.pid) for one in started]


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()


def _address(process: subprocess.Popen[str]) -> str:
    """Where a provider listens: it says so when its data is loaded."""
    line = ""
    for line in process.stdout or ():
        told = json.loads(line)
        if "address" in told:
            return str(told["address"])
        if not told.get("ok", True):
            break
    raise RuntimeError(f"the provider did not start: {line.strip()}")
