"""Sealing and opening single values, one thread, against what the papers' clients do."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pyarrow as pa

from bench import isolate, report
from bench.kernel import BITS, SECRET_BITS, raised, table
from bench.timing import best

ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
PAPER_PER_S = 2000.0
KEY_ID = (1, 1, 0)
"""Table, column and generation: which key."""


def run(*, quick: bool) -> report.Report:
    """One process for us, one for GMP, one thread each."""
    rows = 20_000 if quick else 200_000
    ours = isolate.run("bench.values:louver", environment=ONE_THREAD, rows=rows)
    theirs = isolate.run("bench.values:gmp", environment=ONE_THREAD, rows=256 if quick else 2048)
    section = report.Report("values", "Sealing and opening values, one core")
    paper = "the SDB paper's client"
    tables = "GMP, table of powers"
    plain = "GMP, exponentiation"
    for what, name, peer, speed, target in [
        ("sdb open", "sdb open", tables, theirs["table"], 200_000),
        ("sdb open", "sdb open", plain, theirs["powm"], None),
        ("sdb open", "sdb open", paper, PAPER_PER_S, None),
        ("sdb seal", "sdb seal", tables, theirs["table"], 100_000),
        ("sdb seal", "sdb seal", plain, theirs["powm"], None),
        (
            "sealed open, BIGINT",
            "sealed open int",
            "AES-256-GCM by OpenSSL",
            theirs["gcm open"],
            200_000,
        ),
        (
            "sealed seal, BIGINT",
            "sealed seal int",
            "AES-256-GCM by OpenSSL",
            theirs["gcm seal"],
            100_000,
        ),
        (
            "sealed open, TEXT of 6-14",
            "sealed open text",
            "AES-256-GCM by OpenSSL",
            theirs["gcm open"],
            None,
        ),
        (
            "sealed seal, TEXT of 6-14",
            "sealed seal text",
            "AES-256-GCM by OpenSSL",
            theirs["gcm seal"],
            None,
        ),
    ]:
        section.lines.append(
            report.Line(
                what, ours[name], "values/s", peer, speed, more_is_better=True, target=target,
                peak_mib=ours["peak_mib"], peer_peak_mib=theirs["peak_mib"],
            )
        )  # fmt: skip
    section.notes += _notes(rows)
    return section


def _notes(rows: int) -> list[str]:
    return [
        f"{rows:,} values in one call with RAYON_NUM_THREADS=1, best run by processor time, the "
        f"table of powers computed again in each; a {BITS}-bit modulus. Sealing an sdb column in a "
        "table also seals its readable copy, and three helper columns per row and table.",
        "GMP opens values of the same format under a key of its own, because Louver's does not "
        f"leave the compiled part: v·m·b^r mod n with a secret {SECRET_BITS}-bit r, by mpz_powm or "
        "with "
        "16 products from a table that is computed beforehand; the derivation of r is not "
        "included. "
        "OpenSSL is called once per value through `cryptography`, which takes most of its time.",
        "The paper's figure is from Figure 18: 200,000 rows at 1 %, 2,000 rows of two values, "
        "2.1 s, on a 2.4 GHz Core i5 in Java.",
    ]


def louver(rows: int) -> dict[str, float]:
    """Values per second of our own sealing and opening."""
    from louver.trusted.vault.epochs import Epochs, draw
    from louver.trusted.vault.keyring import KeyRing

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.louverkey"
        KeyRing.create(path)
        ring = KeyRing.open(path).of(Epochs({1: draw()}))
    chance = np.random.default_rng(1)
    numbers = pa.array(chance.integers(-(10**6), 10**6, rows))
    words = pa.array([f"word {n % 10**9}" for n in chance.integers(0, 10**9, rows).tolist()])
    ids = pa.arange(1 << 36, (1 << 36) + rows)
    results: dict[str, float] = {}
    for name, values in (("int", numbers), ("text", words)):
        sealed = ring.seal_column(*KEY_ID, values, ids)
        assert ring.open_column(*KEY_ID, sealed, ids, values.type).equals(values)
        results |= _sealed(ring, name, values, sealed, ids)
    return results | _sdb(ring, numbers, ids)


def _sealed(
    ring: Any, name: str, values: pa.Array, sealed: pa.Array, ids: pa.Array
) -> dict[str, float]:
    return {
        f"sealed seal {name}": _speed(len(ids), lambda: ring.seal_column(*KEY_ID, values, ids)),
        f"sealed open {name}": _speed(
            len(ids), lambda: ring.open_column(*KEY_ID, sealed, ids, values.type)
        ),
    }


def _sdb(ring: Any, numbers: pa.Array, ids: pa.Array) -> dict[str, float]:
    space = ring.sdb(None, BITS)
    key = space.column_key(*KEY_ID, 0)
    sealed = space.seal(*KEY_ID, numbers, ids)

    def opened() -> pa.Array:
        return space.open(key, sealed, {0: ids}, pa.int64(), -(10**6), 10**6)

    assert opened().equals(numbers)
    return {
        "sdb seal": _speed(len(ids), lambda: space.seal(*KEY_ID, numbers, ids)),
        "sdb open": _speed(len(ids), opened),
    }


def gmp(rows: int) -> dict[str, float]:
    """Values per second of GMP for shares and of OpenSSL for sealed values."""
    chance = random.Random(7)
    n = gmpy2.mpz(chance.getrandbits(BITS) | 1 << BITS - 1 | 1)
    base, m = (gmpy2.mpz(chance.randrange(n)) for _ in range(2))
    values = [gmpy2.mpz(chance.randrange(n)) for _ in range(rows)]
    secrets = [gmpy2.mpz(chance.getrandbits(SECRET_BITS)) for _ in range(rows)]
    windows = table(base, n)
    pairs = list(zip(values, secrets, strict=True))
    return {
        "powm": _speed(rows, lambda: [v * m % n * gmpy2.powmod(base, r, n) % n for v, r in pairs]),
        "table": _speed(rows, lambda: [v * m % n * raised(windows, r, n) % n for v, r in pairs]),
    } | _openssl(rows * 8)


def _openssl(rows: int) -> dict[str, float]:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, value, bound = AESGCM(bytes(32)), bytes(16), bytes(28)
    nonces = [number.to_bytes(12, "big") for number in range(rows)]
    sealed = [cipher.encrypt(nonce, value, bound) for nonce in nonces]
    pairs = list(zip(nonces, sealed, strict=True))
    return {
        "gcm seal": _speed(rows, lambda: [cipher.encrypt(nonce, value, bound) for nonce in nonces]),
        "gcm open": _speed(rows, lambda: [cipher.decrypt(nonce, s, bound) for nonce, s in pairs]),
    }


def _speed(rows: int, work: Callable[[], Any]) -> float:
    # Processor time of one thread: a rate per core, whatever else the machine does.
    return rows / best(work, clock=time.process_time)
