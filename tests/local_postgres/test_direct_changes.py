"""Changes that the compiled module does in one call: what they rely on, and leave behind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import louver
from louver import errors
from louver._rust import postgres
from louver.trusted.executor import direct
from louver.trusted.executor.change import direct_changes
from louver.trusted.vault.epochs import COUNTER_BITS
from louver.wire import control
from louver.wire.messages import Statement
from tests import shared
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_INSERT, _UPDATE = "INSERT INTO k VALUES ($1, $2)", "UPDATE k SET n = n + $1 WHERE id = $2"


@pytest.fixture
def con(tmp_path: Any) -> Iterator[Any]:
    """A connection with a table of a few hundred rows: of fewer all are read."""
    url = servers.database_url(f"direct_{tmp_path.name}".replace("-", "_"))
    keys = str(shared.key_file())
    with louver.connect(url, keys=keys, profile="cryptdb", language="postgres") as con:
        con.execute("CREATE TABLE k (id bigint ENC PRIMARY KEY, n bigint ENC)")
        con.execute("INSERT INTO k SELECT i, i FROM generate_series(1, 300) AS g(i)")
        yield con


def _context(con: Any) -> Any:
    return con._session.context


def _numbers(con: Any) -> list[int]:
    """The ids of rows, as the server has them."""
    engine = _context(con).engine
    _, _, arrays = engine.session.run([("SELECT row_id FROM public.k ORDER BY row_id", [])])[0]
    return list(arrays[0].to_pylist())


def _known(con: Any) -> Any:
    """The changes that were done so."""
    done = list[int]()
    engine = _context(con).engine
    before = engine.applied

    def applied(write: Any, parameters: Any) -> Any:
        result = before(write, parameters)
        done.append(result[0])
        return result

    engine.applied = applied
    return done


def test_they_are_done_and_counted(con: Any) -> None:
    """After a few runs; rows are counted as those of any other way."""
    done = _known(con)
    for number in range(400, 440):
        con.execute(_INSERT, [number, 1])
    # The first conditions of the ledger are counted one by one, by the general way.
    for number in range(200):
        con.execute(_UPDATE, [1 - 2 * (number % 2), 7])
    con.execute("DELETE FROM k WHERE id = $1", [400])
    assert len([count for count in done if count == 1]) > 100
    assert con.execute("SELECT n FROM k WHERE id = 7").fetchall() == [(7,)]
    assert con.execute("SELECT count(*) FROM k").fetchall() == [(339,)]
    assert next(iter(_context(con).catalog.tables.values())).row_count == 339
    assert con.execute(_UPDATE, [2, 400]).rowcount == 0


def test_no_number_is_given_twice(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was forked has numbers of its own, or two rows would bear the same."""
    done = _known(con)
    for number in range(400, 410):
        con.execute(_INSERT, [number, 1])
    assert sum(done) > 5
    monkeypatch.setattr(os, "getpid", lambda: 1 << 20)
    for number in range(410, 420):
        con.execute(_INSERT, [number, 1])
    assert sum(done) > 12
    numbers = _numbers(con)
    assert len({*numbers}) == len(numbers) == 320
    assert len({number >> COUNTER_BITS for number in numbers}) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SET lock_timeout = '123ms'", "SET search_path TO public", "CREATE TABLE other (a int)",
        "SET default_transaction_read_only TO on", "CREATE TEMP TABLE t (a int)",
    ],
)  # fmt: skip
def test_what_it_relies_on_is_looked_at(con: Any, sql: str) -> None:
    """Statements that change it."""
    before = direct.basis(_context(con))
    con.execute(sql)
    assert direct.basis(_context(con)) != before


def test_a_session_that_only_reads_changes_nothing(con: Any) -> None:
    """Whatever it did before."""
    for number in range(400, 406):
        con.execute(_INSERT, [number, 1])
    con.execute("SET default_transaction_read_only TO on")
    with pytest.raises(errors.Error):
        con.execute(_INSERT, [500, 1])
    con.execute("SET default_transaction_read_only TO off")
    con.execute(_INSERT, [500, 1])


def test_keys_that_are_there_raise_postgres_own_error(con: Any) -> None:
    """And nothing stays open."""
    for number in range(400, 406):
        con.execute(_INSERT, [number, 1])
    for _ in range(3):
        with pytest.raises(errors.IntegrityError, match="k_pkey"):
            con.execute(_INSERT, [7, 1])
    con.execute(_INSERT, [500, 1])
    assert direct_changes.of(_context(con), ("public", "k"), None, ()) is None


def test_columns_of_few_values_count_those_that_are_new(con: Any) -> None:
    """Until they have many."""
    con.execute("CREATE TABLE few (id bigint ENC PRIMARY KEY, b boolean ENC, c text ENC)")
    con.execute(
        "INSERT INTO few SELECT i, i % 2 = 0, 'c' || i % 3 FROM generate_series(1, 300) AS g(i)"
    )
    done, sql = _known(con), "INSERT INTO few VALUES ($1, $2, $3)"
    for number in range(400, 420):
        con.execute(sql, [number, number % 2 == 0, "c1"])
    known = len([count for count in done if count == 1])
    assert known > 15
    for number in range(420, 424):
        con.execute(sql, [number, True, f"new {number}"])
    assert len([count for count in done if count == 1]) == known + 4
    column = next(t for t in _context(con).catalog.tables.values() if t.name == "few").column("c")
    assert column.cardinality() == 7
    for number in range(424, 460):
        con.execute(sql, [number, False, f"new {number}"])
    assert len([count for count in done if count == 1]) == known + 40
    assert column.cardinality() == 0
    assert con.execute("SELECT count(*) FROM few WHERE c = 'c1'").fetchall() == [(120,)]


