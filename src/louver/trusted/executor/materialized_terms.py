"""What the server keeps of the products that queries need again and again.

A key update costs an exponentiation per row: q·A_e·S_e^p. The exponents p are differences of
fixed offsets, so a query shape meets the same ones again, and only q depends on the numbers of a
statement. So the server keeps A_e·S_e^p, or R_e·A_e·S_e^p for a comparison, and every later
statement of the shape costs it products. It could keep them without being asked: nothing is
revealed by it (docs/decisions/0003).
"""

from __future__ import annotations

import secrets
from weakref import WeakSet

from louver.trusted.executor import transaction
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.server_storage import Printed
from louver.trusted.planner.ir import Call, Column, Node, RemoteQuery, Term, term_name
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.stored_types import BYTES
from louver.wire.messages import Statement

LEAST_ROWS = 500
"""Below this many rows products are computed anew each time: quicker than changing a table."""

Wanted = dict[str, tuple[int, list[str]]]
"""A term's name to its exponent and the columns that are multiplied with the power."""


class _Asked(WeakSet[RemoteQuery]):
    """The queries for which the server stores all that they need."""


def keep(context: Context, remote: RemoteQuery, clock: Clock) -> None:
    """Compute on the server and keep every term that a remote query needs and that is missing."""
    known = context.state.cache(_Asked)
    if remote in known:
        return
    wanted: dict[int, tuple[Table, Wanted]] = {}
    tables = {source.slot: context.catalog.by_id(source.table) for source in remote.sources}
    for term in remote.terms():
        powers = {slot: p for slot, p in context.columns.powers(term.update).items() if p}
        for slot, p in powers.items():
            table = tables[slot]
            if table.row_count >= LEAST_ROWS:
                held = wanted.setdefault(table.id, (table, {}))
                # An operand can be kept with the power only if it is of the power's table alone.
                _want(held[1], term, p, alone=len(powers) == 1)
    for table, terms in wanted.values():
        missing = {name: parts for name, parts in terms.items() if name not in table.kept}
        if missing or not table.kept_complete:
            with clock.step("keep"):
                _compute(context, table, missing)
    # A plan lives until the next write, so this stays true as long as it is asked.
    known.add(remote)
    context.state.cache(Printed).pop(remote, None)


def _want(terms: Wanted, term: Term, p: int, *, alone: bool) -> None:
    name = term.name(p) if alone else ""
    if name:
        parts = [node for node in (term.random, term.operand) if node is not None]
        terms[name] = (p, [column for node in parts for column in _columns(node)])
    elif term.random is None:
        terms[term_name(None, None, p)] = (p, [])


def _columns(node: Node) -> list[str]:
    if isinstance(node, Column):
        return [node.name]
    if isinstance(node, Call):
        return [column for argument in node.arguments for column in _columns(argument)]
    return []


def _compute(context: Context, table: Table, missing: Wanted) -> None:
    with transaction.writing(context) as catalog:
        held = catalog.by_id(table.id)
        fresh = {name: f"w_{secrets.token_hex(6)}" for name in missing}
        for column in fresh.values():
            sql = context.backend.add_column(held, column, context.backend.stored_type(BYTES))
            context.engine.run(Statement(sql, kind="ddl"))
        if not held.kept_complete:
            _fill(context, held, {name: _parts(name) for name in held.kept}, held.kept)
        _fill(context, held, missing, fresh)
        held.kept |= fresh
        held.kept_complete = True


def _parts(name: str) -> tuple[int, list[str]]:
    """A kept term's exponent and columns, from its name."""
    *columns, p = name.split("*")
    return int(p, 16), columns


def _fill(context: Context, table: Table, terms: Wanted, columns: dict[str, str]) -> None:
    """Compute terms where they are missing."""
    if not terms:
        return
    exponents = sorted({p for p, _ in terms.values()})
    placed = {name: (exponents.index(p), parts) for name, (p, parts) in terms.items()}
    sql = context.backend.materialize(table, placed, columns, len(exponents))
    numbers = [p.to_bytes((p.bit_length() + 7) // 8, "big") for p in exponents]
    context.engine.run(Statement(sql, (*numbers, context.columns.modulus()), kind="write"))
