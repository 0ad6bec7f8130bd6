"""Numbers in tiles in two worlds: a tile tells how many bits its column's numbers need, in steps of
four, and no more.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from louver.trusted.executor.load import load as load_rows
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.generated import SEED, SOAK
from tests.twin import Twin

ROWS = 8
#: Types, and the most bits that their numbers take here.
TYPES = {
    "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "DECIMAL(18, 2)": 56, "DECIMAL(30, 1)": 96,
    "DATE": 16, "TIMESTAMP": 48,
}  # fmt: skip
Sizes = dict[str, int]
"""The bits that the numbers of a load need, by type, rounded up."""


@pytest.fixture(autouse=True)
def _tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_forms, "LEAST_CLASS", 4)
    monkeypatch.setattr(tile_forms, "ROWS", ROWS)


def drawn(dice: Random, bits: int) -> list[int | None]:
    """Numbers of which the largest one needs so many bits, with a sign, or up to three fewer. Some
    are below 0, or NULL, in one world and not in another.
    """
    low = max(size for size in (0, *tile_forms.CLASSES) if size < bits)
    largest = dice.randrange(1 << max(low - 1, 0), 1 << (bits - 1))
    numbers = [largest, *(dice.randrange(1 << (bits - 1)) for _ in range(ROWS - 1))]
    share = dice.choice((0.0, 0.5, 1.0))
    signed = [-1 - n if dice.random() < share else n for n in numbers]
    filled = [n if i == 0 or dice.random() < 0.8 else None for i, n in enumerate(signed)]
    dice.shuffle(filled)
    return filled


def as_type(type_: str, number: int | None) -> Any:
    """A value that is stored as a number."""
    if number is None:
        return None
    if type_.startswith("DECIMAL"):
        return Decimal(number).scaleb(-int(type_[-2]))
    if type_ == "DATE":
        return datetime.date(1970, 1, 1) + datetime.timedelta(days=number)
    if type_ == "TIMESTAMP":
        return datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=number)
    return number


def lengths(message: object) -> list[Any]:
    """The lengths of a message's texts, and how much its tables take."""
    tables = getattr(message, "tables", {}).values()
    parts = [getattr(message, name, None) for name in ("table", "rows", "sql")]
    bytes_ = [part.nbytes for part in (*tables, *parts) if isinstance(part, pa.Table)]
    return [type(message).__name__, *bytes_, *(len(p) for p in parts if isinstance(p, str))]


def shown(key_file: Path, classes: list[Sizes], dice: Random) -> list[Any]:
    """What a server sees of loads of such numbers: the lengths of messages, and of tiles."""
    twin = Twin(":memory:", key_file, "sealed")
    columns = ", ".join(f"c{i} {type_} ENC" for i, type_ in enumerate(TYPES))
    twin.fill(f"CREATE TABLE t ({columns})")
    for load in classes:
        values = {
            f"c{i}": [as_type(type_, n) for n in drawn(dice, load[type_])]
            for i, type_ in enumerate(TYPES)
        }
        types = [twin.session.context.local.arrow_field(type_).type for type_ in TYPES]
        arrays = [pa.array(v, t) for v, t in zip(values.values(), types, strict=True)]
        load_rows(twin.session.context, "t", pa.table(arrays, names=list(values)))
    table = twin.table("t")
    copies = ", ".join(f"octet_length({name})" for name in table.tile_columns)
    sql = f"SELECT {copies} FROM {table.tile_table} ORDER BY first_row"
    tiles = twin.session.context.engine.query(Statement(sql))
    assert tiles.num_rows == len(classes)
    seen = [column.to_pylist() for column in tiles.columns]
    crossed = [lengths(record.message) for record in twin.tap.records]
    twin.close()
    return [seen, crossed]


def classes_of(dice: Random) -> list[Sizes]:
    """How large the numbers of some loads are."""
    loads = []
    for _ in range(3):
        sizes = {
            type_: dice.choice([size for size in tile_forms.CLASSES if size <= most])
            for type_, most in TYPES.items()
        }
        loads.append(sizes)
    return loads


@pytest.mark.parametrize("case", range(3 * SOAK))
def test_two_worlds_of_one_size(key_file: Path, case: int) -> None:
    dice = Random(SEED + case)
    classes = classes_of(dice)
    assert shown(key_file, classes, dice) == shown(key_file, classes, dice)


def test_a_larger_size_shows(key_file: Path) -> None:
    """What the test above would find."""
    dice = Random(SEED)
    classes = [load | {"BIGINT": 8} for load in classes_of(dice)]
    larger = [classes[0] | {"BIGINT": 12}, *classes[1:]]
    assert shown(key_file, classes, dice)[0] != shown(key_file, larger, dice)[0]
