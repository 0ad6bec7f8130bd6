"""Encrypted tables: appended, read, changed, compacted, expired, and read as they once were."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.trusted.lake import data, parts
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Column, Table
from louver.untrusted.lake.root import MAX_PART_FILES
from louver.wire.prune import All, Any, Everything, Hit
from tests.generated import cases
from tests.lake.tables import OFFSET, Span, new_store, new_table, numbers, once, read, rows, span


@pytest.fixture
def store(tmp_path: Path) -> LakeStore:
    return new_store(tmp_path)


@pytest.fixture
def table(store: LakeStore) -> Table:
    return new_table(store)


def test_rows_come_back_as_they_were(store: LakeStore, table: Table) -> None:
    assert store.snapshot(table).files_total == 0
    assert read(store, table).num_rows == 0
    given = rows(0, 1_000)
    batches = [given.slice(0, 333), given.slice(333, 0), given.slice(333)]
    assert store.append(table, iter(batches), 100) == 1_000
    snapshot = store.snapshot(table)
    assert (snapshot.files_total, snapshot.rows, snapshot.sequence) == (10, 1_000, 1)
    assert snapshot.unindexed == 0
    answer = read(store, table)
    assert answer.drop_columns(["row_id"]).equals(given)
    expected = [(n // 100) << 32 | n % 100 for n in range(1_000)]
    assert answer.column("row_id").to_pylist() == expected
    assert store.append(table, once(), 100) == 0
    assert store.snapshot(table).sequence == 1, "nothing was written"


def test_files_are_named_in_the_order_of_their_rows(
    store: LakeStore, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the order in which threads come to write them."""
    ids = iter(range(100))
    monkeypatch.setattr(data, "new_id", lambda: next(ids).to_bytes(16))
    store.append(table, once(rows(0, 800)), 100)
    files = store.snapshot(table)
    first_rows = pa.array([number << 32 for number in range(8)], pa.int64())
    store.replace(table, files, first_rows, once())
    plan = store.plan(table, store.snapshot(table), Everything())
    assert [entry.file_id for entry in plan.files] == [n.to_bytes(16) for n in range(8, 16)]


def test_only_files_that_may_hold_a_value_are_kept(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 1_000)), 100)
    store.append(table, once(rows(1_000, 500)), 100)
    snapshot = store.snapshot(table)

    def numbers_of(where) -> list[int]:
        pruned = store.plan(table, snapshot, where)
        assert pruned.total == 15
        return [entry.number for entry in pruned.files]

    def hit(low: int, high: int) -> Hit:
        return Hit(store.token(table, span(low, high)))

    assert {2, 3, 4} <= set(numbers_of(hit(250, 449)))
    assert len(numbers_of(hit(250, 449))) < 10
    both = numbers_of(All((hit(0, 99), hit(1_400, 1_499))))
    assert len(both) < 8
    assert {0, 14} <= set(numbers_of(Any((hit(0, 99), hit(1_400, 1_499)))))
    assert 14 in numbers_of(hit(1_499, 1_499))
    assert set(numbers(read(store, table, span(250, 449)))) >= set(range(250, 450))


def test_columns_are_read_alone_and_in_any_order(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 10)), 4)
    files = store.plan(table, store.snapshot(table), All(())).files
    batches = list(store.read(table, files, [table.columns[2], table.columns[0]]))
    assert [batch.column_names for batch in batches] == [["t", "n"]] * 3
    assert [batch.num_rows for batch in store.read(table, files, [])] == [4, 4, 2]
    batches = list(store.read(table, files, [], row_ids=True))
    assert [batch.column("row_id").to_pylist()[0] >> 32 for batch in batches] == [0, 1, 2]


def test_an_added_column_is_null_in_old_files(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 10)), 5)
    fresh = Column("extra", "INTEGER", 10, encrypted=True, ceiling="access")
    table.columns.append(fresh)
    store.add_column(table, fresh)
    token = Hit(store.token(table, span(3, 4, column=10)))
    plan = store.plan(table, store.snapshot(table), token)
    assert len(plan.files) == 2, "no index knows the column yet"
    wider = rows(10, 10).append_column("extra", pa.array(range(10), pa.int32()))
    store.append(table, once(wider), 5)
    answer = read(store, table)
    assert answer.column("extra").to_pylist() == [None] * 10 + list(range(10))
    assert answer.schema.field("extra").type == pa.int32()
    snapshot = store.reindex(table)
    plan = store.plan(table, snapshot, token)
    assert [entry.number for entry in plan.files] == [2], "old files have no value there"


