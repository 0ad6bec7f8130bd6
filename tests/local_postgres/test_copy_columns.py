"""COPY … FROM STDIN that the compiled module reads: which data it is, and in batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.executor.postgres.copying import is_plain
from louver.untrusted.servers import private_postgres
from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (id integer ENC PRIMARY KEY, a text ENC, n numeric(10,2))")
    yield opened
    opened.close()


@pytest.fixture
def clean(twin: PostgresTwin) -> PostgresTwin:
    for execute in (twin.louver.execute, twin.plain.execute):
        execute("ROLLBACK")
        execute("DELETE FROM t")
    return twin


@pytest.fixture
def path() -> Iterator[Path]:
    """A file of the plain server's."""
    file = Path(servers.shared().folder) / "columns"
    file.write_bytes(b"")
    yield private_postgres.given(file)
    file.unlink()


def copied(twin: PostgresTwin, sql: str, data: bytes, size: int) -> None:
    with twin.louver.cursor().copy(sql) as copy:
        for at in range(0, len(data), size):
            copy.write(data[at : at + size])


@pytest.mark.parametrize(
    "options", ["", "(FORMAT csv)", "CSV HEADER", "(FORMAT text, HEADER)", "BINARY"]
)
def test_plain_data_is_not_given_to_the_private_server(
    clean: PostgresTwin, options: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean.plain.execute(
        "INSERT INTO t SELECT g, CASE WHEN g % 5 > 0 THEN chr(g + 30) || '\"' END, g / 4.0"
        " FROM generate_series(1, 99) AS g"
    )
    clean.plain.execute(f"COPY t TO '{path}' {options}")

    def refused(*_: object) -> None:
        raise AssertionError("PostgreSQL reads it")

    local = clean.louver._session.context.local
    monkeypatch.setattr(local, "copy_from", refused)
    monkeypatch.setattr("louver.trusted.executor.postgres.copying.BATCH_BYTES", 200)
    copied(clean, f"COPY t FROM STDIN {options}", path.read_bytes(), 70)
    clean.run("SELECT * FROM t ORDER BY id")


@pytest.mark.parametrize("number", range(cases(30)))
def test_errors_name_the_line_of_the_whole_data(
    clean: PostgresTwin, number: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = generator(f"lines {number}")
    csv, header = number % 2 == 1, number % 3 == 1
    options = f"(FORMAT {'csv' if csv else 'text'}, HEADER {header})".lower()
    wrong = random.randrange(60)
    lines = ["id,a,n" if csv else "id\ta\tn"] * header
    for row in range(60):
        broken = row == wrong
        text = random.choice(("x", '"two\nlines"' if csv else "two\\\nlines", ""))
        fields = [str(row), text, "1.5"]
        if broken:
            fields = random.choice(
                (["x", text, "1.5"], [str(row), text], ["0" if row else "0x", text, "1.5"],
                 [str(row), text, "123456789.5"], ["", text, "1"], [str(row), text, "1", "2"])
            )  # fmt: skip
        lines.append(("," if csv else "\t").join(fields))
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(data)
    monkeypatch.setattr(
        "louver.trusted.executor.postgres.copying.BATCH_BYTES", random.choice((40, 300, 1 << 20))
    )
    with pytest.raises(errors.Error) as plain:
        clean.plain.execute(f"COPY t FROM '{path}' {options}")
    with pytest.raises(errors.Error) as own:
        copied(clean, f"COPY t FROM STDIN {options}", data, random.randint(1, 50))
    assert own.value.sqlstate == plain.value.sqlstate
    if own.value.said.get("context"):
        # A key that an earlier batch has is the server's to refuse, which knows no line.
        assert own.value.said["context"] == plain.value.said["context"]
    else:
        assert own.value.sqlstate == "23505"
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


@pytest.mark.parametrize(("options", "plain"), [
    ("", True), ("WITH (FORMAT csv, HEADER)", True), ("(HEADER off)", True), ("BINARY", True),
    ("csv header", True), ("(FORMAT text, FREEZE off)", True), ("(FORMAT binary)", True),
    ("(HEADER match)", False), ("(DELIMITER '|')", False), ("(FORMAT 'csv')", False),
    ("(FORMAT csv, FORMAT csv)", False), ("CSV QUOTE 'x'", False),
    ("(FORMAT binary, HEADER)", False),
    ("(FORMAT csv) WHERE id > 1", False), ("(NULL '')", False), ("csv csv", False), ("()", False),
    ("(FORMAT csv", False), ("(FORMAT \"csv\")", False), ("(ENCODING 'latin1')", False),
    ("(ON_ERROR ignore)", False), ("(FREEZE)", False),
])  # fmt: skip
def test_options_that_are_not_known_are_postgresqls(options: str, plain: bool) -> None:
    assert is_plain(options) is plain


def test_many_rows_that_are_refused_or_lost_end(clean: PostgresTwin) -> None:
    """Rows are sealed ahead by a thread, which ends with the connection."""
    rows = "".join(f"{number}\tvalue {number}\t1.5\n" for number in range(100_000)).encode()
    clean.louver.execute("INSERT INTO t VALUES (0, 'there', 1)")
    with pytest.raises(errors.Error) as refused:
        copied(clean, "COPY t FROM STDIN", rows, 1 << 20)
    assert refused.value.sqlstate == "23505" or isinstance(refused.value, errors.IntegrityError)
    clean.louver.execute("DELETE FROM t")
    database = clean.url.partition("?")[0].rpartition("/")[2]
    ending = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        f" WHERE datname = '{database}' AND query LIKE 'COPY %'"
    )
    is_over = threading.Event()

    def end() -> None:
        while not is_over.wait(0.005):
            clean.plain.fetchall(ending)

    thread = threading.Thread(target=end)
    thread.start()
    try:
        with pytest.raises(errors.Error):
            copied(clean, "COPY t FROM STDIN", rows, 1 << 20)
    finally:
        is_over.set()
        thread.join()
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    copied(clean, "COPY t FROM STDIN", rows, 1 << 20)
    assert clean.louver.execute("SELECT count(*) FROM t").fetchall() == [(100_000,)]
