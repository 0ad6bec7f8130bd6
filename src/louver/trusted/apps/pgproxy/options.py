"""The options of `louver serve pg`; no heavy imports."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from louver import errors

DEFAULT = "127.0.0.1:6432"
MONITOR = "127.0.0.1:9187"
Address = tuple[str, int | None]
"""A name and a port, or the path of a socket and None."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--listen", action="append", metavar="HOST:PORT",
        help=f"where clients connect, or a socket's path (default: {DEFAULT}; may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--upstream", metavar="URL", help="the database, postgresql://… (default: --url)"
    )
    parser.add_argument(
        "--users", metavar="FILE", help="who may connect (mode 0600); --add-user writes it"
    )
    parser.add_argument(
        "--add-user", metavar="NAME",
        help="read a password from the terminal or stdin, write it to --users, and end",
    )  # fmt: skip
    parser.add_argument(
        "--grant", nargs=2, metavar=("NAME", "RIGHTS"),
        help="write to --users what a user may do, and end: 'SELECT (a), DELETE ON t' (may be said"
        " again for more), NOTHING or EVERYTHING",
    )  # fmt: skip
    parser.add_argument("--certificate", metavar="FILE", help="TLS: the certificates, PEM")
    parser.add_argument("--key", metavar="FILE", help="TLS: the certificate's key, PEM")
    parser.add_argument(
        "--require-tls", action="store_true", help="refuse clients that do not ask for TLS"
    )
    parser.add_argument(
        "--insecure", action="store_true",
        help="listen without TLS where other machines can reach it",
    )  # fmt: skip
    _add_observing(parser)
    parser.add_argument(
        "--connections", type=int, default=500, metavar="N", help="clients at a time (500)"
    )
    parser.add_argument(
        "--pool", choices=("session", "transaction"), default="session",
        help="whether a client has a session as long as it is there, or for each transaction",
    )  # fmt: skip
    parser.add_argument(
        "--pool-size", type=int, default=16, metavar="N",
        help="sessions that are kept for later clients, or serve all by transactions (16)",
    )  # fmt: skip
    parser.add_argument(
        "--pool-wait", type=float, default=60.0, metavar="SECONDS",
        help="how long a client waits for a session of --pool transaction (60)",
    )  # fmt: skip
    parser.add_argument(
        "--drain", type=float, default=30.0, metavar="SECONDS",
        help="how long transactions may go on at the end (30)",
    )  # fmt: skip


def _add_observing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit", metavar="FILE",
        help="append a line of JSON for each statement (mode 0600); none runs without one",
    )  # fmt: skip
    parser.add_argument(
        "--log", metavar="FILE|-",
        help="append lines of JSON about connections and errors; - is the standard error",
    )  # fmt: skip
    parser.add_argument(
        "--log-level", choices=("info", "warning", "error"), default="info",
        help="the least that is logged (info)",
    )  # fmt: skip
    parser.add_argument(
        "--metrics", metavar="HOST:PORT",
        help="answer /metrics (Prometheus), /health and /status there, or at a socket's path",
    )  # fmt: skip
    parser.add_argument(
        "--status", action="store_true",
        help=f"ask the front door that runs with --metrics (default: {MONITOR}), and end",
    )  # fmt: skip


def addresses(options: argparse.Namespace) -> list[Address]:
    """Where to listen.

    Raises:
        errors.Error: `usage` for anything but an address; `serve.open` for one that other machines
            reach without users or TLS.
    """
    results = [_address(text) for text in options.listen or [DEFAULT]]
    for name, port in results:
        if port is None or _is_local(name):
            continue
        if not options.users:
            raise errors.make("serve.open", place=f"{name}:{port}", missing="--users")
        if not (options.certificate or options.insecure):
            raise errors.make("serve.open", place=f"{name}:{port}", missing="--certificate")
    return results


def monitor(options: argparse.Namespace) -> Address | None:
    """Where operators ask, if anywhere.

    Raises:
        errors.Error: `usage` for anything but an address; `serve.open` for one that other machines
            reach, for there are neither users nor TLS.
    """
    text = options.metrics or (MONITOR if options.status else None)
    if text is None:
        return None
    name, port = _address(text)
    if port is not None and not _is_local(name) and not options.status and not options.insecure:
        raise errors.make("serve.open", place=f"{name}:{port}", missing="--insecure")
    return name, port


def _address(text: str) -> Address:
    if text.startswith("/"):
        return text, None
    name, separator, port = text.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65_535 or not name:
        detail = f"an address is HOST:PORT or the path of a socket, not {text!r:.60}"
        raise errors.make("usage", detail=detail)
    return name.strip("[]"), int(port)


def _is_local(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def certificate(options: argparse.Namespace) -> tuple[Path, Path] | None:
    """The files of the certificate and of its key."""
    if bool(options.certificate) != bool(options.key):
        raise errors.make("usage", detail="--certificate and --key go together")
    return (Path(options.certificate), Path(options.key)) if options.certificate else None


def require_pool(options: argparse.Namespace) -> None:
    """Raise `usage` for a pool that serves no client."""
    least = 1 if options.pool == "transaction" else 0
    if options.pool_size < least or options.pool_wait < 0:
        detail = f"--pool-size is at least {least}, and --pool-wait not negative"
        raise errors.make("usage", detail=detail)
