"""Whole databases: brought over encrypted, and back again just as they were."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor import export_file, row_writer, server_rows, transfer
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine

SOURCE = """
CREATE SCHEMA s; CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TYPE s.pair AS STRUCT(a INT, b INT);
CREATE SEQUENCE q START 5 INCREMENT 2; SELECT nextval('q');
CREATE SEQUENCE s."Q 2" CYCLE MAXVALUE 9;
CREATE MACRO plus(x, y := 5) AS x + y; CREATE MACRO many(a) AS a, (a, b) AS a + b;
CREATE MACRO upto(n) AS TABLE SELECT * FROM range(n);
CREATE TABLE "T x" (id INT PRIMARY KEY DEFAULT nextval('q'), m mood, z s.pair,
    g INT GENERATED ALWAYS AS (id * 2), parent INT REFERENCES "T x" (id));
INSERT INTO "T x" (id, m, z) VALUES (3, 'ok', {a: 1, b: NULL}), (1, NULL, NULL);
INSERT INTO "T x" (id, parent) VALUES (2, 3); INSERT INTO "T x" (id, parent) VALUES (0, 2);
CREATE TABLE s.child (a INT PRIMARY KEY, b VARCHAR DEFAULT 'x;y' CHECK (b <> 'q'), UNIQUE (a, b));
CREATE TABLE s.grand (a INT REFERENCES s.child (a), h HUGEINT, t TIMESTAMPTZ, i INTERVAL, u UUID,
    f DOUBLE, l VARCHAR[], d DECIMAL(38, 4), o BLOB);
INSERT INTO s.child SELECT i, 'row ' || i FROM range(500) r(i);
INSERT INTO s.grand SELECT i, i * 1e20::HUGEINT, '2024-01-01 00:00:00+00'::TIMESTAMPTZ,
  INTERVAL 3 DAY,
    uuid(), 'nan', ['x', NULL], -1.5, 'ab'::BLOB FROM range(300) r(i);