def test_rows_are_replaced(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 100)), 10)
    before = store.snapshot(table)
    answer = read(store, table)
    gone = answer.filter(pc.is_in(answer.column("n"), pa.array([3, 4, 55, *range(90, 100)])))
    assert store.replace(table, before, gone.column("row_id").combine_chunks(), once(rows(500, 7)))
    now = store.snapshot(table)
    wanted = [n for n in range(100) if n not in {3, 4, 55} and n < 90] + list(range(500, 507))
    assert numbers(read(store, table)) == wanted
    assert (now.rows, now.files_total) == (len(wanted), 10)
    assert numbers(read(store, table, snapshot=before)) == list(range(100))
    entries = store.plan(table, now, All(())).files
    assert sum(entry.size for entry in entries) == now.bytes
    scanned = {task.file.file_path for task in store.warehouse.table("t5").scan().plan_files()}
    assert scanned == {f"{store.warehouse.location}/{entry.path}" for entry in entries}


def test_written_files_are_committed_or_discarded(store: LakeStore, table: Table) -> None:
    written = store.write(table, once(rows(0, 10)), 3)
    assert [entry.number for entry in written] == [0, 1, 2, 3]
    assert numbers(pa.concat_tables(store.read(table, written, table.columns))) == list(range(10))
    snapshot = store.commit(table, store.snapshot(table), None, written[:2])
    store.discard(table, written)
    assert (snapshot.files_total, snapshot.rows) == (2, 6)
    assert store.snapshot(table).digest == snapshot.digest
    assert numbers(read(store, table)) == list(range(6))
    files = list(store.warehouse.objects.list("louver/t5/data/"))
    assert len(files) == 2


def test_two_who_delete_from_one_file_are_told(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 30)), 10)
    old = store.snapshot(table)
    store.replace(table, old, pa.array([1], pa.int64()), once())
    before = set(store.warehouse.objects.list("louver/t5/"))
    with pytest.raises(errors.OperationalError, match="same time"):
        store.replace(table, old, pa.array([2], pa.int64()), once(rows(90, 3)))
    assert set(store.warehouse.objects.list("louver/t5/")) == before, "nothing is left over"
    store.replace(table, old, pa.array([1 << 32 | 2], pa.int64()), once(rows(90, 3)))
    wanted = [n for n in range(30) if n not in {1, 12}] + [90, 91, 92]
    assert numbers(read(store, table)) == wanted


def test_who_compacts_and_who_deletes_do_not_mix(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 30)), 10)
    old = store.snapshot(table)
    store.compact(table, 15)
    with pytest.raises(errors.OperationalError, match="same time"):
        store.replace(table, old, pa.array([2], pa.int64()), once())
    for index in range(parts.MOST_SMALL + 3):
        store.append(table, once(rows(100 + index, 1)))
    with pytest.raises(errors.OperationalError, match="same time"):
        store.replace(table, old, pa.array([2], pa.int64()), once())
    assert numbers(read(store, table)) == [*range(30), *range(100, 119)]


def test_a_null_counts_as_no_value_or_as_any(store: LakeStore) -> None:
    for index, (reading, least) in enumerate((("no-value", 0), ("any-value", 10)), 6):
        table = new_table(store, index, nulls=reading)
        store.append(table, once(rows(0, 100)), 10)
        none = Span(8, OFFSET + 100_000, OFFSET + 100_001)
        plan = store.plan(table, store.snapshot(table), Hit(store.token(table, none)))
        assert least <= len(plan.files) <= least + 2


