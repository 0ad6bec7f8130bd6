"""Data and queries of TPC-H and TPC-DS: DuckDB's own generators, loaded from installed packages.

The generators run in a plaintext DuckDB in memory, the one that answers are compared with. Louver's
server never loads them. The texts of the queries are the extension's; `constants.toml` says which
of their constants are replaced, because small data would leave the answer empty.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

FOLDER = Path(__file__).resolve().parent
CONSTANTS = FOLDER / "constants.toml"
POLICIES = ("sealed", "cryptdb", "mixed")


#: No text of either benchmark holds two dashes within quotes.
_COMMENT = re.compile(r"--[^\n]*")


class MissingExtension(RuntimeError):
    """The package that brings an extension of DuckDB is not installed."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One of the two: its name, its generator, and how many queries it has."""

    name: str
    generator: str
    count: int

    @property
    def numbers(self) -> range:
        """The numbers of its queries."""
        return range(1, self.count + 1)


TPCH = Benchmark("tpch", "dbgen", 22)
TPCDS = Benchmark("tpcds", "dsdgen", 99)
BENCHMARKS = {benchmark.name: benchmark for benchmark in (TPCH, TPCDS)}


def policy(name: str) -> Path:
    """The file of one of the three policies that tests and benchmarks share."""
    return FOLDER / "policies" / f"{name}.toml"


def generate(
    benchmark: Benchmark, scale: float, path: str = ":memory:"
) -> duckdb.DuckDBPyConnection:
    """A plaintext DuckDB that holds the data of a benchmark; ``scale`` 1 is about a gigabyte."""
    # Below a hundredth the generator of TPC-DS does not end.
    if scale < 0.01:
        raise ValueError("the smallest scale is 0.01")
    con = opened(benchmark, path)
    con.execute(f"CALL {benchmark.generator}(sf = {scale})")
    return con


def opened(
    benchmark: Benchmark, path: str, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """A plaintext DuckDB that knows a benchmark's generator and queries, and asks no network."""
    con = duckdb.connect(
        path, read_only=read_only, config={"autoinstall_known_extensions": "false"}
    )
    con.execute(f"LOAD '{_extension(benchmark.name)}'")
    return con


def tables(con: duckdb.DuckDBPyConnection) -> dict[str, list[tuple[str, str]]]:
    """Every table that was generated, with the names and types of its columns."""
    names: dict[str, list[tuple[str, str]]] = {}
    rows = con.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        " WHERE NOT internal AND schema_name = 'main' ORDER BY table_name, column_index"
    ).fetchall()
    for table, column, type_ in rows:
        names.setdefault(table, []).append((column, type_))
    return names


def rows_of(con: duckdb.DuckDBPyConnection, table: str) -> pa.Table:
    """A generated table as Arrow."""
    return con.execute(f'FROM "{table}"').to_arrow_table()


def queries(con: duckdb.DuckDBPyConnection, benchmark: Benchmark) -> dict[int, str]:
    """The text of every query by its number, with the constants that find rows in small data."""
    texts = originals(con, benchmark)
    return {number: substituted(benchmark, number, text) for number, text in texts.items()}


def originals(con: duckdb.DuckDBPyConnection, benchmark: Benchmark) -> dict[int, str]:
    """The texts as the extension has them, with every run of blanks made one and no comments."""
    queries = con.execute(f"SELECT query_nr, query FROM {benchmark.name}_queries()").fetchall()
    bare = ((number, _COMMENT.sub("", text)) for number, text in queries)
    return {number: " ".join(text.split()).rstrip("; ") for number, text in bare}


def substituted(benchmark: Benchmark, number: int, text: str) -> str:
    """A text with the constants of the table put in; one that is not in the text is an error."""
    for old, new in constants().get(benchmark.name, {}).get(str(number), {}).items():
        if old not in text:
            raise LookupError(f"{benchmark.name} {number} has no {old!r}")
        text = text.replace(old, new)
    return text


@functools.cache
def constants() -> dict[str, dict[str, dict[str, str]]]:
    """Benchmark, number of the query, what its text says, what it says instead."""
    return tomllib.loads(CONSTANTS.read_text(encoding="utf-8"))


def _extension(name: str) -> Path:
    """The file of an extension within its package; DuckDB checks its signature."""
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    if spec is None or spec.origin is None:
        raise MissingExtension(f"duckdb-extension-{name} is not installed")
    folder = Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
    path = folder / f"{name}.duckdb_extension"
    if not path.is_file():
        raise MissingExtension(f"duckdb-extension-{name} has none for DuckDB {duckdb.__version__}")
    return path