INSERT INTO s.grand (a) VALUES (NULL);
CREATE TABLE empty (a INT);
CREATE UNIQUE INDEX u ON s.child (b); CREATE INDEX "I 2" ON s.grand (h);
CREATE VIEW v AS SELECT * FROM "T x"; CREATE VIEW s.w AS SELECT id, plus(1) AS k FROM v;
CREATE VIEW aa AS SELECT * FROM s.w;
COMMENT ON TABLE s.child IS 'it''s'; COMMENT ON VIEW v IS 'a view';
COMMENT ON COLUMN s.child.a IS 'x';
"""
SCHEMA = (
    "SELECT sql, comment FROM duckdb_tables()",
    "SELECT sql, comment FROM duckdb_views() WHERE NOT internal",
    "SELECT sql FROM duckdb_indexes()",
    "SELECT sql FROM duckdb_sequences()",
    "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal",
    "SELECT schema_name, type_name, labels FROM duckdb_types() WHERE NOT internal",
    "SELECT function_name, parameters, macro_definition FROM duckdb_functions() WHERE NOT internal",
    "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE comment IS NOT NULL",
    "SELECT table_name, constraint_type, constraint_column_names, referenced_table"
    " FROM duckdb_constraints()",
)
ROWS = ('FROM "T x"', "FROM s.child", "FROM s.grand", "FROM empty", "FROM aa", "SELECT plus(1)")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute(SOURCE)
    return path


def opened(path: Path, key_file: Path, policy: Policy) -> Session:
    return Session(DuckDBEngine(path), KeyRing.open(key_file), policy, modulus_bits=512)


@pytest.fixture
def session(tmp_path: Path, key_file: Path) -> Iterator[Session]:
    session = opened(tmp_path / "server.duckdb", key_file, Policy())
    yield session
    session.close()


def shown(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def answers(path: Path, queries: tuple[str, ...]) -> list[list[str]]:
    with duckdb.connect(str(path), read_only=True) as plain:
        return [shown(plain.execute(sql).to_arrow_table()) for sql in queries]


@pytest.mark.parametrize("batch_rows", [server_rows.BATCH_ROWS, 128])
def test_there_and_back(
    source: Path, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    batch_rows: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(server_rows, "BATCH_ROWS", batch_rows)
    steps: list[tuple[int, int | None]] = []
    done = transfer.encrypt(session.context, source, progress=lambda *step: steps.append(step))
    counts = done.counts
    assert done.notices == ()
    assert counts == {"T x": 4, "s.child": 500, "s.grand": 301, "empty": 0}
    assert steps[-1] == (805, 805)
    for table in session.context.catalog.tables.values():
        assert all(column.encrypted for column in table.columns)
    target = tmp_path / "back.duckdb"
    assert export_file.export(session.context, target) == counts
    assert answers(target, SCHEMA) == answers(source, SCHEMA)
    assert answers(target, ROWS) == answers(source, ROWS)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not list(tmp_path.glob(".*partial*"))


def test_the_session_answers_as_the_source(source: Path, session: Session) -> None:
    transfer.encrypt(session.context, source)
    with duckdb.connect(str(source), read_only=True) as plain:
        for sql in (
            *ROWS,
            "SHOW TABLES",
            # The last column, extra, says how a column is protected.
            'SELECT * EXCLUDE (extra) FROM (DESCRIBE "T x")',
            "SELECT many(1, 2), m FROM upto(3) t(m)",
        ):
            answer = session.execute(sql)
            assert answer.rows is not None
            got = session.context.local.plain_arrow(answer.rows)
            assert shown(got) == shown(plain.execute(sql).to_arrow_table()), sql
    session.execute('INSERT INTO "T x" (parent) VALUES (3)')
    answer = session.execute('SELECT max(id) FROM "T x"')
    assert answer.rows is not None
    assert session.python_rows(answer.rows) == [(7,)]
    with pytest.raises(errors.IntegrityError):
        session.execute("INSERT INTO s.child VALUES (1, 'again')")


def test_nothing_readable_is_on_the_server(source: Path, session: Session, tmp_path: Path) -> None:
    transfer.encrypt(session.context, source)
    session.close()
    body = (tmp_path / "server.duckdb").read_bytes()
    wal = tmp_path / "server.duckdb.wal"
    body += wal.read_bytes() if wal.exists() else b""
    for word in (b"row 17", b"parent", b"plus", b"mood", b"'x;y'", b"it's"):
        assert word not in body


def test_a_policy_says_which_columns(source: Path, tmp_path: Path, key_file: Path) -> None:
    policy = Policy.parse({"s.child": {"b": {"may_reveal": "order"}}}, "policy")
    session = opened(tmp_path / "server.duckdb", key_file, policy)
    try:
        transfer.encrypt(session.context, source)
        columns = {
            (table.label, column.name)
            for table in session.context.catalog.tables.values()
            for column in table.columns
            if column.encrypted
        }
        assert columns == {("s.child", "b")}
    finally:
        session.close()


def test_a_failure_leaves_nothing(
    source: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = row_writer.append_stream

    def failing(session: Session, table: object, batch: object) -> None:
        if getattr(table, "name", "") == "grand":
            raise KeyboardInterrupt
        real(session, table, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(row_writer, "append_stream", failing)
    with pytest.raises(KeyboardInterrupt):
        transfer.encrypt(session.context, source)
    assert session.context.catalog.tables == {}
    assert session.context.catalog.objects == []
    monkeypatch.undo()
    assert len(transfer.encrypt(session.context, source).counts) == 4


def test_bad_files(source: Path, session: Session, tmp_path: Path) -> None:
    text = tmp_path / "text.duckdb"
    text.write_text("no database" * 1000)
    for path in (tmp_path / "nothing", tmp_path, text):
        with pytest.raises(errors.OperationalError) as raised:
            transfer.encrypt(session.context, path)
        assert raised.value.code == "file.database"
    session.execute("CREATE TABLE empty (a INT)")
    with pytest.raises(errors.ProgrammingError) as taken:
        transfer.encrypt(session.context, source)
    assert taken.value.code == "table.exists"
    with pytest.raises(errors.OperationalError) as exists:
        export_file.export(session.context, source)
    assert exists.value.code == "file.exists"
    with pytest.raises(errors.OperationalError):
        export_file.export(session.context, tmp_path / "no folder" / "x.duckdb")
    assert answers(source, ("SELECT count(*) FROM s.child",)) == [["(500,)"]]
