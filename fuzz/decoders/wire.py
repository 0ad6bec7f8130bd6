"""Messages between machines: statements and rows, control batches, conditions, questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from fuzz.decoders import Target, joined, pieces
from louver.wire import codec, control, keycode, prune, question_codec, records, search_params
from louver.wire import questions as q
from louver.wire.control import Batch
from louver.wire.messages import Append, Control, Count, Failure, Message, Rows, Statement
from louver.wire.prune import FileEntry, FilePlan
from louver.wire.question_codec import Preparation, Progress

_ROWS = pa.table({"row_id": [1, 2], "c": pa.array([b"\0", None], pa.binary())})
_MESSAGES: list[Message] = [
    Statement("SELECT $1", (None, True, -5, 1.5, "text", b"bytes"), "query", {"t": _ROWS}),
    Append("t", _ROWS), Control("commit"), Rows(_ROWS), Count(7), Failure("row.missing", "text"),
]  # fmt: skip


def _message(data: bytes) -> None:
    codec.encode(codec.decode(data))


def _control(data: bytes) -> None:
    if data[:1] == b"\0":
        control.decode_answers(data[1:], 2)
        return
    batch = Batch.decode(data[1:])
    if Batch.decode(batch.encode()).expected != batch.expected:
        raise AssertionError("a batch that changes on its way")


def _control_seeds() -> list[bytes]:
    insert = Statement(control.LEDGER_APPEND, (1, b"sealed"), kind="write")
    batches = [Batch((control.CATALOG_READ,)), Batch((insert, control.CATALOG_VERSION), (1,), True)]
    answers = control.encode_answers([Rows(_ROWS), Count(1)])
    return [b"\0" + answers, *(b"\1" + batch.encode() for batch in batches)]


def _condition(data: bytes) -> None:
    if data[:1] == b"\0":
        mask = FilePlan.decode(data[1:])
        if FilePlan.decode(mask.encode()) != mask:
            raise AssertionError("an answer that changes on its way")
        return
    where = prune.decode(data[1:])
    if prune.encode(where) != data[1:]:
        raise AssertionError("a condition with two encodings")


def _condition_seeds() -> list[bytes]:
    files = tuple(
        FileEntry(f"louver/t1/data/{n:032x}.parquet", bytes([n]) * 16, 10, 2, b"key", n)
        for n in range(3)
    )
    where = prune.All((prune.Hit(b"token"), prune.Any((prune.Everything(), prune.Any(())))))
    return [b"\0" + FilePlan(5, 3, files).encode(), b"\1" + prune.encode(where)]


_KINDS: list[type[Any]] = [
    q.Shape, Preparation, Progress, q.Prepared, q.Ask, q.Reply, q.Dataset
]  # fmt: skip
_SHAPE = q.Shape(
    q.Protocol.SELECT, "t", partials=(q.Partial("count"),), equal=("a",), orders=(q.Order("a"),)
)
_CODE = q.Code("INTEGER", "offset", -3, 2, 8)
_FIELDS = (q.Field("g0", "INTEGER"), q.Field("g1", "VARCHAR"), q.Field("p0", "BIGINT"))
_CODES = q.KeyCodes((_CODE,), _CODE, b"", False, 8)
_HASHED = q.KeyCodes((q.Code("VARCHAR", "hash"),), None, b"salt", True, 40)


def _prepared(groups: bytes = b"", levels: tuple[q.Level, ...] = (), count: int = 0) -> q.Prepared:
    return q.Prepared(
        b"v" * 32, b"s" * 32, b"d" * 32, _CODES, _FIELDS, levels, 5, groups, count,
        (q.SumColumn(0, 0), q.SumColumn(0, 1)),
    )  # fmt: skip


def _question(data: bytes) -> None:
    kind = _KINDS[data[0] % len(_KINDS)] if data else q.Reply
    value = question_codec.decode(kind, data[1:])
    if question_codec.encode(value) != data[1:]:
        raise AssertionError("a message with two encodings")
    if isinstance(value, q.Ask):
        search_params.read_form(value.form, len(value.shares))


def _question_seeds() -> list[bytes]:
    messages: list[Any] = [
        _SHAPE, Preparation(b"v" * 32, _SHAPE), Progress("sorting", 0.5), _prepared(),
        q.Ask(b"i" * 16, b"v" * 32, b"s" * 32, 0, (b"share",), (0, 4)), q.Reply(b"data"),
        q.Dataset(b"i" * 16, (b"v" * 32,), (q.TableFacts("t", (("a", "INTEGER"),), 9),)),
    ]  # fmt: skip
    return [bytes((at,)) + question_codec.encode(item) for at, item in enumerate(messages)]


def _record(data: bytes) -> None:
    """A provider's answer as the client reads it: a record under a form that the provider told."""
    which, parts = data[:1], pieces(data[1:], 2)
    if len(parts) < 2:
        return
    prepared = question_codec.decode(q.Prepared, parts[0])
    if which == b"\0":
        records.decode_groups(prepared)
    elif which == b"\1":
        numbers = np.frombuffer(parts[1][: len(parts[1]) // 8 * 8], "<i8").tolist()
        records.decode_sums(prepared, numbers)
    elif prepared.levels:
        mark = None if which == b"\2" else 5
        records.decode(parts[1], prepared, 0, mark)


def _record_seeds() -> list[bytes]:
    fields = _FIELDS[:2]
    groups = pa.table({"g0": pa.array([1, -2], pa.int32()), "g1": pa.array(["one", None])})
    record, level = records.groups_record(groups, fields, 1 << 20)
    summed = question_codec.encode(_prepared(record, (level,), 2))
    item = _prepared(b"", (level,))
    whole = q.Prepared(
        item.version, item.shape_id, item.digest, _HASHED, fields, (level,), 5
    )  # fmt: skip
    numbers = np.array([1, 2, 3, 4], "<i8").tobytes()
    plain = question_codec.encode(whole)
    seeds = [b"\0" + joined(summed, b""), b"\1" + joined(summed, numbers)]
    return [*seeds, *(kind + joined(plain, record) for kind in (b"\2", b"\3"))]


def _point(data: bytes) -> None:
    """Codes that a provider told, applied to the client's constants."""
    codes = question_codec.decode(q.Prepared, data).codes
    units, texts = [5] * len(codes.equal), ["5"] * len(codes.equal)
    if codes.interval is None:
        results = keycode.point(codes, units, texts)
        spans = [] if results is None else [results]
    else:
        spans = [*(keycode.span(codes, units, texts, -1, 900) or ())]
    if any(not 0 <= item < 1 << 128 for item in spans):
        raise AssertionError("a point outside of every domain")
    keycode.fingerprint(codes, units, texts)


def _point_seeds() -> list[bytes]:
    item = _prepared()
    result = [item, q.Prepared(item.version, item.shape_id, item.digest, _HASHED, (), (), 5)]
    return [question_codec.encode(prepared) for prepared in result]


TARGETS = [
    Target("message", _message, lambda: [codec.encode(message) for message in _MESSAGES]),
    Target("control", _control, _control_seeds),
    Target("condition", _condition, _condition_seeds),
    Target("question", _question, _question_seeds),
    Target("record", _record, _record_seeds),
    Target("point", _point, _point_seeds),
]
