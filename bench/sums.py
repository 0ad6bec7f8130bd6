"""Sums and searches that a server runs on ciphertext, one core, against plaintext DuckDB."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import gmpy2
import pyarrow as pa

from bench import isolate, report
from bench.timing import best
from bench.values import ONE_THREAD
from louver._rust import server as functions
from louver.trusted.vault.epochs import Epochs, draw
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import server_functions

PLACE = (1, 1, 0)
"""Table, column and generation: which key."""
BITS, COLUMNS = 2048, 10
WORDS = "furiously special requests sleep carefully pending deposits ironic packages".split()
PATTERN = "%special%requests%"


def run(*, quick: bool) -> report.Report:
    """Everything in one process with one thread; the peers run in the same one."""
    rows = 1_000_000 if quick else 10_000_000
    output = isolate.run("bench.sums:measure", environment=ONE_THREAD, rows=rows)
    lines = report.Report("sums", f"Sums and searches on the server, one core, {rows:,} rows")
    for name, peer, allowed in (
        ("low", "bigint", 1.5),
        ("low", "decimal", 1.5),
        ("low, grouped", "bigint, grouped", 1.5),
        ("both", "bigint", None),
        ("both, grouped", "bigint, grouped", None),
        ("both", "hugeint", None),
    ):
        lines.lines.append(
            report.Line(
                f"masked sum: {name}",
                output[name] / rows * 1e9,
                "ns",
                f"DuckDB: SUM({peer})",
                output[peer] / rows * 1e9,
                target_ratio=None if allowed is None else 1 / allowed,
            )
        )
    for what, name, peer, target in (
        ("masked sum: opening of scattered row ids", "open", "DuckDB: SUM of them", 50e6),
        ("masked sum: sealing", "seal", "DuckDB: SUM of them", None),
        ("row_set of scattered ids, with list()", "row_set", "DuckDB: list()", None),
        ("Paillier: product mod n²", "hom_sum", "GMP: a·b mod n²", 300e3),
        ("Paillier: hom_sum(list()) in DuckDB", "hom_sum in DuckDB", "GMP: a·b mod n²", 300e3),
        (f"Paillier: sealing of {COLUMNS} columns", "hom seal", "GMP: rⁿ mod n²", None),
        ("Paillier: opening", "hom open", "GMP: c^λ mod n²", None),
        ("text_match", "text_match", "DuckDB: LIKE", 5e6),
        ("text_match in DuckDB", "text_match in DuckDB", "DuckDB: LIKE", None),
        ("text: sealing", "text seal", "DuckDB: LIKE", None),
    ):
        lines.lines.append(
            report.Line(
                what,
                output[name],
                "rows/s",
                peer,
                output["peer of " + name],
                more_is_better=True,
                target=target,
            )
        )
    lines.notes += [
        "Masked: `low` is one column of 60-bit limbs, enough where bounds prove that a total fits; "
        "`both` are two. Opening takes the masks of every third of all row ids away.",
        f"Paillier: n of {BITS} bits, {COLUMNS} columns a row in one ciphertext, so a row's "
        f"product adds {COLUMNS} values.",
        f"Text: five of {len(WORDS)} words a row, searched for `{PATTERN}`. DuckDB hands a "
        "function written for Python at most 2,048 rows, which takes it about 0.6 ms.",
    ]
    return lines


def measure(rows: int) -> dict[str, float]:
    """Seconds of sums, rows a second of the rest."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key.txt"
        KeyRing.create(path)
        keys = KeyRing.open(path).of(Epochs({0: draw()}))
    connection = duckdb.connect(config={"threads": 1})
    server_functions.register(connection)
    return {
        **masked(keys, connection, rows),
        **packed(keys, connection, rows // 100),
        **searched(keys, connection, rows // 50),
    }


def timed(connection: duckdb.DuckDBPyConnection, sql: str, *given: object) -> float:
    """Seconds of a query."""
    return best(lambda: connection.execute(sql, given).fetchall())


def masked(keys: KeyRing, connection: duckdb.DuckDBPyConnection, rows: int) -> dict[str, float]:
    """The symmetric sum."""
    connection.execute(
        "CREATE TABLE plain AS SELECT i AS id, (hash(i) % 10000000)::BIGINT AS v, "
        "v::DECIMAL(15,2) AS d, v::HUGEINT AS h, i % 4 AS g FROM range(?) t(i)",
        [rows],
    )
    plain = connection.execute("SELECT id, v, g FROM plain").to_arrow_table()
    values, ids = plain["v"].combine_chunks(), plain["id"].combine_chunks()
    seal = best(lambda: keys.sum_seal(*PLACE, values, ids))
    low, high, count = (c.cast(pa.int64()) for c in keys.sum_seal(*PLACE, values, ids))
    sealed = pa.table({"id": ids, "low": low, "high": high, "count": count, "g": plain["g"]})
    connection.register("sealed_in", sealed)
    connection.execute("CREATE TABLE sealed AS FROM sealed_in")
    times = {
        "low": "SELECT sum(low) FROM sealed",
        "both": "SELECT sum(low), sum(high) FROM sealed",
        "bigint": "SELECT sum(v) FROM plain",
        "decimal": "SELECT sum(d) FROM plain",
        "hugeint": "SELECT sum(h) FROM plain",
        "low, grouped": "SELECT g, sum(low) FROM sealed GROUP BY g",
        "both, grouped": "SELECT g, sum(low), sum(high) FROM sealed GROUP BY g",
        "bigint, grouped": "SELECT g, sum(v) FROM plain GROUP BY g",
    }
    results = {name: timed(connection, sql) for name, sql in times.items()}
    some = "WHERE hash(id) % 3 = 0"
    sql = f"SELECT sum(low), row_set(list(id)), count(*) FROM sealed {some}"
    total, rows_of, number = connection.execute(sql).fetchone() or (0, b"", 0)
    wanted = connection.execute(f"SELECT sum(v) FROM plain {some}").fetchone()

    def opened() -> list[int]:
        return keys.sum_open(*PLACE, 60, [total], None, None, [rows_of])[0]

    if wanted is None or opened() != [wanted[0]]:
        raise AssertionError("a masked sum is wrong")
    listed = timed(connection, f"SELECT length(list(id)) FROM sealed {some}")
    peer = rows / results["bigint"]
    return {
        **results,
        "seal": rows / seal,
        "open": number / best(opened),
        "row_set": number / timed(connection, f"SELECT row_set(list(id)) FROM sealed {some}"),
        "peer of seal": peer,
        "peer of open": peer,
        "peer of row_set": number / listed,
    }


def packed(keys: KeyRing, connection: duckdb.DuckDBPyConnection, rows: int) -> dict[str, float]:
    """Paillier."""
    space = keys.hom(None, BITS)
    chance = random.Random(3)
    few = min(rows, 2_000)
    columns = [
        pa.array([chance.randrange(-(1 << 40), 1 << 40) for _ in range(few)])
        for _ in range(COLUMNS)
    ]
    sealed = space.seal(columns, few)
    numbers = pa.array([i % few for i in range(rows)])
    ciphertexts = sealed.take(numbers)
    connection.register("packed_in", pa.table({"c": ciphertexts}))
    connection.execute("CREATE TABLE packed AS FROM packed_in")
    whole = pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), ciphertexts)
    modulus = pa.array([space.modulus], pa.binary())
    square = gmpy2.mpz(int.from_bytes(space.modulus, "big"))
    n = gmpy2.isqrt(square)
    raw = [gmpy2.mpz(int.from_bytes(value, "big")) for value in sealed.to_pylist()]

    def multiplied() -> gmpy2.mpz:
        product = gmpy2.mpz(1)
        for value in raw:
            product = product * value % square
        return product

    powers = best(lambda: [gmpy2.powmod(value, n, square) for value in raw[:20]]) / 20
    products = few / best(multiplied)
    in_duckdb = timed(connection, "SELECT hom_sum(list(c), ?) FROM packed", space.modulus)
    return {
        "hom_sum": rows / best(lambda: functions.hom_sum(whole, modulus)),
        "hom_sum in DuckDB": rows / in_duckdb,
        "hom seal": few / best(lambda: space.seal(columns, few)),
        "hom open": 64 / best(lambda: space.open(sealed[:64], [1] * 64)),
        "peer of hom_sum": products,
        "peer of hom_sum in DuckDB": products,
        "peer of hom seal": 1 / powers,
        "peer of hom open": 1 / powers,
    }


