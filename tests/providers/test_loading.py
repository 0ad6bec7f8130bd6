"""Data as a provider loads it: names, order, versions that are equal everywhere, failures."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from louver import errors
from louver.untrusted.providers.dataset import POSITION, Interruption, LoadedData, load
from louver.untrusted.providers.digest import PIECE_ROWS
from tests.generated import cases

ROWS = """SELECT i AS a, 'text ' || (i % 97) AS b, i % 5 = 0 AS c, (i / 7)::DECIMAL(9, 2) AS d,
    CASE WHEN i % 11 > 0 THEN DATE '2020-01-01' + (i % 500)::INTEGER END AS e, i / 3.0::DOUBLE AS f
    FROM range({count}) r(i)"""


def write(path: Path, query: str = ROWS.format(count=1_000), options: str = "") -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path}' {options}")
    return path


def read(loaded: LoadedData, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(loaded.database), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def version(path: Path | str, cache: Path, **given: Any) -> bytes:
    loaded = load([str(path)], cache, **given)
    loaded.remove()
    return loaded.version


def test_files_become_tables(tmp_path: Path) -> None:
    write(tmp_path / "flights.parquet")
    write(tmp_path / "Air ports.csv", "SELECT i AS x, 'a,\"b' AS y FROM range(7) r(i)")
    write(tmp_path / "more.csv.gz", "SELECT 1 AS z")
    with duckdb.connect(str(tmp_path / "many.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT i * 2 AS x FROM range(10) r(i)")
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.two AS SELECT 'a' AS t")
    data = [str(tmp_path / name) for name in ("*.parquet", "Air ports.csv", "*.gz", "many.duckdb")]
    loaded = load(data, tmp_path)
    assert [(table.name, table.rows) for table in loaded.tables] == [
        ("Air ports", 7), ("flights", 1_000), ("more", 1), ("one", 10), ("two", 1),
    ]  # fmt: skip
    assert loaded.tables[0].columns == (("x", "BIGINT"), ("y", "VARCHAR"))
    assert read(loaded, f"SELECT x, {POSITION} FROM one") == [(2 * i, i) for i in range(10)]
    assert read(loaded, f'SELECT y, {POSITION} FROM "Air ports" WHERE x = 3') == [('a,"b', 3)]
    assert all(POSITION not in dict(table.columns) for table in loaded.tables)
    loaded.remove()
    assert not list(tmp_path.glob("data-*"))


def test_several_files_become_one_table(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"part{number}.parquet", f"SELECT {number}0 + i AS a FROM range(5) r(i)")
    loaded = load([f"all={tmp_path}/part*.parquet"], tmp_path)
    expected = [(10 * (i // 5) + i % 5, i) for i in range(15)]
    assert read(loaded, f'SELECT a, {POSITION} FROM "all" ORDER BY 2') == expected
    assert [table.name for table in loaded.tables] == ["all"]


@pytest.mark.parametrize("ending", ["parquet", "csv", "duckdb"])
def test_the_version_is_of_the_content(tmp_path: Path, ending: str) -> None:
    count = PIECE_ROWS + 1_234
    other = tmp_path / "elsewhere"
    other.mkdir()

    def make(folder: Path, query: str, threads: int = 1) -> Path:
        path = folder / f"t.{ending}"
        path.unlink(missing_ok=True)
        if ending == "duckdb":
            with duckdb.connect(str(path), config={"threads": threads}) as connection:
                connection.execute(f"CREATE TABLE t AS {query}")
            return path
        row_groups = "(ROW_GROUP_SIZE 10000)" if ending == "parquet" and threads > 1 else ""
        return write(path, query, row_groups)

    query = ROWS.format(count=count)
    first = version(make(tmp_path, query), tmp_path, threads=1)
    # Another folder, another layout of the file, other threads: the same content.
    assert version(make(other, query, threads=4), tmp_path, threads=4) == first
    assert len(first) == 32
    for changed in (
        f"SELECT * FROM ({query}) ORDER BY a DESC",
        f"SELECT * REPLACE (CASE WHEN a = {count - 1} THEN 'x' ELSE b END AS b) FROM ({query})",
        f"SELECT * REPLACE (CASE WHEN a != 5 THEN e END AS e) FROM ({query})",
        f"SELECT * RENAME (a AS aa) FROM ({query})",
        f"SELECT * FROM ({query}) LIMIT {count - 1}",
        f"SELECT * EXCLUDE (f) FROM ({query})",
    ):
        assert version(make(tmp_path, changed), tmp_path) != first, changed


def test_a_table_of_another_name_is_another_version(tmp_path: Path) -> None:
    versions = {version(write(tmp_path / f"{name}.parquet"), tmp_path) for name in "ab"}
    assert len(versions) == 2


TYPES = {
    "BOOLEAN": st.booleans(), "TINYINT": st.integers(-128, 127),
    "UBIGINT": st.integers(0, 2**64 - 1), "HUGEINT": st.integers(-(2**127) + 1, 2**127 - 1),
    "DOUBLE": st.floats(allow_nan=False), "VARCHAR": st.text(st.characters(codec="utf-8",
    exclude_characters="\0"), max_size=5), "BLOB": st.binary(max_size=5),
    "DECIMAL(18,3)": st.decimals(-9999, 9999, places=3), "DATE": st.dates(),
    "TIMESTAMP": st.datetimes(), "INTEGER[]": st.lists(st.integers(0, 9), max_size=3),
}  # fmt: skip


@settings(max_examples=cases(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(TYPES)), st.data())
def test_every_type_has_one_digest(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    """Equal columns have equal versions, and different ones different versions."""
    folder = tmp_path_factory.mktemp("types")
    values = [data.draw(st.lists(st.none() | TYPES[kind], max_size=6)) for _ in range(2)]

    def make(rows: list[Any], hidden: bool) -> bytes:
        path = folder / "t.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            connection.execute(f"BEGIN; CREATE TABLE t (v {kind})")
            for row in rows:
                connection.execute("INSERT INTO t VALUES (?)", [row])
            connection.execute("COMMIT")
            texts = connection.execute("SELECT v::VARCHAR FROM t").fetchall()
        if hidden:
            # Parquet keeps the same values in another form.
            written = folder / "t.parquet"
            with duckdb.connect() as connection:
                connection.execute(f"ATTACH '{path}' AS d")
                connection.execute(f"COPY d.t TO '{written}'")
                if connection.execute(f"SELECT typeof(v) FROM '{written}'").fetchall()[:1] not in (
                    [], [(kind,)],
                ):  # fmt: skip
                    return make(rows, False)
                path = written
        seen[version(path, folder)] = texts
        return list(seen)[-1]

    seen: dict[bytes, Any] = {}
    first = make(values[0], False)
    first_texts = seen[first]
    assert make(values[0], False) == first
    second = make(values[1], False)
    if seen[second] != first_texts:
        assert second != first


def test_later_rows_of_another_type_are_found(tmp_path: Path) -> None:
    lines = "\n".join(["a"] + ["1"] * 60_000 + ["x"])
    (tmp_path / "t.csv").write_text(lines)
    loaded = load([str(tmp_path / "t.csv")], tmp_path)
    assert loaded.tables[0].columns == (("a", "VARCHAR"),)
    assert loaded.tables[0].rows == 60_001


def test_names_of_folders_are_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    loaded = load([str(write(folder / "t.parquet", "SELECT 1 AS a"))], tmp_path)
    assert loaded.tables[0].columns == (("a", "INTEGER"),)


def damaged(folder: Path) -> list[tuple[list[str], str]]:
    (folder / "bad.parquet").write_bytes(b"PAR1" + bytes(100))
    (folder / "bad.duckdb").write_bytes(bytes(5_000))
    (folder / "text.txt").write_text("a")
    (folder / "folder.csv").mkdir()
    (folder / "empty.csv").write_text("")
    with duckdb.connect(str(folder / "none.duckdb")):
        pass
    good = write(folder / "good.parquet", "SELECT 1 AS a")
    position = write(folder / "position.parquet", f"SELECT 1 AS {POSITION.upper()}")
    numbered = write(folder / "p.csv", f"SELECT 1 AS {POSITION}")
    (folder / "sub").mkdir()
    twin = write(folder / "sub/GOOD.parquet", "SELECT 1 AS a")
    return [
        ([str(folder / "missing.parquet")], "there is no file"),
        ([str(folder / "*.orc")], "there is no file"),
        ([str(folder / "folder.csv")], "there is no file"),
        ([str(folder / "bad.parquet")], "bad.parquet"),
        ([str(folder / "bad.duckdb")], "bad.duckdb"),
        ([str(folder / "text.txt")], "neither Parquet, CSV nor DuckDB"),
        ([str(folder / "none.duckdb")], "holds no table"),
        ([str(good), str(twin)], "two tables are named GOOD"),
        ([str(good), str(good)], "two tables are named good"),
        ([str(position)], "has a column named"),
        ([str(numbered)], "has a column named"),
        ([f"x={folder}/g*.parquet", f"x={folder}/p.csv"], "two tables are named x"),
        ([f"x={folder}/*"], "neither"),
    ]


def test_what_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for data, words in damaged(tmp_path):
        with pytest.raises(errors.OperationalError) as caught:
            load(data, cache)
        assert caught.value.code == "provider.data", data
        assert words in caught.value.message, (data, caught.value.message)
        assert not list(cache.iterdir()), "nothing is left behind"


def test_an_empty_table(tmp_path: Path) -> None:
    loaded = load([str(write(tmp_path / "t.parquet", "SELECT 1 AS a WHERE false"))], tmp_path)
    assert (loaded.tables[0].rows, len(loaded.version)) == (0, 32)


def again_and_again(path: Path, ending: Interruption) -> None:
    while True:
        load([str(path)], path.parent, interruption=ending).remove()


def test_progress_is_told_and_a_load_is_ended(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", ROWS.format(count=1_500_000))
    events: list[tuple[str, float]] = []
    loaded = load([str(path)], tmp_path, lambda stage, share: events.append((stage, share)))
    loaded.remove()
    assert {stage for stage, _ in events} == {"reading t", "hashing t"}
    shares = [share for _, share in events]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    ending = Interruption()
    threading.Timer(0.2, ending.end).start()
    begin = time.monotonic()
    with pytest.raises(errors.Error) as caught:
        again_and_again(path, ending)
    assert caught.value.code == "interrupted"
    assert time.monotonic() - begin < 60
    assert not list(tmp_path.glob("data-*"))


def test_the_version_is_what_the_spec_says(tmp_path: Path) -> None:
    """Written a second time, from spec/splinter-wire.md."""
    query = """SELECT CASE WHEN i % 3 > 0 THEN i::INTEGER END AS a, i % 2 = 0 AS b,
        CASE WHEN i % 7 > 0 THEN repeat('ä', (i % 4)::BIGINT) END AS c,
        ((i % 999) / 4 - 100)::DECIMAL(5, 2) AS d FROM range(140000) r(i)"""
    with duckdb.connect() as connection:
        rows = connection.execute(query).fetchall()

    def text(words: str) -> bytes:
        return len(words.encode()).to_bytes(4, "big") + words.encode()

    def piece(values: list[Any], name: str) -> bytes:
        absent = [value is None for value in values]
        head = len(values).to_bytes(8, "big") + sum(absent).to_bytes(8, "big")
        if any(absent):
            bits = "".join(map(str, map(int, absent)))
            bits += "0" * (-len(bits) % 8)
            head += int(bits, 2).to_bytes(len(bits) // 8, "big")
        if name == "c":
            texts = [(value or "").encode() for value in values]
            lengths = b"".join(len(text).to_bytes(4, "little") for text in texts)
            return hashlib.sha256(head + lengths + b"".join(texts)).digest()
        width = {"a": 4, "b": 1, "d": 16}[name]
        scale = 100 if name == "d" else 1
        numbers = (
            int((value or 0) * scale).to_bytes(width, "little", signed=True) for value in values
        )
        return hashlib.sha256(head + b"".join(numbers)).digest()

    columns = {"a": "INTEGER", "b": "BOOLEAN", "c": "VARCHAR", "d": "DECIMAL(5,2)"}
    whole = b"louver data set 1" + (1).to_bytes(4, "big") + text("t")
    whole += b"".join(text(name) + text(kind) for name, kind in columns.items())
    whole += len(rows).to_bytes(8, "big") + (4).to_bytes(4, "big")
    for begin in range(0, len(rows), 131_072):
        part = rows[begin : begin + 131_072]
        for index, name in enumerate(columns):
            whole += piece([row[index] for row in part], name)
    expected = hashlib.sha256(whole).digest()
    assert version(write(tmp_path / "t.parquet", query), tmp_path) == expected
