"""Private questions and replies as bytes: there and back, and hostile bytes."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire import question_codec as codec
from louver.wire import questions as q
from louver.wire.question_codec import Preparation, Progress
from tests.generated import cases

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def lists(inner: st.SearchStrategy[Any], most: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(inner, max_size=most).map(tuple)


def exact(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


U32 = st.integers(0, 2**31 - 1)
U64 = st.integers(0, 2**64 - 1)
SHAPES = st.builds(
    q.Shape, st.sampled_from(q.Protocol), TEXTS, TEXTS, lists(TEXTS), TEXTS, lists(TEXTS),
    lists(st.builds(q.Partial, TEXTS, lists(TEXTS), TEXTS)), lists(TEXTS),
    lists(st.builds(q.Order, TEXTS, st.booleans(), st.booleans())), U32,
)  # fmt: skip
CODES = st.builds(
    q.Code, TEXTS, st.sampled_from(["offset", "hash"]), st.integers(-(2**127), 2**128 - 1),
    st.integers(1, 2**128), st.integers(0, 32), U32,
)  # fmt: skip
KEY_CODES = st.builds(
    q.KeyCodes, lists(CODES), st.none() | CODES, st.binary(max_size=16), st.booleans(),
    st.integers(0, 32),
).filter(lambda codes: bool(codes.equal) or not codes.hashed)  # fmt: skip
LEVELS = st.builds(
    q.Level, U64, st.integers(1, 64), U32, U32, st.booleans(),
    lists(st.builds(q.Slot, U32, st.booleans())),
)  # fmt: skip
PREPARED = st.builds(
    q.Prepared, exact(32), exact(32), exact(32), KEY_CODES,
    lists(st.builds(q.Field, TEXTS, TEXTS)), lists(LEVELS), U64, st.binary(max_size=50), U32,
    lists(st.builds(q.SumColumn, st.integers(0, 1_000), st.integers(0, 16))), st.integers(0, 64),
)  # fmt: skip
TABLES = st.builds(q.TableFacts, TEXTS, lists(st.tuples(TEXTS, TEXTS)), U64)
MESSAGES = st.one_of(
    SHAPES,
    PREPARED,
    st.builds(Preparation, exact(32), SHAPES),
    st.builds(Progress, TEXTS, st.floats(0, 1).map(lambda x: x + 0.0)),
    st.builds(
        q.Ask, exact(16), exact(32), exact(32), st.integers(0, 65_535),
        lists(st.binary(max_size=50)), lists(U64),
    ),
    st.builds(q.Reply, st.binary(max_size=100)),
    st.builds(q.Dataset, exact(16), lists(exact(32)), lists(TABLES)),
)  # fmt: skip
KINDS: list[type[Any]] = [
    q.Shape, Preparation, Progress, q.Prepared, q.Ask, q.Reply, q.Dataset
]  # fmt: skip
SHAPE = q.Shape(q.Protocol.SELECT, "t", partials=(q.Partial("count"),), equal=("a",))
ASK = q.Ask(b"i" * 16, b"v" * 32, b"s" * 32, 0, (b"share",))


@given(MESSAGES)
def test_messages_come_back(message: Any) -> None:
    data = codec.encode(message)
    assert data[0] == codec.VERSION
    assert codec.decode(type(message), data) == message
    for kind in KINDS:
        if kind is not type(message):
            with pytest.raises(errors.OperationalError):
                codec.decode(kind, data)


def read_or_refused(kind: type[Any], data: bytes) -> None:
    """Either it is refused, or it is what its value encodes to: there is one encoding only."""
    with contextlib.suppress(errors.OperationalError):
        message = codec.decode(kind, data)
        assert codec.encode(message) == data


@settings(max_examples=cases(300))
@given(st.binary(max_size=200))
def test_random_bytes_are_refused_or_read(data: bytes) -> None:
    for number, kind in enumerate(KINDS, 1):
        read_or_refused(kind, data)
        read_or_refused(kind, bytes((codec.VERSION, number)) + data)


@settings(max_examples=cases(400))
@given(MESSAGES, st.data())
def test_changed_bytes_are_refused_or_read(message: Any, data: st.DataObject) -> None:
    changed = bytearray(codec.encode(message))
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(changed)))
    for attempt in (bytes(changed), bytes(changed[:cut]), bytes(changed) + b"\0"):
        read_or_refused(type(message), attempt)


@given(MESSAGES)
def test_every_beginning_is_refused(message: Any) -> None:
    data = codec.encode(message)
    # A reply says nothing of its length: whoever asked knows it (`louver.wire.reply_sizes`).
    for end in range(2 if isinstance(message, q.Reply) else len(data)):
        with pytest.raises(errors.OperationalError) as caught:
            codec.decode(type(message), data[:end])
        assert caught.value.code == "wire.format"


def test_the_name_of_a_shape() -> None:
    assert codec.shape_id(SHAPE) == hashlib.sha256(codec.encode(SHAPE)).digest()
    assert codec.shape_id(SHAPE) != codec.shape_id(replace(SHAPE, limit=1))
    # Stored tables are found by this name: it must not change within a version.
    assert codec.encode(q.Shape(q.Protocol.SUM, "t", equal=("a",))).hex() == (
        "0101" "01" "0000000174" "00000000" "00000001" "0000000161" "00000000" "00000000"
        "00000000" "00000000" "00000000" "00000000"
    )  # fmt: skip


def test_a_preparation_streams_two_kinds() -> None:
    progress = Progress("sorting", 0.5)
    assert codec.decode_prepare(codec.encode(progress)) == progress
    for data in (b"", b"\x01", codec.encode(SHAPE), codec.encode(ASK)):
        with pytest.raises(errors.OperationalError):
            codec.decode_prepare(data)


@pytest.mark.parametrize(
    "message",
    [
        replace(ASK, query_id=b"short"),
        replace(ASK, version=b""),
        replace(ASK, step=65_536),
        replace(ASK, step=-1),
        replace(ASK, form=(1 << 64,)),
        replace(ASK, shares=(b"",) * (codec.MAX_SHARES + 1)),
        replace(ASK, shares=(bytes(codec.MAX_SHARE_BYTES + 1),)),
        q.Prepared(bytes(32), bytes(32), bytes(32), q.KeyCodes((), None, b"", True, 8), (), (), 1),
        replace(SHAPE, source="x" * (64 * 1_024 + 1)),
        replace(SHAPE, source="\ud800"),
        replace(SHAPE, limit=-1),
        replace(SHAPE, equal=("x" * 60_000,) * 5),
        q.Dataset(b"i" * 16, (b"v" * 32,) * 65),
        Progress("", 1.5),
        Progress("", float("nan")),
    ],
)
def test_what_breaks_a_bound_is_not_encoded(message: Any) -> None:
    with pytest.raises(errors.OperationalError) as caught:
        codec.encode(message)
    assert caught.value.code == "wire.format"


def test_a_huge_count_allocates_nothing() -> None:
    """Counts and lengths are believed no further than bytes are there."""
    data = codec.encode(replace(ASK, shares=()))
    offset = 2 + 16 + 32 + 32 + 2
    for count in (codec.MAX_SHARES, 1 << 31, (1 << 32) - 1):
        hostile = data[:offset] + count.to_bytes(4, "big") + data[offset + 4 :]
        with pytest.raises(errors.OperationalError):
            codec.decode(q.Ask, hostile)
