"""Loads stream, are cast and checked, and are all or nothing."""

from __future__ import annotations

import datetime
import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import accumulate
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver import errors
from louver.trusted.executor import server_rows as rows_module
from louver.trusted.executor.load import load
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine

DATA = pa.table({"B": ["x", None, "ö"], "a": [1, 2, 3], "c": [1.5, 2.0, None]})
ROWS = [(1, "x", Decimal("1.50")), (2, None, Decimal("2.00")), (3, "ö", None)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    KeyRing.create(str(tmp_path / "key"))
    keys = KeyRing.open(str(tmp_path / "key"))
    session = Session(DuckDBEngine(":memory:"), keys, Policy())
    session.execute("CREATE TABLE t (a BIGINT ENC PRIMARY KEY, b TEXT ENC, c DECIMAL(9, 2) ENC)")
    yield session
    session.close()


def rows(session: Session, sql: str = "SELECT * FROM t") -> list[tuple[object, ...]]:
    answer = session.execute(sql).rows
    assert answer is not None
    return sorted(session.python_rows(answer), key=repr)


def sources(folder: Path) -> dict[str, object]:
    """The same rows in every form that can be loaded."""
    frame = DATA.to_pandas()
    pq.write_table(DATA, folder / "t.parquet")
    (folder / "t.csv").write_text('a,B,c\n1,x,1.5\n2,,2\n3,"ö",\n')
    (folder / "semi.csv").write_text("\ufeffa;c;b\r\n1;1.5;x\r\n2;2.0;\r\n3;;ö\r\n")
    (folder / "t.tsv").write_text("a\tb\tc\n1\tx\t1.5\n2\t\t2\n3\tö\t\n")
    with gzip.open(folder / "t.csv.gz", "wt", encoding="utf-8") as file:
        file.write("a,b,c\n1,x,1.5\n2,,2\n3,ö,\n")
    (folder / "t.json").write_text(
        '[{"a": 1, "b": "x", "c": 1.5}, {"a": 2, "b": null, "c": 2}, {"a": 3, "b": "ö"}]'
    )
    (folder / "t.jsonl").write_text('{"a":1,"b":"x","c":1.5}\n{"a":2,"c":2}\n{"a":3,"b":"ö"}\n')
    kinds: dict[str, object] = {
        path.name: path for path in folder.iterdir() if path.name.split(".")[0] in ("t", "semi")
    }
    return kinds | {
        "table": DATA,
        "batch": DATA.combine_chunks().to_batches()[0],
        "reader": DATA.to_reader(1),
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "lazy": pl.from_pandas(frame).lazy(),
        "text": str(folder / "t.csv"),
        "strings": DATA.set_column(1, "a", pa.array(["1", "2", "3"])),
    }


KINDS = [
    "t.parquet",
    "t.csv",
    "semi.csv",
    "t.tsv",
    "t.csv.gz",
    "t.json",
    "t.jsonl",
    "table",
    "batch",
    "reader",
    "pandas",
    "polars",
    "lazy",
    "text",
    "strings",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source(session: Session, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    seen: list[tuple[int, int | None]] = []
    source = sources(folder)[kind]
    answer = load(session.context, "t", source, lambda done, total: seen.append((done, total)))
    assert answer.affected == 3
    assert rows(session) == ROWS
    assert seen[-1][0] == 3
    assert seen[-1][1] in (3, None)


def test_types_go_round(session: Session) -> None:
    data = pa.table({
        "d": [datetime.date(2020, 2, 29)], "s": [datetime.datetime(1969, 1, 1, 1)],
        "l": [[1, None]], "o": [{"x": "y"}], "h": [Decimal(2**100)], "e": ["b"], "y": [b"\0"],
    })  # fmt: skip
    session.execute(
        "CREATE TABLE w (d DATE ENC, s TIMESTAMP ENC, l INTEGER[] ENC,"
        " o STRUCT(x TEXT) ENC, h HUGEINT ENC, e ENUM('a', 'b') ENC, y BLOB ENC)"
    )
    load(session.context, "w", data)
    assert rows(session, "SELECT * FROM w") == [tuple(column[0].as_py() for column in data.columns)]


BAD = {
    "a;b;c\n1;x;1\nzz;canary;2\n": ("csv.row", "line 3: the value of a"),
    "a,b,c\n1,x,1\n2,y,2,canary\n": ("csv.row", "line 3: 4 fields"),
    "a,b,c\n1,x,1\n2,canary\n": ("csv.row", "line 3: 2 fields"),
    "a,b,c\n1,x,1\n1,y,1\n": ("duckdb.constraint", "duplicate key"),
    "a,b,c\n,x,1\n": ("duckdb.constraint", "NOT NULL"),
    "x,y,z\n1,2,3\n": ("load.columns", "does not name any column"),
    "a,b\n1,2\n": ("load.columns", "c missing"),
    "a,b,c,d\n1,2,3,4\n": ("load.columns", "d not in the table"),
    "": ("load.columns", "does not name any column"),
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_is_named_by_line_and_changes_nothing(
    session: Session, tmp_path: Path, text: str
) -> None:
    load(session.context, "t", pa.table({"a": [50], "b": ["kept"], "c": [1]}))
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(errors.Error) as caught:
        load(session.context, "t", path)
    code, words = BAD[text]
    assert caught.value.code == code
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)
    assert rows(session) == [(50, "kept", Decimal("1.00"))]


@pytest.mark.parametrize("count", [1, 3_000])
def test_texts_that_are_no_utf8(session: Session, count: int) -> None:
    """Arrow makes them unseen; what the engine would not take is not stored."""
    texts = [b"good"] * (count - 1) + [b"\xff\xfe"]
    offsets = pa.array([0, *accumulate(map(len, texts))], pa.int32()).buffers()[1]
    bad = pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(b"".join(texts))])
    with pytest.raises(errors.Error):
        load(session.context, "t", pa.table({"a": range(count), "b": bad, "c": [1] * count}))
    assert rows(session) == []


@pytest.mark.parametrize("source", ["none.csv", "none.parquet", "folder.csv", "t.xls", 5, None])
def test_what_cannot_be_loaded(session: Session, tmp_path: Path, source: object) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(errors.OperationalError) as caught:
        load(session.context, "t", tmp_path / source if isinstance(source, str) else source)
    assert caught.value.code == "load.file"


def test_a_broken_parquet_file(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(errors.OperationalError) as caught:
        load(session.context, "t", path)
    assert caught.value.code == "load.file"


def test_a_value_that_does_not_fit_is_named_by_row(session: Session) -> None:
    values = [str(number) for number in range(1000)]
    values[777] = "canary"
    data = pa.table({"a": values, "b": values, "c": range(1000)})
    with pytest.raises(errors.DataError) as caught:
        load(session.context, "t", data)
    assert caught.value.code == "load.row"
    assert "row 778 " in str(caught.value)
    assert "canary" not in str(caught.value)
    assert rows(session) == []


def test_keys_are_compared_over_all_batches(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(session.context, "t", DATA)
    other = DATA.set_column(1, "a", pa.array([7, 8, 3]))
    with pytest.raises(errors.IntegrityError) as caught:
        load(session.context, "t", other.to_reader(1))
    assert 'Duplicate key "a: 3" violates primary key constraint' in str(caught.value)
    twice = DATA.set_column(1, "a", pa.array([7, 8, 7]))
    with pytest.raises(errors.IntegrityError):
        load(session.context, "t", twice.to_reader(1))
    assert rows(session) == ROWS


def test_foreign_keys(session: Session) -> None:
    session.execute("CREATE TABLE k (id INTEGER ENC, p BIGINT ENC REFERENCES t (a))")
    session.execute("CREATE TABLE n (id INTEGER ENC PRIMARY KEY, up INTEGER ENC REFERENCES n (id))")
    load(session.context, "t", DATA)
    load(session.context, "k", pa.table({"id": [1, 2], "p": [3, None]}))
    with pytest.raises(errors.IntegrityError):
        load(session.context, "k", pa.table({"id": [1, 2], "p": [3, 99]}))
    load(session.context, "n", pa.table({"id": [1, 2], "up": [2, None]}))
    assert rows(session, "SELECT * FROM k") == [(1, 3), (2, None)]


def test_defaults_fill_what_the_data_lacks(session: Session) -> None:
    session.execute("CREATE TABLE d (a INTEGER ENC, b TEXT ENC DEFAULT 'x')")
    load(session.context, "d", pa.table({"a": [1]}))
    assert rows(session, "SELECT * FROM d") == [(1, "x")]


def test_a_load_within_a_transaction(session: Session) -> None:
    session.execute("BEGIN")
    load(session.context, "t", DATA)
    assert rows(session) == ROWS
    session.execute("ROLLBACK")
    assert rows(session) == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("stop")])
def test_an_interrupted_load_leaves_nothing(session: Session, stop: BaseException) -> None:
    def progress(done: int, total: int | None) -> None:
        if done >= 2:
            raise stop

    with pytest.raises(type(stop)):
        load(session.context, "t", DATA.to_reader(1), progress)
    assert rows(session) == []
    load(session.context, "t", DATA)
    assert rows(session) == ROWS


def test_many_batches(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "BATCH_ROWS", 100)
    data = pa.table({"a": range(1000), "b": ["x"] * 1000, "c": [1] * 1000})
    load(session.context, "t", data)
    assert rows(session, "SELECT count(*), sum(a) FROM t") == [(1000, 499500)]


FULL = """
import resource, signal, sys
import pyarrow as pa
from louver import errors
from louver.trusted.executor.load import load
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.duckdb import DuckDBEngine
key, path = sys.argv[1:]
session = Session(DuckDBEngine(path), KeyRing.open(key), Policy())
session.execute("CREATE TABLE t (a BIGINT ENC, b TEXT ENC); INSERT INTO t VALUES (1, 'kept')")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, hard))
numbers = [number * 0x9E3779B97F4A7C15 % (1 << 62) for number in range(300_000)]
data = pa.table({"a": numbers, "b": [f"text {number:x}" for number in numbers]})
try:
    load(session.context, "t", data)
except errors.OperationalError as error:
    assert error.code == "disk.full", (error.code, str(error))
else:
    raise SystemExit("it was not noticed")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
session.close()
session = Session(DuckDBEngine(path), KeyRing.open(key), Policy())
print(session.python_rows(session.execute("SELECT * FROM t").rows))
session.close()
"""


def test_a_full_disk_undoes_the_load(tmp_path: Path) -> None:
    KeyRing.create(str(tmp_path / "key"))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "key"), str(tmp_path / "db")],
        capture_output=True, text=True, timeout=600, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[(1, 'kept')]"
