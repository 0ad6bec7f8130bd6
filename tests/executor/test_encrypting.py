"""ALTER TABLE … ALTER COLUMN … SET ENC and DROP ENC: rows, protection, silence, kill -9."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.trusted.client.dbapi import Connection as LouverConnection
from louver.trusted.executor.define import encrypting
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from tests.executor.test_crash import FORKS
from tests.generated import cases, generator
from tests.inside import context_of
from tests.recorded import needles
from tests.twin import Twin

TYPES = {
    "BIGINT": "i * 7919", "VARCHAR": "'text ' || i % 7", "DECIMAL(9,2)": "i / 100",
    "DATE": "DATE '2000-01-01' + i::INTEGER", "DOUBLE": "i / 3", "BOOLEAN": "i % 2 = 0",
    "UUID": "md5(i::VARCHAR)::UUID", "INTEGER[]": "[i, i + 1]", "BLOB": "encode('b' || i)",
    "ENUM('a', 'b')": "['a', 'b'][1 + i % 2]",
    "TIMESTAMP": "TIMESTAMP '2000-01-01' + to_days(i::INT)",
    "STRUCT(x INTEGER, y VARCHAR)": "{'x': i, 'y': 'z'}", "HUGEINT": "i::HUGEINT * 10000000000",
}  # fmt: skip
CLAUSES = (
    "", "MAY REVEAL size", "MAY REVEAL equality", "USING onion", "MAY REVEAL order",
    "USING onion MAY REVEAL equality WITH (join = 'g')",
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few rows, so that there are several."""
    monkeypatch.setattr(encrypting, "BATCH_ROWS", 13)


def equal(twin: Twin) -> None:
    twin.run("FROM t")
    twin.run("SELECT id FROM t WHERE c IS NULL")
    twin.run("SELECT count(DISTINCT id), min(id), count(c) FROM t WHERE id > 3")


@pytest.mark.usefixtures("small")
def test_there_and_back(open_twin: Callable[..., Twin]) -> None:
    """Every type, drawn clauses: rows stay, reps are those of a column that was created so."""
    dice, twin = generator("set enc"), open_twin()
    for number, (type_, value) in enumerate(TYPES.items()):
        clause, further = dice.choice(CLAUSES), dice.choice(CLAUSES)
        twin.run(f"CREATE TABLE t (id INTEGER PRIMARY KEY, c {type_}, d INTEGER ENC)")
        rows = f"SELECT i, CASE WHEN i % 5 <> 3 THEN {value} END, i FROM range(60) r(i)"
        twin.run(f"INSERT INTO t {rows}")
        twin.louver.execute(f"ALTER TABLE t ALTER COLUMN c SET ENC {clause}")
        reference = f"r{number}"
        twin.louver.execute(f"CREATE TABLE {reference} (c {type_} ENC {clause})")
        column, wanted = twin.column("t", "c"), twin.column(reference, "c")
        for field in ("scheme", "ceiling", "layers", "low", "bits", "encrypted"):
            assert getattr(column, field) == getattr(wanted, field), (type_, clause, field)
        assert sorted(column.stored) == sorted(wanted.stored)
        equal(twin)
        twin.run("UPDATE t SET d = d + 1 WHERE id % 4 = 0")
        twin.run(f"INSERT INTO t SELECT i + 1000, {value}, 0 FROM range(5) r(i)")
        equal(twin)
        twin.louver.execute("ALTER TABLE t ALTER c DROP ENC")
        assert not twin.column("t", "c").encrypted
        equal(twin)
        twin.louver.execute(f"ALTER TABLE t ALTER COLUMN c SET ENC {further}")
        assert twin.column("t", "c").generation != column.generation
        equal(twin)
        server = twin.server_text()
        assert server.count(" c ") == 0, "the plain column is gone"
        twin.run("DROP TABLE t")


@pytest.mark.usefixtures("small")
def test_nothing_of_it_is_left_at_the_server(twin: Twin) -> None:
    """After SET ENC the server is sent no value, and its tables hold none."""
    secret = 6_203_517_000_000
    twin.run("CREATE TABLE t (id INTEGER, c BIGINT, e VARCHAR)")
    twin.run(f"INSERT INTO t SELECT i, {secret} + i, 'okapi ' || i FROM range(40) r(i)")
    twin.louver.execute("ALTER TABLE t ALTER c SET ENC")
    twin.louver.execute("ALTER TABLE t ALTER e SET ENC MAY REVEAL size")
    sent = twin.sent()
    twin.run(f"INSERT INTO t VALUES (99, {secret} + 99, 'okapi 99')")
    twin.run(f"SELECT id FROM t WHERE c > {secret} + 30")
    said = b"".join(repr(message).encode() for message in twin.tap.sent()[sent:])
    assert b"okapi" not in said
    engine = twin.session.context.engine
    from louver.wire.messages import Statement

    table = twin.session.context.backend.table(twin.table("t"))
    dump = repr(engine.query(Statement(f"SELECT * FROM {table}")).to_pylist()).encode()
    assert b"okapi" not in dump
    assert all(needle not in dump for i in range(40) for needle in needles(secret + i))
    facts = [(f.kind, f.level, f.columns) for f in twin.session.context.ledger.facts()]
    assert ("enc.set", "plaintext", ("c",)) in facts


