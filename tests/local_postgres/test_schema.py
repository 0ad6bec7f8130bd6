"""What is declared is read off, and made again elsewhere it is the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from louver import errors
from louver.trusted.executor.local.local import ColumnDeclaration, Index, Reference
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.vault.catalog import Catalog, Column, Table
from tests.local_postgres.conftest import Open

_SCHEMA = """
CREATE SCHEMA "Odd name";
CREATE TYPE mood AS ENUM ('sad', 'o''k');
CREATE TYPE pair AS (a integer, "b c" text);
CREATE TYPE floats AS RANGE (SUBTYPE = double precision);
CREATE DOMAIN positive AS integer DEFAULT 1 NOT NULL CONSTRAINT up CHECK (VALUE > 0);
CREATE SEQUENCE s AS smallint INCREMENT 2 MINVALUE 1 MAXVALUE 9 START 3 CYCLE;
CREATE TABLE p (id bigint PRIMARY KEY, n text COLLATE "C" UNIQUE);
CREATE TABLE "Odd name"."T x" (
    id int GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 3),
    "A a" text DEFAULT 'it''s' NOT NULL, m mood, q pair, r positive, f floats,
    d numeric(10,2) CHECK (d > 0), g numeric GENERATED ALWAYS AS (d * 2) STORED,
    v int GENERATED ALWAYS AS (1 + 1) VIRTUAL,
    s int DEFAULT nextval('s'), p bigint REFERENCES p ON DELETE SET NULL DEFERRABLE,
    ts timestamptz(3) DEFAULT now(), arr integer[] DEFAULT '{}', b bit(3), c char(4),
    PRIMARY KEY (id, "A a"), CONSTRAINT u UNIQUE (s),
    CONSTRAINT either CHECK (d < 9 OR "A a" = 'x')
);
CREATE TABLE self (id int PRIMARY KEY, boss int REFERENCES self);
CREATE TABLE parts (id int, v text) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE base (id int NOT NULL);
CREATE TABLE derived (more text) INHERITS (base);
CREATE UNIQUE INDEX partly ON p (lower(n), id) WHERE id > 5;
CREATE INDEX plain ON "Odd name"."T x" ("A a" DESC);
CREATE VIEW w WITH (security_barrier=true) AS SELECT id, n FROM p WHERE n <> '';
CREATE VIEW "Odd name".above AS SELECT * FROM w;
COMMENT ON TABLE p IS 'it''s'; COMMENT ON COLUMN p.n IS 'n'; COMMENT ON SCHEMA "Odd name" IS 'o';
COMMENT ON TYPE mood IS 'm'; COMMENT ON VIEW w IS 'v'; COMMENT ON INDEX partly IS 'i'
"""
_ODD = "Odd name"


@pytest.fixture
def declared(engine: PostgresLocalEngine) -> PostgresLocalEngine:
    for sql in _SCHEMA.split(";"):
        engine.declare(sql)
    return engine


def test_what_is_declared_is_made_again(declared: PostgresLocalEngine, open_engine: Open) -> None:
    catalog = Catalog("00" * 16)
    catalog.objects = declared.schema.objects()
    other = open_engine()
    other.rebuild(catalog)
    assert other.unresolved == []
    assert other.schema.objects() == catalog.objects
    for schema, name in (("public", "p"), (_ODD, "T x"), ("public", "self"), ("public", "low")):
        assert other.schema.constraints(schema, name) == declared.schema.constraints(schema, name)
    before, after = (e.schema.snapshot(macros=True) for e in (declared, other))
    assert {key: seen.sql for key, seen in before.items()} == {
        key: seen.sql for key, seen in after.items()
    }


def test_texts_do_not_depend_on_the_search_path(declared: PostgresLocalEngine) -> None:
    before = declared.schema.objects()
    declared.change_path(f'SET search_path = "{_ODD}", public')
    assert declared.path.schemas == [_ODD, "public"]
    assert declared.schema.objects() == before
    assert declared.binder.fetchone("SHOW search_path") == (f'"{_ODD}", public',)


def test_columns(declared: PostgresLocalEngine) -> None:
    assert declared.schema.columns("public", "p") == [
        ColumnDeclaration("id", "bigint", None), ColumnDeclaration("n", "text", None),
    ]  # fmt: skip
    columns = {column.name: column for column in declared.schema.columns(_ODD, "T x")}
    assert columns["A a"].default == "'it''s'::text"
    assert columns["d"].type == "numeric(10,2)"
    assert columns["g"].default is None
    assert [column.name for column in declared.schema.columns(_ODD, "above")] == ["id", "n"]
    assert declared.schema.generated(_ODD, "T x") == {
        "g": "(d * (2)::numeric)", "v": "(1 + 1)",
    }  # fmt: skip


def test_keys(declared: PostgresLocalEngine) -> None:
    schema = declared.schema
    kinds = {(key.kind, key.columns) for key in schema.constraints("odd name", "t x")}
    assert {("PRIMARY KEY", ("id", "A a")), ("UNIQUE", ("s",)), ("CHECK", ("d",)),
            ("FOREIGN KEY", ("p",)), ("NOT NULL", ("A a",))} <= kinds  # fmt: skip
    assert schema.references() == [
        Reference(_ODD, "T x", "p"), Reference("public", "self", "self"),
    ]  # fmt: skip
    assert schema.children(("public", "p")) == [(_ODD, "T x")]
    assert schema.self_keys("public", "self") == [(["boss"], ["id"])]
    assert schema.unique_indexes(("public", "p")) == [
        ("partly", ["CASE WHEN (id > 5) THEN lower(n) END", "CASE WHEN (id > 5) THEN id END"])
    ]
    assert [index.name for index in schema.indexes()] == ["partly", "plain"]
    assert schema.indexes()[0] == Index(
        "public", "partly", "p",
        "CREATE UNIQUE INDEX partly ON public.p USING btree (lower(n), id) WHERE (id > 5)",
    )  # fmt: skip
    declared.declare("CREATE TABLE apart (f int, EXCLUDE USING btree (f WITH =))")
    with pytest.raises(errors.NotSupportedError):
        schema.constraints("public", "apart")
    declared.declare("CREATE UNIQUE INDEX n2 ON p (n) NULLS NOT DISTINCT")
    with pytest.raises(errors.NotSupportedError):
        schema.unique_indexes(("public", "p"))
    declared.declare("CREATE TABLE alone (r int4range, EXCLUDE USING gist (r WITH &&))")
    with pytest.raises(errors.NotSupportedError):
        schema.constraints("public", "alone")


def test_a_copy_without_references(declared: PostgresLocalEngine) -> None:
    table = Table(_ODD, "T x", 1, [Column("id", "integer", 1)])
    with declared.rehearsal() as connection:
        connection.execute(declared.schema.without_references(table, []))
        connection.execute('INSERT INTO pg_temp."T x" (p, d) VALUES (99, 2)')
        assert connection.fetchall('SELECT id, g, v FROM pg_temp."T x"')[0][0] == 5
        with pytest.raises(errors.IntegrityError):
            connection.execute('INSERT INTO pg_temp."T x" (d) VALUES (-1)')


def test_sequences(declared: PostgresLocalEngine) -> None:
    schema = declared.schema
    state = schema.sequences()["public", "s"]
    assert (state.start, state.increment, state.low, state.high, state.cycle, state.last) == (
        3, 2, 1, 9, True, 1,
    )  # fmt: skip
    assert schema.resumed(state) == state.sql
    schema.catch_up(state, replace(state, last=5))
    moved = schema.sequences()["public", "s"]
    assert moved.last == 5
    assert schema.resumed(moved).endswith('setval(\'"public"."s"\', 5)')
    assert schema.declared(schema.resumed(moved)) == schema.declared(state.sql) == state.sql
    # Back to before its first number, which is no number of a sequence that begins at its lowest.
    schema.catch_up(moved, replace(moved, last=-1))
    assert schema.sequences()["public", "s"].last == -1
    assert schema.resumed(schema.sequences()["public", "s"]).endswith("1, false)")
    assert ("odd name", "t x_id_seq") in schema.sequences()


def test_constants_and_counts(declared: PostgresLocalEngine) -> None:
    assert declared.schema.constant("1 + 1") == 2
    assert declared.schema.constant("NULL") is None
    assert declared.schema.constant("nothing") is None
    assert declared.schema.count("p") == 0


def test_functions_are_seen_where_they_are_asked_for(declared: PostgresLocalEngine) -> None:
    declared.declare("CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql AS 'SELECT a'")
    declared.declare("CREATE FUNCTION g(a int) RETURNS int LANGUAGE sql AS 'SELECT a'")
    declared.declare("CREATE FUNCTION g(a text) RETURNS int LANGUAGE sql AS 'SELECT 1'")
    names = {name for kind, _, name in declared.schema.snapshot(macros=True) if kind == "MACRO"}
    assert names == {"f", "g(a integer)", "g(a text)"}
    assert not any(kind == "MACRO" for kind, _, _ in declared.schema.snapshot(macros=False))