def test_time_travel(store: LakeStore, table: Table) -> None:
    seen = []
    for index in range(3):
        store.append(table, once(rows(10 * index, 10)), 10)
        seen.append(store.snapshot(table))
    for index, snapshot in enumerate(seen):
        for at in (snapshot.id, snapshot.created_at):
            state = store.snapshot(table, at)
            assert state.id == snapshot.id
            assert numbers(read(store, table, snapshot=state)) == list(range(10 * (index + 1)))
    assert store.snapshot(table, datetime.now(UTC) + timedelta(hours=1)).id == seen[-1].id
    for at in (123, seen[0].created_at - timedelta(days=1)):
        with pytest.raises(errors.ProgrammingError, match="no snapshot"):
            store.snapshot(table, at)
    listed = store.history(table)
    assert listed.column("snapshot_id").to_pylist() == [at_time.id for at_time in seen]
    assert listed.column("rows").to_pylist() == [10, 20, 30]
    assert listed.column("made").to_pylist() == [state.created_at for state in seen]


def test_expired_snapshots_go_with_what_only_they_had(store: LakeStore, table: Table) -> None:
    store.append(table, once(rows(0, 20)), 10)
    old = store.snapshot(table)
    store.replace(table, old, pa.array(range(10), pa.int64()), once(rows(70, 5)))
    for _ in range(3):
        store.append(table, once(rows(100, 5)), 10)
    assert store.expire(table, keep_last=2) == 3
    assert store.expire(table, keep_last=2) == 0
    assert store.history(table).num_rows == 2
    expected = sorted([*range(10, 20), *range(70, 75), *list(range(100, 105)) * 3])
    assert numbers(read(store, table)) == expected
    with pytest.raises(errors.ProgrammingError, match="no snapshot"):
        store.snapshot(table, old.id)
    assert len(list(store.warehouse.objects.list("louver/t5/data/"))) == 5
    assert store.clean(table, grace_seconds=0) == []
    store.append(table, once(rows(200, 1)), 10)
    assert store.snapshot(table).files_total == 6


def test_small_files_are_compacted(store: LakeStore, table: Table) -> None:
    for index in range(6):
        store.append(table, once(rows(10 * index, 10)), 10)
    store.append(table, once(rows(60, 25)), 25)
    before = store.snapshot(table)
    now = store.compact(table, 25)
    assert (now.files_total, now.rows) == (4, before.rows)
    assert numbers(read(store, table)) == list(range(85))
    assert store.compact(table, 25).id == now.id, "nothing to do"
    down = store.compact(table, 5)
    assert down.files_total == 17
    assert numbers(read(store, table)) == list(range(85))


def test_sorted_files_have_narrow_ranges(store: LakeStore, table: Table) -> None:
    mixed = rows(0, 400).take(pa.array([n * 37 % 400 for n in range(400)]))
    store.append(table, once(mixed), 20)
    wide = store.plan(table, store.snapshot(table), Hit(store.token(table, span(200, 201))))
    assert len(wide.files) > 10
    now = store.compact(table, 20, [table.columns[0]])
    answer = read(store, table)
    assert answer.column("n").to_pylist() == list(range(400))
    assert answer.drop_columns(["row_id"]).equals(rows(0, 400))
    assert len(store.plan(table, now, Hit(store.token(table, span(200, 201)))).files) < 10


def test_many_small_commits_are_merged(store: LakeStore, table: Table) -> None:
    for index in range(40):
        store.append(table, once(rows(3 * index, 3)), 2)
    snapshot = store.snapshot(table)
    assert snapshot.files_total == 80
    assert len(snapshot.root.parts) <= parts.MOST_SMALL + 1
    assert len(snapshot.root.sides) <= parts.MOST_SMALL + 1
    assert numbers(read(store, table)) == list(range(120))
    plan = store.plan(table, snapshot, Hit(store.token(table, span(60, 62))))
    assert len(plan.files) < 20
    gone = read(store, table, span(60, 62))
    gone = gone.filter(pc.field("n") == 61).column("row_id").combine_chunks()
    for index in range(40, 60):
        store.append(table, once(rows(3 * index, 3)), 2)
    store.replace(table, snapshot, gone, once())
    assert numbers(read(store, table)) == [n for n in range(180) if n != 61]
    assert numbers(read(store, table, snapshot=snapshot)) == list(range(120))


def test_parts_never_outgrow_a_segment() -> None:
    from types import SimpleNamespace

    def part(count: int):
        return SimpleNamespace(part=SimpleNamespace(live_count=count))

    small = [part(count) for count in [1] * 9 + [10_000, 12_000, 15_000, 16_000]]
    choice = parts._chosen(small)
    assert sum(choice_part.part.live_count for choice_part in choice) <= MAX_PART_FILES
    assert len(choice) >= 9


