"""Arrow IPC streams from untrusted sources, read within memory bounded by their length.

Arrow trusts two numbers that cost the sender nothing: the expanded length of a compressed buffer,
and the number of rows of a column that stores none of them (a column of nulls, a run). Louver
writes neither, so both are refused.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from louver.wire.binary import malformed

#: Smallest size of a row, except in columns that store none: one bit.
_ROWS_PER_BYTE = 8
#: Positions of the fields in the tables of Arrow's messages (Message.fbs), counted from zero.
_HEADER_TYPE, _HEADER = 1, 2
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_DICTIONARY_DATA, _COMPRESSION = 1, 3


def read_table(data: memoryview) -> pa.Table:
    """The table of an IPC stream; `wire.format` for any other bytes."""
    try:
        _refuse_compression(data)
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            table = stream.read_all()
        # By default Arrow trusts offsets inside the buffers.
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError, KeyError, TypeError, struct.error) as error:
        raise malformed("a table that is not Arrow") from error
    if table.num_rows > _ROWS_PER_BYTE * len(data):
        raise malformed("a table of more rows than its bytes hold")
    return table


def _refuse_compression(data: memoryview) -> None:
    """Refuse compressed batches before Arrow expands them."""
    messages = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    for message in messages:
        if message.type in ("record batch", "dictionary"):
            _check_batch(memoryview(message.metadata))


def _check_batch(metadata: memoryview) -> None:
    """Check a message's metadata, a FlatBuffer that Arrow verified when it read the message."""
    root = _number("<I", metadata, 0)
    kind = _field(metadata, root, _HEADER_TYPE)
    header = _child(metadata, root, _HEADER)
    if kind is None or header is None:
        raise malformed("a table that is not Arrow")
    if metadata[kind] == _DICTIONARY_BATCH:
        header = _child(metadata, header, _DICTIONARY_DATA)
    elif metadata[kind] != _RECORD_BATCH:
        raise malformed("a table that is not Arrow")
    if header is None or _field(metadata, header, _COMPRESSION) is not None:
        raise malformed("a table that is compressed")


def _field(metadata: memoryview, table: int, index: int) -> int | None:
    """The position of a table's field; None if it is missing."""
    entries = table - _number("<i", metadata, table)
    entry = 4 + 2 * index
    if entry >= _number("<H", metadata, entries):
        return None
    offset = _number("<H", metadata, entries + entry)
    return table + offset if offset else None


def _child(metadata: memoryview, table: int, index: int) -> int | None:
    """The position of a table within a table."""
    at = _field(metadata, table, index)
    return None if at is None else at + _number("<I", metadata, at)


def _number(form: str, metadata: memoryview, at: int) -> int:
    if at < 0:
        raise malformed("a table that is not Arrow")
    number: int = struct.unpack_from(form, metadata, at)[0]
    return number
