"""Small data sets, prepared shapes, and what DuckDB says of the same rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from louver.untrusted.providers.dataset import LoadedData
from louver.untrusted.providers.provider import Provider
from louver.untrusted.providers.sandbox import Limits
from louver.untrusted.providers.tables import Table
from louver.wire import records
from louver.wire.questions import Order, Partial, Prepared, Shape, TableFacts

VERSION = b"v" * 32
COLUMNS = (
    ("a", "INTEGER"),
    ("b", "VARCHAR"),
    ("d", "DATE"),
    ("x", "DECIMAL(9,2)"),
    ("y", "DOUBLE"),
    ("i", "BIGINT"),
)
ARROW = {
    "INTEGER": pa.int32(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
}
Row = tuple[Any, ...]

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-3, 3), st.just(2**31 - 1)),
        st.one_of(st.none(), st.sampled_from(["", "a", "b", "Zürich"])),
        st.one_of(st.none(), st.dates(dt.date(2013, 1, 1), dt.date(2013, 1, 9))),
        st.one_of(st.none(), st.integers(-500, 500).map(lambda v: Decimal(v) / 4)),
        st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 0.25, 4.0, 1024.0])),
        st.one_of(st.none(), st.integers(-4, 4), st.just(2**62)),
    ),
    max_size=24,
)

PARTIALS = (
    Partial("count"),
    Partial("count", ("x",)),
    Partial("sum", ("i",)),
    Partial("sum", ("x",), "y > 0"),
    Partial("sum", ("y",)),
    Partial("min", ("x",)),
    Partial("max", ("b",)),
    Partial("max", ("y",)),
    Partial("arg_max", ("b", "x")),
    Partial("arg_min", ("d", "y"), "a IS NOT NULL"),
    Partial("product", ("y",)),
    Partial("bool_and", ("i > 0",)),
    Partial("bool_or", ("i > 0",)),
    Partial("bit_and", ("i",)),
    Partial("bit_or", ("a",)),
    Partial("bit_xor", ("i",)),
)
#: The same, said in another way: ties go to the first row.
ORACLES = (
    "count(*)",
    "count(x)",
    "sum(i)",
    "sum(x) FILTER (y > 0)",
    "sum(y)",
    "min(x)",
    "max(b)",
    "max(y)",
    "first(b ORDER BY x DESC, louver_position) FILTER (x IS NOT NULL AND b IS NOT NULL)",
    "first(d ORDER BY y, louver_position) FILTER (d IS NOT NULL AND y IS NOT NULL "
    "AND a IS NOT NULL)",
    "product(y ORDER BY louver_position)",
    "bool_and(i > 0)",
    "bool_or(i > 0)",
    "bit_and(i)",
    "bit_or(a)",
    "bit_xor(i)",
)
TOP = {
    "columns": ("b", "a // 2"),
    "orders": (Order("x", descending=True), Order("d", nulls_first=True)),
    "limit": 2,
}
TOP_ORACLE = (
    "SELECT b, a // 2, x, d, louver_position FROM t WHERE {} "
    "ORDER BY x DESC NULLS LAST, d NULLS FIRST, louver_position LIMIT 2"
)


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows at once: one by one they take DuckDB a millisecond each."""
    columns = zip(*rows, strict=True)
    types = [ARROW[kind] for _, kind in COLUMNS]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[name for name, _ in COLUMNS])


def stored(folder: Path, rows: Sequence[Row]) -> LoadedData:
    """A data set as a provider loads it: table t, and u with the columns a and n."""
    path = folder / "data.duckdb"
    path.unlink(missing_ok=True)
    names = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    with duckdb.connect(str(path)) as database:
        database.execute(f"CREATE TABLE t ({names}, louver_position BIGINT)")
        database.execute("CREATE TABLE u (a INTEGER, n VARCHAR, louver_position BIGINT)")
        database.execute("INSERT INTO u VALUES (1, 'one', 0), (2, 'two', 1), (1, 'uno', 2)")
        if rows:
            database.register("given", arrow(rows))
            database.execute("INSERT INTO t SELECT *, row_number() OVER () - 1 FROM given")
    facts = (
        TableFacts("t", COLUMNS, len(rows)),
        TableFacts("u", (("a", "INTEGER"), ("n", "VARCHAR")), 3),
    )
    return LoadedData(VERSION, path, facts)


class Holding:
    """A provider of some rows, and a DuckDB that answers in plain."""

    def __init__(self, folder: Path, rows: Sequence[Row], **limits: Any) -> None:
        self.loaded = stored(folder, rows)
        self.folder = folder / "prepared"
        self.folder.mkdir(exist_ok=True)
        allowed = Limits(**{"threads": 1, **limits})
        self.provider = Provider(self.loaded, self.folder, limits=allowed)
        self.plain = duckdb.connect(
            ":memory:", config={"threads": 1, "arrow_lossless_conversion": "true"}
        )
        self.plain.execute(f"ATTACH '{self.loaded.database}' AS data (READ_ONLY)")
        self.plain.execute("USE data")

    def prepare(self, shape: Shape) -> tuple[Prepared, Table]:
        prepared = self.provider.prepare(shape, VERSION)
        table = self.provider._cache.find(prepared.shape_id)
        assert table is not None
        assert table.prepared == prepared
        return prepared, table

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self.plain.execute(sql, list(parameters) or None).fetchall()

    def read(self, table: pa.Table) -> list[Row]:
        """Rows of an Arrow table, as DuckDB reads them."""
        self.plain.register("read_here", table)
        return self.plain.execute("SELECT * FROM read_here").fetchall()

    def record(self, table: Table, level: int, at: int, mark: int | None = None) -> list[Row]:
        """The rows of one record."""
        form = table.prepared.levels[level]
        data = table.array(f"records.{level}")[at * form.stored :][: form.stored].tobytes()
        assert not any(data[form.width :]), "what does not travel is zero"
        return self.read(records.decode(data[: form.width], table.prepared, level, mark))

    def close(self) -> None:
        self.provider.close()
        self.plain.close()


def groups(rows: Sequence[Row]) -> list[str]:
    """Rows without an order, to be compared."""
    return sorted(map(repr, rows))