@pytest.mark.parametrize(
    ("limits", "code", "words"),
    [
        ({"lock_timeout": "200ms"}, "55P03", ["BEGIN", "SET", "WITH"]),
        ({"lock_timeout": "20s", "statement_timeout": "300ms"}, "57014",
         ["BEGIN", "SET", "SET", "WITH"]),
    ],
)  # fmt: skip
def test_a_token_that_is_held_is_waited_for_within_the_limits(
    con: Any, limits: dict[str, str], code: str, words: list[str]
) -> None:
    """The one of locks is set by the statement that waits. All are gone with the transaction."""
    for number in range(400, 406):
        con.execute(_INSERT, [number, 1])
    for name, value in limits.items():
        con.execute(f"SET {name} = '{value}'")
    opened: Any = direct_changes.opening(_context(con))
    session, opening, alone = opened
    assert [text.split()[0] for text, _ in opening] == words
    assert (alone is None) == ("statement_timeout" in limits)
    held = _context(con).engine.side()
    held.begin()
    held.run(control.WRITERS_HOLD)
    held.run(control.WRITERS_VOID)
    start = time.monotonic()
    with pytest.raises(postgres.ServerError) as raised:
        session.run(opening if alone is None else [alone])
    assert raised.value.args[0]["code"] == code
    assert time.monotonic() - start < 5
    if alone is None:
        session.run([("ROLLBACK", [])])
    held.rollback()
    for number in range(500, 506):
        con.execute(_INSERT, [number, 1])
    for name in limits:
        con.execute(f"RESET {name}")
    for number in range(600, 606):
        con.execute(_INSERT, [number, 1])
    assert con.execute("SELECT count(*) FROM k").fetchall() == [(318,)]
    shown = session.run([("SHOW lock_timeout", []), ("SHOW statement_timeout", [])])
    assert [arrays[0].to_pylist() for _, _, arrays in shown] == [["0"], ["0"]]


def test_rows_that_are_removed_by_their_keys_are_not_read(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there is none, two in one statement are both, and what others do is waited
    for.
    """
    # The first conditions of the ledger are counted one by one, by the general way.
    for number in range(200):
        con.execute("DELETE FROM k WHERE id = $1", [number + 1])
    taken: list[tuple[bool, int]] = []

    def note(change: Any, context: Any) -> None:
        opened, counts = change.write.taken()
        taken.append((opened, sum(counts)))

    monkeypatch.setattr(direct_changes.Change, "note", note)
    for number in (250, 250, 250):
        con.execute("DELETE FROM k WHERE id = $1", [number])
    # Nothing was opened. What was chosen is counted each time, a change of no row is not.
    assert taken == [(False, 3), (False, 1), (False, 1)]
    monkeypatch.undo()
    for _ in range(8):
        con.execute("DELETE FROM k WHERE id IN ($1, $2)", [260, 261])
    assert con.execute("SELECT count(*), min(id) FROM k").fetchall() == [(97, 201)]
    other = _context(con).engine.side()
    other.begin()
    other.run(Statement("UPDATE public.k SET row_id = -row_id WHERE row_id > 0", kind="write"))
    timer = threading.Timer(0.3, other.rollback)
    timer.start()
    assert con.execute("DELETE FROM k WHERE id = $1", [270]).rowcount == 1
    timer.join()
    # Where a limit is the server's own again, BEGIN and COMMIT go along.
    con.execute("SET statement_timeout = '5s'")
    con.execute("DELETE FROM k WHERE id = $1", [1])
    con.execute("RESET statement_timeout")
    counts = [con.execute("DELETE FROM k WHERE id = $1", [n]).rowcount for n in range(280, 305)]
    assert counts == [1] * 21 + [0] * 4
    known = next(iter(_context(con).catalog.tables.values())).row_count
    assert con.execute("SELECT count(*) FROM k").fetchall() == [(75,)]
    assert known == 75


@pytest.mark.parametrize(
    ("sql", "left"), [("DELETE FROM k WHERE id = $1", []), (_UPDATE.replace("$2", "5"), [(107,)])]
)
@pytest.mark.parametrize("within", [False, True])
def test_a_row_is_there_behind_a_change_of_several(
    con: Any, sql: str, left: list[Any], within: bool
) -> None:
    """Which removes rows and puts them in anew, while this waits for one of them."""
    value = 5 if sql.startswith("DELETE") else 100
    # The first conditions of the ledger are counted one by one, by the general way.
    for number in range(200):
        con.execute(sql.replace("= 5", "= 6"), [10_000 if value == 5 else number % 2])
    con.execute("DELETE FROM k WHERE id = 300")
    keys = str(shared.key_file())
    url = f"{_context(con).engine.address}&user=louver"
    counts = list[int]()

    def work() -> None:
        if within:
            con.execute("BEGIN")
        counts.append(con.execute(sql, [value]).rowcount)
        if within:
            con.execute("COMMIT")

    with louver.connect(url, keys=keys, profile="cryptdb", language="postgres") as other:
        other.execute("BEGIN")
        assert other.execute("UPDATE k SET n = 7 WHERE id IN (5, 6)").rowcount == 2
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.5)
        assert not counts
        other.execute("COMMIT")
        thread.join(20)
    assert counts == [1]
    assert con.execute("SELECT n FROM k WHERE id = 5").fetchall() == left
