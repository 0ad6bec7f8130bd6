"""Clients of one machine that work at once: what one of them has seen is no alarm for another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import errors
from louver.trusted.vault.facts import Fact
from louver.wire import control
from louver.wire.messages import Statement
from tests.inside import context_of


@pytest.fixture
def clients(tmp_path: Path, key_file: Path) -> Any:
    connections = [
        louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) for _ in range(2)
    ]
    connections[0].execute("CREATE TABLE t (a INT ENC)")
    yield connections
    for client in connections:
        client.close()


def between(engine: Any, name: str, sql: str, other: Callable[[], object], *, first: bool) -> None:
    """Let another client in before or after the next statement of this text."""
    run = getattr(engine, name)

    def raced(statement: Statement) -> Any:
        if statement.sql != sql:
            return run(statement)
        setattr(engine, name, run)
        if first:
            other()
        rows = run(statement)
        if not first:
            other()
        return rows

    setattr(engine, name, raced)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("begins", [False, True])
def test_a_change_while_the_catalog_is_read(clients: Any, first: bool, begins: bool) -> None:
    writer, other = clients
    other.execute("INSERT INTO t VALUES (1)")
    engine = context_of(writer).engine
    for name, sql in (("query", control.CATALOG_READ.sql), ("value", control.CATALOG_VERSION.sql)):
        other.execute("CREATE TABLE u (b INT ENC)")
        between(engine, name, sql, lambda: other.execute("DROP TABLE u"), first=first)
        if begins:
            writer.execute("BEGIN")
        assert writer.execute("SELECT count(*) FROM t").fetchall() == [(1,)]
        if begins:
            writer.execute("COMMIT")
        assert writer.execute("SHOW TABLES").fetchall() == [("t",)]


def test_an_older_catalog_is_still_found(clients: Any, tmp_path: Path, key_file: Path) -> None:
    """Within a transaction, and once a session begins: no other process can change a file before
    that, so until then no session asks for the version.
    """
    writer, other = clients
    engine = context_of(writer).engine
    (old,) = engine.query(control.CATALOG_READ).to_pylist()
    other.execute("CREATE TABLE u (b INT ENC)")
    writer.execute("FROM t")
    sql = "UPDATE louver_catalog SET version = $1, body = $2"
    engine.run(Statement(sql, (old["version"], old["body"]), kind="write"))
    for act in (
        lambda: writer.execute("BEGIN"),
        lambda: louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file),
        lambda: writer.execute("FROM t"),
    ):
        with pytest.raises(louver.VerificationError) as caught:
            act()
        assert caught.value.code == "catalog.rollback"


def at_once(count: int, work: Callable[[int], None]) -> list[Exception]:
    """Do work in as many threads; what went wrong."""
    wrong: list[Exception] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except louver.Error as error:
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_many_clients_read_and_write(clients: Any, tmp_path: Path, key_file: Path) -> None:
    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            for step in range(6):
                if number % 2:
                    client.execute(f"INSERT INTO t VALUES ({step})")
                else:
                    client.execute("BEGIN; SELECT sum(a) FROM t; COMMIT")

    assert at_once(6, work) == []
    expected = [(3 * sum(range(6)), 18)]
    assert clients[0].execute("SELECT sum(a), count(*) FROM t").fetchall() == expected


def test_sixteen_clients_change_rows_of_their_own(
    clients: Any, tmp_path: Path, key_file: Path
) -> None:
    """Whoever is outrun runs its change again: no client sees `catalog.conflict`."""
    clients[0].execute("CREATE TABLE w (k INT, a INT ENC)")

    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            client.execute("INSERT INTO w VALUES (?, 1), (?, 2)", (number, 100 + number))
            client.execute("UPDATE w SET a = a + 10 WHERE k = ?", (number,))
            client.execute("DELETE FROM w WHERE k = ?", (100 + number,))

    assert at_once(16, work) == []
    rows = clients[1].execute("SELECT k, a FROM w ORDER BY k").fetchall()
    assert rows == [(number, 11) for number in range(16)]


ACCOUNTS, ROUNDS = 6, 2
SHARED, OWN = "(k INT PRIMARY KEY, v BIGINT ENC)", "(k INT PRIMARY KEY, v BIGINT ENC)"


def done(client: Any, *changes: str) -> bool:
    """Run changes as one transaction, or one of them alone; whether no other client was first."""
    try:
        for change in changes if len(changes) == 1 else ("BEGIN", *changes, "COMMIT"):
            client.execute(change)
    except louver.OperationalError as error:
        if error.code not in ("catalog.conflict", "duckdb.transaction"):
            raise
        if context_of(client).in_transaction:
            client.execute("ROLLBACK")
        return False
    return True


def test_sixteen_clients_change_rows_of_their_own_and_of_all(
    clients: Any, tmp_path: Path, key_file: Path
) -> None:
    """What was committed is there once: no change is lost, and none is there in part."""
    clients[0].execute(f"CREATE TABLE account {SHARED}; CREATE TABLE own {OWN}")
    clients[0].execute(f"INSERT INTO account SELECT i, 100 FROM range({ACCOUNTS}) r(i)")
    counted, rows = [0] * 16, dict[int, int]()

    def work(number: int) -> None:
        with louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file) as client:
            for step in range(ROUNDS):
                source, target = (number + step) % ACCOUNTS, (5 * number + 3 * step) % ACCOUNTS
                done(
                    client, f"UPDATE account SET v = v - {step + 1} WHERE k = {source}",
                    f"UPDATE account SET v = v + {step + 1} WHERE k = {target}",
                )  # fmt: skip
                counted[number] += done(client, "UPDATE account SET v = v + 1000 WHERE k = 0")
                key = 100 * number + step
                if done(client, f"INSERT INTO own VALUES ({key}, 1)"):
                    rows[key] = 1
                    if done(client, f"UPDATE own SET v = {step} WHERE k = {key}"):
                        rows[key] = step
                    if step % 2 and done(client, f"DELETE FROM own WHERE k = {key}"):
                        del rows[key]

    assert at_once(16, work) == []
    assert len(rows) > ROUNDS
    assert sum(counted) > 0
    ((count, total),) = clients[1].execute("SELECT count(*), sum(v) FROM account").fetchall()
    assert (count, total) == (ACCOUNTS, 100 * ACCOUNTS + 1000 * sum(counted))
    assert clients[1].execute("FROM own ORDER BY k").fetchall() == sorted(rows.items())


def outrun_once(writer: Any, other: Any, sql: str, at: str = control.WRITER_ENTER) -> None:
    """Let another client commit just before a control statement of the writer's."""
    between(context_of(writer).engine, "run", at, lambda: other.execute(sql), first=True)


