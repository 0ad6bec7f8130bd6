"""Nothing but `louver.Error` leaves the public face, whatever a layer below raises and whenever:
DuckDB at home and at the server, pyarrow, files, keys. Afterwards the database still opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver.trusted.apps import cli
from louver.trusted.vault.code_keys import CodeKeys
from louver.trusted.vault.keyring import KeyRing
from tests.generated import cases, generator
from tests.inside import session_of

TEXT = "a text of a lower layer"
#: Every kind of exception that a lower layer may raise.
RAISED: tuple[Exception, ...] = (
    duckdb.InternalException(TEXT), duckdb.OutOfMemoryException(TEXT), duckdb.IOException("x"),
    duckdb.FatalException("x"), pa.ArrowInvalid(TEXT), pa.ArrowNotImplementedError(TEXT),
    pa.ArrowMemoryError(TEXT), pa.ArrowKeyError(TEXT), MemoryError(TEXT),
    OSError(28, "No space left on device"), PermissionError(13, "Permission denied"),
    ConnectionResetError(104, "Connection reset by peer"), TimeoutError(), EOFError(TEXT),
    RuntimeError(TEXT), RecursionError(TEXT), KeyError(TEXT), IndexError(TEXT),
    ValueError(TEXT), TypeError(TEXT), AttributeError(TEXT), OverflowError(TEXT),
    ZeroDivisionError(TEXT), AssertionError(TEXT), ImportError(TEXT), LookupError(TEXT),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, TEXT), NotImplementedError(TEXT),
)  # fmt: skip
_FUNCTIONS = (
    (pa, "table"), (pa, "array"), (pa, "chunked_array"), (pa, "concat_tables"),
    (Path, "read_bytes"), (Path, "read_text"), (Path, "mkdir"), (os, "open"), (os, "replace"),
    (os, "fsync"), (KeyRing, "open"), (CodeKeys, "seal_rows"), (KeyRing, "open_column"),
)  # fmt: skip


class Faults:
    """Counts the calls of lower layers, and raises at one of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.at = 0
        self.raised: Exception = ValueError()

    def arm(self, at: int, raised: Exception) -> None:
        """Raise at this call from now on; 0 is never."""
        self.calls, self.at, self.raised = 0, at, raised

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with a fault before it when its number is up."""

        def called(*given: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise self.raised
            return function(*given, **named)

        return called


class Proxy:
    """A DuckDB connection, or what one gives, whose methods are counted."""

    def __init__(self, inner: Any, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not callable(attribute) or name in ("interrupt", "close"):
            return attribute
        called = self._faults.call(attribute)

        def wrapped(*given: Any, **named: Any) -> Any:
            result = called(*given, **named)
            return self if result is self._inner else result

        return wrapped


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Faults]:
    plan = Faults()
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", plan.call(lambda *a, **k: Proxy(connect(*a, **k), plan)))
    for owner, name in _FUNCTIONS:
        own = vars(owner)[name]
        if isinstance(own, classmethod | staticmethod):
            monkeypatch.setattr(owner, name, staticmethod(plan.call(getattr(owner, name))))
        else:
            monkeypatch.setattr(owner, name, plan.call(own))
    yield plan
    plan.arm(0, ValueError())


def _many(connection: Any) -> None:
    connection.cursor().executemany("INSERT INTO t VALUES (?, ?)", [(5, "r"), (6, "s")])


def _fetched(connection: Any) -> None:
    cursor = connection.execute("SELECT b, a, [a], DATE '2024-01-01' FROM t WHERE a > 0")
    assert cursor.description
    cursor.fetchone(), cursor.fetchmany(1), cursor.fetchall(), cursor.arrow(), list(cursor)


def _related(connection: Any) -> None:
    relation = connection.sql("SELECT a, b FROM t")
    relation.remote_sql(), relation.explain(leakage=True), relation.text(), relation.fetchall()
    relation.columns, relation.arrow(), len(relation), repr(relation)


def _in_transaction(connection: Any) -> None:
    connection.begin()
    connection.execute("UPDATE t SET b = 'w' WHERE a = 1")
    connection.rollback()
    connection.begin()
    connection.execute("DELETE FROM t WHERE a = 99")
    connection.commit()


FACES: tuple[Callable[[Any], object], ...] = (
    _fetched, _many, _related, _in_transaction,
    lambda c: c.execute("INSERT INTO t VALUES (3, 'z') RETURNING a"),
    lambda c: c.execute("UPDATE t SET a = a + 1 WHERE b = 'x'"),
    lambda c: c.execute("CREATE TABLE u (a INT ENC); DROP TABLE u"),
    lambda c: c.execute("DELETE FROM t WHERE a > 1000"),
    lambda c: c.load("t", pa.Table.from_pydict({"a": [7], "b": ["l"]})),
    lambda c: c.leakage(),
    lambda c: c.execute("SHOW LEAKAGE").fetchall(),
    lambda c: c.execute("DESCRIBE t").fetchall(),
)  # fmt: skip


def _survives(faults: Faults, face: Callable[[], object], raised: Exception, at: int) -> int:
    """Use a face with a fault at one call; how many calls there were."""
    faults.arm(at, raised)
    with suppress(louver.Error):
        face()
    calls = faults.calls
    faults.arm(0, raised)
    return calls


@pytest.mark.parametrize("number", range(len(FACES)))
def test_only_errors_of_louver_leave_a_connection(
    number: int, faults: Faults, tmp_path: Path, key_file: Path
) -> None:
    random = generator(f"faults {number}")
    connection = louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file)
    connection.execute("CREATE TABLE t (a INT ENC, b VARCHAR ENC)")
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    calls = _survives(faults, lambda: FACES[number](connection), ValueError(), 0)
    for _ in range(cases(4)):
        at, raised = random.randint(1, max(calls, 1)), random.choice(RAISED)
        _survives(faults, partial(FACES[number], connection), raised, at)
        if session_of(connection).in_transaction:
            connection.rollback()
        if random.random() < 0.5:
            connection.close()
            connection = louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file)
        row = connection.execute("SELECT count(*), count(b), [1] FROM t").fetchone()
        assert row is not None
        assert row[0] == row[1] >= 2, (at, raised)
    connection.close()


def test_only_errors_of_louver_leave_connect_and_close(
    faults: Faults, tmp_path: Path, key_file: Path
) -> None:
    random = generator("faults at the ends")

    def face() -> None:
        connection = louver.connect(f"duckdb:///{tmp_path}/x.duckdb", keys=key_file)
        connection.execute("SELECT 1")
        connection.close()

    calls = _survives(faults, face, ValueError(), 0)
    for _ in range(cases(10)):
        _survives(faults, face, random.choice(RAISED), random.randint(1, calls))
    face()


def test_the_command_line_ends_with_a_code(
    faults: Faults, tmp_path: Path, key_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = generator("faults of the command line")
    words = ["--url", f"duckdb:///{tmp_path}/x.duckdb", "--keys", str(key_file), "--json"]
    sql = "CREATE TABLE IF NOT EXISTS t (a INT ENC); INSERT INTO t VALUES (1); FROM t"
    faults.arm(0, ValueError())
    assert cli.main([*words, "sql", sql]) == 0
    calls = faults.calls
    for _ in range(cases(8)):
        faults.arm(random.randint(1, calls), random.choice(RAISED))
        assert cli.main([*words, "sql", sql]) in (0, 1)
        faults.arm(0, ValueError())
    assert "Traceback" not in capsys.readouterr().err
    assert cli.main([*words, "sql", "SELECT 1"]) == 0
