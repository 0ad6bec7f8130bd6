"""What bounds the work of one message at a provider, and what a client takes from its providers."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.executor.private import rounds
from louver.trusted.planner.private import planner
from louver.trusted.planner.private.postcondition import require_public
from louver.trusted.vault.schemes import fss
from louver.untrusted.providers import evaluate
from louver.untrusted.providers.tables import Table
from louver.wire import question_codec, search_params
from louver.wire.questions import (
    Ask,
    Code,
    Field,
    Order,
    Partial,
    Prepared,
    Protocol,
    Shape,
    SumColumn,
)
from tests.inside import context_of
from tests.providers.prepared import VERSION, Holding
from tests.providers.test_views_protocols import Way, asked_by

ROWS = 40
COUNT = (Partial("count"),)
TOP: dict[str, Any] = {"columns": ("i",), "orders": (Order("i"),), "limit": 3}


@pytest.fixture(scope="module")
def held() -> Iterator[Holding]:
    with tempfile.TemporaryDirectory() as folder:
        holding = Holding(
            Path(folder), [(at % 9, f"n{at % 7}", None, None, None, at) for at in range(ROWS)]
        )
        yield holding
        holding.close()


def points(prepared: Prepared) -> list[Any]:
    return [fss.Point(prepared.levels[0].bits, at) for at in (1, 2, 3)]


def spans(prepared: Prepared) -> list[Any]:
    return [fss.Sum(prepared.codes.bits, low, 5) for low in (1, 2, 3)]


def prefixes(prepared: Prepared) -> list[Any]:
    return [fss.PointSum(prepared.codes.bits + 1, at) for at in (1, 2, 3)]


def samples(prepared: Prepared) -> list[Any]:
    return list(fss.Sample([prepared.codes.bits + 1] * 3, [1, 2, 3]).functions())


def dyads(prepared: Prepared) -> list[Any]:
    return [fss.Point(level.bits, at) for level in prepared.levels for at in (0, None)]


def ciphers(prepared: Prepared) -> list[Any]:
    return [fss.PaillierSum(prepared.codes.bits, low, 5, 3) for low in (1, 2)]


_SEARCHED = Shape(Protocol.SEARCH, "t", equal=("b",), **TOP)
_SUMMED = Shape(Protocol.SUM, "t", interval="a", partials=(Partial("sum", ("i",)),))
_LARGEST = Shape(Protocol.NODES, "t", interval="a", partials=(Partial("max", ("i",)),))
_GATHERED = search_params.sample_form(8, [1, 2], [1, 1, 1])
#: A shape, its functions, the step and the form, and how many steps they are.
WORK: dict[str, tuple[Shape, Callable[[Prepared], list[Any]], int, tuple[int, ...], int]] = {
    "select": (Shape(Protocol.SELECT, "t", equal=("a",), partials=COUNT), points, 0, (), 3 * 9),
    "sum": (_SUMMED, spans, 0, (), 2 * 3 * 9),
    "ranks": (_LARGEST, spans, 0, (), 2 * 3 * 9),
    "nodes": (_LARGEST, dyads, 1, (), 2 * (9 + 5 + 3 + 2 + 1)),
    "counts": (_SEARCHED, prefixes, 0, search_params.count_form([1, 1, 1]), 3 * ROWS),
    "gathered": (_SEARCHED, samples, 3, _GATHERED, ROWS * (3 + 2)),
}


def prepared_ask(
    held: Holding, shape: Shape, functions: Callable[[Prepared], list[Any]], step: int,
    form: tuple[int, ...],
) -> tuple[Table, Ask]:  # fmt: skip
    """A prepared table, and shares for its first provider."""
    prepared, table = held.prepare(shape)
    shares = tuple(function.shares()[0] for function in functions(prepared))
    return table, Ask(bytes(16), VERSION, prepared.shape_id, step, shares, form)


def refused(call: Callable[[], object], code: str, word: str = "") -> None:
    with pytest.raises(errors.Error) as caught:
        call()
    assert caught.value.code == code
    assert word in str(caught.value)


@pytest.mark.parametrize("name", WORK)
def test_work_is_bounded_by_the_step(
    held: Holding, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape, functions, step, form, steps = WORK[name]
    table, ask = prepared_ask(held, shape, functions, step, form)
    monkeypatch.setattr(evaluate, "MAX_STEPS", steps)
    assert held.provider.answer(ask).data
    monkeypatch.setattr(evaluate, "MAX_STEPS", steps - 1)
    refused(lambda: held.provider.answer(ask), "provider.share", "exceed the limit")
    refused(lambda: evaluate.combine(table, ask, [[b""]]), "provider.share", "exceed the limit")


def test_wide_records_and_powers_are_more_work(held: Holding) -> None:
    """A record of 5,120 bytes is ten steps; sums under Paillier's scheme have powers besides."""
    shape, functions, step, form, steps = WORK["select"]
    table, ask = prepared_ask(held, shape, functions, step, form)
    (level,) = table.prepared.levels
    wide = dataclasses.replace(
        table.prepared, levels=(dataclasses.replace(level, width=5120),)
    )  # fmt: skip
    many = Table(Protocol.SELECT, wide, table.sections)
    (work,) = evaluate._works(many, ask)
    assert evaluate._steps(many, work, ask.shares) == 10 * steps
    paillier = dataclasses.replace(_SUMMED, protocol=Protocol.PAILLIER)
    table, ask = prepared_ask(held, paillier, ciphers, 0, ())
    (work,) = evaluate._works(table, ask)
    evaluations = 2 * table.prepared.points * len(ask.shares)
    powers = evaluate._steps(table, work, ask.shares) - evaluations
    assert powers >= 10_000 * len(ask.shares)


