"""The options of the pruning service, for its own process and for `louver serve prune`.

No heavy imports: the command only parses them and starts the process.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from louver.untrusted.servers.listening import add_listening

_NAMES = (
    "listen", "certificate", "key", "authorization", "properties", "control", "requests", "plans",
    "memory", "largest_file", "idle_seconds", "plan_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a service.

    Attributes:
        requests: concurrent requests; more are refused with `serve.busy`.
        plans: concurrent plans; more wait.
        buffered_bytes: bodies in memory, for all requests together.
        file_bytes: the largest file that may be written.
        idle_seconds: how long to wait for a client to send or read the next bytes.
        plan_seconds: the time limit of a plan.
    """

    requests: int = 64
    plans: int = 4
    buffered_bytes: int = 512 << 20
    file_bytes: int = 8 << 30
    idle_seconds: float = 30.0
    plan_seconds: float = 120.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; `louver serve prune` has the same."""
    parser.add_argument("warehouse", metavar="WAREHOUSE", help="a directory, or the URL of a store")
    add_listening(parser, "127.0.0.1:7080")
    parser.add_argument(
        "--properties", metavar="FILE",
        help="a TOML file with properties of the catalog and the store",
    )  # fmt: skip
    parser.add_argument(
        "--control", metavar="DIR",
        help="where louver.sqlite lies (default: the warehouse, if it is a directory)",
    )  # fmt: skip
    known = Limits()
    for name, kind, value, text in (
        ("requests", int, known.requests, "requests under way at the same time"),
        ("plans", int, known.plans, "plans that run at the same time"),
        ("memory", int, known.buffered_bytes, "bytes of bodies in memory, together"),
        ("largest-file", int, known.file_bytes, "bytes of the largest file that is taken"),
        ("idle-seconds", float, known.idle_seconds, "how long to wait for a client"),
        ("plan-seconds", float, known.plan_seconds, "how long a plan may take"),
    ):
        parser.add_argument(
            f"--{name}", type=kind, default=value, metavar="N", help=f"{text} (default: {value})"
        )


def words(options: argparse.Namespace) -> list[str]:
    """The command line that is equivalent to parsed options."""
    flags = [f"--{name}" for name in ("insecure", "json") if getattr(options, name, False)]
    for name in _NAMES:
        value = getattr(options, name)
        if value is not None:
            flags += [f"--{name.replace('_', '-')}", str(value)]
    return [*flags, "--", options.warehouse]
