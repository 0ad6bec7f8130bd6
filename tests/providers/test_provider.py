"""Prepared tables hold what DuckDB answers, for every key, node, prefix and row."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver import errors
from louver.untrusted.providers.bounds import DefaultBounds
from louver.untrusted.providers.provider import Provider
from louver.untrusted.providers.sandbox import Limits
from louver.wire import keycode, ordinals, records
from louver.wire.questions import Ask, Order, Partial, Protocol, Shape
from tests.generated import cases
from tests.providers.prepared import (
    ORACLES,
    PARTIALS,
    ROWS,
    TOP,
    TOP_ORACLE,
    VERSION,
    Holding,
    Row,
    groups,
    stored,
)

WITHOUT = settings(max_examples=cases(8), deadline=None)


@contextmanager
def holding(rows: Sequence[Row], **limits: Any) -> Iterator[Holding]:
    with tempfile.TemporaryDirectory() as folder:
        holding = Holding(Path(folder), rows, **limits)
        try:
            yield holding
        finally:
            holding.close()


def shape(protocol: Protocol, **given: Any) -> Shape:
    return Shape(protocol, given.pop("source", "t"), **given)


def oracle(condition: str, grouping: str = "") -> str:
    having = "" if grouping else " HAVING count(*) > 0"
    chosen = ", ".join([*([grouping] if grouping else []), *ORACLES])
    by = f" GROUP BY {grouping}" if grouping else ""
    return f"SELECT {chosen} FROM t WHERE {condition}{by}{having}"


def texts(values: Sequence[Any]) -> list[str]:
    return [str(value) for value in values]


@WITHOUT
@given(ROWS, st.sampled_from([Protocol.SELECT, Protocol.BUCKETS]), st.booleans())
def test_every_key_has_the_record_that_duckdb_computes(
    rows: list[Row], protocol: Protocol, grouped: bool
) -> None:
    with holding(rows) as held:
        by = ("d",) if grouped else ()
        for equal in (("a",), ("b",), ("a", "b")):
            question = shape(protocol, equal=equal, groups=by, partials=PARTIALS)
            prepared, table = held.prepare(question)
            condition = " AND ".join(f"{name} = ?" for name in equal)
            keys = held.rows(
                f"SELECT DISTINCT {', '.join(equal)} FROM t WHERE "
                + " AND ".join(f"{name} IS NOT NULL" for name in equal)
            )
            points = table.array("points.0").tolist()
            assert len(points) == prepared.points == prepared.levels[0].count
            for key in keys:
                numbers = [] if prepared.codes.hashed else list(key)
                point = keycode.point(prepared.codes, numbers, texts(key))
                mark = keycode.fingerprint(prepared.codes, numbers, texts(key))
                record = held.record(table, 0, points.index(point), mark)
                wanted = held.rows(oracle(condition, "d" if grouped else ""), key)
                assert groups(record) == groups(wanted)


@WITHOUT
@given(ROWS)
def test_the_first_rows_of_every_key_are_duckdbs(rows: list[Row]) -> None:
    with holding(rows) as held:
        prepared, table = held.prepare(shape(Protocol.SELECT, equal=("a",), **TOP))
        points = table.array("points.0").tolist()
        for (key,) in held.rows("SELECT DISTINCT a FROM t WHERE a IS NOT NULL"):
            at = points.index(keycode.point(prepared.codes, [key], [str(key)]))
            assert held.record(table, 0, at) == held.rows(TOP_ORACLE.format("a = ?"), [key])


@WITHOUT
@given(ROWS, st.booleans(), st.booleans())
def test_every_node_of_every_level_is_duckdbs_group(
    rows: list[Row], top: bool, with_equal: bool
) -> None:
    with holding(rows) as held:
        equal = ("b",) if with_equal else ()
        what: dict[str, Any] = TOP if top else {"groups": ("a",), "partials": PARTIALS}
        question = shape(Protocol.NODES, equal=equal, interval="d", **what)
        prepared, table = held.prepare(question)
        keys = _keys(held, prepared.codes, with_equal)
        assert [point for point, _ in keys] == table.array("points").tolist()
        assert prepared.points == len(keys)
        for number, level in enumerate(prepared.levels):
            assert level.count == -(-len(keys) // 2**number)
            for node in range(level.count):
                chosen = keys[node << number : node + 1 << number]
                condition = " OR ".join(f"({text})" for _, text in chosen)
                sql = TOP_ORACLE.format(f"({condition})") if top else oracle(condition, "a")
                record = held.record(table, number, node)
                assert groups(record) == groups(held.rows(sql))
        assert not keys or prepared.levels[-1].count == 1


def _keys(held: Holding, codes: Any, with_equal: bool) -> list[tuple[int, str]]:
    """The point of every key, ascending, and its condition."""
    names = "b, d" if with_equal else "d"
    keys = []
    for key in held.rows(
        f"SELECT DISTINCT {names} FROM t WHERE d IS NOT NULL"
        + (" AND b IS NOT NULL" if with_equal else "")
    ):
        day = ordinals.unit(key[-1], "DATE")
        span = keycode.span(codes, [], texts(key[:-1]), day, day)
        assert span is not None
        assert span[0] == span[1]
        text = f"d = '{key[-1]}'" + (f" AND b = '{key[0]}'" if with_equal else "")
        keys.append((span[0], text))
    return sorted(keys)


@WITHOUT
@given(ROWS)
def test_every_prefix_is_duckdbs_group(rows: list[Row]) -> None:
    with holding(rows) as held:
        question = shape(Protocol.DYADIC, equal=("b",), interval="d", partials=PARTIALS)
        prepared, table = held.prepare(question)
        keys = _keys(held, prepared.codes, True)
        assert prepared.codes.interval is not None
        assert len(prepared.levels) == prepared.codes.interval.bits + 1
        for number, level in enumerate(prepared.levels):
            prefixes = table.array(f"points.{number}").tolist()
            assert prefixes == sorted({point >> number for point, _ in keys})
            assert level.bits == max(1, prepared.codes.bits - number)
            for at, prefix in enumerate(prefixes):
                chosen = [text for point, text in keys if point >> number == prefix]
                condition = " OR ".join(f"({text})" for text in chosen)
                name = str(chosen[0].split("'")[3])
                mark = keycode.fingerprint(prepared.codes, [], [name])
                assert groups(held.record(table, number, at, mark)) == (
                    groups(held.rows(oracle(condition)))
                )


@WITHOUT
@given(ROWS, st.sampled_from([Protocol.SUM, Protocol.PAILLIER]), st.data())
def test_sums_over_any_span_are_duckdbs(
    rows: list[Row], protocol: Protocol, data: st.DataObject
) -> None:
    partials = tuple(PARTIALS[at] for at in (0, 1, 2, 3))
    with holding(rows) as held:
        question = shape(protocol, interval="d", groups=("b",), partials=partials)
        prepared, table = held.prepare(question)
        low, high = sorted(data.draw(st.lists(st.integers(15700, 15720), min_size=2, max_size=2)))
        span = keycode.span(prepared.codes, [], [], low, high) or (1, 0)
        sums = records.decode_sums(prepared, _plain_sums(table, span))
        chosen = ", ".join(f"coalesce({ORACLES[at]}, 0)" for at in (0, 1, 2, 3))
        wanted = held.rows(
            f"SELECT b, {chosen} FROM t WHERE d BETWEEN DATE '1970-01-01' + {low}::INTEGER "
            f"AND DATE '1970-01-01' + {high}::INTEGER GROUP BY b"
        )
        answer = [row for row in held.read(sums) if row[1]]
        assert groups(answer) == groups(wanted)


def _plain_sums(table: Any, span: tuple[int, int]) -> list[int]:
    """What shares of a span would sum."""
    prepared = table.prepared
    columns = len(prepared.sums)
    points = table.array("points")
    starts = table.sections.get("starts", np.arange(len(points) + 1))
    group_of = table.sections.get("groups", np.zeros(int(starts[-1]), np.uint32))
    values = table.array("values").reshape(-1, columns)
    totals = [0] * (prepared.group_count * columns)
    for at, point in enumerate(points.tolist()):
        if span[0] <= point <= span[1]:
            for entry in range(int(starts[at]), int(starts[at + 1])):
                for column in range(columns):
                    totals[int(group_of[entry]) * columns + column] += int(values[entry, column])
    return totals


def test_sums_that_could_wrap_travel_in_limbs() -> None:
    rows = [(at % 2, "a", None, None, None, 2**62 - at) for at in range(9)]
    with holding(rows) as held:
        question = shape(
            Protocol.SUM, interval="a", partials=(Partial("sum", ("i * 1000::HUGEINT",)),)
        )
        prepared, table = held.prepare(question)
        assert [column.limb for column in prepared.sums] == [0, 1]
        sums = held.read(records.decode_sums(prepared, _plain_sums(table, (0, 1))))
        assert sums == held.rows("SELECT sum(i * 1000::HUGEINT) FROM t")


@WITHOUT
@given(ROWS)
def test_rows_are_searched_in_their_order(rows: list[Row]) -> None:
    with holding(rows) as held:
        what = {**TOP, "limit": 1}
        prepared, table = held.prepare(shape(Protocol.SEARCH, equal=("b",), **what))
        wanted = held.rows(TOP_ORACLE.format("b IS NOT NULL").replace("LIMIT 2", ""))
        assert prepared.points == prepared.levels[0].count == len(wanted)
        assert prepared.index_bits == prepared.levels[0].bits
        codes = table.array("codes").tolist()
        for at, row in enumerate(wanted):
            mark = keycode.fingerprint(prepared.codes, [], [row[0]])
            assert held.record(table, 0, at, mark) == [row]
            assert codes[at] == keycode.point(prepared.codes, [], [row[0]])


def test_joins_filters_and_expressions_are_public() -> None:
    rows = [(at % 3, "ab"[at % 2], None, None, 0.5, at) for at in range(12)]
    with holding(rows) as held:
        question = shape(
            Protocol.SELECT,
            source="t LEFT JOIN u AS w ON t.a = w.a -- public",
            where="t.i < 10",
            equal=("upper(w.n)",),
            partials=(Partial("count"), Partial("sum", ("t.i",))),
        )
        prepared, table = held.prepare(question)
        for (name,) in held.rows("SELECT upper(n) FROM u"):
            point = keycode.point(prepared.codes, [], [name])
            at = table.array("points.0").tolist().index(point)
            assert held.record(table, 0, at) == held.rows(
                "SELECT count(*), sum(i) FROM t JOIN u USING (a) WHERE i < 10 AND upper(n) = ?",
                [name],
            )


def test_without_a_private_condition_there_is_one_record() -> None:
    rows = [(1, "a", None, None, None, 5), (2, "a", None, None, None, 6)]
    with holding(rows) as held:
        prepared, table = held.prepare(shape(Protocol.SELECT, partials=(Partial("sum", ("i",)),)))
        assert prepared.codes.bits == 1
        assert held.record(table, 0, 0) == [(11,)]


def many(count: int) -> list[Row]:
    generator = np.random.default_rng(5)
    return [
        (
            int(generator.integers(0, 40)),
            f"name {generator.integers(0, 30)}",
            None,
            None,
            float(generator.normal()) * 10.0 ** float(generator.integers(-9, 9)),
            at,
        )
        for at in range(count)
    ]


SHAPES = [
    shape(Protocol.SELECT, equal=("b",), groups=("a",), partials=PARTIALS),
    shape(Protocol.SELECT, equal=("b",), **TOP),
    shape(Protocol.SUM, equal=("b",), interval="i", partials=(Partial("count"),)),
    shape(Protocol.NODES, equal=("b",), interval="a", partials=PARTIALS),
    shape(Protocol.NODES, interval="i // 10", **TOP),
    shape(Protocol.SEARCH, equal=("b",), columns=("i",), orders=(Order("a"),), limit=3),
    shape(Protocol.BUCKETS, equal=("b", "a"), partials=PARTIALS),
    shape(Protocol.DYADIC, equal=("b",), interval="a", partials=PARTIALS),
    shape(
        Protocol.SELECT,
        source="t JOIN u ON t.a = u.a",
        equal=("t.b",),
        partials=(Partial("sum", ("t.y",)), Partial("arg_max", ("u.n", "t.a"))),
    ),
]


@pytest.mark.parametrize("question", SHAPES, ids=lambda question: question.protocol.value)
def test_tables_are_equal_byte_for_byte_whatever_the_threads(
    tmp_path: Path, question: Shape
) -> None:
    loaded = stored(tmp_path, many(3000))
    digests = []
    for threads in (1, 2, 4):
        folder = tmp_path / f"{threads}"
        folder.mkdir()
        provider = Provider(loaded, folder, limits=Limits(threads=threads))
        digests.append(provider.prepare(question, VERSION))
        provider.close()
    assert digests[0] == digests[1] == digests[2]


def test_tables_are_found_again_after_a_restart(tmp_path: Path) -> None:
    loaded, stages = stored(tmp_path, many(50)), list[str]()
    first = Provider(loaded, tmp_path)
    prepared = first.prepare(SHAPES[0], VERSION, lambda stage, _: stages.append(stage))
    assert stages[0] == "reading"
    first.close()
    stages.clear()
    second = Provider(loaded, tmp_path)
    assert second.prepare(SHAPES[0], VERSION, lambda stage, _: stages.append(stage)) == prepared
    assert stages == []
    second.close()
    (path,) = tmp_path.glob("*.table")
    data = bytearray(path.read_bytes())
    for at in (0, 20, len(data) // 2, len(data) - 1):
        damaged = bytearray(data)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        third = Provider(loaded, tmp_path)
        assert third.prepare(SHAPES[0], VERSION) == prepared
        third.close()


def test_the_least_recently_used_table_is_dropped(tmp_path: Path) -> None:
    provider = Provider(stored(tmp_path, many(50)), tmp_path, DefaultBounds(cache_bytes=8_000))
    question = [
        shape(Protocol.SELECT, equal=(f"i + {n}",), partials=(Partial("count"),)) for n in range(4)
    ]
    prepared = [provider.prepare(question, VERSION) for question in question]
    files = list(tmp_path.glob("*.table"))
    assert 1 <= len(files) < 4
    with pytest.raises(errors.Error) as caught:
        provider.answer(Ask(b"q" * 16, VERSION, prepared[0].shape_id, 0, (b"x",)))
    assert caught.value.code == "provider.shape"
    provider.close()


def test_what_is_too_large_or_slow_is_refused(tmp_path: Path) -> None:
    loaded = stored(tmp_path, many(2000))
    small = Provider(loaded, tmp_path, limits=Limits(table_bytes=1000))
    with pytest.raises(errors.Error) as caught:
        small.prepare(SHAPES[0], VERSION)
    assert caught.value.code == "provider.large"
    slow = Provider(loaded, tmp_path, limits=Limits(seconds=0.2))
    source = "t AS p CROSS JOIN t AS q CROSS JOIN t AS r"
    with pytest.raises(errors.Error, match=r"longer than 0\.2 seconds"):
        slow.prepare(
            shape(Protocol.SELECT, source=source, equal=("p.a",), partials=(Partial("count"),)),
            VERSION,
        )
    few = Provider(loaded, tmp_path, limits=Limits(rows=1000))
    with pytest.raises(errors.Error, match="more than 1000 rows"):
        few.prepare(
            shape(Protocol.SELECT, source="t, u", equal=("t.a",), partials=(Partial("count"),)),
            VERSION,
        )
    wide = shape(Protocol.BUCKETS, equal=("y",), partials=(Partial("count"),))
    with pytest.raises(errors.Error, match="DECIMAL"):
        few.prepare(wide, VERSION)
    with pytest.raises(errors.Error) as caught:
        few.prepare(SHAPES[0], b"w" * 32)
    assert caught.value.code == "provider.version"


@pytest.mark.parametrize(
    "question",
    [
        shape(Protocol.NODES, equal=("a",), partials=(Partial("count"),)),
        shape(Protocol.SELECT, interval="a", partials=(Partial("count"),)),
        shape(Protocol.SUM, interval="a", partials=(Partial("max", ("x",)),)),
        shape(Protocol.SUM, interval="a", partials=(Partial("sum", ("y",)),)),
        shape(Protocol.PAILLIER, equal=("b",), interval="a", partials=(Partial("count"),)),
        shape(Protocol.SELECT, equal=("a",), partials=(Partial("max", ("INTERVAL 1 DAY",)),)),
        shape(Protocol.SELECT, equal=("a",), partials=(Partial("count", (), "x"),)),
        shape(Protocol.SELECT, equal=("a",), partials=(Partial("sum", ("b",)),)),
        shape(Protocol.SELECT, equal=("1 / 0::INTEGER + y",), partials=(Partial("count"),)),
        shape(Protocol.NODES, interval="b || 'a long text'", partials=(Partial("count"),)),
        shape(Protocol.NODES, interval="b || chr(0)", partials=(Partial("count"),)),
        shape(Protocol.SEARCH, equal=("a",), partials=(Partial("max", ("x",)),)),
    ],
)
def test_what_cannot_be_prepared_is_refused_with_a_reason(question: Shape) -> None:
    rows = [(1, "x", None, None, 0.5, 3), (2, "y", None, None, 0.5, 3)]
    with holding(rows) as held, pytest.raises(errors.Error) as caught:
        held.prepare(question)
    assert caught.value.code in ("provider.refused", "provider.wide")
    assert str(held.folder) not in str(caught.value)
