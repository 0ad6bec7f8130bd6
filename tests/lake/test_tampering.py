"""A warehouse whose keeper lies: what was altered is found out, or it changes no answer."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Table
from louver.untrusted.lake.plan import plan
from louver.wire.prune import Everything, FilePlan, Hit
from tests.generated import cases
from tests.lake.tables import new_store, new_table, numbers, once, read, rows, span, table_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = new_store(tmp_path)
    table = new_table(store)
    store.append(table, once(rows(0, 40)), 10)
    store.append(table, once(rows(40, 20)), 10)
    return tmp_path


@pytest.fixture
def store(folder: Path) -> LakeStore:
    return new_store(folder)


@pytest.fixture
def table(store: LakeStore) -> Table:
    return table_of(store)


def files(folder: Path, pattern: str) -> list[Path]:
    paths = sorted((folder / "lake/louver/t5").glob(pattern))
    assert paths
    return paths


def refuse(store: LakeStore, table: Table, code: str = "lake.tampered") -> None:
    with pytest.raises(errors.Error) as caught:
        read(store, table)
    assert caught.value.code == code


def test_data_files_are_bound_to_their_ids(folder: Path, store: LakeStore, table: Table) -> None:
    first, second, third, *_ = files(folder, "data/*.parquet")
    whole = {path: path.read_bytes() for path in (first, second, third)}
    size = len(whole[first])
    for altered in (
        (whole[second] + whole[third])[:size],
        (whole[second] + whole[third])[-size:],
        whole[first][:-1],
        b"x" + whole[first],
        whole[first][:50] + bytes([whole[first][50] ^ 1]) + whole[first][51:],
        b"",
    ):
        first.write_bytes(altered)
        with pytest.raises(errors.VerificationError):
            read(store, table)
    first.write_bytes(whole[first] + b"x")
    assert read(store, table).num_rows == 60, "what stands behind the end is never looked at"
    first.unlink()
    refuse(store, table, "lake.missing")
    first.write_bytes(whole[first])
    assert numbers(read(store, table)) == list(range(60))


def test_a_root_is_bound_to_its_snapshot(folder: Path, store: LakeStore, table: Table) -> None:
    old, new = sorted(files(folder, "metadata/*.root"), key=lambda path: path.stat().st_size)
    raw = new.read_bytes()
    for altered in (old.read_bytes(), raw[:-1] + bytes([raw[-1] ^ 1])):
        new.write_bytes(altered)
        refuse(new_store(folder), table)
    other = new_table(store, 6)
    store.append(other, once(rows(0, 5)))
    new.write_bytes(next((folder / "lake/louver/t6/metadata").glob("*.root")).read_bytes())
    refuse(new_store(folder), table)


def test_an_older_state_is_found_out(folder: Path, store: LakeStore, table: Table) -> None:
    read(store, table)
    shutil.copytree(folder / "lake", folder / "copy")
    store.append(table, once(rows(60, 5)))
    shutil.rmtree(folder / "lake")
    shutil.copytree(folder / "copy", folder / "lake")
    refuse(new_store(folder), table, "lake.rollback")
    with pytest.raises(errors.VerificationError):
        new_store(folder).append(table, once(rows(70, 5)))
    before = set(store.warehouse.objects.list("louver/"))
    for tidy in (lambda s: s.clean(table, grace_seconds=0), lambda s: s.expire(table)):
        with pytest.raises(errors.VerificationError):
            tidy(new_store(folder))
    assert set(store.warehouse.objects.list("louver/")) == before, "nothing is lost over a lie"
    assert read(new_store(folder, pins=False), table).num_rows == 60, "who never saw more, believes"


def test_another_history_is_found_out(folder: Path, table: Table) -> None:
    shutil.copytree(folder / "lake", folder / "copy")
    ours = new_store(folder)
    ours.append(table, once(rows(60, 5)))
    shutil.rmtree(folder / "lake")
    shutil.copytree(folder / "copy", folder / "lake")
    theirs = new_store(folder, pins=False)
    theirs.append(table, once(rows(80, 5)))
    refuse(new_store(folder), table, "lake.rollback")
    theirs.append(table, once(rows(90, 5)))
    refuse(new_store(folder), table, "lake.rollback")


def test_an_empty_table_is_not_believed_later(folder: Path, store: LakeStore, table: Table) -> None:
    read(store, table)
    store.warehouse.catalog.drop_table(("louver", "t5"))
    store.warehouse.create_table("t5", [7, 8, 9])
    refuse(new_store(folder), table, "lake.rollback")


@dataclass
class Liar:
    """A pruner that answers what it likes."""

    answer: FilePlan

    def plan(self, table, snapshot_id, where):
        return self.answer


def test_a_pruner_can_name_no_other_file(folder: Path, store: LakeStore, table: Table) -> None:
    snapshot = store.snapshot(table)
    honest = plan(store.warehouse.objects, snapshot.root, Everything())
    store.pruner = Liar(honest)
    hit = Hit(store.token(table, span(0, 1)))
    assert read(store, table, hit).num_rows == 60
    first, second = honest.files[:2]
    for lie in (
        replace(honest, total=5),
        replace(honest, snapshot_id=3),
        replace(honest, files=(replace(first, number=1), replace(second, number=2))),
        replace(honest, files=(replace(first, file_id=bytes(16)),)),
        replace(honest, files=(replace(first, path="louver/t5/data/other"),)),
        replace(honest, files=(replace(first, rows=9),)),
        replace(honest, files=(replace(first, number=60),)),
        replace(honest, files=(replace(first, key_metadata=second.key_metadata),)),
        replace(honest, files=(first, first)),
    ):
        store.pruner = Liar(lie)
        with pytest.raises(errors.VerificationError):
            store.plan(table, snapshot, hit)


def test_an_index_that_lies_is_found_out(folder: Path, table: Table) -> None:
    """Bits of rows that a token reads: altered ones would hide files."""
    store = new_store(folder)
    hit = Hit(store.token(table, span(45, 46)))
    side = max(files(folder, "metadata/*.puffin"), key=lambda path: path.stat().st_size)
    raw = side.read_bytes()
    begin = raw.index(b"LVSG")
    refused = 0
    for row_id in range(begin + 48, begin + 48 + 16_384, 97):
        side.write_bytes(raw[:row_id] + bytes([raw[row_id] ^ 255]) + raw[row_id + 1 :])
        fresh = new_store(folder)
        try:
            fresh.plan(table, fresh.snapshot(table), hit)
        except errors.VerificationError:
            refused += 1
    assert refused > 100, "a small segment bears one tag over all its rows"


def test_altered_bounds_make_no_index(folder: Path, store: LakeStore, table: Table) -> None:
    part = store.snapshot(table).root.parts[0]
    assert part.bounds is not None
    side = folder / "lake" / store.snapshot(table).root.path(part.bounds)
    raw = bytearray(side.read_bytes())
    raw[part.bounds.offset + part.bounds.length // 2] ^= 1
    side.write_bytes(raw)
    with pytest.raises(errors.VerificationError):
        store.reindex(table)


@settings(
    max_examples=cases(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_altered_file_is_found_out_or_harmless(folder: Path, data) -> None:
    """Whatever bytes change anywhere in the warehouse, no row is missing and none is wrong."""
    everything = [path for path in files(folder, "**/*") if path.is_file()]
    path = data.draw(st.sampled_from([*everything, folder / "lake/catalog.sqlite"]))
    raw = path.read_bytes()
    altered = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 4))):
        altered[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)) | st.just(len(raw)))
    path.write_bytes(altered[:cut])
    try:
        store = new_store(folder)
        table = table_of(store)
        store.history(table)
        assert set(range(15, 25)) <= set(numbers(read(store, table, span(15, 24))))
        answer = read(store, table)
        assert answer.drop_columns(["row_id"]).equals(rows(0, 60))
    except errors.Error:
        pass
    finally:
        path.write_bytes(raw)


def test_a_row_number_from_elsewhere_is_refused(store: LakeStore, table: Table) -> None:
    snapshot = store.snapshot(table)
    for ids in ([60 << 32], [10], [-1]):
        with pytest.raises(errors.InternalError):
            store.replace(table, snapshot, pa.array(ids, pa.int64()), once())
    assert numbers(read(store, table)) == list(range(60))
