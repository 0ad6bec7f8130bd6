"""`louver serve pg`: runs the front door, or writes its file of users."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.pgproxy import options as given
from louver.trusted.apps.pgproxy import users


def run(options: argparse.Namespace) -> int:
    """Do it."""
    if options.add_user:
        return users.add(options)
    if options.grant:
        return users.grant(options)
    if options.status:
        from louver.trusted.apps.pgproxy import status

        return status.show(given.monitor(options) or ("", None), as_json=options.json)
    addresses, certificate = given.addresses(options), given.certificate(options)
    given.require_pool(options)
    url = options.upstream or options.url
    if options.language not in (None, "postgres"):
        raise errors.make("serve.language", language=options.language)
    if not str(url or "").startswith("postgresql://"):
        raise errors.make("usage", detail="give the database with --upstream postgresql://…")
    # Arrow's own pools keep 300 kB for each thread that has used them, and so for each client.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from louver.trusted.apps.pgproxy import server

    settings = server.Options(
        url, options.keys, addresses, options.profile, options.policy,
        Path(options.users) if options.users else None, certificate,
        tls_required=options.require_tls, most_clients=options.connections,
        patience_ms=int(options.drain * 1000), read_only=options.read_only,
        by_transaction=options.pool == "transaction", pool_size=options.pool_size,
        pool_patience_ms=int(options.pool_wait * 1000),
        audit=Path(options.audit) if options.audit else None, log=options.log,
        log_level=options.log_level, monitor=given.monitor(options),
    )  # fmt: skip

    def ready(bound: Sequence[tuple[str, int]], monitored: Sequence[tuple[str, int]]) -> None:
        places = [f"{name}:{port}" for name, port in bound]
        places += [name for name, port in addresses if port is None]
        if options.json:
            body = {"ok": True, "listen": places, "pid": os.getpid()}
            if monitored:
                body["metrics"] = "{}:{}".format(*monitored[0])
            terminal.out_json(body)
            sys.stdout.flush()
        else:
            terminal.say(f"PostgreSQL's clients are served at {', '.join(places)}; Ctrl-C ends it")

    left = server.served(settings, ready)
    if left:
        terminal.say(f"{left} clients were still connected")
    return 0
