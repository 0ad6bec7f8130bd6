"""What backends say: nothing beyond what is filled in, and only what the last check lets pass."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from sqlglot import exp

from louver import errors
from louver.names import fold
from louver.trusted import backends
from louver.trusted.backends import duckdb, postgres
from louver.trusted.backends.backend import FUNCTIONS, WORDS, Backend
from louver.trusted.client import connect
from louver.trusted.planner.ir import Column
from louver.trusted.planner.sql import dialect
from louver.trusted.planner.sql.trees import parse_one
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Table
from louver.untrusted.engines import server_functions
from tests.toy import backend as toy

NOTHING = Backend("nothing")
TABLE = Table("main", "t", 1)


def leaf(part: exp.Expr) -> str | None:
    return "t0.c" if isinstance(part, exp.Column) else part.name


def test_a_backend_does_nothing_that_is_not_filled_in() -> None:
    assert NOTHING.operation("sum", Column("t0", "c")) is None
    for text in ("a = 1", "a IS NULL", "a = 'x'", "a"):
        assert NOTHING.render(parse_one(text), leaf, lambda _: "INTEGER") is None
    for refused in (
        lambda: NOTHING.plain_type("INTEGER"), lambda: NOTHING.stored_type(stored_types.BYTES),
        lambda: NOTHING.adjusted("c", "open", "k", wide=False),
        lambda: NOTHING.materialize(TABLE, {}, {}, 0),
        lambda: NOTHING.require_setting("timezone"),
    ):  # fmt: skip
        with pytest.raises(errors.Error) as caught:
            refused()
        assert caught.value.code in ("engine.type", "engine.operation")
    assert NOTHING.checkpoint() == ""


@pytest.mark.parametrize("name", backends.ENGINES)
def test_every_engine_of_the_table_is_whole(name: str) -> None:
    backend = backends.named(name)
    assert dialect.named(backend.local_dialect) is not None
    module = backends.engine(name)
    for wanted in ("open_url", "place_of_url", "require_database", "stored_at", "stored_of"):
        assert callable(getattr(module, wanted))
    assert name == backend.name or backends.named(backend.name) is backend


def test_an_engine_that_is_not_in_the_table_cannot_be_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(errors.Error) as caught:
        connect.scheme_of("sqlite:///x")
    assert caught.value.code == "url.scheme"
    monkeypatch.setitem(backends.ENGINES, "sqlite", ("tests.toy.backend", "tests.toy.engine"))
    assert connect.scheme_of("SQLite:///x") == "sqlite"


def test_what_no_backend_describes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.Error) as caught:
        backends.named("nobody")
    assert caught.value.code == "internal"
    monkeypatch.setattr(
        import_module("tests.toy.backend"), "BACKEND", Backend("x", languages=("y",))
    )
    monkeypatch.setitem(backends.ENGINES, "sqlite", ("tests.toy.backend", "tests.toy.engine"))
    with pytest.raises(errors.Error) as caught:
        backends.named("sqlite")
    assert caught.value.code == "internal"


@pytest.mark.parametrize(
    "backend", [duckdb.BACKEND, postgres.BACKEND, toy.BACKEND], ids=lambda b: b.name
)
def test_operations_are_written_in_words_that_the_last_check_knows(backend: Backend) -> None:
    known = WORDS | FUNCTIONS | backend.words | backend.functions
    maintenance = {"adjust", "rejoin"}
    for name, template in backend.operations.items():
        words = {
            fold(word) for word in re.findall(r"[A-Za-z_]\w*", re.sub("'[^']*'", "", template))
        }
        assert name in maintenance or words <= known, name
    assert set(backend.types) <= set(stored_types.ALL)


def test_duckdb_has_every_type_and_every_function_of_louver_that_it_may_call() -> None:
    assert set(duckdb.BACKEND.types) == set(stored_types.ALL)
    own = {function.name for function in server_functions.FUNCTIONS}
    called = {name for name in duckdb.BACKEND.functions if "_" in name}
    assert called - own == {"arg_min", "arg_max", "struct_extract"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "(t0.c = 1)"),
        ("NOT (a < b OR a IS NULL)", "(NOT ((t0.c < t0.c) OR (t0.c IS NULL)))"),
        ("a BETWEEN 1 AND 2", "((t0.c >= 1) AND (t0.c <= 2))"),
        ("a IN (1, -2)", "(t0.c IN (1, (-2)))"),
        ("a + 1 = 2", None), ("a = 1 AND a / 2 = 1", None), ("a LIKE 'x'", None),
        ("abs(a) = 1", None), ("CAST(a AS TEXT) = 1", None), ("a = 'x'", None), ("a", None),
        ("a IN (SELECT 1)", None), ("a IS DISTINCT FROM 1", None), ("a IS TRUE", None),
        ("a BETWEEN SYMMETRIC 2 AND 1", None), ("(SELECT a) = 1", None),
        ("CASE WHEN a = 1 THEN true ELSE false END", None),
    ],
)  # fmt: skip
def test_the_toy_s_vocabulary_is_small(text: str, expected: str | None) -> None:
    def type_of(part: exp.Expr) -> str:
        return "VARCHAR" if isinstance(part, exp.Literal) and part.is_string else "INTEGER"

    assert toy.BACKEND.render(parse_one(text), leaf, type_of) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "(t0.c = 1)"), ("a IN (1, -2)", "(t0.c IN (1, (-2)))"),
        ("d < DATE '2020-02-29'", "(t0.d < DATE '2020-02-29')"),
        ("s = 'it''s\\'", "(t0.s = 'it''s\\')"), ("s IS NOT NULL", "(NOT (t0.s IS NULL))"),
        ("d BETWEEN DATE '2020-01-01' AND d",
         "((t0.d >= DATE '2020-01-01') AND (t0.d <= t0.d))"),
        ("a = s", None), ("d = '2020-01-01'", None), ("d = DATE '0000-01-01'", None),
        ("d = DATE '20200-01-01'", None), ("d = TRY_CAST('2020-01-01' AS DATE)", None),
        ("s = 'a' || 'b'", None), ("s LIKE 'x'", None), ("f = 1.5", None), ("f = a", None),
        ("s COLLATE nocase = 'x'", None), ("a + 1 = 2", None), ("d = current_date", None),
        ("d = DATE 'infinity'", None), ("a IS TRUE", None), ("a = (SELECT 1)", None),
    ],
)  # fmt: skip
def test_postgres_is_sent_what_means_the_same_there(text: str, expected: str | None) -> None:
    types = {"a": "BIGINT", "s": "VARCHAR", "d": "DATE", "f": "DOUBLE"}

    def type_of(part: exp.Expr) -> str:
        if isinstance(part, exp.Literal):
            return "VARCHAR" if part.is_string else "INTEGER" if part.is_int else "DECIMAL(2,1)"
        return types.get(part.name, "")

    def named(part: exp.Expr) -> str | None:
        if isinstance(part, exp.Column):
            return "t0.c" if part.name == "a" else f"t0.{part.name}"
        return None if part.is_string else part.name

    assert postgres.BACKEND.render(parse_one(text), named, type_of) == expected
