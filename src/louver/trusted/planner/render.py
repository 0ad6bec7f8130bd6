"""A remote query as text."""

from __future__ import annotations

from collections.abc import Mapping

from louver.trusted.backends.backend import Backend
from louver.trusted.backends.printer import Printer
from louver.trusted.planner.ir import Node, RemoteQuery, Slot, TableRef
from louver.trusted.planner.operators import keys
from louver.trusted.vault.catalog import Table


def slots_of(
    remote: RemoteQuery, tables: Mapping[int, Table], backend: Backend, *, materialized: bool
) -> dict[int, Slot]:
    """The printer's view of the tables, which are given by id: their names on the server, the
    columns of S, and which of its powers are kept.
    """
    slots = {}
    for source in (*remote.sources, *remote.inner):
        table = tables[source.table]
        slots[source.slot] = Slot(
            source.server_alias,
            backend.table(table),
            table.helper_one,
            table.kept if materialized else {},
        )
    return slots


def remote_text(remote: RemoteQuery, printer: Printer) -> str:
    """The SELECT that the server runs. A grouped query with conditions on its result is wrapped,
    so that HAVING computes on columns.
    """
    slots = () if remote.grouped else remote.row_slots()
    items = [f"{s.server_alias}.row_id AS r{s.slot}" for s in remote.sources if s.slot in slots]
    items += [
        f"{printer.print(output.node)} AS {_name(output.name, remote)}"
        for output in remote.outputs
        if output.node is not None
    ]
    items += [
        f"{printer.print(output.row)} AS {_name(output.name, remote)}_r"
        for output in remote.outputs
        if output.row is not None
    ]
    if not items:
        items.append("count(*) AS louver_c0" if remote.grouped else "1 AS louver_c0")
    lines = [f"SELECT {', '.join(items)}", f"FROM {_from(remote, printer)}"]
    if remote.where:
        lines.append("WHERE " + " AND ".join(_condition(node, printer) for node in remote.where))
    if remote.group:
        lines.append("GROUP BY " + ", ".join(printer.print(node) for node in remote.group))
    if remote.order:
        lines.append("ORDER BY " + ", ".join(printer.print(node) for node in remote.order))
    if remote.limit:
        lines.append("LIMIT " + remote.limit)
    text = "\n".join(lines)
    if remote.having:
        conditions = " AND ".join(printer.print(node) for node in remote.having)
        text = f"SELECT h.*\nFROM ({text}) AS h\nWHERE {conditions}"
    return text


def _condition(node: Node, printer: Printer) -> str:
    """One of the conditions of WHERE."""
    text = printer.print(node)
    return (
        text
        if keys.looks_up(node)
        else keys.sieved(text, len(keys.codes_of(node)), printer.backend)
    )


def _name(name: str, remote: RemoteQuery) -> str:
    """Names of the answer's columns: a scan's are positions, since declared names stay home."""
    if name.startswith("louver_c"):
        return name
    position = next(i for i, output in enumerate(remote.outputs) if output.name == name)
    return f"louver_c{position}"


def answer_name(name: str, remote: RemoteQuery) -> str:
    """The name under which an output comes back."""
    return _name(name, remote)


def _table(source: TableRef, printer: Printer) -> str:
    return f"{printer.slots[source.slot].name} AS {source.server_alias}"


def _from(remote: RemoteQuery, printer: Printer) -> str:
    parts = [_table(remote.sources[0], printer)]
    for join in remote.joins:
        table = _table(join.source, printer)
        on = " AND ".join(printer.print(node) for node in join.on)
        parts.append(f"{join.kind} {table}" + (f" ON {on}" if on else ""))
    return "\n  ".join(parts)
