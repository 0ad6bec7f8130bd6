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
from louver.trusted.apps.pgproxy import audited, status
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.planner.sql.postgres_dialect import DIALECT
from tests import shared
from tests.front_door.door import opened
from tests.front_door.raw import SYNC, Raw, message, parse
from tests.postgres import servers

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


_OPENED = {
    "SELECT s FROM k WHERE id = %s": ["k.id", "k.s"],
    "SELECT id FROM k WHERE s = %s ORDER BY id DESC": ["k.id", "k.s"],
    "INSERT INTO k VALUES (%s, %s)": [],
    "UPDATE k SET s = %s WHERE id = %s": ["k.id", "k.s"],
    "DELETE FROM k WHERE id = %s": ["k.id"],
    "SELECT a FROM p WHERE id = %s": [],
}


@pytest.mark.parametrize("pool", ["session", "transaction"])
def test_ways_without_python_have_lines(tmp_path: Path, pool: str) -> None:
    """Each with the columns that it opened, and what it took of the ledger's reserves."""
    path, monitor, draw = tmp_path / "audit", str(tmp_path / "monitor"), random.Random(5)
    words = ("--audit", str(path), "--metrics", monitor, "--pool", pool, "--pool-size", "1")
    with opened(*words) as door, door.connect() as con:
        con.execute("CREATE TABLE k (id bigint ENC PRIMARY KEY, s text ENC)")
        con.execute("CREATE TABLE p (id bigint PRIMARY KEY, a text)")
        con.execute("INSERT INTO k SELECT i, 's' || i FROM generate_series(1, 500) AS g(i)")
        con.execute("INSERT INTO p SELECT i, 'a' FROM generate_series(1, 500) AS g(i)")
        before = len(_lines(path))
        for sql in _OPENED:
            first = len(_lines(path))
            direct = status.state_of((monitor, None))["direct_total"]
            for turn in range(60):
                values: list[object] = [1000 + turn if "INSERT" in sql else draw.randint(1, 400)]
                if "INSERT" in sql:
                    values.append("okapi")
                elif "WHERE s" in sql:
                    values = [f"s{values[0]}"]
                elif "UPDATE" in sql:
                    values.insert(0, f"zebra{turn}")
                con.execute(sql, values, prepare=True)
            lines = [line for line in _lines(path)[first:] if line["event"] == "ends"]
            assert len(lines) == 60, sql
            assert {line["state"] for line in lines} == {"00000"}
            assert status.state_of((monitor, None))["direct_total"] >= direct + 20, sql
            # Rows that are not there open nothing.
            assert {tuple(line["opened"]) for line in lines[10:]} <= {tuple(_OPENED[sql]), ()}, sql
            if sql.startswith("DELETE"):  # by a key, at last without a look at the row
                assert not any(line["opened"] for line in lines[-20:])
            else:
                assert any(line["opened"] == _OPENED[sql] for line in lines[10:]), sql
            leaks: Counter[str] = Counter()
            for line in lines[10:]:
                leaks.update({leak["kind"]: leak["count"] for leak in line["leaked"]})
            assert bool(leaks) == bool(_OPENED[sql]), (sql, leaks)
        leaked: Counter[tuple[str, ...]] = Counter()
        for line in _lines(path)[before:]:
            for leak in line.get("leaked", ()):
                leaked[(leak["kind"], *leak["columns"])] += leak["count"]
        with louver.connect(door.url, keys=str(shared.key_file())) as own:
            known = own.leakage().arrow().to_pylist()
    recorded: Counter[tuple[str, ...]] = Counter()
    for fact in known:
        names = [f"{fact['table_name']}.{name}" for name in fact["columns"]]
        key = (fact["kind"], *(names or [fact["table_name"]]))
        recorded[key] += fact["conditions"] or 1
    assert all(count <= recorded[key] for key, count in leaked.items()), (leaked, recorded)
    assert not any(word in path.read_text() for word in _WORDS)


def test_changes_in_one_call_say_what_they_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where Python runs them."""
    url = servers.database_url("door_audit")
    client = Client(connect.open_session(url, str(shared.key_file()), "cryptdb"))
    engine: Any = client._context.engine
    calls, run = list[object](), engine.applied

    def applied(*given: Any) -> Any:
        calls.append(given)
        return run(*given)

    monkeypatch.setattr(engine, "applied", applied)
    try:
        for sql in (
            "CREATE TABLE k (id bigint ENC PRIMARY KEY, s text ENC)",
            "INSERT INTO k SELECT i, 's' || i FROM generate_series(1, 500) AS g(i)",
        ):
            client.run(client.prepare(sql, []), [], [], [])
        prepared = client.prepare("UPDATE k SET s = $1 WHERE id = $2", [])
        client.disclosed()
        for turn in range(12):
            client.run(prepared, [b"w%d" % turn, b"%d" % (turn + 1)], [0, 0], [])
            opened, leaked = client.disclosed()
            assert opened == ["k.id", "k.s"]
            assert {kind for _, _, kind, _ in leaked} >= {"rows"}, leaked
        assert len(calls) > 2
    finally:
        client.close()
        servers.drop_databases()
