"""Known answers of masked sums and row sets, through the binding; Rust's tests read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from louver.errors import VerificationError
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import server_functions

FOLDER = Path(__file__).parents[2] / "spec/vectors"
VECTORS = {
    name: json.loads((FOLDER / f"{name}.json").read_text()) for name in ("sum", "rowset", "hom")
}
KEY_FILES = json.loads((FOLDER / "keyfile.json").read_text())["good"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    root = VECTORS["sum"]["root"]
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == root)
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(path).of(Epochs.legacy())


@pytest.fixture
def server() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    server_functions.register(connection)
    return connection


def row_sets(server: duckdb.DuckDBPyConnection, lists: list[list[int] | None]) -> list[Any]:
    server.execute("CREATE OR REPLACE TABLE lists (place BIGINT, ids BIGINT[])")
    server.executemany("INSERT INTO lists VALUES (?, ?)", list(enumerate(lists)))
    rows = server.execute("SELECT row_set(ids) FROM lists ORDER BY place").fetchall()
    return [row[0] for row in rows]


def test_row_sets(server: duckdb.DuckDBPyConnection) -> None:
    cases = VECTORS["rowset"]["sets"]
    assert row_sets(server, [case["ids"] for case in cases]) == [
        bytes.fromhex(case["bytes"]) for case in cases
    ]
    assert row_sets(server, [None]) == [None]
    with pytest.raises(duckdb.Error, match="row id"):
        row_sets(server, [[-1]])


def test_sets_that_are_none_are_refused(keys: KeyRing) -> None:
    for case in VECTORS["rowset"]["refused"]:
        with pytest.raises(VerificationError) as raised:
            keys.sum_open(1, 1, 1, 60, [0], None, None, [bytes.fromhex(case["bytes"])])
        assert raised.value.code == "result.tampered", case["why"]


@pytest.mark.parametrize("case", VECTORS["sum"]["cases"], ids=lambda case: case["name"])
def test_sums(keys: KeyRing, case: dict[str, Any]) -> None:
    vectors = VECTORS["sum"]
    context = (vectors["table"], vectors["column"], vectors["generation"])
    rows, wide = case["rows"], case["limb_bits"] == 64
    assert keys.sum_limb_bits(wide) == case["limb_bits"]
    numbers = [None if row["value"] is None else int(row["value"]) for row in rows]
    if wide:
        raw = [None if n is None else n.to_bytes(16, "little", signed=True) for n in numbers]
        values = pa.array(raw, pa.binary(16))
    else:
        values = pa.array(numbers, pa.int64())
    ids = pa.array([row["row_id"] for row in rows], pa.int64())
    for name, column in zip(
        ("low", "high", "count"), keys.sum_seal(*context, values, ids), strict=True
    ):
        assert column.to_pylist() == [int(row[name]) for row in rows], name
    sums = case["sums"]
    low, high, count = ([int(item[name]) for item in sums] for name in ("low", "high", "count"))
    sets = [bytes.fromhex(item["set"]) for item in sums]
    totals = [int(item["total"]) for item in sums]
    numbers_of = [item["not_null"] for item in sums]
    opened = keys.sum_open(*context, case["limb_bits"], low, high, count, sets)
    assert opened == (totals, numbers_of)
    short = [int(item["total_of_low"]) for item in sums]
    opened = keys.sum_open(*context, case["limb_bits"], low, None, None, sets)
    assert opened == (short, None)


def test_hom_sums(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    vectors = VECTORS["hom"]
    space = keys.hom(None, vectors["bits"])
    again = keys.hom(space.hint, vectors["bits"])
    assert space.modulus == again.modulus == bytes.fromhex(vectors["modulus"])
    assert space.slots == vectors["slots"]
    rows = [bytes.fromhex(row["ciphertext"]) for row in vectors["rows"]]
    for case in vectors["sums"]:
        parts = [rows[row_number] for row_number in case["rows"]]
        total = server.execute("SELECT hom_sum(?::BLOB[], ?)", [parts, space.modulus]).fetchone()
        assert total == (bytes.fromhex(case["ciphertext"]),)
        wanted = [(int(total), number) for total, number in case["totals"]]
        assert space.open(pa.array(total, pa.binary()), [len(parts)]) == [wanted]
    for case in vectors["refused"]:
        bad = pa.array([bytes.fromhex(case["ciphertext"])], pa.binary())
        with pytest.raises(VerificationError):
            space.open(bad, [case["rows"]])
    values = [
        pa.array([int(row["values"][slot] or 0) for row in vectors["rows"]]) for slot in (0, 1)
    ]
    sealed = space.seal(values, len(rows))
    opened = space.open(sealed, [1] * len(rows))
    assert [row[0][0] for row in opened] == values[0].to_pylist()
    assert server.execute("SELECT hom_sum([]::BLOB[], ?)", [space.modulus]).fetchone() == (None,)


def test_sums_as_duckdb_makes_them(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    """Types of all widths, groups, filters, NULLs, and rows that a join repeats."""
    server.execute("SET arrow_lossless_conversion = true")
    server.execute(
        "CREATE TABLE plain AS SELECT i AS id, i % 7 AS g, "
        "CASE WHEN hash(i) % 5 > 0 THEN (hash(i + 1) % 256)::INT - 128 END::TINYINT AS tiny, "
        "CASE WHEN i % 7 < 6 THEN hash(i + 2) END AS uint, "
        "((hash(i + 3) % 10000000)::BIGINT - 5000000)::DECIMAL(15, 2) AS money, "
        "((hash(i + 4)::HUGEINT - 9e18::HUGEINT) * 1000000007) AS huge, "
        "(hash(i + 5)::HUGEINT * 1000003)::DECIMAL(38, 4) AS fine FROM range(3000) t(i)"
    )
    for name, wide in [("tiny", 0), ("uint", 0), ("money", 0), ("huge", 1), ("fine", 1)]:
        plain = server.execute(f"SELECT id, {name} FROM plain").to_arrow_table().combine_chunks()
        values, ids = plain[name].chunk(0), plain["id"].chunk(0)
        parts = keys.sum_seal(1, 2, 0, values, ids)
        columns = dict(zip(("low", "high", "flag"), parts, strict=True))
        server.register("sealed_in", pa.table({"id": ids, **columns}))
        server.execute("CREATE OR REPLACE TABLE sealed AS FROM sealed_in")
        joined = "FROM sealed JOIN plain USING (id) JOIN range(3) r(i) ON plain.g % 3 >= r.i"
        groups = server.execute(
            "SELECT sum(low), sum(high), sum(flag), row_set(list(sealed.id)), "
            f"sum({name}), count({name}) {joined} WHERE hash(sealed.id) % 3 > 0 "
            "GROUP BY plain.g ORDER BY plain.g"
        ).fetchall()
        low, high, flag, sets, wanted, live = (list(part) for part in zip(*groups, strict=True))
        scale = {"money": 100, "fine": 10_000}.get(name, 1)
        totals, numbers = keys.sum_open(
            1, 2, 0, keys.sum_limb_bits(bool(wide)), low, high, flag, sets
        )
        assert numbers == live
        assert totals == [int((total or 0) * scale) for total in wanted]
