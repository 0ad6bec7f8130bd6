"""The codec: what goes in comes out, and other bytes raise its one error."""

from __future__ import annotations

import contextlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.wire import codec
from louver.wire.messages import Append, Control, Count, Failure, Message, Rows, Statement

TABLE = pa.table({"row_id": [1, 2], "c": pa.array([b"\x00", None], pa.binary())})

constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 3000), 1 << 3000),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
)
statements = st.builds(
    Statement,
    st.text(),
    st.lists(constants, max_size=5).map(tuple),
    st.sampled_from(["query", "write", "ddl"]),
    st.dictionaries(st.text(max_size=5), st.just(TABLE), max_size=2),
)
messages: st.SearchStrategy[Message] = st.one_of(
    statements,
    st.builds(Append, st.text(max_size=20), st.just(TABLE)),
    st.builds(Control, st.sampled_from(["begin", "commit", "rollback"])),
    st.builds(Rows, st.just(TABLE)),
    st.builds(Count, st.integers(0, (1 << 64) - 1)),
    st.builds(Failure, st.text(max_size=20), st.text()),
)


@settings(deadline=None)
@given(messages)
def test_round_trip(message: Message) -> None:
    again = codec.decode(codec.encode(message))
    assert again == message
    if isinstance(message, Statement) and isinstance(again, Statement):
        assert list(map(type, again.constants)) == list(map(type, message.constants))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_its_error(data: bytes) -> None:
    refused(data)
    for kind in range(8):
        refused(bytes((codec.VERSION, kind)) + data)


@settings(deadline=None)
@given(messages, st.data())
def test_altered_messages_are_messages_or_its_error(message: Message, data: st.DataObject) -> None:
    whole = codec.encode(message)
    at = data.draw(st.integers(0, len(whole)))
    size = data.draw(st.integers(0, 16))
    refused(whole[:at] + data.draw(st.binary(max_size=16)) + whole[at + size :])


def refused(data: bytes) -> None:
    with contextlib.suppress(errors.OperationalError):
        codec.decode(data)


@settings(deadline=None)
@given(messages)
def test_a_message_cut_short_or_grown_is_refused(message: Message) -> None:
    whole = codec.encode(message)
    for data in (whole[:-1], whole + b"\0", b"\x02" + whole[1:], b""):
        with pytest.raises(errors.OperationalError):
            codec.decode(data)


def test_lengths_are_bounded_before_anything_is_read() -> None:
    huge = struct.pack(">Q", 1 << 62)
    for start in (b"\x01\x01\x00", b"\x01\x01\x00" + bytes(8), b"\x01\x04", b"\x01\x02"):
        with pytest.raises(errors.OperationalError):
            codec.decode(start + huge)


def stream(table: pa.Table, compression: str | None = None) -> bytes:
    """A message of rows, as a stranger may write it."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return b"\x01\x04" + struct.pack(">Q", len(data)) + data


def test_small_messages_do_not_expand() -> None:
    """A few bytes that stand for gigabytes: compressed buffers, and rows that take no bytes."""
    zeros = pa.array([bytes(1 << 20)], pa.binary())
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int64()), pa.array(["x"]))
    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), zeros)
    for column, compression in (
        (zeros, "zstd"), (zeros, "lz4"), (words, "zstd"), (pa.nulls(1 << 30), None), (runs, None),
    ):  # fmt: skip
        with pytest.raises(errors.OperationalError):
            codec.decode(stream(pa.table({"c": column}), compression))
    for column in (zeros, words, pa.nulls(5)):
        assert isinstance(codec.decode(stream(pa.table({"c": column}))), Rows)


def test_what_is_too_long_is_not_sent() -> None:
    for message in (
        Statement("x" * (codec.MAX_TEXT_BYTES + 1)),
        Append("x" * (codec.MAX_NAME_BYTES + 1), TABLE),
        Statement("", (1,) * (codec.MAX_CONSTANTS + 1)),
        Statement("", (1 << (8 * codec.MAX_INTEGER_BYTES),)),
        Statement("\ud800"),
    ):
        with pytest.raises(errors.OperationalError):
            codec.encode(message)
