"""Known answers for rows of several epochs, through the binding; Rust's tests read the same."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from louver.errors import VerificationError
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import server_functions
from tests.vault import epoch_reference as reference

VECTORS = json.loads(reference.VECTORS.read_text(encoding="utf-8"))
KEY_FILES = json.loads((reference.VECTORS.parent / "keyfile.json").read_text())["good"]
PLACE = (VECTORS["table"], VECTORS["column"], VECTORS["generation"])
ROWS = VECTORS["rows"]
IDS = pa.array([row["row_id"] for row in ROWS], pa.int64())
NUMBERS = pa.array([row["number"] and int(row["number"]) for row in ROWS], pa.int64())
EPOCHS = Epochs.from_json(json.loads(json.dumps(VECTORS["epochs"])))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(path).of(EPOCHS)


@pytest.fixture(scope="module")
def server() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    server_functions.register(connection)
    return connection


def column(name: str) -> list[Any]:
    return [row[name] for row in ROWS]


def test_the_vectors_are_those_of_the_reference() -> None:
    assert reference.vectors() == VECTORS


def test_sealed_values(keys: KeyRing) -> None:
    sealed = pa.array([bytes.fromhex(text) for text in column("sealed")], pa.binary())
    assert keys.open_column(*PLACE, sealed, IDS, pa.int64()) == NUMBERS
    fresh = keys.seal_column(*PLACE, NUMBERS, IDS)
    assert [row[0] for row in fresh.to_pylist()] == [1, 1, 2, 2, 2, 2, 2]
    assert keys.open_column(*PLACE, fresh, IDS, pa.int64()) == NUMBERS
    others = dict.fromkeys(EPOCHS.bits, "00" * 16)
    for epochs in (Epochs(others, 2), Epochs({}, 2), Epochs.legacy()):
        for index in range(2, len(IDS)):
            with pytest.raises(VerificationError):
                keys.of(epochs).open_column(
                    *PLACE, sealed.slice(index, 1), IDS.slice(index, 1), pa.int64()
                )


def test_masked_sums(keys: KeyRing) -> None:
    parts = [part.to_pylist() for part in keys.sum_seal(*PLACE, NUMBERS, IDS)]
    wanted = [[int(limb) for limb in limbs] for limbs in column("masked")]
    assert [list(limbs) for limbs in zip(*parts, strict=True)] == wanted
    low, high, count = ([sum(part)] for part in parts)
    runs = [keys.run_set([(row, 1) for row in column("row_id")])]
    opened = keys.sum_open(*PLACE, 60, low, high, count, runs)
    assert opened == ([int(VECTORS["total"])], [VECTORS["not_null"]])
    with pytest.raises(VerificationError):
        keys.sum_open(*PLACE, 60, low, high, count, [keys.run_set([(8 << 36, 1)])])
    # A run that a liar stretches over an epoch which nobody knows.
    with pytest.raises(VerificationError):
        keys.sum_open(*PLACE, 60, low, high, count, [keys.run_set([(6 << 36, (1 << 36) + 1)])])


def test_layers(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    codes = pa.array([int(code) for code in column("code")], pa.int64())
    closed = keys.close_codes(*PLACE, "eq", codes, IDS)
    assert [str(code) for code in closed.to_pylist()] == column("closed")
    layers = [keys.layer_key(*PLACE, "eq", row) for row in column("row_id")]
    assert [key.hex() for key in layers] == column("layer_key")
    # The server opens rows of all epochs at once, each under the key that stands beside it.
    given = pa.table({"code": closed, "row_id": IDS, "key": pa.array(layers)})
    server.register("closed_in", given)
    rows = server.execute("SELECT onion_open(code, row_id, key) FROM closed_in").fetchall()
    assert [str(code or 0) for (code,) in rows] == column("code")
    with pytest.raises(duckdb.Error, match="32 bytes"):
        server.execute("SELECT onion_open(code, row_id, key[:31]) FROM closed_in")


def test_filters(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    filters = keys.text_seal(*PLACE, pa.array(column("text"), pa.string()), IDS)
    assert [code.hex() for code in filters.to_pylist()] == column("filter")
    server.register("filters_in", pa.table({"id": IDS, "words": filters}))
    for text in ("the quick-brown fox", "a", "b"):
        tokens = keys.text_tokens(*PLACE, "like", text)
        sql = "SELECT id FROM filters_in WHERE text_match(words, id, ?)"
        ids = {row for (row,) in server.execute(sql, [tokens]).fetchall()}
        assert {row["row_id"] for row in ROWS if row["text"] == text} <= ids
    for nonsense in (b"", b"\x02" + bytes(8), b"\x02" + bytes(7), b"\x03" + bytes(44)):
        with pytest.raises(duckdb.Error, match="malformed"):
            server.execute("SELECT text_match(?::BLOB, 1::BIGINT, ?)", [nonsense, tokens])