@pytest.mark.parametrize("others", ["UPDATE t SET a = 5 WHERE a = 1", "CREATE TABLE z (i INT)"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("INSERT INTO t VALUES (2)", {(1,), (5,)}),
        ("UPDATE t SET a = a + 2", {(3,), (7,)}),
        ("DELETE FROM t WHERE a = 1", {(), (5,)}),
        ("CREATE TABLE v (b INT ENC)", {(1,), (5,)}),
    ],
)
def test_a_change_that_was_outrun_runs_again(
    clients: Any, change: str, expected: set[tuple[int]], others: str
) -> None:
    writer, other = clients
    writer.execute("INSERT INTO t VALUES (1)")
    at = control.WRITERS_VOID.sql if change.startswith("CREATE") else control.WRITER_ENTER
    outrun_once(writer, other, others, at)
    writer.execute(change)
    rows = tuple(row[0] for row in other.execute("FROM t WHERE a <> 2").fetchall())
    assert rows in expected
    tables = {row[0] for row in other.execute("SHOW TABLES").fetchall()}
    assert tables == {"t", *("v" * change.count("v (")), *("z" * others.count("z ("))}


def test_rows_that_others_add_outrun_no_one(clients: Any) -> None:
    writer, other = clients
    writer.execute("INSERT INTO t VALUES (1)")
    for change in ("INSERT INTO t VALUES (2)", "UPDATE t SET a = 3 WHERE a = 1"):
        outrun_once(writer, other, "INSERT INTO t VALUES (9)")
        writer.execute(f"BEGIN; {change}; COMMIT")
    assert writer.execute("FROM t ORDER BY a").fetchall() == [(2,), (3,), (9,), (9,)]


