"""Attack your own server's state, and see how many values an adversary recovers from it.

Runs the attacks that broke the scheme sdb on the database file alone: products of stored columns
are tried until one has the same key in every row, then quotients of rows give the values up to one
common factor and sign; comparisons and sums of two columns give pairs without a common divisor.
With a key file the findings are compared with the truth. Without one, --modulus says what every
statement showed to the server. Sealed columns are not touched: there is nothing to compute on.
Of columns whose layers of equality or order are open it tells what shows; with --auxiliary, a table
with columns of the same names, it runs frequency analysis and the attacks on order.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.names import fold
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import LOOKING, database, opened, state_at

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.untrusted.attacks.state import State
    from louver.untrusted.attacks.survey import Report


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="this table only")
    parser.add_argument(
        "--rows",
        type=int,
        default=2000,
        metavar="N",
        help="rows of each table to look at (default: 2000)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time to spend on each table (default: 60)",
    )
    parser.add_argument(
        "--modulus",
        metavar="HEX",
        help="the public modulus, or a file that holds it, instead of a key file",
    )
    parser.add_argument(
        "--auxiliary",
        metavar="FILE",
        help="a Parquet or CSV file of similar data, as an adversary may have from elsewhere",
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.apps import inference

    if options.modulus:
        if options.auxiliary:
            detail = "--auxiliary needs a key file: columns are matched by their names"
            raise errors.make("usage", detail=detail)
        with state_at(database(options)) as state:
            reports = attack(state, _modulus(options.modulus), options)
            told = [tell(report, None) for report in reports]
            codes = inference.of_state(state, options.table)
    else:
        with opened(options) as connection:
            told = of_connection(connection, options)
            state = state_of(connection)
            codes = inference.of_connection(connection, state, options.table, options.auxiliary)
    if options.json:
        terminal.out_json({"ok": True, "tables": told, "codes": codes})
    else:
        for line in [*(lines(told) if told or not codes else ()), *inference.lines(codes)]:
            terminal.out(line)
    return 0


def of_connection(connection: Connection, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Attack through an open connection's server, then compare with the truth."""
    modulus = int.from_bytes(connection.context.columns.modulus(), "big")
    reports = attack(state_of(connection), modulus, options)
    return [tell(report, connection) for report in reports]


def state_of(connection: Connection) -> State:
    """The state of an open connection's server, read as the server could."""
    from louver.untrusted.attacks.state import State
    from louver.wire.messages import Statement

    context = connection.context
    if not context.backend.readable:
        raise errors.make("engine.operation", engine=context.backend.name, operation=LOOKING)
    side = context.engine.side()
    return State(lambda sql: side.query(Statement(sql)))


def attack(state: State, modulus: int, options: argparse.Namespace) -> list[Report]:
    """The reports of all tables, or of one."""
    from louver.untrusted.attacks.survey import survey

    wanted = None if options.table is None else fold(options.table)
    made = survey(state, modulus, max(options.rows, 2), options.seconds)
    found = [report for report in made if wanted in (None, fold(report.table.label))]
    if options.table is not None and not found:
        known = [fold(table.label) for table in state.tables()]
        if fold(options.table) not in known:
            raise errors.make("table.missing", table=options.table)
    return found


def tell(report: Report, connection: Connection | None) -> dict[str, Any]:
    """A report as plain data, with the truth where there are keys."""
    from louver.trusted.apps import ground_truth

    columns = []
    for name in report.columns:
        found = report.recovered.get(name)
        entry: dict[str, Any] = {
            "stored_as": name,
            "zeros_visible": report.zeros[name],
            "nulls_visible": report.nulls[name],
            "attack": found.how if found else None,
            "recovered": sum(v is not None for v in found.values) if found else 0,
        }
        known = (
            None
            if connection is None
            else ground_truth.find(connection.context, report.table.schema, report.table.name, name)
        )
        if connection is not None and known is not None:
            entry["column"] = known[1].name
            if found is not None:
                real = ground_truth.values_of(connection.context, *known, report.rows)
                verdict = ground_truth.judge(known[1].name, found, real)
                entry |= {
                    "recovered": verdict.right,
                    "wrong": verdict.wrong,
                    "factor": verdict.factor,
                    "example": verdict.example,
                }
        columns.append(entry)
    return {
        "table": report.table.label, "rows": report.rows, "kept_terms": report.terms,
        "combinations_tried": report.tried, "complete": report.complete,
        "seconds": round(report.seconds, 2), "columns": columns,
    }  # fmt: skip


def lines(told: list[dict[str, Any]]) -> list[str]:
    """Reports for people."""
    if not told:
        return ["No table holds sdb ciphertexts or codes: there is nothing to attack."]
    out = []
    for table in told:
        out.append(
            f"{terminal.styled(table['table'], 'bold')}: {table['rows']:,} rows looked at, "
            f"{table['combinations_tried']:,} combinations of {table['kept_terms']} kept terms "
            f"tried in {table['seconds']:.1f} s"
        )
        out += [_line(entry, table["rows"]) for entry in table["columns"]]
        total = sum(entry["recovered"] for entry in table["columns"])
        out.append(
            f"  recovered {total:,} of {table['rows'] * len(table['columns']):,} values"
            + ("" if table["complete"] else "; time was up before all were tried")
        )
        if not table["kept_terms"]:
            out.append(
                "  The state holds no kept term: no query has brought a column of this "
                "table under a common key yet, or the table is too small to keep any. "
                "The ledger says what queries have shown."
            )
    return out


def _line(entry: dict[str, Any], rows: int) -> str:
    name = f"{entry.get('column', entry['stored_as']):<18}"
    seen = f"{entry['zeros_visible']:,} zeros and {entry['nulls_visible']:,} NULLs visible at rest"
    if entry["attack"] is None:
        return f"  {name} {terminal.styled('0 recovered', 'green')}; {seen}"
    count = terminal.styled(f"{entry['recovered']:,} of {rows:,}", "red")
    said = f"  {name} {count} by {entry['attack']}; {seen}"
    if "factor" in entry:
        said += f"; wrong: {entry['wrong']:,}; up to the factor {entry['factor']}"
        said += f" (such as: {entry['example']})" if entry["example"] else ""
    return said


def _modulus(text: str) -> int:
    path = Path(text)
    if len(text) < 256 and path.is_file():
        text = path.read_text(encoding="ascii", errors="replace")
    try:
        found = int(text.strip().removeprefix("0x"), 16)
    except ValueError:
        raise errors.make("usage", detail="--modulus takes hexadecimal digits or a file") from None
    if found.bit_length() < 512 or found % 2 == 0:
        raise errors.make("usage", detail="--modulus is not valid: it is too small or even")
    return found