def searched(keys: KeyRing, connection: duckdb.DuckDBPyConnection, rows: int) -> dict[str, float]:
    """Searchable text."""
    chance = random.Random(4)
    texts = pa.array([" ".join(chance.choices(WORDS, k=5)) for _ in range(rows)])
    ids = pa.array(range(rows), pa.int64())
    filters = keys.text_seal(*PLACE, texts, ids)
    connection.register("texts_in", pa.table({"id": ids, "value": texts, "words": filters}))
    connection.execute("CREATE TABLE texts AS FROM texts_in")
    tokens = keys.text_tokens(*PLACE, "like", PATTERN)
    constant = pa.array([tokens] * rows, pa.binary())
    sealing: Callable[[], Any] = lambda: keys.text_seal(*PLACE, texts, ids)  # noqa: E731
    sql = "SELECT count(*) FROM texts WHERE "
    like = rows / timed(connection, f"{sql} value LIKE ?", PATTERN)
    match = best(lambda: functions.text_match(filters, ids, constant))
    return {
        "text_match": rows / match,
        "text_match in DuckDB": rows / timed(connection, f"{sql} text_match(words, id, ?)", tokens),
        "text seal": rows / best(sealing, least=1),
        "peer of text_match": like,
        "peer of text_match in DuckDB": like,
        "peer of text seal": like,
    }
