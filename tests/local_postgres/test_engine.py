"""The binder and the workspace: what a session does with them."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from louver import errors
from louver.trusted.executor.local.local import ForeignKey, UniqueKey
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from tests.local_postgres.conftest import Open

_COLUMNS = [("id", "integer"), ("a", "text")]


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    ids, texts = ([pair[ordinal] for pair in pairs] for ordinal in (0, 1))
    return pa.table({"id": pa.array(ids, pa.int32()), "a": pa.array(texts, pa.string())})


def test_a_query_is_finished_on_rows(engine: PostgresLocalEngine) -> None:
    filled = {("public", "t"): (_COLUMNS, rows((1, "x"), (2, None)))}
    done = engine.finish(filled, "SELECT id + $1 AS n, a FROM t ORDER BY 1 DESC", [1])
    assert done.to_pylist() == [{"n": 3, "a": None}, {"n": 2, "a": "x"}]
    assert engine.last_columns == [("n", "integer"), ("a", "text")]
    assert engine.finish_over("t", _COLUMNS, rows((5, "y")), "SELECT a FROM t").num_rows == 1


def test_nothing_stays_in_the_workspace(engine: PostgresLocalEngine) -> None:
    filled = {("public", "t"): (_COLUMNS, rows((1, "x"))), ("", "u"): (_COLUMNS, rows((2, "y"))),
              ("other", "t"): (_COLUMNS, rows((3, "z")))}  # fmt: skip
    sql = "SELECT t.id, u.id, o.id FROM t, u, other.t AS o"
    assert engine.python_rows(engine.finish(filled, sql)) == [(1, 2, 3)]
    with pytest.raises(errors.ProgrammingError) as error:
        engine.finish({}, "SELECT * FROM t")
    assert error.value.sqlstate == "42P01"
    for failing in ("SELECT 1 / 0 FROM t", "SELECT nothing FROM t", "SELEC"):
        with pytest.raises(errors.Error):
            engine.finish(filled, failing)
    left = "SELECT count(*) FROM pg_class WHERE relname IN ('t', 'u')"
    assert engine.workspace.fetchall(left) == [(0,)]


def test_a_table_may_have_other_columns_the_next_time(engine: PostgresLocalEngine) -> None:
    ordinal, sql = ("public", "t"), "SELECT * FROM t"
    assert engine.finish({ordinal: (_COLUMNS, rows((1, "x")))}, sql).num_columns == 2
    narrow = pa.table({"a": pa.array(["y"])})
    assert engine.finish({ordinal: ([("a", "text")], narrow)}, sql).to_pylist() == [{"a": "y"}]
    assert engine.finish({ordinal: ([("a", "varchar(3)")], narrow)}, sql).num_columns == 1
    assert engine.last_columns == [("a", "character varying(3)")]


def test_long_and_many_rows(engine: PostgresLocalEngine) -> None:
    long = rows((1, "x" * 100_000), (2, "y" * 7_000))
    sql = "SELECT length(a) FROM t ORDER BY id"
    done = engine.finish({("public", "t"): (_COLUMNS, long)}, sql)
    assert engine.python_rows(done) == [(100_000,), (7_000,)]
    many = pa.table({"id": pa.array(range(70_001), pa.int32()), "a": pa.nulls(70_001, pa.string())})
    done = engine.finish({("public", "t"): (_COLUMNS, many)}, "SELECT count(id), count(a) FROM t")
    assert engine.python_rows(done) == [(70_001, 0)]
    assert engine.finish({("public", "t"): (_COLUMNS, many)}, "SELECT * FROM t").equals(many)


def test_views_and_functions_are_there_when_they_are_named(open_engine: Open) -> None:
    engine = open_engine(
        ("TABLE", "CREATE TABLE t (id int, a text)"),
        ("TYPE", "CREATE TYPE mood AS ENUM ('sad')"),
        ("MACRO", "CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql AS 'SELECT 2 * n'"),
    )
    for name, sql in (("v", "CREATE VIEW v AS SELECT twice(id) AS n FROM t"),
                      ("w", "CREATE VIEW w AS SELECT n, 'sad'::mood AS m FROM v")):  # fmt: skip
        engine.define(HomeObject("VIEW", "public", name, sql), Catalog("00" * 16))
    filled = {("public", "t"): (_COLUMNS, rows((4, "x")))}
    assert engine.python_rows(engine.finish(filled, "SELECT * FROM w")) == [(8, "sad")]
    assert engine.describe("SELECT * FROM w") == [("n", "integer"), ("m", "mood")]
    engine.forget("VIEW", "public", "w")
    with pytest.raises(errors.ProgrammingError):
        engine.finish(filled, "SELECT * FROM w")


def test_objects_that_need_what_is_missing_wait(open_engine: Open) -> None:
    view, table = "CREATE VIEW v AS SELECT id FROM t", "CREATE TABLE t (id int)"
    engine = open_engine(("VIEW", view))
    assert [item.sql for item in engine.unresolved] == [view]
    engine.define(HomeObject("TABLE", "public", "t", table), Catalog("00" * 16))
    engine.resolve(Catalog("00" * 16))
    assert engine.unresolved == []
    # Whatever their order.
    assert open_engine(("VIEW", view), ("TABLE", table)).unresolved == []


def test_temporary_tables_stay_with_their_rows(open_engine: Open) -> None:
    engine = open_engine()
    filled = {("public", "t"): (_COLUMNS, rows((1, "x"), (2, "y")))}
    engine.finish(filled, "CREATE TEMP TABLE kept AS SELECT * FROM t", keeps=True)
    engine.finish({}, "ALTER TABLE kept ADD PRIMARY KEY (id)", keeps=True)
    engine.temporary.mirror()
    assert engine.temporary.names == {"kept"}
    assert engine.describe("SELECT * FROM kept") == _COLUMNS
    assert engine.schema.count("pg_temp.kept") == 0
    engine.temporary.keep()
    engine.finish({}, "DELETE FROM kept WHERE id = 1", keeps=True)
    with engine.rehearsal() as connection:
        engine.temporary.fill({"kept"})
        assert connection.fetchall("SELECT * FROM kept") == [(2, "y")]
    with engine.temporary.undoing():
        engine.rebuild(Catalog("00" * 16))
    sql = "SELECT * FROM kept ORDER BY id"
    assert engine.python_rows(engine.finish({}, sql)) == [(1, "x"), (2, "y")]
    with pytest.raises(errors.IntegrityError):
        engine.finish({}, "INSERT INTO kept VALUES (1)")
    other = engine.beside(Catalog("00" * 16))
    assert other.finish({}, sql).num_rows == 2
    other.close()
    with pytest.raises(errors.Error):
        engine.finish(filled, "SELECT 1 FROM t; SELECT 2")
    assert "kept" in engine.temporary.texts({"kept"})[0]


def test_a_dry_run_is_undone(open_engine: Open) -> None:
    engine = open_engine(("TABLE", "CREATE TABLE t (id int PRIMARY KEY)"))
    with engine.rehearsal() as connection:
        connection.execute("INSERT INTO t VALUES ($1)", [1])
        connection.execute("CREATE TABLE u ()")
        assert connection.fetchone("SELECT id FROM t") == (1,)
        assert connection.fetchone("SELECT id FROM t WHERE id = 9") is None
    assert engine.schema.count("t") == 0
    assert set(engine.schema.snapshot(macros=False)) == {("TABLE", "public", "t")}
    with pytest.raises(errors.IntegrityError), engine.rehearsal() as connection:
        connection.execute("INSERT INTO t VALUES (1), (1)")
    with engine.rehearsal(undone=False) as connection:
        connection.execute("CREATE TABLE u ()")
    assert ("TABLE", "public", "u") in engine.schema.snapshot(macros=False)


def test_rows_are_streamed(engine: PostgresLocalEngine) -> None:
    reader = engine.apart()
    batches = list(reader.stream("SELECT n, n::text AS t, NULL::time AS x, 1.5::numeric(3,1) AS d"
                                 " FROM generate_series(1, 2500) AS n", (), 1000))  # fmt: skip
    assert [batch.num_rows for batch in batches] == [1000, 1000, 500]
    assert reader.fetchall("SELECT 1") == [(1,)]
    with pytest.raises(errors.DataError):
        reader.stream("SELECT 1 / (n - 900) FROM generate_series(1, 2500) AS n", (), 100).read_all()
    assert reader.fetchall("SELECT 1") == [(1,)]
    assert reader.stream("SELECT 1 AS a WHERE false").read_all().num_rows == 0
    reader.close()


def test_rows_are_registered(engine: PostgresLocalEngine) -> None:
    store = engine.key_store()
    for given in (rows((1, "x")), rows((1, "x")).to_reader(), rows((1, "x")).to_batches()[0]):
        store.register("r", given)
        assert store.fetchall("SELECT * FROM r") == [(1, "x")]
    store.unregister("r")
    with pytest.raises(errors.ProgrammingError):
        store.fetchall("SELECT * FROM r")
    assert store.over("r", rows((1, None)), "SELECT count(a) AS n FROM r").to_pylist() == [{"n": 0}]
    with pytest.raises(errors.NotSupportedError) as error:
        store.register("r", {"a": 1})
    assert error.value.code == "local.feature"
    store.close()


def test_keys_are_checked(engine: PostgresLocalEngine) -> None:
    store = engine.key_store()
    store.register("fresh", rows((1, "x"), (2, None), (3, None)))
    store.register("spared", rows((1, "X")))
    store.require_key(UniqueKey(False, ('"a"',), ("a",), "ua"), "fresh", "spared")
    for key, said in ((UniqueKey(True, ('"id"',), ("id",), "key"), "Key (id)=(1) already exists."),
                      (UniqueKey(False, ("upper(a)",), ("a",), "up"), "(X)")):  # fmt: skip
        with pytest.raises(errors.IntegrityError) as error:
            store.require_key(key, "fresh", "spared")
        assert said in error.value.message
        assert error.value.sqlstate == "23505"
    foreign = ForeignKey("c", ("id",), ("public", "p"), ("id",), name="c_fk")
    with pytest.raises(errors.IntegrityError, match="is not present in table"):
        store.require_parent(foreign, "fresh", "spared")
    store.require_parent(
        ForeignKey("c", ("a",), ("public", "p"), ("a",), name="c_fk"), "spared", "spared"
    )
    keys = pa.table({"id": pa.array([7, 3], pa.int32())})
    with pytest.raises(errors.IntegrityError, match="still referenced"):
        store.require_unreferenced(foreign, keys, rows((3, "x")))
    store.require_unreferenced(foreign, keys, rows((4, "x")))
    store.close()


def test_what_a_statement_makes_of_a_table(engine: PostgresLocalEngine) -> None:
    table = Table("public", "t", 1, [Column("id", "integer", 1), Column("a", "text", 2)])
    engine.declare("CREATE TABLE t (id integer, a text)")
    done = engine.changed_by(table, rows((1, "5")), "ALTER TABLE t ALTER a TYPE int USING a::int")
    assert done.to_pylist() == [{"id": 1, "a": 5}]
    with pytest.raises(errors.DataError):
        engine.changed_by(table, rows((1, "x")), "ALTER TABLE t ALTER a TYPE int USING a::int")
    assert engine.is_fit()


def test_settings_stay_when_it_is_made_anew(engine: PostgresLocalEngine) -> None:
    revision, generation = engine.revision, engine.generation
    engine.change_setting("datestyle", "SET datestyle = 'German'")
    assert engine.settings_changed(["datestyle", "timezone"]) == ["datestyle"]
    assert engine.revision > revision
    engine.rebuild(Catalog("00" * 16))
    assert engine.generation > generation
    shown = engine.finish({}, "SELECT '2000-01-02'::date::text AS d")
    assert shown.to_pylist() == [{"d": "02.01.2000"}]
    with pytest.raises(errors.Error):
        engine.change_setting("nothing", "SET nothing = 1")
    assert engine.describe("SHOW datestyle") == [("DateStyle", "text")]


def test_the_time_stands_still(open_engine: Open) -> None:
    engine = open_engine(("TABLE", "CREATE TABLE t (id int)"))
    sql = "SELECT now() AS n"
    moving = engine.finish({}, sql).to_pylist(), engine.finish({}, sql).to_pylist()
    assert moving[0] != moving[1]
    revision = engine.revision
    engine.fix_time(datetime.now(UTC))
    still = engine.finish({}, sql), engine.finish({("", "r"): (_COLUMNS, rows((1, "x")))}, sql)
    assert still[0].to_pylist() == still[1].to_pylist()
    with pytest.raises(errors.Error):
        engine.finish({}, "SELECT 1 / 0")
    assert engine.finish({}, sql).to_pylist() == still[0].to_pylist()
    with engine.rehearsal() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
    assert engine.schema.count("t") == 0
    # What fails leaves what was declared before it.
    engine.declare("CREATE TABLE u (id int)")
    for failing in ("SELECT * FROM nothing", "SELEC"):
        for call in (engine.describe, engine.declare, engine.ask_schema, engine.statements.bind):
            with pytest.raises(errors.ProgrammingError):
                call(failing)
    assert engine.is_fit()
    assert engine.describe("SELECT * FROM u") == [("id", "integer")]
    assert engine.finish({}, sql).to_pylist() == still[0].to_pylist()
    engine.release_time()
    assert engine.finish({}, sql).to_pylist() != still[0].to_pylist()
    assert engine.describe("SELECT * FROM u") == [("id", "integer")]
    # No name has another meaning, so statements that are remembered hold.
    assert engine.revision == revision
    # An engine that is made anew does not know of it.
    engine.fix_time(datetime.now(UTC))
    engine.rebuild(Catalog("00" * 16))
    assert engine.finish({}, sql).to_pylist() != engine.finish({}, sql).to_pylist()
    engine.release_time()
    assert engine.is_fit()


def test_what_only_duckdb_has_is_refused(engine: PostgresLocalEngine) -> None:
    for call in (
        lambda: engine.attach("f", "f.duckdb"), lambda: engine.detach("f"),
        lambda: engine.put_frame("f", object()),
        lambda: engine.set_variable("v", rows((1, "x")), "integer"),
        lambda: engine.write_file(rows((1, "x")), "TO 'f.csv'"),
    ):  # fmt: skip
        with pytest.raises(errors.NotSupportedError) as error:
            call()
        assert error.value.code == "local.feature"
    engine.drop_variable("v")
    engine.drop_frame("f")
    assert not engine.reorders_nulls()
    assert not engine.collated()
    assert engine.files.known == {}
    assert engine.files.said([]) == []


def test_values_and_fields(engine: PostgresLocalEngine) -> None:
    assert engine.value("1 + 1").to_pylist() == [2]
    assert engine.arrow_field("numeric(10,2)").type == pa.decimal128(10, 2)
    assert engine.tables_of("SELECT * FROM pg_class") == {"pg_class"}
    assert engine.tables_of("SHOW timezone") == set()
    assert engine.ask_schema("SELECT 1 AS a").to_pylist() == [{"a": 1}]
    assert not engine.is_pivot_by_rows("SELECT 1", [])
    other = engine.alone(Catalog("00" * 16))
    assert other.is_fit()
    other.close()
