"""Tables of a lake for tests: a store, a table of it, rows for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa

from louver.trusted.lake.store import LakeStore, Snapshot
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.pin import Pins
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import Everything, Hit, Where
from tests.sources import ROOT

ROWS = pa.schema([("n", pa.int64()), ("d", pa.date32()), ("t", pa.string())])
OFFSET = 1 << 63
KEY_FILES = ROOT / "spec/vectors/keyfile.json"


@dataclass(frozen=True)
class Span:
    """A range of mapped values."""

    column: int
    low: int
    high: int


def new_table(store: LakeStore, table_id: int = 5, **settings) -> Table:
    """A table with columns n, d and t, in the warehouse."""
    table = table_of(store, table_id, **settings)
    store.create(table)
    return table


def table_of(store: LakeStore, table_id: int = 5, **settings) -> Table:
    """What the catalog says of this table."""
    table = Table("main", f"table{table_id}", table_id)
    for number, (name, type_) in enumerate((("n", "BIGINT"), ("d", "DATE"), ("t", "VARCHAR")), 7):
        table.columns.append(Column(name, type_, number, encrypted=True, ceiling="access"))
    table.lake = store.settings_of_new_tables() | settings
    return table


def known_key(path: Path | str) -> None:
    """A key file that is always the same one.

    Whether an index keeps a file in vain depends on the key alone. It happens to about one file in
    10^5, which is too often for tests that say how many files are kept.
    """
    Path(path).touch(0o600)
    Path(path).write_text(json.loads(KEY_FILES.read_text(encoding="utf-8"))["good"][0]["text"])


def new_store(folder: Path, pins: bool = True, **options) -> LakeStore:
    key = folder / "key"
    if not key.exists():
        known_key(key)
    ring = KeyRing.open(str(key))
    pin = Pins(ring, folder / "pins").pin("database") if pins else None
    return LakeStore(Warehouse.open(str(folder / "lake")), ring, pin, **options)


def rows(first: int, count: int) -> pa.Table:
    """Rows whose n counts on, with a few NULLs in the other columns."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "d": pa.array([None if n % 5 == 0 else date(2000, 1, 1 + n % 28) for n in numbers]),
            "t": pa.array([None if n % 3 == 0 else f"text {n}" for n in numbers]),
        },
        schema=ROWS,
    )


def span(low: int, high: int, column: int = 7) -> Span:
    return Span(column, low + OFFSET, high + OFFSET)


def read(
    store: LakeStore,
    table: Table,
    where: Where | Span | None = None,
    snapshot: Snapshot | None = None,
) -> pa.Table:
    """All rows of the files that are kept, with their row ids."""
    snapshot = snapshot or store.snapshot(table)
    condition = Hit(store.token(table, where)) if isinstance(where, Span) else where or Everything()
    plan = store.plan(table, snapshot, condition)
    rows = list(store.read(table, plan.files, table.columns, row_ids=True))
    return pa.concat_tables(rows) if rows else ROWS.empty_table()


def numbers(rows: pa.Table) -> list[int]:
    return sorted(rows.column("n").to_pylist())


def once(*tables: pa.Table) -> Iterator[pa.Table]:
    return iter(tables)
