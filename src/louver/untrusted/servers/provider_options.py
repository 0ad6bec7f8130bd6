"""The options of a provider, for its own process and for `louver serve provider`.

No heavy imports: the command only parses them and starts the process.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, fields

from louver.untrusted.providers.bounds import (
    CACHE_BYTES,
    PREPARE_MEMORY,
    PREPARE_SCRATCH,
    PREPARE_SECONDS,
)
from louver.untrusted.servers.listening import add_listening

_TEXTS = ("listen", "certificate", "key", "authorization", "cache", "record")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a provider.

    Attributes:
        threads: the number of threads for evaluations and for DuckDB.
        cache_bytes: prepared tables on disk; the least recently used are dropped.
        requests: concurrent requests; more are refused with `serve.busy`.
        client_requests: those of one client's address.
        asks: of one client's address per second.
        shapes: of one client's address per minute that need to be prepared.
        connections: concurrent connections.
        largest_request: in bytes.
        memory: bytes of requests and replies in memory, together. The process may use up to four
            times as much, since they are also decoded and written, and `requests` times
            `largest_request` if clients send slowly.
        idle_seconds: how long to wait for a client to send a request, or to read a reply.
        answer_seconds: the time limit of an answer.
        prepare_seconds: the time limit of a preparation.
        queue_seconds: how long a preparation may wait for its slot.
        prepare_memory: bytes of memory for one preparation, at most a fifth of the machine's;
            three may run.
        prepare_scratch: bytes on disk that one preparation may use besides its table.
        keep_seconds: how long a version is kept after it was replaced.
    """

    threads: int = 0
    cache_bytes: int = CACHE_BYTES
    requests: int = 64
    client_requests: int = 32
    asks: int = 400
    shapes: int = 120
    connections: int = 512
    largest_request: int = 32 << 20
    memory: int = 1 << 30
    idle_seconds: float = 30.0
    answer_seconds: float = 240.0
    prepare_seconds: float = PREPARE_SECONDS
    queue_seconds: float = 1_500.0
    prepare_memory: int = PREPARE_MEMORY
    prepare_scratch: int = PREPARE_SCRATCH
    keep_seconds: float = 600.0

    @property
    def cores(self) -> int:
        """The number of threads: by default the number of processors."""
        return self.threads or os.cpu_count() or 1

    @classmethod
    def of(cls, options: argparse.Namespace) -> Limits:
        """The limits among parsed options."""
        return cls(**{field.name: getattr(options, field.name) for field in fields(cls)})


_MEANINGS = {
    "threads": "threads to use (0: one for each processor)",
    "cache_bytes": "bytes of prepared tables that are kept",
    "requests": "requests under way at the same time",
    "client_requests": "of these, of one address",
    "asks": "questions of one address in a second",
    "shapes": "shapes of one address in a minute that take work to prepare",
    "connections": "connections at the same time",
    "largest_request": "bytes of the largest request that is taken",
    "memory": "bytes of requests and replies in memory, together",
    "idle_seconds": "how long to wait for a client",
    "answer_seconds": "how long an answer may take",
    "prepare_seconds": "how long a preparation may take",
    "queue_seconds": "how long a preparation may wait for its turn",
    "prepare_memory": "bytes of memory of one preparation, at most a fifth of the machine's",
    "prepare_scratch": "bytes on disk of one preparation, beside its table",
    "keep_seconds": "how long a version is kept after it was replaced",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `louver serve provider` has the same."""
    parser.add_argument(
        "--data", action="append", required=True, metavar="FILE",
        help="Parquet, CSV or DuckDB; a pattern; NAME=PATTERN makes one table; may be repeated",
    )  # fmt: skip
    add_listening(parser, "127.0.0.1:7001")
    parser.add_argument(
        "--cache", metavar="DIR",
        help="where prepared tables are kept (default: a private folder, removed at the end)",
    )  # fmt: skip
    parser.add_argument(
        "--record", metavar="DIR", help="write every request here as it arrived, for audits"
    )
    parser.add_argument(
        "--watch", type=_positive, metavar="SECONDS",
        help="look so often whether a file of the data changed, and load it then (so does SIGHUP)",
    )  # fmt: skip
    for field in fields(Limits):
        value = field.default
        kind = _positive if isinstance(value, float) else _whole if value else _count
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=kind, default=value, metavar="N",
            help=f"{_MEANINGS[field.name]} (default: {value})",
        )  # fmt: skip


def words(options: argparse.Namespace) -> list[str]:
    """The command line that is equivalent to parsed options."""
    flags = [f"--{name}" for name in ("insecure", "json") if getattr(options, name, False)]
    for name in (*_TEXTS, "watch", *(field.name for field in fields(Limits))):
        value = getattr(options, name)
        if value is not None:
            flags.append(f"--{name.replace('_', '-')}={value}")
    return [*flags, *(f"--data={word}" for word in options.data)]


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 1_024:
        raise ValueError
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e9:
        raise ValueError
    return value
