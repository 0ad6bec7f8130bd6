"""Powers of the helper column S that the server keeps.

A key update costs an exponentiation per row, S_e^p. The exponents p are differences of fixed
offsets, so a query shape meets the same ones again; kept, each later update costs a product.
The server could keep them without being asked, so nothing is revealed by it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from louver.trusted.planner.plan import Remote
from louver.trusted.runtime.answer import Clock
from louver.trusted.vault.catalog import Table
from louver.wire.messages import Statement

if TYPE_CHECKING:
    from louver.trusted.runtime.session import Session

# Exponents do not depend on the statement's numbers; any will do.
_ANY_NUMBERS = ["1"] * 1024
LEAST_ROWS = 500
"""Below this many rows the powers are computed anew each time: quicker than changing a table."""


def keep(session: Session, remote: Remote, clock: Clock) -> None:
    """Compute and keep on the server every power that a remote query needs and that is missing."""
    wanted: dict[int, set[int]] = {}
    for update in remote.updates():
        for slot, p in session.columns.resolve(update, _ANY_NUMBERS).powers.items():
            if p:
                wanted.setdefault(slot, set()).add(p)
    tables: dict[int, tuple[Table, set[int]]] = {}
    for source in remote.sources:
        if source.slot in wanted and source.table.row_count >= LEAST_ROWS:
            held = tables.setdefault(source.table.id, (source.table, set()))
            held[1].update(wanted[source.slot])
    for table, exponents in tables.values():
        missing = sorted(p for p in exponents if f"{p:x}" not in table.powers)
        if missing or not table.powers_complete:
            with clock.step("powers"):
                _compute(session, table, missing)


def _compute(session: Session, table: Table, missing: list[int]) -> None:
    with session.writing() as catalog:
        held = catalog.table(table.schema, table.name)
        if held is None:
            return
        if not held.powers_complete:
            _fill(session, held, {int(p, 16): name for p, name in held.powers.items()})
        fresh = {p: f"w_{secrets.token_hex(6)}" for p in missing}
        for name in fresh.values():
            session.engine.run(
                Statement(f"ALTER TABLE {held.server} ADD COLUMN {name} BLOB", kind="ddl")
            )
        _fill(session, held, fresh)
        held.powers |= {f"{p:x}": name for p, name in fresh.items()}
        held.powers_complete = True
    # Plans hold the table that they were made with; it must know the powers too.
    table.powers, table.powers_complete = held.powers, True


def _fill(session: Session, table: Table, columns: dict[int, str]) -> None:
    """Compute powers where they are missing, all of one row with shared squarings."""
    if not columns:
        return
    names = list(columns.values())
    exponents = [p.to_bytes((p.bit_length() + 7) // 8, "big") for p in columns]
    places = ", ".join(f"${index}::BLOB" for index in range(1, len(names) + 1))
    sets = ", ".join(f"{name} = u.louver_p[{index}]" for index, name in enumerate(names, 1))
    modulus = f"${len(names) + 1}"
    session.engine.run(
        Statement(
            f"UPDATE {table.server} AS t SET {sets} FROM (SELECT row_id AS louver_r,"
            f" sdb_powers({table.helper_one}, [{places}], {modulus}) AS louver_p"
            f" FROM {table.server} WHERE {names[0]} IS NULL) AS u WHERE t.row_id = u.louver_r",
            (*exponents, session.columns.modulus()),
            kind="write",
        )
    )
