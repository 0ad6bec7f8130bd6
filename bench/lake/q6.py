"""The table of TPC-H's query 6: bounds of its files, the conditions, plaintext files to read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyiceberg.types import DateType, DecimalType, IcebergType, LongType, StringType

from bench.lake import peer, tables
from bench.lake.ranges import Bounds, Range

ROWS = 250
"""Rows per file in the thesis."""
NORMAL_ROWS = 1_000_000
"""Rows per file of a table as people write them."""
CHILDREN_PER_SCALE = 4
EPOCH = date(1970, 1, 1).toordinal()
MONEY = DecimalType(15, 2)

#: All columns of lineitem, with their types in Iceberg.
COLUMNS: dict[str, IcebergType] = {
    "l_orderkey": LongType(),
    "l_partkey": LongType(),
    "l_suppkey": LongType(),
    "l_linenumber": LongType(),
    "l_quantity": MONEY,
    "l_extendedprice": MONEY,
    "l_discount": MONEY,
    "l_tax": MONEY,
    "l_returnflag": StringType(),
    "l_linestatus": StringType(),
    "l_shipdate": DateType(),
    "l_commitdate": DateType(),
    "l_receiptdate": DateType(),
    "l_shipinstruct": StringType(),
    "l_shipmode": StringType(),
    "l_comment": StringType(),
}
#: What query 6 asks of each column, as whole numbers: days since 1970, and hundredths.
CONDITIONS: dict[str, Range] = {
    "l_shipdate": (date(1994, 1, 1).toordinal() - EPOCH, date(1995, 1, 1).toordinal() - EPOCH - 1),
    "l_discount": (5, 7),
    "l_quantity": (-(1 << 63), 2_399),
}
#: TPC-H's query 6, unmodified.
QUERY = """\
SELECT sum(l_extendedprice * l_discount) AS revenue FROM {table}
WHERE l_shipdate >= CAST('1994-01-01' AS date) AND l_shipdate < CAST('1995-01-01' AS date)
AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"""
_AS_INTEGER = {
    "l_shipdate": "(l_shipdate - DATE '1970-01-01')::BIGINT",
    "l_discount": "(l_discount * 100)::BIGINT",
    "l_quantity": "(l_quantity * 100)::BIGINT",
}


@dataclass(slots=True)
class Files:
    """Bounds of every file in each column that query 6 has a condition on, as whole numbers."""

    bounds: dict[str, Bounds]

    def __len__(self) -> int:
        return len(self.bounds["l_shipdate"])

    def first(self, count: int) -> Files:
        """The first so many files."""
        return Files({c: Bounds(b.lows[:count], b.highs[:count]) for c, b in self.bounds.items()})

    def hit(self) -> NDArray[np.bool_]:
        """Which files query 6 cannot skip."""
        hits = [self.bounds[column].hit(*item) for column, item in CONDITIONS.items()]
        return np.logical_and.reduce(hits)

    def plain(self) -> list[tables.Column]:
        """As a plaintext Iceberg table bears them."""
        results = []
        for name, kind in COLUMNS.items():
            given = self.bounds.get(name)
            if given is None:
                results.append(tables.Column(name, kind))
            elif name == "l_shipdate":
                lows, highs = tables.little(given.lows, 4), tables.little(given.highs, 4)
                results.append(tables.Column(name, kind, lows, highs))
            else:
                lows, highs = tables.big(given.lows), tables.big(given.highs)
                results.append(tables.Column(name, kind, lows, highs))
        return results


def generated(scale: float, rows: int = ROWS) -> Files:
    """The bounds of lineitem's files of `rows` rows, in the order of the generator.

    Made piece by piece, so that no more than a quarter of scale 1 is in memory.
    """
    pieces = max(1, round(scale * CHILDREN_PER_SCALE))
    parts = [", ".join(f"min({e}), max({e})" for e in _AS_INTEGER.values())]
    results = []
    with peer.connect(2, "tpch") as con:
        for piece in range(pieces):
            step = f", children={pieces}, step={piece}" if pieces > 1 else ""
            con.execute(f"CALL dbgen(sf={scale}{step})")
            figures = con.execute(
                f"SELECT {parts[0]} FROM lineitem GROUP BY rowid // {rows} ORDER BY rowid // {rows}"
            ).fetchnumpy()
            results.append(np.array([np.asarray(v, np.int64) for v in figures.values()]))
            for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                con.execute(f"DROP TABLE {name}")
    all_of = np.concatenate(results, axis=1)
    return Files({c: Bounds(all_of[2 * i], all_of[2 * i + 1]) for i, c in enumerate(_AS_INTEGER)})


def data(scale: float, path: Path) -> None:
    """All of lineitem as one Parquet file, in the order of the generator."""
    with peer.connect(2, "tpch") as con:
        con.execute(f"CALL dbgen(sf={scale})")
        con.execute(f"COPY lineitem TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def write_plain(folder: Path, source: Path, rows: int) -> tables.PlainTable:
    """A plaintext Iceberg table of files of `rows` rows, whose files exist."""
    whole = pq.ParquetFile(source)
    schema = pa.schema(
        [
            whole.schema_arrow.field(name).with_metadata({"PARQUET:field_id": str(position)})
            for position, name in enumerate(COLUMNS, 1)
        ]
    )
    (folder / "plain").mkdir(parents=True)
    figures: list[tuple[int, int]] = []
    limits: list[list[int]] = []
    for part in _batches(whole, rows):
        path = folder / "plain" / f"{len(figures)}.parquet"
        pq.write_table(part.cast(schema), path, compression="zstd", row_group_size=rows)
        figures.append((part.num_rows, path.stat().st_size))
        limits.append(_limits(part))
    sizes = np.array(figures, np.int64).T
    ends = np.array(limits, np.int64).T
    files = Files({c: Bounds(ends[2 * i], ends[2 * i + 1]) for i, c in enumerate(_AS_INTEGER)})
    table = tables.write(folder / "table", files.plain(), sizes=(sizes[0], sizes[1]))
    for number in range(len(figures)):
        (folder / "plain" / f"{number}.parquet").rename(table.path(number))
    return table


def _batches(whole: pq.ParquetFile, rows: int) -> Any:
    """Tables of exactly `rows` rows, but for the last."""
    left: pa.Table | None = None
    for batch in whole.iter_batches(max(rows, 1 << 16)):
        given = pa.Table.from_batches([batch])
        left = given if left is None else pa.concat_tables([left, given])
        whole_parts = left.num_rows // rows
        yield from (left.slice(at * rows, rows) for at in range(whole_parts))
        left = left.slice(whole_parts * rows)
    if left is not None and left.num_rows:
        yield left


def _limits(part: pa.Table) -> list[int]:
    """Least and greatest value of each of query 6's columns."""
    results = []
    for name in _AS_INTEGER:
        if name == "l_shipdate":
            values = part[name].cast(pa.int32()).to_numpy()
        else:
            hundredths = part[name].cast(pa.float64()).to_numpy() * 100
            values = np.rint(hundredths).astype(np.int64)
        results += [int(values.min()), int(values.max())]
    return results
