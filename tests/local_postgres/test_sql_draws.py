"""What a sequence gives next may be written to a plain column, so no value of an ENC column may
decide it, by whatever name `setval` and `nextval` are called.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.local_postgres.twin import PostgresTwin

_REFUSED = ("leak.flow", "postgres.refused", "sql.unsupported")


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    opened.run("CREATE TABLE t (i int ENC)")
    opened.run("INSERT INTO t VALUES (7), (9)")
    opened.run("CREATE TABLE n (id bigint ENC, p bigint)")
    opened.run("CREATE TABLE n2 (id serial)")
    opened.run("CREATE SEQUENCE s")
    yield opened
    opened.close()


@pytest.mark.parametrize("sql", [
    "SELECT setval('s'::regclass, i) FROM t",
    "SELECT pg_catalog.setval('s', i) FROM t",
    """SELECT U&"\\0073etval"('s', i) FROM t""",
    "SELECT nextval('s'::regclass) FROM t WHERE i > 7",
    "SELECT setval('s', ascii(attname)) FROM pg_attribute WHERE attrelid = 't'::regclass",
    "SELECT setval(pg_get_serial_sequence('n2', 'id'), max(i)) FROM t",
    "INSERT INTO t VALUES (11) RETURNING setval('s', i)",
    "INSERT INTO t SELECT 11 RETURNING setval('s', i)",
    "CREATE TABLE c (i int ENC, CHECK (setval('s', i) > 0))",
    "CREATE DOMAIN d AS int CHECK (setval('s', VALUE) > 0)",
    "CREATE FUNCTION f(a int) RETURNS bigint LANGUAGE sql AS E'SELECT set\\x76al(''s'', a)'",
    "CREATE FUNCTION f(a int) RETURNS bigint LANGUAGE sql BEGIN ATOMIC"
    """ SELECT U&"\\0073etval"('s', a); END""",
])  # fmt: skip
def test_values_do_not_move_sequences(twin: PostgresTwin, sql: str) -> None:
    own = twin.on_louver(sql)
    assert own.error is not None, own
    assert own.error.code in _REFUSED


def test_views_do_not_hide_draws(twin: PostgresTwin) -> None:
    twin.run("CREATE VIEW v AS SELECT setval('s', i) FROM t")
    own = twin.on_louver("SELECT * FROM v")
    assert own.error is not None
    assert own.error.code == "leak.flow"


def test_conditions_of_copy_do_not_draw(twin: PostgresTwin) -> None:
    with (
        pytest.raises(errors.Error, match="draws from a sequence"),
        twin.louver.cursor().copy("COPY t FROM STDIN WHERE setval('s', i) > 0") as copy,
    ):
        copy.write("7\n")


def test_numbers_are_drawn_for_rows(twin: PostgresTwin) -> None:
    twin.run("CREATE SEQUENCE own")
    for sql in (
        "INSERT INTO n VALUES (nextval('own'), 1) RETURNING id",
        "INSERT INTO n SELECT nextval('own'::regclass), 2 RETURNING id",
        "INSERT INTO n (p) VALUES (nextval('own'))",
        "SELECT setval('own', 40), nextval('own'::regclass)",
        "SELECT * FROM n",
        "CREATE TABLE counted (id serial, e int ENC)",
        "INSERT INTO counted (e) VALUES (5), (6)",
        "SELECT setval(pg_get_serial_sequence('counted', 'id'), max(id) + 9) FROM counted",
        "INSERT INTO counted (e) VALUES (7) RETURNING id",
    ):
        twin.run(sql)


def test_numbers_drawn_beside_questions_about_the_schema_are_drawn_once(twin: PostgresTwin) -> None:
    twin.run("CREATE SEQUENCE shared")
    beside = PostgresTwin(beside=twin)
    numbers = [
        session.on_louver("SELECT nextval('shared'::regclass)").rows
        for session in (twin, beside, twin, beside)
    ]
    beside.close()
    assert len(set(map(str, numbers))) == 4


def test_constants_may_say_where_a_sequence_stands(twin: PostgresTwin) -> None:
    for sql in (
        "CREATE SEQUENCE c", "SELECT setval('c', 3)", "SELECT nextval('c'), lastval()",
        "SELECT setval('c', 7, false), setval('n2_id_seq', 40, true)",
        "SELECT pg_catalog.setval('public.c', 10, TRUE)", "SELECT nextval('c'), currval('c')",
        "INSERT INTO n2 DEFAULT VALUES", "SELECT * FROM n2", "BEGIN", "SELECT setval('c', 90)",
        "ROLLBACK", "SELECT nextval('c')", "SELECT setval('c', -1)", "SELECT setval('nope', 1)",
    ):  # fmt: skip
        twin.run(sql)
    # How far another sequence has come may depend on values.
    for sql in ("SELECT setval('c', i) FROM t", "SELECT setval('c', 1 + (SELECT min(i) FROM t))",
                "SELECT setval('c', (SELECT max(i) FROM t))",
                "SELECT setval('c', 3) WHERE EXISTS (SELECT 1 FROM t WHERE i = 7)"):  # fmt: skip
        own = twin.on_louver(sql)
        assert own.error is not None
        assert own.error.code in _REFUSED, sql
