"""All attacks on all tables of a server's state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from louver.untrusted.attacks.attribution import Symbols, attributed
from louver.untrusted.attacks.common_key import Numbers, combinations, search
from louver.untrusted.attacks.coprime import Recovered, conclude
from louver.untrusted.engines.stored import StoredRows, StoredTable

SHARE, HELPER, TERM = "s_", "h_", "w_"
"""The name prefixes of server columns: ciphertexts of values, helpers, materialized terms."""


@dataclass(slots=True)
class Report:
    """What was recovered from one table."""

    table: StoredTable
    rows: int
    columns: list[str]
    terms: int
    tried: int = 0
    complete: bool = True
    seconds: float = 0.0
    zeros: dict[str, int] = field(default_factory=dict)
    nulls: dict[str, int] = field(default_factory=dict)
    #: the best attack by column; a column that resisted has none
    recovered: dict[str, Recovered] = field(default_factory=dict)


def survey(stored: StoredRows, modulus: int, rows: int, budget_s: float) -> Iterator[Report]:
    """Attack every table with sdb ciphertexts."""
    for table in stored.tables():
        if not table.own and _named(stored.types(table), SHARE):
            yield attack_table(stored, table, modulus, rows, budget_s)


def attack_table(
    stored: StoredRows, table: StoredTable, modulus: int, rows: int, budget_s: float
) -> Report:
    """Try every combination of stored columns on one table."""
    start = time.monotonic()
    types = stored.types(table)
    shares, helpers, terms = (_named(types, prefix) for prefix in (SHARE, HELPER, TERM))
    items = stored.columns(table, [*shares, *helpers, *terms], rows)
    columns = {
        name: [-1 if item is None else int.from_bytes(item, "big") for item in values.to_pylist()]
        for name, values in items.items()
    }
    report = Report(table, len(columns[shares[0]]), shares, len(terms))
    for name in shares:
        report.zeros[name] = sum(value == 0 for value in columns[name])
        report.nulls[name] = sum(value < 0 for value in columns[name])
    if report.rows:
        _try_all(report, columns, modulus, (shares, helpers, terms), budget_s)
    report.seconds = time.monotonic() - start
    return report


def _named(types: pa.Schema, prefix: str) -> list[str]:
    """The columns with this name prefix that contain bytes."""
    return [f.name for f in types if f.name.startswith(prefix) and pa.types.is_binary(f.type)]


def _try_all(
    report: Report,
    columns: Numbers,
    modulus: int,
    names: tuple[list[str], list[str], list[str]],
    budget_s: float,
) -> None:
    shares, helpers, terms = names
    factors = [*shares, *helpers]
    products, report.tried, report.complete = search(
        columns, combinations(factors, terms), modulus, budget_s
    )
    symbols = Symbols(columns, modulus)
    products = [attributed(product, symbols, shares, helpers) for product in products]
    for product in conclude(products, shares):
        best = report.recovered.get(product.column)
        if best is None or _count(product) > _count(best):
            report.recovered[product.column] = product


def _count(recovered: Recovered) -> int:
    """Rows about which something is known; coprime pairs give fewer certain ones."""
    known = sum(value is not None for value in recovered.values)
    return known // 2 if recovered.exact else known
