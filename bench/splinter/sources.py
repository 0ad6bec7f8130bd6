"""The tables of Figure 8, made once and kept in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from examples.flights import data as flights
from examples.restaurants import data as restaurants

PACKAGE = f"{flights.VEGA_PACKAGE}@3.2.1"
GIVEN = "LOUVER_FLIGHTS_3M"
#: Raised when a recipe changes, so that no older file is taken for it.
RECIPE = 1
QUICK_ROWS = {"restaurants": 20_000, "flights": 300_000}
ROWS = {"restaurants": restaurants.ROWS, "flights": flights.ROWS}


class NoData(RuntimeError):
    """The flights could not be had."""


def table(name: str, quick: bool) -> Path:
    """The Parquet file of `restaurants` or `flights`."""
    rows = (QUICK_ROWS if quick else ROWS)[name]
    path = cache() / f"{RECIPE}-{rows}" / f"{name}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        result = restaurants.restaurants(rows) if name == "restaurants" else _flights(rows)
        part = path.with_suffix(".part")
        pq.write_table(result, part)
        part.replace(path)
    return path


def cache() -> Path:
    """Where made tables and the package lie."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "louver-bench"


def _flights(rows: int) -> pa.Table:
    return flights.vega(three_millions(), rows)


def three_millions() -> Path:
    """`flights-3m.parquet` of npm's vega-datasets, by the ordinary client."""
    if given := os.environ.get(GIVEN):
        return Path(given)
    path = cache() / PACKAGE / "flights-3m.parquet"
    if path.exists():
        return path
    npm = shutil.which("npm")
    if npm is None:
        raise NoData(
            f"npm is not here: install it, or set {GIVEN} to data/flights-3m.parquet of {PACKAGE}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [npm, "pack", "--silent", PACKAGE], cwd=path.parent, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise NoData(f"`npm pack {PACKAGE}` failed; or set {GIVEN} to its flights-3m.parquet")
    archive = path.parent / done.stdout.split()[-1]
    with tarfile.open(archive) as packed, packed.extractfile(flights.VEGA_FILE) as file:
        part = path.with_suffix(".part")
        part.write_bytes(file.read())
        part.replace(path)
    archive.unlink()
    return path
