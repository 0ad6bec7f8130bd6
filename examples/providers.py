"""Providers of public data on this machine, for examples, tests and benchmarks.

In earnest the providers are run by different people who do not talk to each other; here they are
processes of one machine: `louver serve provider --data FILE --listen 127.0.0.1:0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from louver.trusted.apps.demo_console import Service, service, services


def url(providers: Sequence[Service], options: str = "") -> str:
    """What to connect to."""
    return "providers://" + ",".join(item.address for item in providers) + options


def running(
    data: Path | Sequence[Path],
    count: int = 2,
    *,
    options: Sequence[str] = (),
    each: Sequence[Sequence[str]] = (),
    before: Sequence[Sequence[str]] = (),
) -> AbstractContextManager[list[Service]]:
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
    commands = [
        [
            *(before[position] if before else ()),
            *service("provider", *given, *options, *(each[position] if each else ())),
        ]
        for position in range(count)
    ]
    return services(*commands)
