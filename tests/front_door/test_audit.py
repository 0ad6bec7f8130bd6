"""The audit: a line for each statement, whichever way it takes; no value is in it; and nothing runs
without one.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import louver
from louver.trusted.apps.pgproxy import audited
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests import shared
from tests.front_door.door import opened
from tests.front_door.raw import SYNC, Raw, message, parse

_ROWS = 400
_WORDS = ("zebra", "quagga", "okapi")
_TEXTS = (
    "SELECT a FROM t WHERE b = {} AND c IN ({}, {})", "INSERT INTO t VALUES ({}, {}), ({}, {})",
    "UPDATE t SET a = {} WHERE \"b c\" LIKE {}", "SELECT {}::date, E{}, $q$x{}$q$",
    "EXPLAIN SELECT * FROM t WHERE a = {}", "COPY t (a) FROM STDIN", "SET x = {}",
)  # fmt: skip


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _shape(sql: str) -> tuple[str, str]:
    with speaking(DIALECT):
        (text,) = lexer.split(sql)
        (first, *_) = lexer.tokens(text.plain)
        tokens = (first, *lexer.tokens(text.plain[first.end + 1 :]))
        return audited.kind(tokens), audited.shape(tokens)


@pytest.mark.parametrize("seed", range(30))
def test_a_shape_has_no_values(seed: int) -> None:
    draw = random.Random(seed)

    def value(text: str) -> str:
        forms = ["'{}'", "'{}'", "'{}'"] if "E{}" in text else ["'{}'", "$1", "{}", "x'{}'"]
        form = draw.choice(forms)
        number = draw.choice((str(draw.randrange(10**9)), f"{draw.random():.9f}"))
        inner = draw.choice(_WORDS) + str(draw.randrange(1000))
        return form.format("".join(draw.choices("0123456789abcdef", k=6)) if "x" in form
                           else number if form == "{}" else inner)  # fmt: skip

    text = draw.choice(_TEXTS)
    count = text.count("{}")
    first = _shape(text.format(*(value(text) for _ in range(count))))
    assert _shape(text.format(*(value(text) for _ in range(count)))) == first
    others = {_shape(other.replace("{}", "1"))[1] for other in _TEXTS if other != text}
    assert first[1] not in others


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT"), ("VALUES (1)", "SELECT"),
        ("WITH a AS (DELETE FROM t RETURNING x) SELECT * FROM a", "WITH"),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "INSERT"),
        ("SELECT * INTO u FROM t", "SELECT INTO"), ("CREATE TABLE t (a int)", "CREATE TABLE"),
        ("CREATE secret words", "CREATE"), ("ROLLBACK TO a", "ROLLBACK"),
    ],
)  # fmt: skip
def test_kinds(sql: str, kind: str) -> None:
    assert _shape(sql)[0] == kind


def test_every_statement_has_its_line(tmp_path: Path) -> None:
    """By both ways, with what was opened and newly leaked; the ledger has the same numbers."""
    path, draw = tmp_path / "audit", random.Random(1)
    with opened("--audit", str(path)) as door, door.connect(application_name="till 7") as con:
        con.execute("CREATE TABLE k (id bigint ENC PRIMARY KEY, s text ENC, n int)")
        con.execute(
            f"INSERT INTO k SELECT i, 'zebra' || i, i FROM generate_series(1, {_ROWS}) AS g(i)"
        )
        before = len(_lines(path))
        numbers = [draw.randint(1, 150) for _ in range(300)]
        for number in numbers:
            con.execute("SELECT s FROM k WHERE id = %s", (number,), prepare=True).fetchall()
        reads = _lines(path)[before:]
        assert len(reads) == len(numbers)
        assert {tuple(line["opened"]) for line in reads} == {("k.id", "k.s")}
        assert {(line["kind"], line["event"], line["rows"]) for line in reads} == {
            ("SELECT", "ends", 1)
        }
        assert len({line["shape"] for line in reads}) == 1
        leaked: Counter[str] = Counter()
        for line in reads:
            for leak in line["leaked"]:
                leaked[leak["kind"]] += leak["count"]
        # Both ways may count a row that is asked for by both.
        assert len(set(numbers)) <= leaked["rows"] <= 2 * len(set(numbers))
        with louver.connect(door.url, keys=str(shared.key_file())) as own:
            known = own.leakage().arrow().to_pylist()
        counts = [fact["conditions"] or 0 for fact in known if fact["kind"] == "rows"]
        assert max(counts) >= leaked["rows"]
        for sql, state, code in (
            ("SELECT 'quagga'::int FROM k", "22P02", True), ("SELECT okapi FROM k", "42703", True),
            ("UPDATE k SET s = 'quagga' WHERE s = 'zebra5'", "00000", False),
            ("INSERT INTO k VALUES (1, 'okapi', 2)", "23505", True),
        ):  # fmt: skip
            with suppress(psycopg.Error):
                con.execute(sql)
            last = _lines(path)[-1]
            assert (last["state"], "code" in last) == (state, code), sql
        with con.cursor().copy("COPY k (s) TO STDOUT") as copy:
            assert len(list(copy)) == _ROWS
        last = _lines(path)[-1]
        assert (last["kind"], last["rows"], last["opened"]) == ("COPY", _ROWS, ["k.s"])
    lines = _lines(path)
    assert {(line["version"], line["user"], line["application"]) for line in lines} == {
        (1, "anna", "till 7")
    }
    assert not any(word in path.read_text() for word in _WORDS)
    assert path.stat().st_mode & 0o777 == 0o600
    begun = [line["kind"] for line in lines if line["event"] == "begins"]
    assert begun == ["CREATE TABLE", "INSERT", "UPDATE", "INSERT", "COPY"]
    ended = [line["statement"] for line in lines if line["event"] == "ends"]
    assert ended == list(range(1, len(ended) + 1))


def test_nothing_runs_without_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with opened("--audit", str(path)) as door, door.connect() as con:
        con.execute("CREATE TABLE k (id bigint ENC PRIMARY KEY)")
        path.rename(tmp_path / "old")
        con.execute("INSERT INTO k VALUES (1)")
        assert [line["kind"] for line in _lines(path)] == ["INSERT", "INSERT"]
        path.unlink()
        path.mkdir()
        for sql in ("INSERT INTO k VALUES (2)", "SELECT * FROM k", "COPY k TO STDOUT", "nonsense"):
            with pytest.raises(psycopg.OperationalError) as caught:
                con.execute(sql)
            assert caught.value.sqlstate == "58030"
        path.rmdir()
        assert con.execute("SELECT * FROM k").fetchall() == [(1,)]
        assert [line["kind"] for line in _lines(path)] == ["SELECT"]
    with pytest.raises(AssertionError, match="audit"), opened("--audit", str(tmp_path)):
        pass


def test_what_describe_runs_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with opened("--audit", str(path)) as door:
        con = Raw.opened(door.port, "anna", door.database)
        assert con.letters(parse("SHOW DateStyle", "s"), message("D", b"Ss\0"), SYNC) == "1tTZI"
        con.close()
    assert [line["kind"] for line in _lines(path)] == ["SHOW"]
