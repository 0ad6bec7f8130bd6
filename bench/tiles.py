"""Tiles: sealing and opening whole columns, one core, against Parquet and a copy of memory."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import isolate, report
from bench.timing import best

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ID = (1, 2, 0)
"""Table, column and generation: which key."""
FIRST = 1 << 36
LIMIT = 1 << 20
PARQUET = "Parquet, dictionary and snappy"
COPY = "a copy of the memory"


def run(*, quick: bool) -> report.Report:
    """A line for each type and operation."""
    rows = 1 << (17 if quick else 20)
    figures = isolate.run("bench.tiles:measured", environment=ONE_THREAD, rows=rows)
    section = report.Report("tiles", "Sealing and opening tiles, one core")
    for name in columns(1):
        for what, peer in (("open", PARQUET), ("open", COPY), ("seal", PARQUET)):
            theirs = figures[f"{name} {what} {peer}"]
            section.lines.append(
                report.Line(
                    f"{what}, {name}", figures[f"{name} {what}"], "MB/s", peer, theirs,
                    more_is_better=True, peak_mib=figures["peak_mib"],
                )
            )  # fmt: skip
        section.lines.append(
            report.Line(
                f"size, {name}", figures[f"{name} size"], "bytes/value", PARQUET,
                figures[f"{name} size {PARQUET}"],
            )
        )  # fmt: skip
    section.notes.append(
        f"{rows:,} values in calls of 131,072, RAYON_NUM_THREADS=1, best run by processor time; "
        "megabytes are those of the Arrow column. Parquet is read and written by pyarrow from and "
        "to memory, without encryption and without threads, a column by itself."
    )
    return section


def columns(rows: int) -> dict[str, tuple[pa.Array, Callable[[pa.Array], Any]]]:
    """Columns as benchmarks of databases have them, each with the form of its tiles."""
    from louver._rust import tiles

    chance = np.random.default_rng(1)
    modes = np.array(["TRUCK", "MAIL", "REG AIR", "SHIP", "RAIL", "FOB", "AIR"])
    words = np.array(["slyly", "final", "deposits", "quickly", "the", "furious", "requests"])
    drawn = words[chance.integers(0, len(words), (rows, 5))]
    nulls = chance.random(rows) < 0.1
    keys = chance.integers(0, 1 << 20, rows)

    def packed(high: int, *, nulls: bool = False) -> Callable[[pa.Array], Any]:
        return lambda _: tiles.Form.bounds(0, high, nulls)

    def units(values: pa.Array) -> Any:
        return tiles.Form.units(tiles.unit(values, LIMIT), LIMIT)

    cents = pa.array(chance.integers(0, 10**7, rows)).cast(pa.decimal128(19, 0))
    return {
        "BIGINT of 20 bits": (pa.array(keys), packed((1 << 20) - 1)),
        "BIGINT of 20 bits, NULLs": (
            pa.array(keys, mask=nulls), packed((1 << 20) - 1, nulls=True),
        ),
        "DATE": (
            pa.array(chance.integers(8000, 10_600, rows).astype("int32")).view(pa.date32()),
            packed(10_600),
        ),
        "DECIMAL": (cents, packed(10**7)),
        "DOUBLE": (
            pa.array(chance.normal(size=rows)), lambda _: tiles.Form.packed(0, 64, nulls=False),
        ),
        "TEXT of 7 kinds": (pa.array(modes[chance.integers(0, len(modes), rows)]), units),
        "TEXT of five words": (pa.array([" ".join(row) for row in drawn.tolist()]), units),
    }  # fmt: skip


def measured(rows: int) -> dict[str, float]:
    """Megabytes a second of all columns and operations, and bytes a value."""
    from louver._rust import Epochs, KeyRing, tiles

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.louverkey"
        KeyRing.create(str(path))
        ring = KeyRing.open(str(path))
    epochs, part = Epochs(0, [(1, bytes(range(16)))]), 1 << 17
    results: dict[str, float] = {}
    for name, (values, form_of) in columns(rows).items():
        form, kind = form_of(values), values.type
        parts = [values.slice(start, part) for start in range(0, rows, part)]
        parts = [pa.concat_arrays([values]) for values in parts]
        firsts = [
            pa.array(range(FIRST + part * turn, FIRST + part * turn + len(values), tiles.ROWS))
            for turn, values in enumerate(parts)
        ]
        sealed = [
            tiles.seal(ring, ID, epochs, form, values, ids[0].as_py())
            for values, ids in zip(parts, firsts, strict=True)
        ]
        pairs = list(zip(sealed, firsts, strict=True))

        def opened(pairs: Any = pairs, form: Any = form, kind: Any = kind) -> list[pa.Array]:
            return [tiles.open(ring, ID, epochs, form, s, ids, kind)[0] for s, ids in pairs]

        def seal(parts: Any = parts, form: Any = form) -> list[pa.Array]:
            return [tiles.seal(ring, ID, epochs, form, values, FIRST) for values in parts]

        assert pa.concat_arrays(opened()).equals(values)
        pages = [_written(values) for values in parts]
        size = sum(buffer.size for values in parts for buffer in values.buffers() if buffer)
        results |= {
            f"{name} open": _speed(size, opened),
            f"{name} open {PARQUET}": _speed(size, lambda pages=pages: [*map(_read, pages)]),
            f"{name} open {COPY}": _speed(size, lambda parts=parts: [*map(_copied, parts)]),
            f"{name} seal": _speed(size, seal),
            f"{name} seal {PARQUET}": _speed(size, lambda parts=parts: [*map(_written, parts)]),
            f"{name} size": sum(len(tile) for s in sealed for tile in s.to_pylist()) / rows,
            f"{name} size {PARQUET}": sum(map(len, pages)) / rows,
        }
    return results


def _written(values: pa.Array) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"c": values}), out)
    return out.getvalue()


def _read(page: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(page), use_threads=False)


def _copied(values: pa.Array) -> list[bytearray]:
    return [bytearray(buffer) for buffer in values.buffers() if buffer]


def _speed(size: int, work: Callable[[], Any]) -> float:
    # Processor time of one thread: a rate per core, whatever else the machine does.
    return size / best(work, clock=time.process_time) / 1e6
