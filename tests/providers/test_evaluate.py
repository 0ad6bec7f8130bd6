"""Shares of real functions on prepared tables: whole, in parts, and broken."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.vault.schemes import fss
from louver.untrusted.providers import evaluate
from louver.untrusted.providers.evaluate import Part
from louver.untrusted.providers.tables import Table
from louver.wire import keycode, records, reply_sizes, search_params
from louver.wire.questions import Ask, Order, Partial, Prepared, Protocol, Shape
from tests.providers.prepared import VERSION, Holding, Row

COUNT_AND_SUM = (Partial("count"), Partial("sum", ("i",)))


@pytest.fixture(scope="module")
def held() -> Iterator[Holding]:
    rows: list[Row] = [
        (at * 7 % 40, f"name {at * 11 % 30}", None, None, None, at * at) for at in range(300)
    ]
    with tempfile.TemporaryDirectory() as folder:
        holding = Holding(Path(folder), rows)
        yield holding
        holding.close()


def shape(protocol: Protocol, **given: Any) -> Shape:
    return Shape(protocol, "t", **given)


def answers_of(
    held: Holding, table: Table, functions: list[Any], step: int = 0, form: tuple[int, ...] = ()
) -> list[list[bytes]]:
    """The answers to each function, one for each party; in parts they are the same."""
    prepared = table.prepared
    answers = []
    for number, shares in enumerate(
        zip(*(function.shares() for function in functions), strict=True)
    ):
        ask = Ask(bytes(15) + bytes((number,)), VERSION, prepared.shape_id, step, shares, form)
        reply = held.provider.answer(ask)
        whole = evaluate.part(table, ask)
        assert reply.data == b"".join(whole)
        for of in (2, 7):
            parts = [evaluate.part(table, ask, Part(at, of)) for at in range(of)]
            assert evaluate.combine(table, ask, parts) == whole
        answers.append(whole)
    return [list(parts) for parts in zip(*answers, strict=True)]


def joined(function: Any, prepared: Prepared, replies: list[bytes], level: int) -> bytes | None:
    """The record that a point selected."""
    form = prepared.levels[level]
    widened = [records.widened(reply, form, reply_sizes.BLOCK) for reply in replies]
    record: bytes | None = function.open(widened, level)
    return record


def opened(held: Holding, prepared: Prepared, level: int, selected: bytes | None) -> list[Row]:
    if selected is None:
        return []
    record = selected[: prepared.levels[level].width]
    return held.read(records.decode(record, prepared, level))


@pytest.mark.parametrize(("protocol", "parties"), [("select", 2), ("select", 3), ("buckets", 3)])
def test_a_point_selects_its_record(held: Holding, protocol: str, parties: int) -> None:
    prepared, table = held.prepare(shape(Protocol(protocol), equal=("a",), partials=COUNT_AND_SUM))
    values = [0, 7, 39, 41]
    functions = []
    for value in values:
        point = keycode.point(prepared.codes, [value], [str(value)])
        functions.append(fss.Point(prepared.levels[0].bits, point, parties))
    for value, function, replies in zip(
        values, functions, answers_of(held, table, functions), strict=True
    ):
        record = joined(function, prepared, replies, 0)
        wanted = held.rows(
            "SELECT count(*), sum(i) FROM t WHERE a = ? HAVING count(*) > 0", [value]
        )
        if value < 40:
            assert opened(held, prepared, 0, record) == wanted
        elif protocol == "select":
            assert record is None


def test_a_span_sums(held: Holding) -> None:
    prepared, table = held.prepare(
        shape(Protocol.SUM, equal=("b",), interval="a", groups=("a % 2",), partials=COUNT_AND_SUM)
    )
    span = keycode.span(prepared.codes, [], ["name 22"], 3, 30)
    assert span is not None
    functions = [fss.Sum(prepared.codes.bits, *span), fss.Sum(prepared.codes.bits, None, None)]
    replies = answers_of(held, table, functions)
    table_found = records.decode_sums(prepared, functions[0].open(replies[0]))
    wanted = held.rows(
        "SELECT a % 2, count(*), sum(i) FROM t WHERE b = 'name 22' AND a BETWEEN 3 AND 30 "
        "GROUP BY 1"
    )
    assert [row for row in held.read(table_found) if row[1]] == sorted(wanted)
    assert set(functions[1].open(replies[1])) == {0}


def test_ranks_are_counted_and_nodes_selected(held: Holding) -> None:
    prepared, table = held.prepare(
        shape(Protocol.NODES, interval="i", partials=(Partial("max", ("i",)),))
    )
    span = keycode.span(prepared.codes, [], [], 100, 40_000)
    assert span is not None
    bits, levels = prepared.codes.bits, len(prepared.levels)
    counts = [fss.Below(bits, span[0]), fss.Below(bits, span[1] + 1)]
    replies = answers_of(held, table, counts)
    first, last = (function.open(two)[0] for function, two in zip(counts, replies, strict=True))
    assert (first, last) == (10, 201)
    points = []
    for number in range(levels):
        for at in (first >> number, None):
            points.append(fss.Point(prepared.levels[number].bits, at))
    for index, (function, two) in enumerate(
        zip(points, answers_of(held, table, points, 1), strict=True)
    ):
        record = joined(function, prepared, two, index // 2)
        if index % 2 == 0:
            highest = min(300, ((first >> index // 2) + 1) << index // 2) - 1
            assert opened(held, prepared, index // 2, record) == [(highest**2,)]


def test_prefixes_are_selected_at_three_providers(held: Holding) -> None:
    prepared, table = held.prepare(
        shape(Protocol.DYADIC, equal=("b",), interval="a", partials=(Partial("count"),))
    )
    span = keycode.span(prepared.codes, [], ["name 22"], None, None)
    assert span is not None
    top = len(prepared.levels) - 1
    points = [
        fss.Point(level.bits, span[0] >> number if side == 0 and number == top else None, 3)
        for number, level in enumerate(prepared.levels)
        for side in (0, 1)
    ]
    replies = answers_of(held, table, points)
    record = joined(points[2 * top], prepared, replies[2 * top], top)
    assert opened(held, prepared, top, record) == held.rows(
        "SELECT count(*) FROM t WHERE b = 'name 22'"
    )


def test_rows_are_counted_by_prefix_selected_and_gathered(held: Holding) -> None:
    prepared, table = held.prepare(
        shape(
            Protocol.SEARCH, equal=("b",), columns=("i",), orders=(Order("i", descending=True),),
            limit=1,
        )
    )  # fmt: skip
    code = keycode.point(prepared.codes, [], ["name 22"])
    assert code is not None
    bits = prepared.codes.bits
    half = prepared.index_bits - 1
    functions = [
        fss.PointSum(bits + prefix, (at << bits) + code)
        for prefix, at in ((0, 0), (1, 0), (1, 1), (1, 0))
    ]
    replies = answers_of(held, table, functions, 0, search_params.count_form([0, 1, 1, 1]))
    counts = [function.open(two)[0] for function, two in zip(functions, replies, strict=True)]
    where = "FROM t WHERE b = 'name 22'"
    ((total,),) = held.rows(f"SELECT count(*) {where}")
    ((upper,),) = held.rows(f"SELECT count(*) {where} AND i > {(299 - (1 << half)) ** 2}")
    assert counts == [total, upper, total - upper, upper]
    point = fss.Point(prepared.levels[0].bits, 4)
    (row,) = answers_of(held, table, [point], 1)
    record = joined(point, prepared, row, 0)
    assert opened(held, prepared, 0, record) == [(295**2, 295**2, 295)]


@pytest.mark.parametrize(
    ("step", "count", "form"),
    [(1, 1, ()), (0, 0, ()), (0, 2, (0, 1, 1)), (0, 2, (5,)), (1, 3, ())],
)
def test_shares_that_do_not_fit_the_step_are_refused(
    held: Holding, step: int, count: int, form: tuple[int, ...]
) -> None:
    prepared, _ = held.prepare(
        shape(Protocol.NODES, interval="i", partials=(Partial("max", ("i",)),))
    )
    share = fss.Sum(prepared.codes.bits, 0, 5).shares()[0]
    ask = Ask(bytes(16), VERSION, prepared.shape_id, step, (share,) * count, form)
    with pytest.raises(errors.Error) as caught:
        held.provider.answer(ask)
    assert caught.value.code == "provider.share"


def test_broken_shares_are_refused_and_the_next_is_answered(held: Holding) -> None:
    prepared, _ = held.prepare(shape(Protocol.SELECT, equal=("a",), partials=COUNT_AND_SUM))
    good = fss.Point(prepared.levels[0].bits, 3).shares()[0]
    other = fss.Sum(prepared.levels[0].bits, 1, 2).shares()[0]
    narrow = fss.Point(prepared.levels[0].bits - 1, 3).shares()[0]
    for share in (b"", b"\0", good[:-1], good + b"\0", bytes(len(good)), other, narrow):
        ask = Ask(bytes(16), VERSION, prepared.shape_id, 0, (good, share))
        with pytest.raises(errors.Error) as caught:
            held.provider.answer(ask)
        assert caught.value.code == "provider.share"
    assert held.provider.answer(Ask(bytes(16), VERSION, prepared.shape_id, 0, (good,))).data
    for ask, code in (
        (Ask(bytes(16), b"w" * 32, prepared.shape_id, 0, (good,)), "provider.version"),
        (Ask(bytes(16), VERSION, b"w" * 32, 0, (good,)), "provider.shape"),
    ):
        with pytest.raises(errors.Error) as caught:
            held.provider.answer(ask)
        assert caught.value.code == code


def test_empty_tables_answer_nothing_found(tmp_path: Path) -> None:
    empty = Holding(tmp_path, [])
    prepared, table = empty.prepare(shape(Protocol.SELECT, equal=("b",), partials=COUNT_AND_SUM))
    point = fss.Point(prepared.levels[0].bits, 0)
    (replies,) = answers_of(empty, table, [point])
    assert joined(point, prepared, replies, 0) is None
    prepared, table = empty.prepare(shape(Protocol.SUM, interval="a", partials=COUNT_AND_SUM))
    total = fss.Sum(prepared.codes.bits, 0, 1)
    (replies,) = answers_of(empty, table, [total])
    assert total.open(replies) == [0, 0]
    for protocol in (Protocol.NODES, Protocol.DYADIC, Protocol.SEARCH, Protocol.BUCKETS):
        extra: dict[str, Any] = {"partials": COUNT_AND_SUM}
        if protocol is Protocol.SEARCH:
            extra = {"columns": ("i",), "limit": 1}
        if protocol in (Protocol.NODES, Protocol.DYADIC):
            extra["interval"] = "a"
        else:
            extra["equal"] = ("b",)
        prepared, _ = empty.prepare(shape(protocol, **extra))
        assert prepared.levels[0].count == 0
    empty.close()