def test_dropping_is_recorded_before_a_value_is_sent(twin: Twin) -> None:
    twin.run("CREATE TABLE t (id INTEGER, c VARCHAR ENC MAY REVEAL size)")
    twin.run("INSERT INTO t VALUES (1, 'okapi')")
    ledger = twin.session.context.ledger
    real = twin.session.context.engine.run
    seen: list[bool] = []

    def run(statement: Any) -> int:
        if statement.sql.startswith("UPDATE") and "louver_" not in statement.sql.split()[1]:
            seen.append("enc.dropped" in {fact.kind for fact in ledger.facts()})
        return int(real(statement))

    twin.session.context.engine.run = run  # type: ignore[method-assign]
    twin.louver.execute("ALTER TABLE t ALTER c DROP ENC")
    assert seen == [True]
    assert twin.rows("SHOW LEAKAGE FOR t")[-1][2] == "plaintext"
    twin.run("FROM t")


REFUSED = {
    "ALTER TABLE t ALTER c SET ENC USING sdb": "sql.unsupported",
    "ALTER TABLE t ALTER c SET ENC WITH (sum = 'hom')": "sql.unsupported",
    "ALTER TABLE t ALTER c SET ENC MAY REVEAL size": "leak.flow",
    "ALTER TABLE t ALTER d SET ENC": "sql.unsupported",
    "ALTER TABLE t ALTER id DROP ENC": "sql.unsupported",
    "ALTER TABLE t ALTER d DROP ENC": "leak.flow",
    "ALTER TABLE t ALTER nope SET ENC": "column.missing",
    "ALTER TABLE nope ALTER c SET ENC": "table.missing",
    "ALTER TABLE t ALTER c SET ENC please": "sql.syntax",
}


def test_what_is_refused(twin: Twin) -> None:
    twin.run(
        "CREATE TABLE t (id INTEGER, c BIGINT, g BIGINT GENERATED ALWAYS AS (c + 1) VIRTUAL,"
        " d BIGINT ENC UNIQUE)"
    )
    twin.run("CREATE TABLE u (d BIGINT ENC REFERENCES t (d), p BIGINT)")
    for sql, code in REFUSED.items():
        if code == "leak.flow" and " d " in sql:
            continue
        with pytest.raises(errors.Error) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == code, sql
    twin.louver.execute("BEGIN")
    for change in ("c SET ENC", "d DROP ENC"):
        with pytest.raises(errors.NotSupportedError, match=f"{change} cannot run inside") as caught:
            twin.louver.execute(f"ALTER TABLE t ALTER {change}")
        assert caught.value.code == "transaction.batches"
        assert "COMMIT" in caught.value.fix
    twin.louver.execute("ROLLBACK")


# ---------------------------------------------------------------------- kill -9


def opened(folder: Path) -> LouverConnection:
    keys = KeyRing.open(str(folder / "key"))
    return LouverConnection(Session(DuckDBEngine(str(folder / "db")), keys, Policy("sealed")))


def work(folder: Path, sql: str, step: int, said: Connection) -> None:
    """Run the statement and die at one of the messages to the server, before it or behind it."""
    os.environ["LOUVER_STATE_DIR"] = str(folder / "state")
    encrypting.BATCH_ROWS = 13
    connection = opened(folder)
    context = context_of(connection)
    steps = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*given)
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for name in ("run", "begin", "commit"):
        setattr(context.engine, name, dying(getattr(context.engine, name)))
    connection.execute(sql)
    said.send(steps)
    os._exit(0)


