"""Known answers of codes, through the binding and DuckDB; Rust's tests read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import server_functions

FOLDER = Path(__file__).parents[2] / "spec/vectors"
NAMES = ("eq", "ord", "onion", "ore")
VECTORS = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in NAMES}
KEY_FILES = json.loads((FOLDER / "keyfile.json").read_text())["good"]
Place = tuple[int, int, int]
PLACE: Place = (3, 7, 2)
WIDE = ("text", "int128")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["eq"]["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(path).of(Epochs.legacy())


@pytest.fixture
def server() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"arrow_lossless_conversion": "true"})
    server_functions.register(connection)
    return connection


def values(domain: str, texts: list[str | None]) -> pa.Array:
    """Values of a domain as DuckDB's lossless Arrow has them, from their texts."""
    if domain == "text":
        return pa.array(texts, pa.string())
    if domain == "double":
        return pa.array([None if text is None else float(text) for text in texts], pa.float64())
    numbers = [None if text is None else int(text) for text in texts]
    if domain == "int":
        return pa.array(numbers, pa.int64())
    raw = [
        None if number is None else number.to_bytes(16, "little", signed=True) for number in numbers
    ]
    return pa.array(raw, pa.binary(16))


def shown(codes: pa.Array) -> list[str | None]:
    storage = codes.storage if isinstance(codes, pa.ExtensionArray) else codes
    return [
        code if code is None else code.hex() if isinstance(code, bytes) else str(code)
        for code in storage.to_pylist()
    ]


def codes(texts: list[str | None], wide: bool) -> pa.Array:
    """Codes as the server holds them."""
    if not wide:
        return pa.array([None if text is None else int(text) for text in texts], pa.int64())
    raw = pa.array([None if text is None else bytes.fromhex(text) for text in texts], pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), raw)


def run(server: duckdb.DuckDBPyConnection, call: str, key: bytes, **columns: pa.Array) -> pa.Array:
    """What a server function gives for rows, whose order is kept."""
    given = pa.table({"place": pa.array(range(len(next(iter(columns.values()))))), **columns})
    server.register("given", given)
    rows = server.execute(f"SELECT {call} AS c FROM given ORDER BY place", [key])
    return rows.to_arrow_table()["c"].combine_chunks()


@pytest.mark.parametrize("case", VECTORS["eq"]["cases"], ids=lambda c: c["domain"] + c["group"])
def test_equality(keys: KeyRing, server: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    domain, group = case["domain"], case["group"]
    plain = values(domain, case["values"])
    assert shown(keys.eq_codes(*PLACE, group, domain, plain)) == case["codes"]
    if group:
        assert shown(keys.eq_join_codes(group, domain, plain)) == case["join_codes"]
        key = keys.det_key(*PLACE)
        assert key.hex() == VECTORS["eq"]["det_key"]
        wide = domain in WIDE
        call = "onion_join_wide(code, $1)" if wide else "onion_join(code, $1)"
        result = run(server, call, key, code=codes(case["codes"], wide))
        assert shown(result) == case["join_codes"]


@pytest.mark.parametrize("case", VECTORS["ord"]["cases"], ids=lambda c: f"{c['domain']}{c['bits']}")
def test_order(keys: KeyRing, server: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    domain, low, bits = case["domain"], int(case["low"]), case["bits"]
    plain = values(domain, case["values"])
    order_codes = keys.ord_codes(*PLACE, case["group"], domain, low, bits, plain)
    assert shown(order_codes) == case["codes"]
    # The server's own order is that of the values, which the vectors list in theirs.
    held = codes(case["codes"], bits > 47)
    server.register("held", pa.table({"code": held}))
    ordered = server.execute("SELECT code FROM held ORDER BY code NULLS LAST").to_arrow_table()
    assert shown(ordered["code"].combine_chunks()) == case["codes"]


@pytest.mark.parametrize(
    "case", VECTORS["onion"]["cases"], ids=lambda c: f"{c['onion']}{c['width']}"
)
def test_layers(keys: KeyRing, server: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    wide = case["width"] == 16
    plain, rows = codes(case["codes"], wide), values("int", case["row_ids"])
    bare = plain.storage if wide else plain
    closed = keys.close_codes(*PLACE, case["onion"], bare, rows)
    assert shown(closed) == case["closed"]
    assert keys.layer_key(*PLACE, case["onion"], 0).hex() == case["key"]
    call = f"onion_open{'_wide' if wide else ''}(code, row_id, $1)"
    held = codes(case["closed"], wide)
    result = run(server, call, bytes.fromhex(case["key"]), code=held, row_id=rows)
    assert shown(result) == case["codes"]
    with pytest.raises(duckdb.Error, match="32 bytes"):
        run(server, call, b"short", code=held, row_id=rows)


@pytest.mark.parametrize("case", VECTORS["ore"]["cases"], ids=lambda c: f"{c['domain']}{c['bits']}")
def test_order_revealing(
    keys: KeyRing, server: duckdb.DuckDBPyConnection, case: dict[str, Any]
) -> None:
    context = (*PLACE, case["domain"], int(case["low"]), case["bits"])
    stored = pa.array([bytes.fromhex(entry["stored"]) for entry in case["stored"]], pa.binary())
    fresh = keys.ore_seal(
        *context, values(case["domain"], [entry["value"] for entry in case["stored"]])
    )
    assert fresh.null_count == 0
    for column, token_entry in enumerate(case["tokens"]):
        token = keys.ore_token(*context, values(case["domain"], [token_entry["value"]]))
        assert token.hex() == token_entry["token"]
        for held in (stored, fresh):
            matches = run(server, "ore_compare(v, $1)", token, v=held)
            assert matches.to_pylist() == [row[column] for row in case["order"]]


@pytest.mark.parametrize("case", VECTORS["ore"]["refused"], ids=lambda c: c["why"])
def test_order_revealing_nonsense(server: duckdb.DuckDBPyConnection, case: dict[str, Any]) -> None:
    stored = pa.array([bytes.fromhex(case["stored"])], pa.binary())
    with pytest.raises(duckdb.Error, match="malformed"):
        run(server, "ore_compare(v, $1)", bytes.fromhex(case["token"]), v=stored)


def test_what_has_no_code(keys: KeyRing) -> None:
    for domain, plain in (("int", ["a"]), ("text", [1]), ("dec2", [1]), ("none", [1])):
        with pytest.raises(ValueError, match="domain"):
            keys.eq_codes(*PLACE, "", domain, pa.array(plain))
    with pytest.raises(ValueError, match="outside"):
        keys.ord_codes(*PLACE, "", "int", 0, 4, pa.array([16]))
    with pytest.raises(ValueError, match="group"):
        keys.eq_join_codes("", "int", pa.array([1]))
    with pytest.raises(ValueError, match="one value"):
        keys.ore_token(*PLACE, "int", 0, 4, pa.array([None], pa.int64()))
    with pytest.raises(ValueError, match="onion"):
        keys.layer_key(*PLACE, "sum", 0)