@pytest.mark.parametrize(("shares", "allowed"), [(1_900, True), (2_000, False), (8_192, False)])
def test_a_large_table_takes_fewer_shares(held: Holding, shares: int, allowed: bool) -> None:
    """Two thousand millions of steps; nothing is evaluated before it is refused."""
    _, table = held.prepare(WORK["select"][0])
    (level,) = table.prepared.levels
    large = dataclasses.replace(
        table.prepared, levels=(dataclasses.replace(level, count=1 << 20),), points=1 << 20
    )
    many = Table(Protocol.SELECT, large, table.sections)
    each = tuple(number.to_bytes(40, "big") for number in range(shares))
    ask = Ask(bytes(16), VERSION, large.shape_id, 0, each)
    if allowed:
        assert len(evaluate._works(many, ask)) == 1
    else:
        refused(lambda: evaluate.part(many, ask), "provider.share", "exceed the limit")


@pytest.mark.parametrize("name", [*WORK, "paillier"])
def test_a_share_that_stands_there_twice_is_refused(held: Holding, name: str) -> None:
    """Copies would let a client have one share evaluated with itself, or gather a row twice."""
    if name == "paillier":
        given: Any = (dataclasses.replace(_SUMMED, protocol=Protocol.PAILLIER), ciphers, 0, ())
    else:
        given = WORK[name][:4]
    table, ask = prepared_ask(held, *given)
    assert held.provider.answer(ask).data
    for index in range(1, len(ask.shares)):
        copied = dataclasses.replace(
            ask, shares=(*ask.shares[:index], ask.shares[0], *ask.shares[index + 1 :])
        )
        refused(partial(held.provider.answer, copied), "provider.share", "twice")
        joined = partial(evaluate.combine, table, copied, [[b""]])
        refused(joined, "provider.share", "twice")


Change = Callable[[Prepared], Prepared]
_WAY = Way("nodes", "SELECT max(v) FROM t WHERE k = ? AND id BETWEEN ? AND ?", ((3, 1, 90),))


def prepared_as(connection: Any, change: Change, parties: Sequence[int]) -> None:
    """Have some providers say something else of what they prepared."""
    for count in parties:
        channel = context_of(connection).fleet.channels[count]

        def prepare(*given: Any, honest: Any = channel.prepare) -> Prepared:
            return change(honest(*given))

        channel.prepare = prepare


def nothing_sent(connection: Any) -> bool:
    return not any(channel.asks for channel in context_of(connection).fleet.channels)


def _type(field: Field, type_: str) -> Field:
    return dataclasses.replace(field, type=type_)


