"""COPY … FROM STDIN and TO STDOUT: PostgreSQL itself writes and reads what Louver reads and writes.

The private server of the tests, which plaintext PostgreSQL is, copies to and from files in its own
folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.executor.postgres import copy_rows
from louver.trusted.executor.postgres.copying import form_of
from louver.untrusted.servers import private_postgres
from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_numbers = itertools.count()
_FORMATS = (
    "", "(FORMAT csv)", "(FORMAT csv, HEADER)", "CSV QUOTE '''' ESCAPE '\\'", "(FORMAT binary)",
    "WITH (DELIMITER '|', NULL 'none')", "CSV HEADER DELIMITER ';'", "(FORMAT text, HEADER true)",
    "(FORMAT csv, QUOTE '{', ESCAPE '}')", "BINARY",
)  # fmt: skip
_VALUES = ("x", "", "a\nb", 'quo"te', "it's", "back\\slash", "\\.", "tab\t", "ä", "{}", ",;|", "\r")


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run(
        "CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC DEFAULT 'd', n numeric(10,2) ENC,"
        " j jsonb ENC, g text ENC GENERATED ALWAYS AS (a || '!') STORED)"
    )
    opened.run("CREATE TABLE c (id integer ENC PRIMARY KEY, t integer ENC REFERENCES t)")
    opened.run("CREATE VIEW v AS SELECT id FROM t")
    yield opened
    opened.close()


@pytest.fixture
def clean(twin: PostgresTwin) -> PostgresTwin:
    twin.louver.execute("ROLLBACK")
    twin.plain.execute("ROLLBACK")
    for execute in (twin.louver.execute, twin.plain.execute):
        execute("DELETE FROM c")
        execute("DELETE FROM t")
    return twin


@pytest.fixture
def path() -> Iterator[Path]:
    """A file of the plain server's."""
    file = Path(servers.shared().folder) / f"copied-{next(_numbers)}"
    file.write_bytes(b"")
    yield private_postgres.given(file)
    file.unlink()


def fill(twin: PostgresTwin, count: int) -> None:
    random = generator("copy")
    for number in range(count):
        row = [number, random.choice((*_VALUES, None)), f"{number}.25"]
        twin.run("INSERT INTO t (id, a, n, j) VALUES ($1, $2, $3, '{\"a\": [1]}')", row)


