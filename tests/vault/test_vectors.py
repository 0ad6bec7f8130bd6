"""The known answers of spec/vectors/sdb.json, through the binding; Rust's tests read the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver._rust import sdb_math, server

VECTORS = json.loads((Path(__file__).parents[2] / "spec/vectors/sdb.json").read_text())


def number(text: str | int) -> int:
    return text if isinstance(text, int) else int(text, 16)


def key(entry: dict[str, str]) -> tuple[int, int]:
    return number(entry["m"]), number(entry["x"])


class Space:
    """One section of the vectors as numbers and columns."""

    def __init__(self, section: str) -> None:
        self.data = VECTORS[section]
        self.n, self.g = number(self.data["n"]), number(self.data["g"])
        self.phi = (number(self.data["p1"]) - 1) * (number(self.data["p2"]) - 1)
        self.width = (self.n.bit_length() + 7) // 8
        self.rows = self.data["rows"]
        self.modulus = self.constant(self.n)

    def column(self, name: str) -> pa.Array:
        values = [number(row[name]).to_bytes(self.width, "big") for row in self.rows]
        return pa.array(values, pa.binary())

    def constant(self, value: int) -> pa.Array:
        return pa.array([value.to_bytes(self.width, "big")] * len(self.rows), pa.binary())

    def update(self, name: str) -> pa.Array:
        entry = self.data[name]
        p, q = number(entry["p"]), number(entry["q"])
        wire = server.encode_update(big(p), big(q))
        return pa.array([bytes(wire)] * len(self.rows), pa.binary())

    def key_of(self, row: dict[str, Any], m: int, x: int, name: str = "r") -> int:
        return sdb_math.item_key(m, x, number(row[name]), self.g, self.phi, self.n)


def big(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


@pytest.fixture(params=["small", "full"])
def space(request: pytest.FixtureRequest) -> Space:
    return Space(request.param)


def same(actual: pa.Array, expected: pa.Array) -> None:
    assert [bytes(v) for v in actual.to_pylist()] == expected.to_pylist()


def test_seal_and_open(space: Space) -> None:
    for row in space.rows:
        triples = (("A", "a", "a_e"), ("B", "b", "b_e"), ("R", "rand", "rand_e"))
        for column, value, sealed in triples:
            item = space.key_of(row, *key(space.data["columns"][column]))
            assert sdb_math.seal(row[value], item, space.n) == number(row[sealed])
            assert sdb_math.open(number(row[sealed]), item, space.n) == row[value]
        assert sdb_math.seal(1, space.key_of(row, *key(space.data["S"])), space.n) == number(
            row["s_e"]
        )


def test_product(space: Space) -> None:
    product = server.sdb_mul(space.column("a_e"), space.column("b_e"), space.modulus)
    same(product, space.column("product_e"))


def test_difference(space: Space) -> None:
    difference = server.sdb_add(
        space.column("a_e"),
        space.column("b_e"),
        space.column("s_e"),
        space.update("update_A_to_target"),
        space.update("update_negB_to_target"),
        space.modulus,
    )
    same(difference, space.column("difference_e"))


def test_comparison(space: Space) -> None:
    product = server.sdb_mul(space.column("rand_e"), space.column("difference_e"), space.modulus)
    comparison = server.sdb_key_update(
        product, space.column("s_e"), space.update("update_RC_to_zero"), space.modulus
    )
    same(comparison, space.column("comparison_z"))
    signs = server.sdb_compare(comparison, space.modulus).to_pylist()
    assert signs == [(r["a"] > r["b"]) - (r["a"] < r["b"]) for r in space.rows]


def test_sum(space: Space) -> None:
    updated = server.sdb_key_update(
        space.column("a_e"), space.column("s_e"), space.update("update_A_to_sum"), space.modulus
    )
    same(updated, space.column("a_sum_e"))
    lists = pa.ListArray.from_arrays(pa.array([0, len(updated)], pa.int32()), updated)
    sums = server.sdb_sum(lists, space.modulus.slice(0, 1))
    assert int.from_bytes(sums[0].as_py(), "big") == number(space.data["sum_e"])
    total = sdb_math.open(number(space.data["sum_e"]), number(space.data["sum_target_m"]), space.n)
    assert total == space.data["sum"] == sum(row["a"] for row in space.rows)


def test_cartesian_product(space: Space) -> None:
    p = number(space.data["cartesian"]["p_A"])
    exponent = pa.array([big(p)] * len(space.rows), pa.binary())
    cross = server.sdb_cartprod(space.column("a_e"), space.column("s2_e"), exponent, space.modulus)
    same(cross, space.column("cartesian_a_e"))
    m, x = key(space.data["cartesian"])
    for row, sealed in zip(space.rows, cross.to_pylist(), strict=True):
        both = number(row["r"]) + number(row["r2"])
        item = sdb_math.item_key(m, x, both, space.g, space.phi, space.n)
        assert sdb_math.open(int.from_bytes(sealed, "big"), item, space.n) == row["a"]