def _coded(given: Prepared, **changed: Any) -> Prepared:
    return dataclasses.replace(given, codes=dataclasses.replace(given.codes, **changed))


#: No such text may come into SQL at home.
STRANGE = (
    "INTEGER) FROM read_csv('x') --", "integer", "", "INTEGER; DROP TABLE t", "DECIMAL(9,1",
    "\u0130", "STRUCT(a INTEGER)", "INTEGER[]", "VARCHAR\n", "X" * 50,
)  # fmt: skip


def of_type(text: str) -> list[Change]:
    """Preparations in which a type is a text."""

    def interval(given: Prepared) -> Prepared:
        assert given.codes.interval is not None
        return _coded(given, interval=dataclasses.replace(given.codes.interval, type=text))

    return [
        lambda p: dataclasses.replace(p, fields=(_type(p.fields[0], text), *p.fields[1:])),
        lambda p: _coded(p, equal=(Code(text, "hash"),)),
        interval,
    ]


def of_name(text: str) -> Change:
    """A preparation in which a field's name is a text."""
    return lambda p: dataclasses.replace(p, fields=(Field(text, p.fields[0].type),))


def test_a_provider_names_no_types_or_fields_but_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand in SQL at home; all providers together may not say what SQL it is."""
    changes = [change for text in STRANGE for change in of_type(text)]
    names = ("p0, (SELECT 1)", "x", "", "P0", "p", "p00000", "g0 ", 'p0"', "positions")
    changes += [of_name(name) for name in names]
    changes.append(lambda p: dataclasses.replace(p, version=bytes(32)))
    with asked_by(_WAY, tmp_path, monkeypatch) as connection:
        fleet = context_of(connection).fleet
        honest = [channel.prepare for channel in fleet.channels]
        for change in changes:
            prepared_as(connection, change, range(2))
            refused(lambda: connection.execute(_WAY.sql, (3, 1, 9)).fetchall(), "provider.reply")
            assert nothing_sent(connection)
            for channel, before in zip(fleet.channels, honest, strict=True):
                channel.prepare = before
        assert connection.execute(_WAY.sql, (3, 1, 90)).fetchall()


def changed(name: str, change: Callable[[Prepared], Any]) -> Change:
    """A preparation of which one word is another one."""
    return lambda p: dataclasses.replace(p, **{name: change(p)})


@pytest.mark.parametrize("party", [0, 1, 2])
def test_every_word_of_a_preparation_is_compared(
    party: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One provider that names other codes or sizes would learn from what it is asked then."""
    way = dataclasses.replace(_WAY, protocol="dyadic", parties=3)
    changes: dict[str, Callable[[Prepared], Any]] = {
        "version": lambda p: bytes(32),
        "shape_id": lambda p: bytes(32),
        "digest": lambda p: bytes(32),
        "codes": lambda p: dataclasses.replace(p.codes, salt=bytes(len(p.codes.salt)) + b"x"),
        "fields": lambda p: (Field(p.fields[0].name, "HUGEINT"),),
        "levels": lambda p: p.levels[:-1],
        "points": lambda p: p.points + 1,
        "groups": lambda p: b"x",
        "group_count": lambda p: p.group_count + 1,
        "sums": lambda p: (*p.sums, SumColumn(0, 0)),
        "index_bits": lambda p: p.index_bits + 1,
    }
    assert set(changes) == {field.name for field in dataclasses.fields(Prepared)}
    with asked_by(way, tmp_path, monkeypatch) as connection:
        channel = context_of(connection).fleet.channels[party]
        honest = channel.prepare
        for name, change in changes.items():
            prepared_as(connection, changed(name, change), [party])
            refused(lambda: connection.execute(way.sql, (3, 1, 9)).fetchall(), "provider.differ")
            assert nothing_sent(connection), name
            channel.prepare = honest
        assert connection.execute(way.sql, (3, 1, 90)).fetchall()


