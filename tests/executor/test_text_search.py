"""Searchable text: no value that DuckDB finds is ever missed, and few others are found."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines import server_functions
from tests.generated import cases

FOLDER = Path(__file__).parents[2] / "spec/vectors"
VECTORS = json.loads((FOLDER / "text.json").read_text())
KEY_FILES = json.loads((FOLDER / "keyfile.json").read_text())["good"]
PLACE = (VECTORS["table"], VECTORS["column"], VECTORS["generation"])
#: Few letters, so that patterns fit; wildcards, an escape, words' ends, and other scripts.
LETTERS = st.sampled_from("aabbc%_\\! 1é漢🙂\u0301\x00")
PATTERNS = st.text(LETTERS, max_size=12)
VALUES = st.lists(st.none() | st.text(LETTERS, max_size=24), min_size=1, max_size=20)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(path).of(Epochs.legacy())


@pytest.fixture(scope="module")
def server() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    server_functions.register(connection)
    return connection


def load(
    keys: KeyRing, server: duckdb.DuckDBPyConnection, values: list[str | None], first: int = 0
) -> None:
    texts = pa.array(values, pa.string())
    ids = pa.array(range(first, first + len(values)), pa.int64())
    rows = pa.table({"id": ids, "value": texts, "words": keys.text_seal(*PLACE, texts, ids)})
    server.register("rows_in", rows)
    server.execute("CREATE OR REPLACE TEMP TABLE texts AS FROM rows_in")
    server.unregister("rows_in")


def missed(server: duckdb.DuckDBPyConnection, tokens: bytes, exact: str, *given: str) -> list[str]:
    sql = f"SELECT value FROM texts WHERE ({exact}) AND NOT text_match(words, id, ?)"
    return [row[0] for row in server.execute(sql, [*given, tokens]).fetchall()]


def test_known_answers(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    rows = VECTORS["rows"]
    ids = pa.array([row["row_id"] for row in rows], pa.int64())
    sealed = keys.text_seal(*PLACE, pa.array([row["value"] for row in rows], pa.string()), ids)
    assert [value.hex() for value in sealed.to_pylist()] == [row["filter"] for row in rows]
    for search in VECTORS["searches"]:
        tokens = keys.text_tokens(*PLACE, search["kind"], search["pattern"], search.get("escape"))
        assert (tokens and tokens.hex()) == search["tokens"], search


@settings(max_examples=cases(300), deadline=None)
@given(VALUES, PATTERNS, st.sampled_from([None, "\\", "!", "a"]))
@example(["", None, "a"], "", None)
@example(["ab", "a%b"], "a\\%b", "\\")
def test_like_misses_nothing(
    keys: KeyRing,
    server: duckdb.DuckDBPyConnection,
    values: list[str | None],
    pattern: str,
    escape: str | None,
) -> None:
    load(keys, server, values)
    tokens = keys.text_tokens(*PLACE, "like", pattern, escape)
    if tokens is None:
        return
    exact = "value LIKE ?" + ("" if escape is None else f" ESCAPE '{escape}'")
    assert missed(server, tokens, exact, pattern) == []


@settings(max_examples=cases(200), deadline=None)
@given(VALUES, st.text(LETTERS, max_size=6))
def test_pieces_miss_nothing(
    keys: KeyRing, server: duckdb.DuckDBPyConnection, values: list[str | None], piece: str
) -> None:
    load(keys, server, values)
    for kind in ("prefix", "suffix", "contains"):
        tokens = keys.text_tokens(*PLACE, kind, piece)
        if tokens is not None:
            assert missed(server, tokens, f"{kind}(value, ?)", piece) == []
        else:
            assert piece == "" or (kind == "contains" and len(piece) < 3)


def test_words_are_found_whole(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    load(keys, server, ["the quick-brown fox", "quickest fox", "Fox 7 élan", None, ""])
    row_ids = {}
    for word in ("quick", "fox", "Fox", "7", "élan", "lan"):
        tokens = keys.text_tokens(*PLACE, "word", word)
        sql = "SELECT list(id ORDER BY id) FROM texts WHERE text_match(words, id, ?)"
        row_ids[word] = server.execute(sql, [tokens]).fetchone()[0]  # type: ignore[index]
    wanted = {"quick": [0], "fox": [0, 1], "Fox": [2], "7": [2], "élan": [2], "lan": None}
    assert row_ids == wanted
    assert keys.text_tokens(*PLACE, "word", "two words") is None
    assert keys.text_tokens(*PLACE, "word", "") is None
    assert keys.text_tokens(*PLACE, "like", "%_%") is None
    with pytest.raises(ValueError, match="kind"):
        keys.text_tokens(*PLACE, "fuzzy", "x")


def test_few_are_found_in_vain(keys: KeyRing, server: duckdb.DuckDBPyConnection) -> None:
    values = [f"{n * 7919 % 100_003:06d} of {n * 31337 % 99_991:06x}" for n in range(20_000)]
    load(keys, server, [*values], first=1 << 40)
    wrong = count = 0
    for word in ("zebra", "quagga", "okapi", "yak", "gnu"):
        tokens = keys.text_tokens(*PLACE, "word", word)
        sql = "SELECT count(*) FROM texts WHERE text_match(words, id, ?)"
        wrong += server.execute(sql, [tokens]).fetchone()[0]  # type: ignore[index]
        count += len(values)
    assert wrong / count < 0.01


def test_at_rest_only_sizes_show(keys: KeyRing) -> None:
    """NULL, the empty text and a short one have filters of one size and one number of bits."""
    rows = pa.array(range(3_000), pa.int64())
    means = []
    for value in (None, "", "a", "lorem ipsum"):
        sealed = keys.text_seal(*PLACE, pa.array([value] * 3_000, pa.string()), rows)
        filters = sealed.to_pylist()
        assert {len(bits) for bits in filters} == {45}
        assert len(set(filters)) == 3_000
        means.append(sum(int.from_bytes(bits).bit_count() for bits in filters) / 3_000)
    assert max(means) - min(means) < 1.5


def test_nonsense_is_refused(server: duckdb.DuckDBPyConnection) -> None:
    good = b"\1" + b"\0" * 16
    sql = "SELECT text_match(?::BLOB, ?::BIGINT, ?::BLOB)"
    assert server.execute(sql, [None, 1, good]).fetchone() == (None,)
    assert server.execute(sql, [b"\1" + b"\xff" * 44, 1, good]).fetchone() == (True,)
    assert server.execute(sql, [b"\1", 1, good]).fetchone() == (True,)
    refused = (b"", b"\3", b"\2" + bytes(8), b"\1\0")
    for stored, tokens in (*((code, good) for code in refused), (b"\1", b"\1")):
        with pytest.raises(duckdb.Error, match="malformed"):
            server.execute(sql, [stored, 1, tokens]).fetchone()