@pytest.mark.parametrize("sql", ["SET ENC MAY REVEAL order", "DROP ENC"])
def test_it_goes_on_after_a_kill_at_every_step(sql: str, tmp_path: Path, key_file: Path) -> None:
    """Whatever the step, the table has its rows, takes others, and the statement can be repeated
    until it is done; other changes of the schema wait for that.
    """
    import shutil

    (tmp_path / "key").write_bytes(key_file.read_bytes())
    (tmp_path / "key").chmod(0o600)
    os.environ["LOUVER_STATE_DIR"], before = str(tmp_path / "state"), os.environ["LOUVER_STATE_DIR"]
    try:
        with opened(tmp_path) as connection:
            enc = "ENC" if sql == "DROP ENC" else ""
            connection.execute(f"CREATE TABLE t (id INTEGER, c VARCHAR {enc})")
            connection.execute(
                "INSERT INTO t SELECT i, CASE WHEN i % 3 > 0 THEN 'v' || i END FROM range(30) r(i)"
            )
        saved = tmp_path / "saved"
        saved.mkdir()
        for name in ("db", "state"):
            copy(tmp_path / name, saved / name)
        statement, step, resumed = f"ALTER TABLE t ALTER COLUMN c {sql}", 0, 0
        while True:
            step += 1 if step < 6 or cases(1) > 1 else 3
            for name in ("db", "state"):
                clean(tmp_path / name)
                copy(saved / name, tmp_path / name)
            for file in tmp_path.glob("db.wal"):
                file.unlink()
            _, said = FORKS.Pipe(duplex=False)
            worker = FORKS.Process(target=work, args=(tmp_path, statement, step, said))
            worker.start()
            said.close()
            worker.join(60)
            if worker.exitcode == 0:
                break
            assert worker.exitcode == -signal.SIGKILL
            resumed += goes_on(tmp_path, statement, step)
        assert resumed > 2
        shutil.rmtree(saved)
    finally:
        os.environ["LOUVER_STATE_DIR"] = before


def goes_on(folder: Path, statement: str, step: int) -> bool:
    """Use the table after a kill, then finish; whether there was a part to finish."""
    expected = [(i, f"v{i}" if i % 3 else None) for i in range(30)]
    with opened(folder) as connection:
        assert connection.execute("FROM t ORDER BY id").fetchall() == expected, step
        connection.execute("INSERT INTO t VALUES (100, 'new')")
        connection.execute("UPDATE t SET c = 'changed' WHERE id = 1")
        connection.execute("DELETE FROM t WHERE id = 2")
        expected[1] = (1, "changed")
        expected = [*expected[:2], *expected[3:], (100, "new")]
        context = context_of(connection)
        partly = bool(encrypting.unfinished(context.catalog))
        if partly:
            with pytest.raises(errors.OperationalError, match="partly"):
                connection.execute("ALTER TABLE t ADD COLUMN x INTEGER")
        wanted = "SET ENC" in statement
        if context.catalog.tables["main", "t"].columns[1].encrypted != wanted:
            connection.execute(statement)
        table = context.catalog.tables["main", "t"]
        assert table.columns[1].encrypted == wanted
        assert not encrypting.unfinished(context.catalog)
        assert connection.execute("FROM t ORDER BY id").fetchall() == expected, step
        names = {name for column in table.columns for name in column.stored.values()}
        from louver.wire.messages import Statement

        held = context.engine.query(Statement(f"SELECT * FROM {context.backend.table(table)}"))
        assert set(held.column_names) == names | {"row_id"}, step
        return partly


def copy(source: Path, target: Path) -> None:
    import shutil

    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def clean(path: Path) -> None:
    import shutil

    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def test_a_new_file_holds_nothing_of_the_plain_values(
    tmp_path: Path, key_file: Path, own_state: Path
) -> None:
    """What the notice says: free pages of the file may hold old values, a copy into a new file
    does not, and it is the same database.
    """
    import duckdb

    import louver

    path = tmp_path / "t.duckdb"
    with louver.connect(f"duckdb:///{path}", keys=key_file) as connection:
        connection.execute("CREATE TABLE t (id INTEGER, c VARCHAR)")
        connection.execute("INSERT INTO t SELECT i, 'okapi ' || i FROM range(3000) r(i)")
        with pytest.warns(louver.LeakageWarning, match="COPY FROM DATABASE"):
            connection.execute("ALTER TABLE t ALTER c SET ENC")
    with duckdb.connect() as server:
        server.execute(f"ATTACH '{path}' AS old; ATTACH '{tmp_path / 'new.duckdb'}' AS new")
        server.execute("COPY FROM DATABASE old TO new")
    (tmp_path / "new.duckdb").replace(path)
    assert b"okapi " not in path.read_bytes()
    with louver.connect(f"duckdb:///{path}", keys=key_file) as connection:
        assert connection.execute("SELECT count(*) FROM t WHERE c LIKE 'okapi%'").fetchall() == [
            (3000,)
        ]
        connection.execute("INSERT INTO t VALUES (1, 'x')")
