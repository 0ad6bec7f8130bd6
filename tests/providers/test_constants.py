"""Secret constants are evaluated at home together, and each keeps its own placeholders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.private import constants
from louver.trusted.planner.private.question import Clause, End, Secret
from louver.trusted.planner.sql import lexer
from louver.wire.questions import Protocol, Shape

SHAPE = Shape(Protocol.SUM, "t", "", ("a", "b"), "c")


@pytest.fixture
def home() -> Iterator[DuckDBLocalEngine]:
    engine = DuckDBLocalEngine()
    yield engine
    engine.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$1", "$3"),
        ("$1 || '$1' || $2", "$3 || '$1' || $4"),
        ("'it''s $1' || $12", "'it''s $1' || $14"),
        ('"$1" + $1', '"$1" + $3'),
        ("$tag$ $1 $tag$ || $1", "$tag$ $1 $tag$ || $3"),
        (r"e'\'$1' || $1", r"e'\'$1' || $3"),
        ("/* $1 */ $1 -- $2", "/* $1 */ $3 -- $2"),
        ("no placeholder", "no placeholder"),
    ],
)
def test_placeholders_alone_are_renumbered(text: str, wanted: str) -> None:
    assert lexer.renumbered(text, 2) == wanted
    assert lexer.renumbered(text, 0) == text


def _clauses(count: int) -> list[Clause]:
    return [
        Clause(
            (
                Secret("CAST($1 AS VARCHAR) || '$1'", (f"n{n}",)),
                Secret("CAST($1 AS INTEGER) + CAST($2 AS INTEGER)", (n, 100)),
            ),
            None if n % 2 else End(Secret("CAST($1 AS BIGINT)", (n,))),
            End(Secret("(SELECT v + 1 FROM (SELECT CAST($1 AS BIGINT) AS v))", (n,)), n % 3 == 0),
        )
        for n in range(count)
    ]


def test_values_are_those_of_each_secret(home: DuckDBLocalEngine) -> None:
    """However many there are, whatever ends are open."""
    for count in (0, 1, 2, 7):
        values = constants.evaluate(home, SHAPE, _clauses(count))
        assert len(values) == count
        for n, value in enumerate(values):
            assert [c.value.to_pylist() for c in value.equals] == [[f"n{n}$1"], [n + 100]]
            assert (value.low is None) == bool(n % 2)
            assert value.low is None or value.low.value.to_pylist() == [n]
            assert value.high is not None
            assert value.high.value.to_pylist() == [n + 1]
            assert (value.low_inclusive, value.high_inclusive) == (True, n % 3 == 0)


def test_a_constant_that_fails_is_told_by_what_it_is_compared_with(home: DuckDBLocalEngine) -> None:
    """Its value stands nowhere in the error."""
    good, bad = Secret("1"), Secret("CAST($1 AS INTEGER)", ("hidden",))
    for clause, name in (
        (Clause((good, bad)), "b"),
        (Clause((good, good), None, End(bad)), "c"),
        (Clause((bad, good), End(bad)), "a"),
    ):
        with pytest.raises(errors.Error) as caught:
            constants.evaluate(home, SHAPE, [Clause((good, good)), clause])
        assert caught.value.code == "provider.constant"
        wanted = errors.make("provider.constant", expression=name).message
        assert caught.value.message == wanted
        assert "hidden" not in repr(caught.value) + str(caught.value)
        assert caught.value.__cause__ is None