def test_what_may_not_run_again_says_that_it_was_outrun(clients: Any, tmp_path: Path) -> None:
    writer, other = clients
    (tmp_path / "rows.csv").write_text("1\n")
    writer.execute("INSERT INTO t VALUES (7)")
    for number, change in enumerate(
        (
            f"INSERT INTO t FROM '{tmp_path}/rows.csv'",
            "INSERT INTO t SELECT 1",
            "BEGIN; INSERT INTO t VALUES (1); COMMIT",
        )
    ):
        outrun_once(writer, other, f"CREATE TABLE z{number} (i INT)")
        with pytest.raises(louver.OperationalError) as caught:
            writer.execute(change)
        assert caught.value.code == "catalog.conflict"
        if context_of(writer).in_transaction:
            writer.execute("ROLLBACK")
    assert other.execute("SELECT DISTINCT a FROM t").fetchall() == [(7,)]


def test_rows_of_others_do_not_rebuild_the_local_engine(clients: Any) -> None:
    writer, other = clients
    writer.execute("FROM t")
    generation = context_of(writer).local.generation
    other.execute("INSERT INTO t VALUES (1)")
    assert writer.execute("FROM t").fetchall() == [(1,)]
    assert context_of(writer).local.generation == generation
    other.execute("ALTER TABLE t ADD COLUMN b INT")
    assert writer.execute("FROM t").fetchall() == [(1, None)]
    assert context_of(writer).local.generation != generation


def test_codes_are_compared_under_the_layer_that_is_open(tmp_path: Path, key_file: Path) -> None:
    """Another client takes a layer off between the look at the catalog and the look-up."""
    reader, other = (
        louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file, profile="cryptdb")
        for _ in range(2)
    )
    reader.execute("CREATE TABLE p (k INT ENC PRIMARY KEY, v INT ENC)")
    reader.execute("CREATE TABLE c (r INT ENC REFERENCES p (k), w INT ENC)")
    reader.execute("INSERT INTO p SELECT i, i FROM range(50) r(i)")
    reader.execute("INSERT INTO c SELECT i % 50, i FROM range(500) r(i)")
    for client in (reader, other):
        client.execute("SET link_bandwidth = '1kB/s'")
    sql = "SELECT w FROM c WHERE r = 7 ORDER BY w"
    wanted = reader.execute(sql).fetchall()
    assert len(wanted) == 10
    join = "SELECT sum(v + w) FROM p JOIN c ON k = r WHERE v < 9"
    engine = context_of(reader).engine
    between(engine, "value", control.CATALOG_VERSION.sql, lambda: other.execute(join), first=False)
    assert reader.execute(sql).fetchall() == wanted
    layers = context_of(reader).catalog.table("main", "c").column("r").layers
    assert layers["eq"] == "join"
    reader.close()
    other.close()


