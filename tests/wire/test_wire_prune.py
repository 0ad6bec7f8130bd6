"""Questions to a pruner and its answers as bytes: there and back, and hostile bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire import prune
from louver.wire.prune import All, Any, Everything, FileEntry, FilePlan, Hit, Where
from tests.generated import cases

CONDITIONS = st.recursive(
    st.builds(Hit, st.binary(max_size=40)) | st.just(Everything()),
    lambda inner: (
        st.builds(All, st.lists(inner, max_size=4).map(tuple))
        | st.builds(Any, st.lists(inner, max_size=4).map(tuple))
    ),
    max_leaves=20,
)
FILES = st.builds(
    FileEntry,
    st.text(max_size=30),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=50),
    st.just(0),
)


def numbered(files: list[FileEntry]) -> tuple[FileEntry, ...]:
    return tuple(
        FileEntry(f.path, f.file_id, f.size, f.rows, f.key_metadata, 3 * number)
        for number, f in enumerate(files)
    )


ANSWERS = st.builds(
    lambda snapshot, files: FilePlan(snapshot, 3 * len(files) + 1, numbered(files)),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(FILES, max_size=10),
)


@given(CONDITIONS)
def test_conditions_come_back(where: Where) -> None:
    assert prune.decode(prune.encode(where)) == where


@given(ANSWERS)
def test_answers_come_back(plan: FilePlan) -> None:
    assert FilePlan.decode(plan.encode()) == plan


@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    for decode in (prune.decode, FilePlan.decode):
        for message in (data, b"\x01" + data):
            with contextlib.suppress(errors.OperationalError):
                decode(message)


@settings(max_examples=cases(200))
@given(CONDITIONS, ANSWERS, st.data())
def test_changed_bytes_are_refused_or_read(
    where: Where, plan: FilePlan, data: st.DataObject
) -> None:
    for message, decode in ((prune.encode(where), prune.decode), (plan.encode(), FilePlan.decode)):
        changed = bytearray(message)
        for _ in range(data.draw(st.integers(1, 3))):
            position = data.draw(st.integers(0, len(changed) - 1))
            changed[position] = data.draw(st.integers(0, 255))
        cut = data.draw(st.integers(0, len(changed)))
        for attempt in (bytes(changed), bytes(changed[:cut]), bytes(changed) + b"\0"):
            with contextlib.suppress(errors.OperationalError):
                decode(attempt)


def refused(where: Where) -> str:
    with pytest.raises(errors.OperationalError) as caught:
        prune.encode(where)
    assert caught.value.code == "wire.format"
    return caught.value.message


def test_bounds() -> None:
    deep: Where = Everything()
    for _ in range(prune.MAX_DEPTH - 1):
        deep = All((deep,))
    assert prune.decode(prune.encode(deep)) == deep
    assert "deeply" in refused(All((deep,)))
    assert "tokens" in refused(Any((Hit(b"t"),) * (prune.MAX_TOKENS + 1)))
    assert "parts" in refused(Any((Everything(),) * (prune.MAX_NODES + 1)))
    assert "parts" in refused(All((Any((Everything(),) * 5_000),) * 2))
    assert "longer" in refused(Hit(bytes(prune.MAX_BYTES)))
    assert prune.encode(Any((Hit(b"t"),) * prune.MAX_TOKENS))


def test_a_count_allocates_nothing() -> None:
    claimed = prune._HEAD.pack(1, 0, prune.MAX_FILES - 1, prune.MAX_FILES - 1, 0, 0)
    with pytest.raises(errors.OperationalError, match="cut short"):
        FilePlan.decode(claimed)


def entry(number: int, path: str = "p") -> FileEntry:
    return FileEntry(path, bytes(16), 1, 1, b"", number)


@pytest.mark.parametrize(
    "plan",
    [
        FilePlan(1, 1, (entry(1),)),
        FilePlan(1, -1, ()),
        FilePlan(1 << 63, 1, ()),
        FilePlan(1, 1 << 31, ()),
        FilePlan(1, 1, (FileEntry("p", b"short", 1, 1, b"", 0),)),
        FilePlan(1, 1, (FileEntry("p", bytes(16), -1, 1, b"", 0),)),
        FilePlan(1, 1, (FileEntry("p", bytes(16), 1, 1, bytes(5_000), 0),)),
        FilePlan(1, 1, (entry(0, "p" * 5_000),)),
        FilePlan(1, 1, (entry(0, "\ud800"),)),
    ],
)
def test_impossible_answers_are_not_sent(plan: FilePlan) -> None:
    with pytest.raises(errors.OperationalError):
        plan.encode()


def test_numbers_rise() -> None:
    for numbers in ((1, 0), (0, 0)):
        wrong = FilePlan(1, 2, tuple(entry(number) for number in numbers)).encode()
        with pytest.raises(errors.OperationalError, match="order"):
            FilePlan.decode(wrong)


def test_many_files_share_the_ends_of_their_paths() -> None:
    files = tuple(
        FileEntry(f"t1/data/{n:032x}.parquet", n.to_bytes(16), 1, 2, b"k" * 60, n)
        for n in range(40_000)
    )
    plan = FilePlan(7, 50_000, files)
    data = plan.encode()
    assert FilePlan.decode(data) == plan
    assert len(data) / len(files) < 40 + 60 + 33
    assert max(len(part) for part in plan.parts()) < 4 << 20


def test_tokens_are_listed() -> None:
    where = All((Hit(b"a"), Any((Hit(b"b"), Everything(), Hit(b"a")))))
    assert list(prune.tokens(where)) == [b"a", b"b", b"a"]
