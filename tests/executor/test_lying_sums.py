"""A server that falsifies sums and watches whether the client objects: it gets one answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.apps import cli
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
from louver.wire.messages import Statement

QUERY = "SELECT sum(salary) FROM staff WHERE age > 10"
SALARIES = {1: 5200, 2: 9000, 3: 100}
LIMBS = re.compile(r"\bsum\(")


class LyingEngine(DuckDBEngine):
    """Answers as its file says, but for sums, which it computes over other rows and adds to."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        #: what stands in place of the rows that were asked for, and what is added to the sum
        self.rows = ""
        self.offset = 0
        self.count = 0
        self.twice = False
        self.sums = 0

    def query(self, statement: Statement) -> pa.Table:
        if not LIMBS.search(statement.sql) and "hom_sum" not in statement.sql:
            return super().query(statement)
        self.sums += 1
        sql = statement.sql
        if self.rows:
            sql = re.sub(r"(?s)(.*\bWHERE\b).*", rf"\1 {self.rows}", sql)
        if self.twice:
            # Every packed number is added twice, and counted once.
            sql = re.sub(r"hom_sum\((.*?)\)(?=, [$?])", r"hom_sum(list_concat(\1), \1))", sql)
        reply = super().query(Statement(sql, statement.constants))
        if not (self.rows or self.offset or self.count):
            return reply
        offset = self.offset
        for index, field in enumerate(reply.schema):
            if pa.types.is_binary(field.type):
                continue
            # A HUGEINT comes as its bytes, all others as numbers.
            wide = isinstance(field.type, pa.BaseExtensionType)
            values = reply.column(index).combine_chunks()
            values = [
                int.from_bytes(value, "little", signed=True) if wide else int(value)
                for value in (values.storage if wide else values).to_pylist()
            ]
            # The low limbs come first; a number of rows is a number of 64 bits.
            more, offset = offset + (0 if wide else self.count), 0
            changed = pa.array([value + more for value in values], pa.decimal128(38))
            reply = reply.set_column(index, field.name, changed)
        return reply


class Cloud:
    """A database on a lying server, and clients of one user's."""

    def __init__(self, folder: Path, key_file: Path, policy: Policy | None = None) -> None:
        self.address, self.key_file = folder / "cloud.duckdb", key_file
        self.policy = policy or Policy("sealed")
        self.sessions: list[Session] = []
        self.session = self.connected()

    def connected(self) -> Session:
        engine = LyingEngine(self.address)
        session = Session(engine, KeyRing.open(self.key_file), self.policy, modulus_bits=512)
        self.sessions.append(session)
        return session

    @property
    def server(self) -> LyingEngine:
        engine = self.session.context.engine
        assert isinstance(engine, LyingEngine)
        return engine

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        answer = self.session.execute(sql)
        return self.session.python_rows(answer.rows) if answer.rows is not None else []

    def ids(self) -> list[int]:
        """The numbers of rows on the server, in the order in which they came."""
        sql = "SELECT row_id FROM staff ORDER BY row_id"
        return [int(n) for n in self.server.query(Statement(sql)).column(0).to_pylist()]


@pytest.fixture(params=["", "NOT NULL"])
def cloud(request: pytest.FixtureRequest, tmp_path: Path, key_file: Path) -> Iterator[Cloud]:
    cloud = Cloud(tmp_path, key_file)
    cloud.run("SET default_counted = on")
    masked = "ENC WITH (sum = 'masked')"
    staff = f"salary BIGINT {masked} {request.param}, age INT, spare INT {masked}"
    cloud.run(f"CREATE TABLE staff ({staff})")
    for age, salary in SALARIES.items():
        cloud.run(f"INSERT INTO staff VALUES ({salary}, {age + 20}, {age})")
    yield cloud
    for session in cloud.sessions:
        session.close()


def test_one_failed_check_ends_the_sums_of_a_column(cloud: Cloud) -> None:
    total = [(sum(SALARIES.values()),)]
    assert cloud.run(QUERY) == total
    assert cloud.server.sums == 1
    # The search of an active server: one row, and offsets by halves. Without an end, it would
    # read the row from which of them were refused: bounds end at 32 bits.
    cloud.server.rows = f"row_id = {cloud.ids()[0]}"
    events: list[tuple[str, str]] = []
    low, high = 0, 1 << 34
    while low + 1 < high:
        cloud.server.offset = (low + high) // 2
        before = cloud.server.sums
        try:
            cloud.run(QUERY)
            low = cloud.server.offset
        except errors.VerificationError as error:
            events.append((error.code, error.message))
            high = cloud.server.offset
        if cloud.server.sums == before:
            break
    ((code, message),) = events
    assert code == "result.sum"
    assert "staff.salary" in message
    sums = cloud.server.sums
    assert cloud.run(QUERY) == total
    assert cloud.run("SELECT avg(salary) FROM staff") == [(sum(SALARIES.values()) / 3,)]
    assert cloud.server.sums == sums
    # Another column was not falsified, and another client of this user's sees what this one saw.
    cloud.server.rows, cloud.server.offset = "", 0
    assert cloud.run("SELECT sum(spare) FROM staff WHERE age > 10") == [(6,)]
    assert cloud.server.sums == sums + 1
    cloud.session = cloud.connected()
    assert cloud.run(QUERY) == total
    assert cloud.server.sums == 0


