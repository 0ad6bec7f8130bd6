"""Attack your own server's state and count the values that an adversary recovers from it.

Runs the attacks that broke the scheme sdb on the database file alone: it tries products of stored
columns until one has the same key in every row; quotients of rows then give the values up to one
common factor and sign. Comparisons and sums of two columns give pairs without a common divisor.
With a key file the results are compared with the ground truth. Without one, pass --modulus, which
every statement shows to the server. Sealed columns are skipped, since they allow no computation.
For columns with an open equality or order layer it reports what the codes reveal; with --auxiliary,
a table with columns of the same names, it runs frequency analysis and the attacks on order.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.names import fold
from louver.trusted.apps import terminal
from louver.trusted.apps.cli_connection import database, opened, stored_at
from louver.trusted.client.inside import context_of

if TYPE_CHECKING:
    from louver.trusted.client.dbapi import Connection
    from louver.untrusted.attacks.survey import Report
    from louver.untrusted.engines.stored import Stored, StoredRows


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("table", nargs="?", metavar="TABLE", help="this table only")
    parser.add_argument(
        "--rows",
        type=int,
        default=2000,
        metavar="N",
        help="rows of each table to attack (default: 2000)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds to spend on each table (default: 60)",
    )
    parser.add_argument(
        "--modulus",
        metavar="HEX",
        help="the public modulus, or a file that contains it, instead of a key file",
    )
    parser.add_argument(
        "--auxiliary",
        metavar="FILE",
        help="a Parquet or CSV file of similar data that an adversary may have",
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    from louver.trusted.apps import inference

    if options.modulus:
        if options.auxiliary:
            detail = "--auxiliary needs a key file: columns are matched by their names"
            raise errors.make("usage", detail=detail)
        with stored_at(database(options)) as storage:
            stored = require_rows(storage, database(options))
            reports = attack(stored, _modulus(options.modulus), options)
            tables = [tell(report) for report in reports]
            codes = inference.of_stored(stored, options.table)
    else:
        with opened(options) as connection:
            tables = of_connection(connection, options)
            stored = stored_rows(connection)
            codes = inference.of_connection(connection, stored, options.table, options.auxiliary)
    if options.json:
        terminal.out_json({"ok": True, "tables": tables, "codes": codes})
    else:
        for line in [*(lines(tables) if tables or not codes else ()), *inference.lines(codes)]:
            terminal.out(line)
    return 0


def of_connection(connection: Connection, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Attack through an open connection's server, then compare with the ground truth."""
    modulus = int.from_bytes(context_of(connection).columns.modulus(), "big")
    stored = stored_rows(connection)
    reports = attack(stored, modulus, options)
    return [tell(report, (connection, stored)) for report in reports]


def stored_rows(connection: Connection) -> StoredRows:
    """What an open connection's server stores, read without the key."""
    from louver.trusted import backends

    context = context_of(connection)
    name = context.backend.name
    return require_rows(backends.engine(name).stored_of(context.engine), name)


def require_rows(stored: Stored, engine: str) -> StoredRows:
    """Tables of rows; an error for files, which have neither shares nor codes."""
    from louver.untrusted.engines.stored import StoredRows, no_rows

    if not isinstance(stored, StoredRows):
        raise no_rows(engine)
    return stored


def attack(stored: StoredRows, modulus: int, options: argparse.Namespace) -> list[Report]:
    """The reports of all tables, or of one table."""
    from louver.untrusted.attacks.survey import survey

    wanted = None if options.table is None else fold(options.table)
    survey_reports = survey(stored, modulus, max(options.rows, 2), options.seconds)
    reports = [report for report in survey_reports if wanted in (None, fold(report.table.label))]
    if options.table is not None and not reports:
        known = [fold(table.label) for table in stored.tables()]
        if fold(options.table) not in known:
            raise errors.make("table.missing", table=options.table)
    return reports


