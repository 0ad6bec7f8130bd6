"""What a recipe makes of rows is what each scheme's own functions make of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from louver.trusted.vault import schemes
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.key_source import KeySource
from louver.trusted.vault.keyring import KeyRing

IDS = pa.array([3, 4, (1 << 36) + 9])
NUMBERS, TEXTS = pa.array([5, None, -7], pa.int64()), pa.array(["ab", "a longer text", None])
ROWS = pa.table({"n": NUMBERS, "p": pa.array([1, 2, None]), "s": TEXTS})


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    KeyRing.create(path)
    return KeyRing.open(path).of(Epochs.legacy().adding(1, "0f" * 16))


def table(state: str = "closed", group: str = "") -> Table:
    """A column of numbers with every onion, a plain one, and one of texts."""
    layers = {"eq": state, "ord": "closed" if state == "closed" else "open"}
    stored = {name: f"n_{name}" for name in ("rnd", "eq", "ord", "sum", "sum_high", "sum_count")}
    numbers = Column("n", "BIGINT", 1, encrypted=True, stored=stored, layers=layers, group=group)
    numbers.low, numbers.bits = -(1 << 63), 64
    plain = Column("p", "BIGINT", 2, encrypted=False, stored={"plain": "p"})
    stored = {"rnd": "s_rnd", "text": "s_text"}
    texts = Column("s", "VARCHAR", 3, encrypted=True, stored=stored)
    return Table("main", "t", 8, [numbers, plain, texts], tags={"k_1": [1], "k_2": [3, 1]})


def expected(ring: KeyRing, given: Table) -> dict[str, pa.Array]:
    """The columns that are not drawn, each by the function of its scheme."""
    numbers = given.columns[0]
    address, group = (8, 1, 0), numbers.group
    if numbers.layers["eq"] == "join":
        equal = ring.eq_join_codes(group, "int", NUMBERS)
    else:
        equal = ring.eq_codes(*address, group, "int", NUMBERS)
    order = ring.ord_codes(*address, group, "int", -(1 << 63), 64, NUMBERS)
    if numbers.layers["eq"] == "closed":
        equal = ring.close_codes(*address, "eq", equal, IDS)
        order = ring.close_codes(*address, "ord", order, IDS)
    parts = ring.sum_seal(*address, NUMBERS, IDS)
    sums = dict(zip(("n_sum", "n_sum_high", "n_sum_count"), parts, strict=True))
    filters = ring.text_seal(8, 3, 0, TEXTS, IDS)
    return {"n_eq": equal, "n_ord": order, **sums, "s_text": filters, "p": ROWS["p"].chunk(0)}


def bare(values: pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array


@pytest.mark.parametrize(
    ("state", "group"), [("closed", ""), ("closed", "g"), ("det", ""), ("det", "g"), ("join", "g")]
)
def test_a_recipe_makes_what_the_schemes_make(ring: KeyRing, state: str, group: str) -> None:
    keys, given = cast(KeySource, SimpleNamespace(keyring=ring)), table(state, group)
    batch = schemes.Recipes().seal(keys, given, ROWS, IDS)
    wanted = expected(ring, given)
    for name, values in wanted.items():
        assert bare(batch[name]).equals(values), name
    assert bare(batch["row_id"]).equals(IDS)
    assert set(batch.column_names) == {*wanted, "row_id", "n_rnd", "s_rnd", "k_1", "k_2"}
    opened = ring.open_column(8, 1, 0, bare(batch["n_rnd"]), IDS, pa.int64())
    assert opened.equals(NUMBERS)
    for name, tags in schemes.tags(keys, given, ROWS).items():
        assert batch[name].type == pa.uuid()
        assert batch[name].null_count == 0
        drawn = [
            part for part, tag in zip(bare(batch[name]), tags, strict=True) if not tag.is_valid
        ]
        assert len(set(drawn)) == tags.null_count > 0
        assert bare(batch[name]).filter(tags.is_valid()).equals(tags.filter(tags.is_valid()))


def test_another_state_of_a_table_has_another_recipe(ring: KeyRing) -> None:
    keys, known = cast(KeySource, SimpleNamespace(keyring=ring)), schemes.Recipes()
    for changed in (table(), table("det"), table("join", "g"), table("det", "g"), table()):
        batch = known.seal(keys, changed, ROWS, IDS)
        assert bare(batch["n_eq"]).equals(expected(ring, changed)["n_eq"])
    smaller = table()
    smaller.tags = {}
    assert "k_1" not in known.seal(keys, smaller, ROWS, IDS).column_names


def test_one_representation_is_made_alone(ring: KeyRing) -> None:
    keys, given = cast(KeySource, SimpleNamespace(keyring=ring)), table()
    wanted = expected(ring, given)
    for name in ("eq", "ord", "sum", "sum_high", "sum_count"):
        part: Any = schemes.seal_one(keys, given, given.columns[0], name, NUMBERS, IDS)
        part = part.storage if isinstance(part, pa.ExtensionArray) else part
        assert part.equals(wanted[f"n_{name}"])
    together = schemes.seal(keys, given, given.columns[0], NUMBERS, IDS)
    assert {*together} == {*given.columns[0].stored.values()}
