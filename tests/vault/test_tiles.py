"""Tiles through the binding; the known answers that Rust's tests read too."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver._rust import Epochs, KeyRing, VerifyError, WidenError, tiles
from tests.generated import cases
from tests.vault import tile_reference as reference

VECTORS = json.loads(reference.VECTORS.read_text(encoding="utf-8"))
KEY_FILES = json.loads((reference.VECTORS.parent / "keyfile.json").read_text())["good"]
ID = (VECTORS["table"], VECTORS["column"], VECTORS["generation"])
FIRST = 5 << 36
UNIT = tiles.Form.units(128, 1 << 20)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    text = next(entry["text"] for entry in KEY_FILES if entry["root"] == VECTORS["root"])
    path = tmp_path_factory.mktemp("keys") / "key.txt"
    path.touch(0o600)
    path.write_text(text)
    return KeyRing.open(str(path))


@pytest.fixture(scope="module")
def epochs() -> Epochs:
    bits = {int(number): bytes.fromhex(bits) for number, bits in VECTORS["epochs"]["bits"].items()}
    return Epochs(VECTORS["epochs"]["legacy_below"], list(bits.items()))


@pytest.fixture(params=["wide", "portable"])
def instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        monkeypatch.setenv("LOUVER_BACKEND", "portable")


def firsts(sealed: pa.Array, rows: int = tiles.ROWS, first: int = FIRST) -> pa.Array:
    return pa.array([first + rows * tile for tile in range(len(sealed))], pa.int64())


def form_of(tile: dict[str, Any]) -> tiles.Form:
    if "units" in tile:
        return tiles.Form.units(tile["units"]["unit"], tile["units"]["limit"])
    packed = tile["packed"]
    return tiles.Form.packed(int(packed["base"]), packed["bits"], packed["nulls"])


def values_of(tile: dict[str, Any]) -> pa.Array:
    texts = tile["values"]
    pieces = []
    if "units" in tile:
        pieces = [None if text is None else bytes.fromhex(text) for text in texts]
    match tile["type"]:
        case "utf8":
            return pa.array([None if p is None else p.decode() for p in pieces], pa.string())
        case "binary":
            return pa.array(pieces, pa.binary())
        case "float64":
            raw = pa.array([p and int.from_bytes(p, "little") for p in pieces], pa.uint64())
            return raw.view(pa.float64())
        case "list<utf8>":
            return pa.array([["hi"], None, [None]], pa.list_(pa.string()))
        case "bool":
            return pa.array([text and text == "1" for text in texts], pa.bool_())
        case "date32":
            return pa.array([text and int(text) for text in texts], pa.int32()).view(pa.date32())
        case "decimal128":
            numbers = [text and Decimal(text) for text in texts]
            return pa.array(numbers, pa.decimal128(38, 0))
        case kind:
            number = getattr(pa, kind)()
            return pa.array([text and int(text) for text in texts], number)


def test_the_vectors_are_those_of_the_reference() -> None:
    assert reference.vectors() == VECTORS


@pytest.mark.usefixtures("instructions")
def test_known_answers(ring: KeyRing, epochs: Epochs) -> None:
    for tile in VECTORS["tiles"]:
        values, first = values_of(tile), pa.array([tile["first"]], pa.int64())
        sealed = pa.array([bytes.fromhex(tile["sealed"])], pa.binary())
        opened, rows = tiles.open(ring, ID, epochs, form_of(tile), sealed, first, values.type)
        assert opened == values
        assert rows == [len(values)]
        fresh = tiles.seal(ring, ID, epochs, form_of(tile), values, tile["first"])
        again, _ = tiles.open(ring, ID, epochs, form_of(tile), fresh, first, values.type)
        assert again == values
        if "packed" in tile:
            assert len(fresh[0].as_py()) == len(sealed[0].as_py())


COLUMNS: list[tuple[pa.DataType, tiles.Form, Callable[[random.Random], Any]]] = [
    (pa.int64(), tiles.Form.bounds(-9, 10**9, True), lambda rng: rng.randint(-9, 10**9)),
    (pa.int8(), tiles.Form.bounds(-128, 127, True), lambda rng: rng.randint(-128, 127)),
    (pa.bool_(), tiles.Form.bounds(0, 1, True), lambda rng: rng.random() < 0.3),
    (
        pa.date32(), tiles.Form.bounds(0, 20_000, True),
        lambda rng: datetime.date(1970, 1, 1) + datetime.timedelta(rng.randint(0, 20_000)),
    ),
    (
        pa.decimal128(12, 2), tiles.Form.bounds(-(10**12), 10**12, True),
        lambda rng: Decimal(rng.randint(-(10**12) + 1, 10**12 - 1)).scaleb(-2),
    ),
    (pa.float64(), tiles.Form.packed(0, 64, True), lambda rng: rng.gauss(0, 1)),
    (pa.float64(), UNIT, lambda rng: rng.randint(0, 9) / 10),
    (pa.string(), UNIT, lambda rng: "x" * rng.randint(0, 60)),
    (pa.string(), UNIT, lambda rng: rng.choice(["TRUCK", "MAIL", "größer"])),
    (pa.binary(), UNIT, lambda rng: rng.randbytes(rng.randint(0, 20))),
    (pa.list_(pa.int32()), UNIT, lambda rng: [rng.randint(0, 9)] * rng.randint(0, 3)),
    (pa.struct([("a", pa.int32())]), UNIT, lambda rng: {"a": rng.randint(0, 9)}),
]  # fmt: skip


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize(("kind", "form", "draw"), COLUMNS, ids=[str(c[0]) for c in COLUMNS])
def test_columns_come_back(
    ring: KeyRing,
    epochs: Epochs,
    kind: pa.DataType,
    form: tiles.Form,
    draw: Callable[[random.Random], Any],
) -> None:
    for seed in range(cases(5)):
        rng = random.Random(seed)
        count, rows = rng.randint(0, 5000), rng.choice([1024, rng.randint(1, 1024)])
        nulls = rng.choice([0, 0.1, 1])
        drawn = [None if rng.random() < nulls else draw(rng) for _ in range(count)]
        values = pa.array(drawn, kind)
        sealed = tiles.seal(ring, ID, epochs, form, values, FIRST, rows)
        assert sealed.null_count == 0
        args = (ring, ID, epochs, form, sealed, firsts(sealed, rows), kind)
        opened, counts = tiles.open(*args)
        opened.validate(full=True)
        assert opened == values
        assert sum(counts) == count
        chosen = sorted(rng.sample(range(count), min(count, 9)))
        slots = [row // rows * tiles.ROWS + row % rows for row in chosen]
        assert tiles.open(*args, slots)[0] == values.take(pa.array(chosen, pa.int64()))
        if form.packing:
            assert len({len(tile) for tile in sealed.to_pylist()}) <= 1
        else:
            assert {(len(tile) - 29) % 128 for tile in sealed.to_pylist()} <= {0}


def test_what_was_changed_is_named(ring: KeyRing, epochs: Epochs) -> None:
    form, kind = tiles.Form.bounds(0, 9999, False), pa.int64()
    values = pa.array(range(3000), kind)
    sealed = tiles.seal(ring, ID, epochs, form, values, FIRST)
    stored, ids = sealed.to_pylist(), firsts(sealed)

    def refused(stored: list[bytes | None], named: int, ids: pa.Array = ids) -> None:
        with pytest.raises(VerifyError, match=f"the tile of row id {named} "):
            tiles.open(ring, ID, epochs, form, pa.array(stored, pa.binary()), ids, kind)

    refused([stored[0], stored[2], stored[1]], FIRST + 1024)
    refused([stored[0], None, stored[2]], FIRST + 1024)
    refused([stored[0], stored[1][:-1], stored[2]], FIRST + 1024)
    refused([stored[0], stored[1], bytes([*stored[2][:-1], stored[2][-1] ^ 1])], FIRST + 2048)
    other = tiles.Form.bounds(1, 9999, False)
    with pytest.raises(VerifyError):
        tiles.open(ring, ID, epochs, other, sealed, ids, kind)
    with pytest.raises(VerifyError):
        tiles.open(ring, ID, epochs, form, sealed, ids, kind, [3 * 1024])
    # No value of a row opens as a tile, nor the other way round.
    value = ring.seal_column(*ID, epochs, values.slice(0, 1), ids.slice(0, 1))
    refused(value.to_pylist(), FIRST, ids.slice(0, 1))
    with pytest.raises(VerifyError):
        ring.open_column(*ID, epochs, sealed, ids, kind)


def test_a_value_outside_of_the_form_says_so(ring: KeyRing, epochs: Epochs) -> None:
    form = tiles.Form.bounds(0, 7, False)
    assert form.packing == (0, 3, False)
    assert UNIT.sizes == (128, 1 << 20)
    for values in ([8], [-1], [None]):
        with pytest.raises(WidenError):
            tiles.seal(ring, ID, epochs, form, pa.array(values, pa.int64()), FIRST)
    short = tiles.Form.units(16, 3)
    with pytest.raises(WidenError):
        tiles.seal(ring, ID, epochs, short, pa.array(["four"]), FIRST)
    with pytest.raises(ValueError, match="one epoch"):
        tiles.seal(ring, ID, epochs, form, pa.array([1, 2]), (6 << 36) - 1)
    with pytest.raises(ValueError, match="bound"):
        tiles.Form.bounds(1, 0, False)


def test_a_unit_that_tiles_fit(ring: KeyRing, epochs: Epochs) -> None:
    rng = random.Random(3)
    words = [f"{rng.randrange(10**6)} {'y' * rng.randint(0, 30)}" for _ in range(50_000)]
    values = pa.array(words)
    form = tiles.Form.units(tiles.unit(values, 1 << 20), 1 << 20)
    sealed = tiles.seal(ring, ID, epochs, form, values, FIRST)
    lengths = [len(tile) for tile in sealed.to_pylist()]
    assert lengths.count(form.sizes[0] + 29 if form.sizes else 0) >= 0.95 * len(lengths)


def test_the_page_has_the_bound_of_a_body() -> None:
    page = (Path(__file__).parents[2] / "spec/tile.md").read_text(encoding="utf-8")
    assert f"limit + {128 + 128 * 10 + 3 + 4 * tiles.ROWS:,} bytes" in page