def copied(twin: PostgresTwin, sql: str, data: str | bytes, pieces: int = 1) -> None:
    """Copy a text in so many pieces, or take what comes out."""
    with twin.louver.cursor().copy(sql) as copy:
        size = -(-len(data) // pieces)
        for at in range(0, len(data), size or 1):
            copy.write(data[at : at + size])
        list(copy)


def failing(twin: PostgresTwin, sql: str, data: str) -> None:
    """A block that raises when it has copied."""
    with twin.louver.cursor().copy(sql) as copy:
        copy.write(data)
        raise KeyError


def plain_out(twin: PostgresTwin, what: str, options: str, path: Path) -> bytes:
    twin.plain.execute(f"COPY {what} TO '{path}' {options}")
    return path.read_bytes()


@pytest.mark.parametrize("options", _FORMATS)
@pytest.mark.parametrize("what", ["t", "t (a, id)", "(SELECT a, n, id, a FROM t ORDER BY id)"])
def test_data_goes_out_as_plaintext_postgresql_writes_it(
    clean: PostgresTwin, what: str, options: str, path: Path
) -> None:
    fill(clean, 15)
    with clean.louver.cursor().copy(f"COPY {what} TO STDOUT {options}") as copy:
        own = b"".join(copy)
    plain = plain_out(clean, what, options, path)
    # The order of a table's rows is nobody's.
    assert own == plain if "SELECT" in what else sorted(own) == sorted(plain)


@pytest.mark.parametrize("options", _FORMATS)
def test_data_comes_in_as_plaintext_postgresql_reads_it(
    clean: PostgresTwin, options: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.trusted.executor.postgres.copying.BATCH_BYTES", 150)
    fill(clean, 25)
    data = plain_out(clean, "t (id, a, n, j)", options, path)
    clean.run("DELETE FROM t")
    clean.plain.execute(f"COPY t (id, a, n, j) FROM '{path}' {options}")
    random, at = generator(f"pieces {options}"), 0
    cursor = clean.louver.cursor()
    with cursor.copy(f"COPY t (id, a, n, j) FROM STDIN {options}") as copy:
        while at < len(data):
            size = random.randint(1, 60)
            copy.write(data[at : at + size])
            at += size
    assert cursor.rowcount == 25
    clean.run("SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize("options", _FORMATS)
def test_data_comes_into_temporary_tables(
    clean: PostgresTwin, options: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rules, sequences and generated columns count; what is undone goes again."""
    monkeypatch.setattr("louver.trusted.executor.postgres.copying.BATCH_BYTES", 150)
    clean.run(
        "CREATE TEMP TABLE own (a text, id serial PRIMARY KEY, n numeric(10,2) CHECK (n < 100),"
        " g text GENERATED ALWAYS AS (a || '!') STORED, z int GENERATED ALWAYS AS IDENTITY)"
    )
    fill(clean, 25)
    everything = "SELECT * FROM own ORDER BY id"
    data = plain_out(clean, "t (a, n)", options, path)
    undone = (everything, "ROLLBACK TO s", everything, "COMMIT")
    for before, after in (
        ((), ()), (("BEGIN",), ("COMMIT",)), (("BEGIN", "SAVEPOINT s"), undone),
    ):  # fmt: skip
        for sql in before:
            clean.run(sql)
        clean.plain.execute(f"COPY own (a, n) FROM '{path}' {options}")
        copied(clean, f"COPY own (a, n) FROM STDIN {options}", data, 9)
        for sql in (*after, everything):
            clean.run(sql)
    for sql in ("COPY own (g) FROM STDIN", "COPY own (id) FROM STDIN", "COPY own (n) FROM STDIN"):
        with pytest.raises(errors.Error) as raised:
            copied(clean, sql, "1000\n1\n")
        assert raised.value.sqlstate == {"g": "42P10", "i": "23505", "n": "23514"}[sql[10]]
    clean.run(everything)
    clean.run("DROP TABLE own")


def test_defaults_conditions_and_texts(clean: PostgresTwin) -> None:
    cursor = clean.louver.cursor()
    with cursor.copy("COPY public.t (id, n) FROM STDIN WITH (FORMAT csv) WHERE id > 1") as copy:
        copy.write("1,1\n2,2\n")
        copy.write("3,\n")
    assert cursor.rowcount == 2
    rows = clean.louver.execute("SELECT id, a, n::text, g FROM t ORDER BY id").fetchall()
    assert rows == [(2, "d", "2.00", "d!"), (3, "d", None, "d!")]
    with clean.louver.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write("7\n\\.\nwhatever")
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
    with clean.louver.cursor().copy("COPY t FROM STDIN"):
        pass
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


@pytest.mark.parametrize(("sql", "data", "state"), [
    ("COPY t (id) FROM STDIN", "1\nx\n", "22P02"), ("COPY t (id) FROM STDIN", "1\n1\n", "23505"),
    ("COPY t (id) FROM STDIN", "1\t2\n", "22P04"), ("COPY t (id, a) FROM STDIN", "1\n", "22P04"),
    ("COPY c FROM STDIN (FORMAT csv)", "1,99\n", "23503"),
    ("COPY t FROM STDIN BINARY", "x", "22P04"),
    ("COPY t (id) FROM STDIN (FORMAT csv)", '"1\n', "22P04"),
    ("COPY t (id) FROM STDIN (FORMAT csv, WHATEVER)", "1\n", "42601"),
    ("COPY missing FROM STDIN", "", "42P01"), ("COPY t (missing) FROM STDIN", "1\n", "42703"),
    ("COPY t TO STDOUT (FORMAT other)", "", "22023"), ("COPY v TO STDOUT", "", "42809"),
    ("COPY (SELECT 1 / 0) TO STDOUT", "", "22012"), ("COPY t", "", "42601"),
    ("COPY (DELETE FROM t RETURNING *) TO STDOUT", "", "0A000"), ("COPY v FROM STDIN", "", "42809"),
    ("COPY t (id) FROM STDIN WHERE pg_read_file('/etc/hostname') = 'x'", "1\n", "0A000"),
    ("COPY t FROM '/etc/hostname'", "", "0A000"), ("COPY t TO PROGRAM 'cat'", "", "0A000"),
])  # fmt: skip
def test_a_failure_leaves_nothing(clean: PostgresTwin, sql: str, data: str, state: str) -> None:
    with pytest.raises(errors.Error) as caught:
        copied(clean, sql, data)
    assert caught.value.sqlstate == state, caught.value
    assert not clean.louver._session.in_transaction
    for table in "tc":
        assert clean.louver.execute(f"SELECT count(*) FROM {table}").fetchall() == [(0,)]


def test_a_block_that_raises_copies_nothing(
    clean: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.trusted.executor.postgres.copying.BATCH_BYTES", 10)
    numbers = "\n".join(map(str, range(100)))
    with pytest.raises(KeyError):
        failing(clean, "COPY t (id) FROM STDIN", numbers)
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    clean.louver.execute("BEGIN")
    with clean.louver.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write("1\n2\n")
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
    clean.louver.execute("ROLLBACK")
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_rows_of_later_batches_repeat_no_key(
    clean: PostgresTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.trusted.executor.postgres.copying.BATCH_BYTES", 10)
    numbers = "\n".join(map(str, [*range(20), 3]))
    with pytest.raises(errors.Error) as caught:
        copied(clean, "COPY t (id) FROM STDIN", numbers, len(numbers))
    assert caught.value.sqlstate == "23505"
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


@pytest.mark.parametrize("options", ["(FREEZE)", "(FREEZE on, FORMAT csv)", "(NULL '', freeze 1)"])
def test_rows_may_be_frozen_in_a_transaction(clean: PostgresTwin, options: str) -> None:
    """PostgreSQL takes it for a table that the transaction has made or truncated, as pgbench does;
    without a transaction it is PostgreSQL's error.
    """
    sql = f"COPY t (id) FROM STDIN WITH {options}"
    with pytest.raises(errors.Error) as error, clean.louver.cursor().copy(sql) as copy:
        copy.write(b"1\n")
    assert error.value.sqlstate == "55000"
    clean.louver.execute("BEGIN")
    with clean.louver.cursor().copy(sql) as copy:
        copy.write(b"1\n2\n")
    clean.louver.execute("COMMIT")
    assert clean.on_louver("SELECT id FROM t ORDER BY id").rows == [(1,), (2,)]


@pytest.mark.parametrize("options", ["", "CSV", "CSV QUOTE 'q' ESCAPE 'e'", "CSV HEADER"])
def test_batches_are_the_data(options: str) -> None:
    random = generator(f"batches {options}")
    alphabet = 'ab\n"qe\\,' if options else "ab\n\\"
    for _ in range(cases(40)):
        data = "".join(random.choices(alphabet, k=random.randint(0, 80))).encode()
        whole = copy_rows.Splitter(form_of(options), 1 << 20)
        assert whole.add(data) == []
        expected = whole.rest()
        cut, batches, at = copy_rows.Splitter(form_of(options), 8), list[bytes](), 0
        while at < len(data):
            size = random.randint(1, 5)
            batches += cut.add(data[at : at + size])
            at += size
        batches += [cut.rest()]
        if "HEADER" not in options:
            assert b"".join(batches) == expected


@pytest.mark.parametrize("sql", ["ROLLBACK", "COMMIT", "DROP TABLE c", "SELECT 1", "BEGIN"])
def test_no_statement_runs_within_a_copy(clean: PostgresTwin, sql: str) -> None:
    session = clean.louver
    with session.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write("1\n")
        with pytest.raises(errors.NotSupportedError):
            session.execute(sql)
        with pytest.raises(errors.NotSupportedError):
            session.cursor().copy("COPY t (id) FROM STDIN")
        copy.write("2\n")
    assert session.execute("SELECT count(*) FROM t").fetchall() == [(2,)]

    def interrupted() -> None:
        with session.cursor().copy("COPY t (id) FROM STDIN") as copy:
            copy.write("3\n")
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert session.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "meanwhile",
    [
        "INSERT INTO beside (a) VALUES (2000000000)",
        "UPDATE beside SET a = a + 1",
        "SELECT * FROM beside WHERE a > 5",
        "CREATE TABLE another (n int)",
        "ALTER TABLE beside ADD COLUMN z int ENC",
    ],
)
def test_what_others_do_meanwhile_does_not_end_a_copy(clean: PostgresTwin, meanwhile: str) -> None:
    """Numbers of rows, openings and definitions save the catalog; COPY sends what it has again."""
    clean.run("CREATE TABLE beside (a int ENC, id serial)")
    clean.run("INSERT INTO beside (a) VALUES (5), (7)")
    other = PostgresTwin(beside=clean)
    try:
        with clean.louver.cursor().copy("COPY beside (a) FROM STDIN") as copy:
            copy.write("100\n")
            assert other.on_louver(meanwhile).error is None
            copy.write("101\n")
        clean.on_plain(meanwhile)
        clean.plain.execute("INSERT INTO beside (a) VALUES (100), (101)")
        clean.run("SELECT a FROM beside ORDER BY a")
        copy = clean.louver.cursor().copy("COPY beside (a) FROM STDIN").__enter__()
        copy.write("100\n")
        assert other.on_louver("DROP TABLE beside").error is None
        with pytest.raises(errors.Error) as raised:
            copy.__exit__(None, None, None)
        assert raised.value.sqlstate == "42P01"
        clean.plain.execute("DROP TABLE beside")
    finally:
        other.close()
        for opened in (clean.on_louver, clean.on_plain):
            opened("DROP TABLE IF EXISTS another")