def test_shares_of_paillier_that_no_message_takes_are_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT sum(v) FROM t WHERE id BETWEEN ? AND ? OR id BETWEEN ? AND ?"
    secrets = (1, 2, 8, 9)
    way = Way("paillier", sql, (secrets,), 3, "paillier")
    with asked_by(way, tmp_path, monkeypatch) as connection:
        channels = context_of(connection).fleet.channels
        wanted = connection.execute(sql, secrets).fetchall()
        lengths = [sum(map(len, held_by(channel))) for channel in channels]
        monkeypatch.setattr(rounds, "_MOST_SHARE_BYTES", max(lengths))
        assert connection.execute(sql, secrets).fetchall() == wanted
        monkeypatch.setattr(rounds, "_MOST_SHARE_BYTES", max(lengths) - 1)
        for channel in channels:
            channel.asks.clear()
        refused(
            lambda: connection.execute(sql, secrets).fetchall(), "provider.language",
            f"{max(lengths):,} bytes",
        )  # fmt: skip
        assert nothing_sent(connection)


def held_by(channel: Any) -> tuple[bytes, ...]:
    """The shares of the last message to a provider."""
    return question_codec.decode(Ask, channel.asks[-1]).shares


_PUBLIC: dict[str, Any] = {
    "source": "t", "where": "i > 3", "equal": ("a", "b"), "interval": "d", "groups": ("a + 1",),
    "partials": (Partial("sum", ("i",), "x > 0"), Partial("arg_max", ("b", "x"))),
    "columns": ("i",), "orders": (Order("i"), Order("x")),
}  # fmt: skip
_OVERLOOKED = (
    "PRIVATE(77)", '"private"(77)', "a + Private(77)", "louver_parameter_0", '"louver_parameter_3"',
    "t.LOUVER_PARAMETER_1", "?", "$1", "$name", ":name", "louver_average(i)", "(((",
)  # fmt: skip


def _places(text: str) -> list[dict[str, Any]]:
    """A shape's texts, one of them replaced."""
    return [
        {"source": f"t JOIN u ON t.a = {text}"},
        {"where": f"i > 3 AND a = {text}"},
        {"equal": (text, "b")},
        {"equal": ("a", f"b || {text}")},
        {"interval": text},
        {"groups": ("a + 1", text)},
        {"partials": (Partial("sum", (text,)),)},
        {"partials": (Partial("count"), Partial("arg_max", ("b", text)))},
        {"partials": (Partial("count", (), f"x > {text}"),)},
        {"columns": ("i", text)},
        {"orders": (Order("i"), Order(text, descending=True))},
    ]


@pytest.mark.parametrize("text", _OVERLOOKED)
def test_no_shape_leaves_with_a_secret_in_it(text: str) -> None:
    require_public(Shape(Protocol.NODES, **_PUBLIC))
    for position in _places(text):
        shape = Shape(Protocol.NODES, **{**_PUBLIC, **position})
        with pytest.raises(errors.NotSupportedError) as caught:
            require_public(shape)
        assert caught.value.code == "provider.language"
        assert "77" not in str(caught.value)


@pytest.mark.parametrize(("parties", "ways"), [(2, 2), (3, 1)])
def test_the_last_look_is_at_every_way_to_ask(
    parties: int, ways: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Shape] = []

    def overlooked(shape: Shape) -> None:
        require_public(shape)
        seen.append(shape)
        if len(seen) == ways:
            raise errors.make("provider.language", detail="a secret", instead="Nothing")

    sql = "SELECT max(v) FROM t WHERE k IN (?, ?)"
    way = Way("search" if parties == 2 else "buckets", sql, ((3, 4),), parties)
    with asked_by(way, tmp_path, monkeypatch) as connection:
        connection.execute(sql, (3, 4)).fetchall()
        known = set(context_of(connection).fleet._known)
        context_of(connection).fleet._known.clear()
        for channel in context_of(connection).fleet.channels:
            channel.asks.clear()
        monkeypatch.setattr(planner, "require_public", overlooked)
        # A text of its own is planned anew.
        text = sql.replace("max(v)", "max(v) AS other")
        refused(lambda: connection.execute(text, (3, 4)).fetchall(), "provider.language")
        assert len(seen) == ways
        assert known <= set(seen)
        assert not context_of(connection).fleet._known
        assert nothing_sent(connection)
