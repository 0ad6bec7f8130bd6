"""Show the state of a database as seen by this client: versions, hashes, pins, row counts.

Two clients that see the same database print the same fingerprint and the same ledger hash. After
you have restored a backup, --accept makes this client forget the versions that it had pinned. If
you have copied a database file and use both, --fork makes the copy a database of its own. A column
whose sum did not verify is summed locally until --resume-sums.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import database, opened
from louver.trusted.client.inside import context_of, session_of

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--accept",
        action="store_true",
        help="trust the current database, even if it was restored or replaced",
    )
    parser.add_argument(
        "--fork",
        action="store_true",
        help="make a copied database file a database of its own, beside the original",
    )
    parser.add_argument(
        "--resume-sums",
        action="store_true",
        help="let the server sum columns again whose sum did not verify",
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.client.connect import is_providers

    if is_providers(database(options)):
        return _providers(options)
    if options.fork:
        from louver.trusted.client.connect import fork

        fork(database(options), options.keys)
        terminal.say(
            "the copy is a database of its own now; its ledger begins with what the original had"
            " revealed. Rows that both hold have the same keys: what a layer that is opened in one"
            " shows of them, a server that has both files sees in the other"
        )
    if options.accept:
        from louver.trusted.client.connect import accept

        accept(database(options), options.keys)
        terminal.say("the pinned version of this database was forgotten")
    with opened(options, providers=True) as connection:
        if options.resume_sums:
            context_of(connection).stopped.resume()
            terminal.say("the server sums every column again")
        state = status(connection)
    if options.json:
        terminal.out_json({"ok": True, **state})
        return 0
    for name, value in state.items():
        if name not in ("tables", "sdb_modulus", "sums_stopped"):
            terminal.out(f"{name.replace('_', ' '):<20}{value}")
    for name in state["sums_stopped"]:
        terminal.out(f"{'sums stopped':<20}{name}: a sum did not verify; see --resume-sums")
    for table in state["tables"]:
        columns = ", ".join(f"{c['name']} {c['protection']}" for c in table["columns"])
        terminal.out(f"table {table['name']}: {table['rows']:,} rows; {columns}")
    return 0


def _providers(options: argparse.Namespace) -> int:
    """The data of all providers; its version is the hash of its content."""
    from louver.trusted.executor.private.session import ProviderSession

    with opened(options, providers=True) as connection:
        session = session_of(connection)
        if not isinstance(session, ProviderSession):
            raise errors.make("internal", detail="providers without a fleet")
        fleet = session.context.fleet
        tables = fleet.dataset.tables
        addresses = [channel.address for channel in fleet.channels]
        state: dict[str, Any] = {
            "providers": addresses,
            "version": fleet.version.hex(),
            "tables": [{"name": t.name, "rows": t.rows, "columns": t.columns} for t in tables],
        }
    if options.json:
        terminal.out_json({"ok": True, **state})
        return 0
    terminal.out(f"{'providers':<20}{', '.join(addresses)}")
    terminal.out(f"{'version of the data':<20}{state['version']}")
    for table in tables:
        columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns)
        terminal.out(f"table {table.name}: {table.rows:,} rows; {columns}")
    return 0


def status(connection: Connection) -> dict[str, Any]:
    """The state as plain data."""
    from louver.trusted.executor import seen_state

    context = context_of(connection)
    seen_state.refresh(context)
    catalog, ledger, pin = context.catalog, context.ledger, context.store.pin
    seen = pin.read()
    state: dict[str, Any] = {
        "database": context.engine.address or "in memory",
        "database_id": catalog.database_id,
        "key_id": context.keyring.key_id,
        "catalog_version": catalog.version,
        "fingerprint": catalog.fingerprint(),
        "ledger_length": ledger.length,
        "ledger_hash": ledger.head,
        "pinned_version": seen.version,
        "pinned_ledger": seen.ledger_length,
        "pin_file": str(pin.path or ""),
    }
    if catalog.sdb_hint:
        # The modulus is public: every statement on shares contains it.
        state["sdb_modulus"] = context.columns.modulus().hex()
    stopped = context.stopped()
    state["sums_stopped"] = [
        f"{table.label}.{column.name}"
        for table in catalog.tables.values()
        for column in table.columns
        if (table.id, column.id) in stopped
    ]
    state["tables"] = [
        {
            "name": table.label,
            "rows": table.row_count,
            "columns": [
                {"name": c.name, "type": c.type, "protection": _protection(c.scheme, c.ceiling)}
                for c in table.columns
            ],
        }
        for table in catalog.tables.values()
    ]
    return state


def _protection(scheme: str, ceiling: str) -> str:
    return f"{scheme}, may reveal {ceiling}" if scheme else "plain"
