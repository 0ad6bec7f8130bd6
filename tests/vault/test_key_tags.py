"""Tags of keys: known answers, which values are alike, and what is not related."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.schemes import key

FOLDER = Path(__file__).parents[2] / "spec/vectors"
VECTORS = json.loads((FOLDER / "key.json").read_text())
KEY_FILES = json.loads((FOLDER / "keyfile.json").read_text())["good"]
COLUMNS = [Column("a", "BIGINT", 4), Column("b", "VARCHAR", 5), Column("c", "DOUBLE", 6)]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> KeySource:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return cast(KeySource, SimpleNamespace(keyring=KeyRing.open(path).of(Epochs.legacy())))


def rows(values: list[list[Any]]) -> pa.Table:
    by_column: list[list[Any]] = [list(column) for column in zip(*values, strict=True)]
    types = (pa.int64(), pa.string(), pa.float64())
    arrays = [pa.array(column, type_) for column, type_ in zip(by_column, types, strict=True)]
    return pa.table(dict(zip("abc", arrays, strict=True)))


def tags(
    keys: KeySource, values: list[list[Any]], columns: list[int], table: int = 3, name: str = ""
) -> list[str | None]:
    name = name or VECTORS["stored"]
    item = Table("main", "t", table, COLUMNS, tags={name: columns})
    listed = key.tags(keys, item, rows(values))[name].to_pylist()
    return [None if tag is None else tag.hex() for tag in listed]


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: str(case["columns"]))
def test_known_answers(keys: KeySource, case: dict[str, Any]) -> None:
    assert tags(keys, case["values"], case["columns"], VECTORS["table"]) == case["tags"]


def test_values_that_are_equal_have_one_tag(keys: KeySource) -> None:
    zero, negative = tags(keys, [[1, "x", 0.0], [2, "y", -0.0]], [6])
    assert zero == negative
    nan, other = tags(keys, [[1, "x", float("nan")], [2, "y", -float("nan")]], [6])
    assert nan == other


def test_values_cannot_be_moved_from_one_column_to_another(keys: KeySource) -> None:
    values = [[1, "ab", 0.0], [1, "a", 0.0], [1, "", 0.0], [256, "", 0.0], [2**56, "\x00", 0.0]]
    assert len(set(tags(keys, values, [4, 5]))) == len(values)


def test_other_constraints_tables_and_forks_have_other_tags(keys: KeySource) -> None:
    values: list[list[Any]] = [[1, "a", 0.0]]
    results = [
        tags(keys, values, [4], name="k_000000000001"),
        tags(keys, values, [4], name="k_000000000002"),
        tags(keys, values, [4], table=4, name="k_000000000001"),
        tags(keys, values, [4, 5], name="k_000000000001"),
    ]
    assert len({str(tag) for tag in results}) == len(results)


def test_rows_by_themselves_have_the_tags_that_they_have_together(keys: KeySource) -> None:
    """More of them than are remembered, each twice, of columns of other types."""
    types: dict[str, tuple[pa.DataType, list[Any]]] = {
        "BIGINT": (pa.int64(), [0, -1, 5, 2**62]), "UBIGINT": (pa.uint64(), [0, 2**63, 2**64 - 1]),
        "INTEGER": (pa.int32(), [0, 1, -(2**31)]), "VARCHAR": (pa.string(), ["", "a", "ä"]),
        "BLOB": (pa.binary(), [b"", b"a"]), "DOUBLE": (pa.float64(), [0.0, -0.0, float("nan")]),
        "BOOLEAN": (pa.bool_(), [True, False]), "DATE": (pa.date32(), [0, 2**31 - 1, -5]),
        "DECIMAL(9,2)": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal(0)]),
    }  # fmt: skip
    for first, second in itertools.product(types, types):
        columns = [Column("a", first, 4), Column("b", second, 5)]
        table = Table("main", "t", 3, columns, tags={"k_1": [4, 5], "k_2": [5]})
        pairs = list(itertools.product(types[first][1], types[second][1]))
        arrays = [
            pa.array([pair[side] for pair in pairs], types[name][0])
            for side, name in enumerate((first, second))
        ]
        given = pa.table(dict(zip("ab", arrays, strict=True)))
        together = key.tags(keys, table, given)
        for _ in range(2):
            for position in range(len(pairs)):
                alone = key.tags(keys, table, given.slice(position, 1))
                for stored, part in together.items():
                    assert alone[stored].to_pylist() == [part[position].as_py()]


def test_a_null_looks_like_a_key(keys: KeySource) -> None:
    table = Table("main", "t", 3, COLUMNS, tags={"k_1": [4, 5]})
    given = rows([[1, "a", 0.0], [None, "a", 0.0], [1, None, 0.0], [None, "a", 0.0]])
    sealed = schemes.seal_table(keys, table, given, pa.array([1, 2, 3, 4]))["k_1"]
    assert sealed.null_count == 0
    assert len(set(sealed.storage.to_pylist())) == 4
    assert key.tags(keys, table, given)["k_1"].null_count == 3