def tell(report: Report, owner: tuple[Connection, StoredRows] | None = None) -> dict[str, Any]:
    """A report as plain data, with the ground truth if the owner's connection is given."""
    columns = []
    for name in report.columns:
        recovered = report.recovered.get(name)
        entry: dict[str, Any] = {
            "stored_as": name,
            "zeros_visible": report.zeros[name],
            "nulls_visible": report.nulls[name],
            "attack": recovered.how if recovered else None,
            "recovered": sum(v is not None for v in recovered.values) if recovered else 0,
        }
        entry |= _compared(report, name, *owner) if owner else {}
        columns.append(entry)
    return {
        "table": report.table.label, "rows": report.rows, "kept_terms": report.terms,
        "combinations_tried": report.tried, "complete": report.complete,
        "seconds": round(report.seconds, 2), "columns": columns,
    }  # fmt: skip


def _compared(
    report: Report, name: str, connection: Connection, stored: StoredRows
) -> dict[str, Any]:
    """What the ground truth adds to the entry of a stored column."""
    from louver.trusted.apps import ground_truth

    context = context_of(connection)
    known = ground_truth.find(context, report.table.schema, report.table.name, name)
    if known is None:
        return {}
    recovered = report.recovered.get(name)
    if recovered is None:
        return {"column": known[1].name}
    values = ground_truth.values_of(context, report, stored, *known)
    verdict = ground_truth.judge(known[1].name, recovered, values)
    return {
        "column": known[1].name, "recovered": verdict.right, "wrong": verdict.wrong,
        "factor": verdict.factor, "example": verdict.example,
    }  # fmt: skip


def lines(tables: list[dict[str, Any]]) -> list[str]:
    """The reports as text."""
    if not tables:
        return ["No table contains sdb ciphertexts or codes; there is nothing to attack."]
    out = []
    for table in tables:
        out.append(
            f"{terminal.styled(table['table'], 'bold')}: {table['rows']:,} rows, "
            f"{table['combinations_tried']:,} combinations of {table['kept_terms']} materialized "
            f"terms tried in {table['seconds']:.1f} s"
        )
        out += [_line(entry, table["rows"]) for entry in table["columns"]]
        total = sum(entry["recovered"] for entry in table["columns"])
        out.append(
            f"  recovered {total:,} of {table['rows'] * len(table['columns']):,} values"
            + ("" if table["complete"] else "; the time limit ended the search")
        )
        if not table["kept_terms"]:
            out.append(
                "  The state contains no materialized term: no query has brought a column of this "
                "table under a common key yet, or the table is too small to materialize any. "
                "The ledger lists what queries have shown."
            )
    return out


def _line(entry: dict[str, Any], rows: int) -> str:
    name = f"{entry.get('column', entry['stored_as']):<18}"
    seen = f"{entry['zeros_visible']:,} zeros and {entry['nulls_visible']:,} NULLs visible at rest"
    if entry["attack"] is None:
        return f"  {name} {terminal.styled('0 recovered', 'green')}; {seen}"
    count = terminal.styled(f"{entry['recovered']:,} of {rows:,}", "red")
    line = f"  {name} {count} by {entry['attack']}; {seen}"
    if "factor" in entry:
        line += f"; wrong: {entry['wrong']:,}; up to the factor {entry['factor']}"
        line += f" (such as: {entry['example']})" if entry["example"] else ""
    return line


def _modulus(text: str) -> int:
    path = Path(text)
    if len(text) < 256 and path.is_file():
        text = path.read_text(encoding="ascii", errors="replace")
    try:
        modulus = int(text.strip().removeprefix("0x"), 16)
    except ValueError:
        raise errors.make("usage", detail="--modulus takes hexadecimal digits or a file") from None
    if modulus.bit_length() < 512 or modulus % 2 == 0:
        raise errors.make("usage", detail="--modulus is not valid: it is too small or even")
    return modulus
