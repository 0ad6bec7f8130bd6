"""TRUNCATE of several tables, CASCADE and RESTART IDENTITY do what they do on plaintext."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin

COUNTS = "SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM c), (SELECT count(*) FROM d)"
SETS = (
    "INSERT INTO p VALUES (1, 'x'), (2, 'y') ON CONFLICT DO NOTHING",
    "INSERT INTO c (id, p) VALUES (1, 1), (2, 2) ON CONFLICT DO NOTHING",
    "INSERT INTO d (c) VALUES (1), (NULL) RETURNING id",
    "INSERT INTO i (a) VALUES ('x') RETURNING id", "INSERT INTO u (a) VALUES ('x') RETURNING id",
)  # fmt: skip


@pytest.fixture(scope="module")
def twin() -> Iterator[PostgresTwin]:
    opened = PostgresTwin()
    for sql in (
        "CREATE TABLE p (id integer ENC PRIMARY KEY, a text ENC)",
        "CREATE TABLE c (id integer ENC PRIMARY KEY, p integer ENC REFERENCES p ON DELETE CASCADE)",
        "CREATE TABLE d (id serial, c integer ENC REFERENCES c)",
        "CREATE TABLE i (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a text ENC)",
        "CREATE TABLE u (id bigserial, a text ENC MAY REVEAL size)",
        "CREATE VIEW v AS SELECT * FROM p",
    ):
        opened.run(sql)
    yield opened
    opened.close()


def test_truncate_does_what_plaintext_does(twin: PostgresTwin) -> None:
    random = generator("truncate")
    for _ in range(cases(60)):
        draw = random.random()
        if draw < 0.2:
            twin.run(random.choice(("BEGIN", "COMMIT", "ROLLBACK", "ROLLBACK")))
        elif draw < 0.65:
            twin.run(random.choice(SETS))
        else:
            tables = random.sample(["p", "c", "d", "i", "u", "public.u"], k=random.randint(1, 3))
            word = random.choice(("", "TABLE ", "ONLY "))
            ends = random.choice(("", " RESTART IDENTITY", " CONTINUE IDENTITY"))
            ends += random.choice(("", "", " CASCADE", " RESTRICT"))
            twin.run(f"TRUNCATE {word}{', '.join(tables)}{ends}")
        if not twin.within or twin.plain.raw.state() == "within":
            twin.run(COUNTS)
    twin.run("ROLLBACK")


def test_errors_are_postgresql_s_own(twin: PostgresTwin) -> None:
    for sql in ("TRUNCATE", "TRUNCATE missing", "TRUNCATE u, missing", "TRUNCATE v", "TRUNCATE p",
                "TRUNCATE u RESTART", "TRUNCATE u CASCADE RESTRICT",
                "TRUNCATE pg_class"):  # fmt: skip
        assert twin.on_louver(sql).state == twin.on_plain(sql).state, sql