def test_bounds_that_are_stored_stay_where_the_rows_do_not_come(clients: Any) -> None:
    writer, other = clients
    writer.execute("INSERT INTO t VALUES (1)")
    engine = context_of(writer).engine
    commit = engine.commit

    def failing() -> None:
        engine.commit = commit
        raise louver.OperationalError("the disk is full")

    engine.commit = failing
    with pytest.raises(louver.Error):
        writer.execute("INSERT INTO t VALUES (1000)")
    other.execute("INSERT INTO t VALUES (999)")
    columns = [context_of(client).catalog.table("main", "t").columns[0] for client in clients]
    assert all(column.maximum >= 999 for column in columns)
    assert writer.execute("SELECT sum(a) FROM t").fetchall() == [(1000,)]


DECIDED_EARLIER = [
    ("ALTER TABLE t ADD COLUMN c INT DEFAULT 7", None),
    ("ALTER TABLE t ALTER COLUMN s DROP ENC", [(1, "a"), (2, "2")]),
    ("ALTER TABLE t ALTER COLUMN a SET DATA TYPE VARCHAR", [("1", "a"), ("2", "2")]),
    ("ALTER TABLE t ALTER COLUMN s SET DATA TYPE INT USING 5", [(1, 5), (2, 2)]),
    ("DROP TABLE t; CREATE TABLE t (a INT ENC CHECK (a < 2), s VARCHAR)", None),
    ("ALTER TABLE t RENAME TO u", None),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("others", "expected"), DECIDED_EARLIER)
@pytest.mark.parametrize("first_write", [True, False])
def test_a_schema_that_changes_before_rows_are_written(
    tmp_path: Path, key_file: Path, others: str, expected: Any, first_write: bool
) -> None:
    """Rows are written under the schema that they were decided under, also where a client claims
    numbers for them, or a token, in between.
    """
    url = f"duckdb:///{tmp_path}/s.duckdb"
    with louver.connect(url, keys=key_file) as other, louver.connect(url, keys=key_file) as writer:
        other.execute("CREATE TABLE t (a INT ENC, s VARCHAR ENC)")
        other.execute("INSERT INTO t VALUES (1, 'a')")
        if not first_write:
            writer.execute("CREATE TABLE one (a INT ENC)")
        context = context_of(writer)
        ensure = context.row_ids.ensure

        def raced(catalog: Any) -> bool:
            context.row_ids.ensure = ensure
            other.execute(others)
            return bool(ensure(catalog))

        context.row_ids.ensure = raced
        if expected is None:
            with pytest.raises(louver.Error) as caught:
                writer.execute("INSERT INTO t VALUES (2, '2')")
            assert caught.value.code.startswith("duckdb.")
            return
        writer.execute("INSERT INTO t VALUES (2, '2')")
        assert sorted(writer.execute("FROM t").fetchall()) == expected


def test_begin_gets_a_token_though_another_client_was_faster(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, _ = clients
    store = context_of(writer).store
    register, refused = store.register, [1, 1]

    def outrun() -> None:
        if refused:
            refused.pop()
            raise errors.make("catalog.conflict")
        register()

    monkeypatch.setattr(store, "register", outrun)
    writer.execute("BEGIN")
    writer.execute("INSERT INTO t VALUES (1)")
    writer.execute("COMMIT")
    assert not refused


def test_clients_of_one_process_take_turns(tmp_path: Path, key_file: Path) -> None:
    """Each append to the ledger is refused once at the most, however many clients append."""
    path, count = tmp_path / "turns.duckdb", 6
    many = [louver.connect(f"duckdb:///{path}", keys=key_file) for _ in range(count)]
    many[0].execute("CREATE TABLE t (a INT ENC)")
    tries: list[bool] = []

    def append(number: int) -> None:
        ledger = context_of(many[number]).ledger
        own = ledger._append

        def counted(*given: Any) -> bool:
            tries.append(own(*given))
            return tries[-1]

        ledger._append = counted
        for turn in range(5):
            ledger.record([Fact("t", ("a",), "access", f"k{number}", f"{turn}")], "SELECT")

    threads = [threading.Thread(target=append, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tries.count(True) == 5 * count
    assert tries.count(False) <= 5 * count
    for client in many:
        client.close()
