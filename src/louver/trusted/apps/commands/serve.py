"""Run a service: the front door with your key, or others as a third party without one.

`louver serve pg --upstream postgresql://…` lets clients of PostgreSQL connect: psql, drivers and
applications see plaintext, and the server behind it ciphertext. It runs on a machine that you
trust, and holds your key.

`louver serve prune WAREHOUSE` serves one lake: its files, its tables as an Iceberg REST catalog,
and lists of the files that a query needs, selected by token. Clients connect to
lake+http://HOST:PORT. `louver serve provider --data FILE` answers private questions about public
data, as one of two or more providers that do not collude. Clients connect to
providers://HOST:PORT,HOST:PORT. Each service runs in a separate process that loads none of the code
that handles keys.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from louver import extras
from louver.trusted.apps.pgproxy import options as pg_options
from louver.untrusted.servers import options as prune_options
from louver.untrusted.servers import provider_options

_EXTRAS = {"prune": ("lake", "web"), "provider": ("providers",)}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from louver.trusted.apps.cli import common

    services = parser.add_subparsers(dest="service", required=True, metavar="SERVICE")
    prune = services.add_parser("prune", help="serve a lake: files, tables, plans by token")
    prune_options.add_options(prune)
    provider = services.add_parser("provider", help="answer private questions about public data")
    provider_options.add_options(provider)
    pg = services.add_parser("pg", help="serve PostgreSQL's clients, who see plaintext")
    pg_options.add_options(pg)
    common(pg)
    for service in (prune, provider):
        service.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS,
            help="address and errors as JSON",
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Run the front door, or replace this process by a service that has no key."""
    if options.service != "pg":
        _replace(options)
    from louver.trusted.apps.pgproxy import command

    return command.run(options)


def _replace(options: argparse.Namespace) -> NoReturn:
    service = options.service
    extras.require(*_EXTRAS[service])
    words = (provider_options if service == "provider" else prune_options).words(options)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", f"louver.untrusted.servers.{service}", *words]
    os.execv(sys.executable, command)  # noqa: S606 - its own program, no shell