def test_a_running_client_learns_what_another_one_saw(cloud: Cloud) -> None:
    first, second = cloud.session, cloud.connected()
    cloud.session = second
    assert cloud.run(QUERY) == [(sum(SALARIES.values()),)]
    cloud.session = first
    cloud.server.rows, cloud.server.offset = f"row_id = {cloud.ids()[0]}", 1 << 33
    with pytest.raises(errors.VerificationError):
        cloud.run(QUERY)
    cloud.session = second
    sums = cloud.server.sums
    assert cloud.run(QUERY) == [(sum(SALARIES.values()),)]
    assert cloud.server.sums == sums


def test_the_user_sees_it_and_may_lift_it(cloud: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    cloud.server.rows, cloud.server.offset = f"row_id = {cloud.ids()[0]}", 1 << 33
    with pytest.raises(errors.VerificationError):
        cloud.run(QUERY)
    words = ["--url", f"duckdb:///{cloud.address}", "--keys", str(cloud.key_file), "status"]
    assert cli.main(words) == 0
    assert "staff.salary: a sum did not verify" in capsys.readouterr().out
    assert cli.main([*words, "--resume-sums"]) == 0
    assert "did not verify" not in capsys.readouterr().out
    cloud.server.rows = ""
    cloud.server.offset = 0
    sums = cloud.server.sums
    assert cloud.run(QUERY) == [(sum(SALARIES.values()),)]
    assert cloud.server.sums == sums + 1


@pytest.mark.parametrize(
    "rows",
    [
        # Rows that are gone, and a row twice.
        "row_id = {gone}",
        "row_id IN ({gone}, {here})",
        "row_id = {here}",
    ],
)
def test_rows_must_be_the_tables(cloud: Cloud, rows: str) -> None:
    gone = cloud.ids()[0]
    cloud.server.query(Statement("CREATE TABLE kept AS FROM staff"))
    cloud.run("DELETE FROM staff WHERE age = 21")
    cloud.server.query(Statement("DROP TABLE staff"))
    cloud.server.query(Statement("ALTER TABLE kept RENAME TO staff"))
    here = cloud.ids()[1]
    cloud.server.query(Statement(f"INSERT INTO staff SELECT * FROM staff WHERE row_id = {here}"))
    cloud.server.rows = rows.format(gone=gone, here=here)
    for _ in range(3):
        with pytest.raises(errors.VerificationError) as caught:
            cloud.run(QUERY)
        # Nothing about a value was learned, so nothing stops.
        assert caught.value.code == "result.tampered"
    assert cloud.session.context.stopped() == frozenset()


def test_rows_are_as_many_as_the_server_says(tmp_path: Path, key_file: Path) -> None:
    cloud = Cloud(tmp_path, key_file)
    cloud.run("CREATE TABLE staff (salary BIGINT ENC WITH (sum = 'masked') NOT NULL, age INT)")
    cloud.run("INSERT INTO staff VALUES (1, 21), (2, 22), (9000, 23)")
    cloud.server.count = 1
    with pytest.raises(errors.VerificationError) as caught:
        cloud.run(QUERY)
    assert caught.value.code == "result.tampered"
    assert "more or fewer rows" in caught.value.message
    assert cloud.session.context.stopped() == frozenset()
    cloud.session.close()


def test_honest_sums_of_joins_and_groups_verify(cloud: Cloud) -> None:
    cloud.run("CREATE TABLE parts (age INT, part INT)")
    cloud.run("INSERT INTO parts VALUES (21, 1), (21, 2), (22, 1), (30, 9)")
    cloud.run("DELETE FROM staff WHERE age = 23")
    cloud.run("UPDATE staff SET salary = salary + 1 WHERE age = 22")
    for sql, wanted in (
        ("SELECT sum(salary) FROM staff JOIN parts USING (age)", [(2 * 5200 + 9001,)]),
        ("SELECT sum(salary) FROM staff", [(14201,)]),
        ("SELECT age, sum(salary), avg(salary) FROM staff GROUP BY age ORDER BY age",
         [(21, 5200, 5200.0), (22, 9001, 9001.0)]),
        ("SELECT sum(salary) FROM staff WHERE age > 100", [(None,)]),
    ):  # fmt: skip
        assert cloud.run(sql) == wanted, sql
    assert cloud.session.context.stopped() == frozenset()


def test_hom_sums_end_as_well(tmp_path: Path, key_file: Path) -> None:
    policy = Policy.parse({"staff": {"salary": {"sum": "paillier"}}}, "a test")
    cloud = Cloud(tmp_path, key_file, policy)
    cloud.run("CREATE TABLE staff (salary INT ENC, age INT)")
    cloud.run("INSERT INTO staff VALUES (1, 21), (2, 22), (9000, 23)")
    sql = "SELECT sum(salary) FROM staff WHERE age > 21"
    assert cloud.run(sql) == [(9002,)]
    assert cloud.server.sums == 1
    cloud.server.twice = True
    with pytest.raises(errors.VerificationError) as caught:
        cloud.run(sql)
    assert caught.value.code == "result.sum"
    for _ in range(3):
        assert cloud.run(sql) == [(9002,)]
    assert cloud.server.sums == 2
    cloud.session.close()
