"""Decrypt-before-query: the server ships whole encrypted columns, the client decrypts them all.

Two of them. The report's own, with RSA-2048, by OpenSSL with the Chinese remainder theorem and
OAEP padding on all cores. And a modern one, Louver's own scheme `sealed` (AES-256-GCM): RSA for
single values is a poor choice today, and beating it alone would say little.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from bench import asking, data

CHUNK = 1_000
SAMPLE_VALUES = 40_000
"""At most so many values are decrypted; the time of the rest follows in proportion."""
_OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


def with_rsa(rows: int, q: int) -> dict[str, Any]:
    """`SELECT A, B FROM T WHERE A < q` with every value under RSA."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with tempfile.TemporaryDirectory() as name, _pool() as pool:
        folder = Path(name)
        data.table_t(folder / "T.parquet", rows)
        with data.plain(folder) as server:
            values = server.sql(f"SELECT A, B FROM '{folder}/T.parquet'").fetchnumpy()
            start = time.perf_counter()
            sealed = {c: _spread(pool, _encrypt, pem, v.tolist()) for c, v in values.items()}
            encrypt_s = time.perf_counter() - start
            arrow = pa.table({c: pa.array(v, pa.binary()) for c, v in sealed.items()})
            server.register("sealed", arrow)
            server.execute("CREATE TABLE T AS FROM sealed")
            server.execute("CHECKPOINT")
            start = time.perf_counter()
            shipped = server.execute("SELECT A, B FROM T").to_arrow_table()
            server_s = time.perf_counter() - start
        results = _decrypted(pool, pem, shipped, values, q)
    return results | {
        "encrypt_s": encrypt_s,
        "server_s": server_s,
        "received_bytes": shipped.nbytes,
    }


def _decrypted(
    pool: ProcessPoolExecutor, pem: bytes, shipped: pa.Table, values: dict[str, Any], q: int
) -> dict[str, Any]:
    """The client's part: decrypt, then filter in DuckDB."""
    taken = min(shipped.num_rows, SAMPLE_VALUES // 2)
    start = time.perf_counter()
    opened = {
        name: pa.array(_spread(pool, _decrypt, pem, shipped.column(name)[:taken].to_pylist()))
        for name in ("A", "B")
    }
    decrypt_s = (time.perf_counter() - start) * shipped.num_rows / taken
    for name, column in opened.items():
        assert np.array_equal(column.to_numpy(), values[name][:taken]), name
    whole = pa.table({name: pa.array(column) for name, column in values.items()})
    with duckdb.connect() as home:
        home.register("T", whole)
        start = time.perf_counter()
        home.execute(f"SELECT A, B FROM T WHERE A < {q}").to_arrow_table()
        filter_s = time.perf_counter() - start
    return {"client_s": decrypt_s + filter_s, "decrypted_values": 2 * taken}


def with_sealed(rows: int, q: int) -> dict[str, Any]:
    """The same with every value under AES-256-GCM, by Louver; its peak beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.table_t(folder / "T.parquet", rows)
        with data.louver(folder, "sealed") as con, data.plain(folder) as peer:
            con.execute("CREATE TABLE T (A INT ENC, B INT ENC, G INT ENC)")
            con.load("T", folder / "T.parquet")
            peer.execute(f"CREATE TABLE T AS FROM '{folder}/T.parquet'")
            texts = [f"SELECT A, B FROM T WHERE A < {q + step}" for step in range(3)]
            return asking.as_json(asking.repeated(con, peer, texts))


def _pool() -> ProcessPoolExecutor:
    # Spawned: a fork of a process in which DuckDB has threads may hang.
    cores = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn"))
    list(pool.map(_warm, range(cores)))
    return pool


def _spread(pool: ProcessPoolExecutor, work: Any, pem: bytes, values: Sequence[Any]) -> list[Any]:
    parts = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    results = pool.map(work, [pem] * len(parts), parts)
    return [value for part in results for value in part]


def _warm(_: int) -> None:
    time.sleep(0.2)


@cache
def _key(pem: bytes) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(pem, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def _encrypt(pem: bytes, values: Sequence[int]) -> list[bytes]:
    public = _key(pem).public_key()
    return [public.encrypt(value.to_bytes(8, "big"), _OAEP) for value in values]


def _decrypt(pem: bytes, values: Sequence[bytes]) -> list[int]:
    key = _key(pem)
    return [int.from_bytes(key.decrypt(value, _OAEP), "big") for value in values]
