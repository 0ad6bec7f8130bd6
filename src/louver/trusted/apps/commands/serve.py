"""Run a service: what a third party, who has no key, does for your clients.

`louver serve prune WAREHOUSE` serves one lake: its files, its tables as an Iceberg REST catalog,
and lists of the files that a query needs, found by token. Clients connect to lake+http://HOST:PORT.
The service is a process of its own, which loads none of the code that handles keys.
"""

from __future__ import annotations

import argparse
import os
import sys

from louver.untrusted.servers import options as prune_options


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    services = parser.add_subparsers(dest="service", required=True, metavar="SERVICE")
    prune = services.add_parser("prune", help="serve a lake: files, tables, plans by token")
    prune_options.add_options(prune)
    prune.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="address and errors as JSON"
    )


def run(options: argparse.Namespace) -> int:
    """Become the service: nothing of this process remains in it."""
    words = prune_options.words(options)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "louver.untrusted.servers.prune", *words]
    os.execv(sys.executable, command)  # noqa: S606 - its own program, no shell
