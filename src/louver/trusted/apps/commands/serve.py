"""Run a service for your clients, as a third party without a key.

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

from louver import extras
from louver.untrusted.servers import options as prune_options
from louver.untrusted.servers import provider_options

_EXTRAS = {"prune": ("lake", "web"), "provider": ("providers",)}


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    services = parser.add_subparsers(dest="service", required=True, metavar="SERVICE")
    prune = services.add_parser("prune", help="serve a lake: files, tables, plans by token")
    prune_options.add_options(prune)
    provider = services.add_parser("provider", help="answer private questions about public data")
    provider_options.add_options(provider)
    for service in (prune, provider):
        service.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS,
            help="address and errors as JSON",
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Replace this process by the service."""
    service = options.service
    extras.require(*_EXTRAS[service])
    words = (provider_options if service == "provider" else prune_options).words(options)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", f"louver.untrusted.servers.{service}", *words]
    os.execv(sys.executable, command)  # noqa: S606 - its own program, no shell
