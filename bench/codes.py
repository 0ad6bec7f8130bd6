"""Codes: making them at home, opening and comparing them on the server; one thread each."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from bench import isolate, report
from bench.timing import best

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PLACE = (1, 1, 1)
"""Table, column and generation: which key."""
EQ, ORD, ORE, OPEN = (1 << 20, 1 << 20, 1 << 17, 1 << 20)
"""Values of a full run."""


def run(*, quick: bool) -> report.Report:
    """One process for us, one for the peers, one thread each."""
    scale = 16 if quick else 1
    ours = isolate.run("bench.codes:louver", environment=ONE_THREAD, scale=scale)
    theirs = isolate.run("bench.codes:peers", environment=ONE_THREAD, scale=scale)
    section = report.Report("codes", "Codes that a server compares, one core")
    block, sort, scan = "AES-128, a block each, by OpenSSL", "sorting them, numpy", "DuckDB: "
    for what, peer, name, target in [
        ("eq codes, BIGINT", block, "aes", 10e6),
        ("eq codes in a group, BIGINT", block, "aes", None),
        ("eq codes, TEXT of 6-13", block, "aes", 10e6),
        ("eq close, BIGINT", block, "aes", None),
        ("ord codes, 32 bits", sort, "sort", 200e3),
        ("ord codes, 64 bits", sort, "sort", 200e3),
        ("ore seal, 32 bits", block, "aes", None),
        ("onion_open, BIGINT", scan + "xor", "xor", None),
        ("onion_open_wide, UUID", scan + "xor", "xor", None),
        ("onion_join, BIGINT", scan + "xor", "xor", None),
        ("ore_compare, 32 bits", scan + "comparison", "compare", None),
    ]:
        section.lines.append(
            report.Line(
                what, ours[what], "values/s", peer, theirs[name], more_is_better=True,
                target=target, peak_mib=ours["peak_mib"], peer_peak_mib=theirs["peak_mib"],
            )
        )  # fmt: skip
    section.notes.append(
        f"{EQ // scale:,} different values in one call ({ORE // scale:,} for ore), best run by "
        "processor time. Functions of the server run in "
        "DuckDB with one thread and write a table; the peer's statement writes one too, but for "
        "comparisons, which count."
    )
    return section


def louver(scale: int) -> dict[str, float]:
    """Values per second."""
    from louver.trusted.vault.epochs import Epochs, draw
    from louver.trusted.vault.keyring import KeyRing

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.louverkey"
        KeyRing.create(path)
        ring = KeyRing.open(path).of(Epochs({0: draw()}))
    return _home(ring, scale) | _server(ring, scale)


def _home(ring: Any, scale: int) -> dict[str, float]:
    values, words = _numbers(EQ // scale), _words(EQ // scale)
    rows = pa.array(range(len(values)))
    codes = ring.eq_codes(*PLACE, "", "int", values)
    small = pa.array(np.random.default_rng(2).integers(0, 1 << 32, ORD // scale))
    few = small.slice(0, ORE // scale)
    whole = (-(1 << 63), 64)
    works: dict[str, tuple[pa.Array, Callable[[], Any]]] = {
        "eq codes, BIGINT": (values, lambda: ring.eq_codes(*PLACE, "", "int", values)),
        "eq codes in a group, BIGINT": (
            values,
            lambda: ring.eq_codes(*PLACE, "group", "int", values),
        ),
        "eq codes, TEXT of 6-13": (words, lambda: ring.eq_codes(*PLACE, "", "text", words)),
        "eq close, BIGINT": (values, lambda: ring.close_codes(*PLACE, "eq", codes, rows)),
        "ord codes, 32 bits": (
            small,
            lambda: ring.ord_codes(*PLACE, "", "int", 0, 32, small),
        ),
        "ord codes, 64 bits": (
            values,
            lambda: ring.ord_codes(*PLACE, "", "int", *whole, values),
        ),
        "ore seal, 32 bits": (few, lambda: ring.ore_seal(*PLACE, "int", 0, 32, few)),
    }
    return {name: _speed(len(given), work) for name, (given, work) in works.items()}


def _server(ring: Any, scale: int) -> dict[str, float]:
    from louver.untrusted.engines.duckdb import DuckDBEngine

    engine = DuckDBEngine(threads=1)
    values, words = _numbers(OPEN // scale), _words(OPEN // scale)
    rows = pa.array(range(len(values)))
    narrow = ring.eq_codes(*PLACE, "group", "int", values)
    wide = ring.close_codes(*PLACE, "eq", ring.eq_codes(*PLACE, "", "text", words), rows)
    codes = {
        "row_id": rows,
        "closed": ring.close_codes(*PLACE, "eq", narrow, rows),
        "wide": pa.ExtensionArray.from_storage(pa.uuid(), wide),
        "code": narrow,
    }
    small = pa.array(np.random.default_rng(3).integers(0, 1 << 32, ORE // scale))
    sealed = ring.ore_seal(*PLACE, "int", 0, 32, small)
    tables = {"codes": pa.table(codes), "sealed": pa.table({"v": sealed})}
    layer, adjusting = ring.layer_key(*PLACE, "eq", 0), ring.det_key(*PLACE)
    token = ring.ore_token(*PLACE, "int", 0, 32, pa.array([1 << 31]))
    statements = {
        "onion_open, BIGINT": ("codes", f"onion_open(closed, row_id, {_blob(layer)})"),
        "onion_open_wide, UUID": ("codes", f"onion_open_wide(wide, row_id, {_blob(layer)})"),
        "onion_join, BIGINT": ("codes", f"onion_join(code, {_blob(adjusting)})"),
        "ore_compare, 32 bits": ("sealed", f"ore_compare(v, {_blob(token)}) > 0"),
    }
    connection = engine._connection
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    return _statements(connection, {name: table.num_rows for name, table in tables.items()},
                       statements)  # fmt: skip


def peers(scale: int) -> dict[str, float]:
    """Values per second of what stands beside us."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    values = _numbers(EQ // scale)
    blocks = secrets.token_bytes(16 * len(values))
    cipher = Cipher(algorithms.AES(secrets.token_bytes(16)), modes.ECB())
    numbers = values.to_numpy()
    connection = duckdb.connect(config={"threads": "1"})
    connection.register("given", pa.table({"row_id": pa.array(range(len(values))), "v": values}))
    connection.execute("CREATE TABLE codes AS SELECT * FROM given")
    results = _statements(
        connection,
        {"codes": len(values)},
        {"xor": ("codes", "xor(v, row_id)"), "compare": ("codes", "v > row_id")},
    )
    return results | {
        "aes": _speed(len(values), lambda: cipher.encryptor().update(blocks)),
        "sort": _speed(len(values), lambda: np.sort(numbers)),
    }


def _statements(
    connection: duckdb.DuckDBPyConnection, rows: dict[str, int], work: dict[str, tuple[str, str]]
) -> dict[str, float]:
    results = {}
    for name, (table, call) in work.items():
        counts = " > " in call
        sql = (
            f"SELECT count(*) FROM {table} WHERE {call}"
            if counts
            else f"CREATE OR REPLACE TABLE made AS SELECT {call} AS c FROM {table}"
        )
        results[name] = _speed(rows[table], lambda sql=sql: connection.execute(sql).fetchall())
    return results


def _numbers(count: int) -> pa.Array:
    return pa.array(np.random.default_rng(1).integers(-(1 << 63), (1 << 63) - 1, count))


def _words(count: int) -> pa.Array:
    return pa.array([f"word {number}" for number in range(count)])


def _blob(value: bytes) -> str:
    return "from_hex('" + value.hex() + "')"


def _speed(count: int, work: Callable[[], Any]) -> float:
    return count / best(work, clock=time.process_time)