def test_the_index_can_be_off_and_made_later(store: LakeStore) -> None:
    table = new_table(store, 6, on=False)
    store.append(table, once(rows(0, 100)), 10)
    snapshot = store.snapshot(table)
    assert snapshot.unindexed == 10
    table.lake["on"] = True
    condition = Hit(store.token(table, span(0, 9)))
    assert len(store.plan(table, snapshot, condition).files) == 10
    now = store.reindex(table)
    assert now.unindexed == 0
    assert len(store.plan(table, now, condition).files) < 5
    assert numbers(read(store, table)) == list(range(100))
    table.lake["bits"] = 32_768
    again = store.reindex(table)
    condition = Hit(store.token(table, span(0, 9)))
    assert len(store.plan(table, again, condition).files) < 5


def test_tokens_of_other_tables_are_refused(store: LakeStore, table: Table) -> None:
    other = new_table(store, 6)
    store.append(table, once(rows(0, 10)), 5)
    with pytest.raises(errors.ProgrammingError, match="token"):
        store.plan(table, store.snapshot(table), Hit(store.token(other, span(0, 1))))
    with pytest.raises(errors.OperationalError):
        store.plan(table, store.snapshot(table), Hit(b"no token"))


def test_settings_are_checked(store: LakeStore) -> None:
    for wrong in ({"kind": "x"}, {"bits": 1_000}, {"bits": "many"}, {"nulls": None}):
        table = new_table(store, 50 + len(str(wrong)), **wrong)
        with pytest.raises(errors.ProgrammingError, match="setting"):
            store.append(table, once(rows(0, 1)))


def test_writers_in_threads(store: LakeStore, table: Table, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        own = new_store(tmp_path)
        try:
            for offset in range(7):
                own.append(table, once(rows(1_000 * number + 10 * offset, 10)), 5)
                assert own.snapshot(table).sequence > offset
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    wanted = [1_000 * number + offset for number in range(3) for offset in range(70)]
    assert numbers(read(store, table)) == wanted
    snapshot = store.snapshot(table)
    assert snapshot.sequence == 21
    assert len(snapshot.root.parts) <= parts.MOST_SMALL + 1
    # PyIceberg's catalog leaves the metadata of a lost race behind.
    assert all(path.endswith(".metadata.json") for path in store.clean(table, grace_seconds=0))
    assert store.clean(table, grace_seconds=0) == []


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 30), st.integers(1, 12)),
        st.tuples(st.just("delete"), st.integers(2, 7), st.integers(0, 6)),
        st.tuples(st.just("compact"), st.integers(1, 20), st.booleans()),
        st.tuples(st.just("reindex"), st.just(0), st.just(0)),
        st.tuples(st.just("expire"), st.integers(1, 3), st.just(0)),
    ),
    max_size=8,
)


@settings(max_examples=cases(15), deadline=None)
@given(ACTIONS)
def test_a_table_is_the_rows_that_it_should_have(tmp_path_factory, actions) -> None:
    store = new_store(tmp_path_factory.mktemp("any"))
    table, held, fresh = new_table(store), set[int](), 0
    for kind, size, two in actions:
        if kind == "append":
            store.append(table, once(rows(fresh, size)), two)
            held |= set(range(fresh, fresh + size))
            fresh += size
        elif kind == "delete" and held:
            answer = read(store, table)
            gone = [n % size == two % size for n in answer.column("n").to_pylist()]
            ids = answer.column("row_id").filter(pa.array(gone)).combine_chunks()
            store.replace(table, store.snapshot(table), ids, once())
            held = {n for n in held if n % size != two % size}
        elif kind == "compact":
            store.compact(table, size, [table.columns[0]] if two else [])
        elif kind == "reindex":
            store.reindex(table)
        elif kind == "expire":
            store.expire(table, size)
        snapshot = store.snapshot(table)
        answer = read(store, table)
        assert numbers(answer) == sorted(held)
        assert snapshot.rows == len(held)
        wanted = {n for n in held if 5 <= n <= 11}
        assert wanted <= set(numbers(read(store, table, span(5, 11))) if held else ())
    assert store.clean(table, grace_seconds=0) == []
