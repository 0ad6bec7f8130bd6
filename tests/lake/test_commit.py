"""Warehouses, commits and plans: roots are unsigned here, for nobody here reads signatures."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any as Anything

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.lake.settings import IndexSettings
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.lake import files, plan, root, side, sweep
from louver.untrusted.lake.commit import Base, commit, new_name
from louver.untrusted.lake.files import File
from louver.untrusted.lake.root import Ancestor, Blob, Part, Root, Segment
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import All, Any, Everything, Hit
from tests.lake.tables import known_key

NAME = "t5"
SPEC = IndexSettings().spec
AGE, PAY, NEW = 7, 9, 11
OWNER: Anything = None


def files_of(count: int) -> list[File]:
    return [File(os.urandom(16), 100, 10, b"wrapped") for _ in range(count)]


class Keyed:
    """The owner: makes segments that a token hits at given ordinals."""

    def __init__(self, folder: Path) -> None:
        known_key(str(folder / "key"))
        self.keys = KeyRing.open(str(folder / "key")).lake_table(5)

    def index_id(self, column: int) -> bytes:
        return self.keys.index_id(column, 0, SPEC)

    def segment(self, column: int, hits: list[int], count: int) -> bytes:
        values = pa.array([10 if at in hits else 1 << 60 for at in range(count)], pa.uint64())
        states = pa.array([0] * count, pa.uint8())
        return self.keys.segment(column, 0, SPEC, values, values, states)

    def token(self, column: int) -> bytes:
        return self.keys.token(column, 0, SPEC, 5, 15)


@pytest.fixture(autouse=True)
def owner(tmp_path: Path, monkeypatch) -> Keyed:
    owner = Keyed(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "OWNER", owner)
    return owner


def part_of(warehouse: Warehouse, listed: list[File], hits: dict[int, list[int]]):
    """Write a side file; the part refers to side file 0."""
    container = side.Builder()
    blob = files.encode(listed)
    position = Blob(0, container.add(side.FILES, blob), len(blob))
    segments = []
    for column, hit in hits.items():
        data = OWNER.segment(column, hit, len(listed))
        at = Blob(0, container.add(side.INDEX, data), len(data))
        header = sweep.segment_header(data)
        segments.append(Segment(header["index_id"], header["segment_id"], at))
    path = new_name("puffin")
    warehouse.objects.create(f"louver/{NAME}/{path}", container.finish())
    digest = files.digest(blob, len(listed))
    return path, Part(len(listed), position, digest, None, b"", tuple(segments))


def moved(part: Part, by: int) -> Part:
    segments = tuple(replace(s, blob=replace(s.blob, side=by)) for s in part.segments)
    return replace(part, files=replace(part.files, side=by), segments=segments)


def appending(warehouse: Warehouse, path: str, part: Part):
    def build(base: Base) -> Root:
        old = None if base.parent is None else warehouse.root(NAME, base.parent)
        sides, parts, history = (old and (old.sides, old.parts, old.history)) or ((), (), ())
        if old is not None:
            known = root.digest(warehouse.root_bytes(NAME, base.parent_root or ""))
            history += (Ancestor(old.snapshot_id, old.made_ms, known),)
        count = part.live_count
        indexes = tuple(OWNER.index_id(column) for column in (AGE, PAY, NEW))
        return Root(
            5, len(history) + 1, base.snapshot_id, 0, (old.files if old else 0) + count,
            (old.rows if old else 0) + 10 * count, (old.size if old else 0) + 100 * count,
            indexes, sides + (path,), parts + (moved(part, len(sides)),), history, bytes(32),
        )  # fmt: skip

    return build


def append(warehouse: Warehouse, count: int, hits: dict[int, list[int]]) -> list[File]:
    listed = files_of(count)
    path, part = part_of(warehouse, listed, hits)
    commit(warehouse, NAME, listed, [], appending(warehouse, path, part))
    return listed


@pytest.fixture
def table(warehouse: Warehouse) -> Warehouse:
    warehouse.create_table(NAME, [7, 9])
    return warehouse


def head(warehouse: Warehouse) -> Root:
    root = warehouse.root(NAME)
    assert root is not None
    return root


def test_a_table_begins_empty(table: Warehouse) -> None:
    assert table.root(NAME) is None
    assert table.tables() == [NAME]
    schema = table.table(NAME).schema()
    assert [(f.name, str(f.field_type), f.required) for f in schema.fields] == [
        ("c7", "binary", False),
        ("c9", "binary", False),
    ]
    before = table.pointer(NAME)
    table.add_column(NAME, 11)
    table.add_column(NAME, 11)
    assert table.table(NAME).schema().column_names == ["c7", "c9", "c11"]
    assert table.pointer(NAME) != before
    with pytest.raises(errors.IntegrityError, match="already"):
        table.create_table(NAME, [1])
    table.drop_table(NAME)
    table.drop_table(NAME)
    assert list(table.objects.list(f"louver/{NAME}/")) == []
    for ask in (table.table, table.pointer):
        with pytest.raises(errors.OperationalError, match="does not exist"):
            ask(NAME)


def test_a_warehouse_is_opened_again_and_by_its_address(table: Warehouse) -> None:
    append(table, 3, {})
    for location in (table.location, f"file://{table.location}"):
        again = Warehouse.open(location)
        assert again.root(NAME) == table.root(NAME)
    with pytest.raises(errors.ProgrammingError, match="catalog"):
        Warehouse.open("s3://bucket/lake")


def test_plans_follow_the_condition(table: Warehouse) -> None:
    first = append(table, 10, {AGE: [1, 2, 9], PAY: [2, 3]})
    second = append(table, 300, {AGE: [299]})
    listed, where = first + second, head(table)
    age, pay, new = (Hit(OWNER.token(column)) for column in (AGE, PAY, NEW))

    def numbers_kept(condition):
        # Filters of so few values hit nothing else, but for one file in many thousand.
        pruned = plan.plan(table.objects, where, condition)
        assert (pruned.snapshot_id, pruned.total) == (where.snapshot_id, 310)
        for entry in pruned.files:
            assert entry.path == f"louver/{NAME}/{listed[entry.number].path}"
            assert entry.key_metadata == b"wrapped"
        return [entry.number for entry in pruned.files]

    unindexed = list(range(10, 310))
    assert numbers_kept(Everything()) == list(range(310))
    assert numbers_kept(new) == list(range(310)), "an index that no part has yet"
    assert numbers_kept(age) == [1, 2, 9, 309]
    assert numbers_kept(pay) == [2, 3, *unindexed]
    assert numbers_kept(All((age, pay))) == [2, 309]
    assert numbers_kept(Any((age, pay))) == [1, 2, 3, 9, *unindexed]
    assert numbers_kept(All(())) == list(range(310))
    assert numbers_kept(Any(())) == []
    with pytest.raises(errors.ProgrammingError, match="token"):
        numbers_kept(Hit(OWNER.token(99)))
    with pytest.raises(errors.OperationalError, match="token"):
        numbers_kept(Hit(b"nonsense"))


def test_dead_files_are_not_kept_and_numbers_stay_dense(table: Warehouse) -> None:
    listed = append(table, 20, {AGE: [0, 5, 19]})
    append(table, 5, {AGE: [0]})
    old = head(table)
    live = ((1 << 20) - 1) & ~(1 << 5 | 1 << 6)
    parts = (replace(old.parts[0], live=live.to_bytes(3, "little")), old.parts[1])
    now = replace(old, files=23, parts=parts)
    root = plan.plan(table.objects, now, Hit(OWNER.token(AGE)))
    assert [entry.number for entry in root.files] == [0, 17, 18]
    assert root.files[1].file_id == listed[19].file_id
    assert root.total == 23
    assert len(plan.plan(table.objects, now, Everything()).files) == 23


def test_a_segment_that_is_another_one_is_found_out(table: Warehouse) -> None:
    append(table, 4, {AGE: [1]})
    append(table, 4, {AGE: [2]})
    old = head(table)
    token = Hit(OWNER.token(AGE))
    first, second = old.parts
    for altered in (
        replace(first, segments=(replace(first.segments[0], blob=second.segments[0].blob),)),
        replace(first, segments=(replace(first.segments[0], blob=Blob(0, 1 << 40, 100)),)),
        replace(first, digest=bytes(32)),
    ):
        with pytest.raises(errors.VerificationError):
            plan.plan(table.objects, replace(old, parts=(altered, second)), token)


def test_writers_race_and_all_win(table: Warehouse) -> None:
    failed = []

    def write(number: int) -> None:
        own = Warehouse.open(table.location)
        try:
            for _ in range(4):
                append(own, 1 + number, {AGE: [0]})
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    pruned = head(table)
    assert pruned.files == 4 * (1 + 2 + 3 + 4)
    assert (pruned.sequence, len(pruned.parts)) == (16, 16)
    root = plan.plan(table.objects, pruned, Everything()).files
    assert len({entry.file_id for entry in root}) == 40
    scanned = {task.file.file_path for task in table.table(NAME).scan().plan_files()}
    assert scanned == {f"{table.location}/{entry.path}" for entry in root}


def test_a_file_goes_once(table: Warehouse) -> None:
    listed = append(table, 3, {})
    old = head(table)
    live = (5).to_bytes(1, "little")

    def without(base: Base) -> Root:
        parts = (replace(old.parts[0], live=live),)
        return replace(old, snapshot_id=base.snapshot_id, sequence=2, files=2, parts=parts)

    commit(table, NAME, [], [listed[1]], without)
    scanned = {task.file.file_path for task in table.table(NAME).scan().plan_files()}
    assert scanned == {f"{table.location}/louver/{NAME}/{listed[at].path}" for at in (0, 2)}
    with pytest.raises(errors.OperationalError, match="same time"):
        commit(table, NAME, [], [listed[1]], without)


def test_duckdb_sees_files_and_nothing_of_their_content(table: Warehouse, iceberg) -> None:
    append(table, 7, {AGE: [0]})
    append(table, 2, {AGE: [0]})
    folder = f"{table.location}/louver/{NAME}"
    snapshots = iceberg.execute(f"SELECT * FROM iceberg_snapshots('{folder}')").fetchall()
    assert len(snapshots) == 2
    pointer = table.pointer(NAME)
    for where in (folder, pointer):
        entries = iceberg.execute(f"SELECT * FROM iceberg_metadata('{where}')").to_arrow_table()
        assert entries.num_rows == 9
        assert sum(entries.column("record_count").to_pylist()) == 90
    for entry in table.table(NAME).inspect.files().to_pylist():
        for column in (
            "lower_bounds", "upper_bounds", "value_counts", "null_value_counts", "column_sizes",
        ):  # fmt: skip
            assert not entry[column]
    columns = "lower_bound, upper_bound, column_size, value_count"
    query = f"SELECT {columns} FROM iceberg_column_stats('{folder}')"
    assert set(iceberg.execute(query).fetchall()) <= {("NULL", "NULL", None, None)}
