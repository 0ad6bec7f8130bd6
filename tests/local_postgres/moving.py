"""A database of everything that comes along, and what two databases have in common."""

from __future__ import annotations

import re
from typing import Any

from louver._rust import postgres
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.schema import PostgresSchema
from louver.trusted.executor.local.postgres.type_names import TypeNames
from tests.postgres import servers
from tests.postgres.moving import Database

RICH = """
CREATE SCHEMA "Sales dept";
CREATE TYPE "Sales dept".mood AS ENUM ('sad', 'it''s', 'ok');
CREATE TYPE pair AS (a integer, m "Sales dept".mood);
CREATE DOMAIN plus AS numeric(8,2) DEFAULT 1.5 CHECK (VALUE > 0);
CREATE TYPE span AS RANGE (SUBTYPE = date);
CREATE FUNCTION twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
CREATE SEQUENCE free INCREMENT BY 5 MINVALUE 5 START 100;
SELECT nextval('free'), nextval('free');
CREATE TABLE "Group" ("select" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "it's" varchar(60) NOT NULL, "a.b" text UNIQUE);
CREATE TABLE odd (id serial PRIMARY KEY, parent bigint REFERENCES "Group" ON DELETE CASCADE,
    n smallint, i integer DEFAULT twice(4), r real, d double precision, dec numeric(12, 3),
    wide numeric, t text, c char(5), b bytea, u uuid, day date DEFAULT CURRENT_DATE, ts timestamp,
    tz timestamptz, hour time, gap interval, yes boolean DEFAULT true, m "Sales dept".mood,
    ms "Sales dept".mood[], p pair, ps pair[], plus plus, s span, j jsonb DEFAULT '{}', a integer[],
    net inet, txt text[], g integer GENERATED ALWAYS AS (n * 2 + 1) STORED,
    CONSTRAINT fits CHECK (n > -30000 OR t ~ '^x'), CHECK (i < 5000));
CREATE TABLE "Sales dept".nothing (a integer, b text);
CREATE TABLE hen (id integer PRIMARY KEY, egg integer);
CREATE TABLE egg (id integer PRIMARY KEY, hen integer NOT NULL REFERENCES hen, UNIQUE (hen, id));
ALTER TABLE hen ADD CONSTRAINT laid FOREIGN KEY (egg) REFERENCES egg;
CREATE TABLE tree (id integer PRIMARY KEY, up integer REFERENCES tree);
INSERT INTO "Group" ("it's", "a.b") VALUES ('', ''), ('O''Brien "q"', E'two\\nlines\\\\'),
    ('ü', NULL);
INSERT INTO odd (parent, n, i, r, d, dec, wide, t, c, b, u, day, ts, tz, hour, gap, m, ms, p, ps,
    plus, s, j, a, net, txt) VALUES
    (1, -32768, -2147483648, 'NaN', 'NaN', -999999999.999, 'NaN', 'x', 'ab', '', gen_random_uuid(),
     'infinity', 'infinity', 'infinity', '00:00', '-1 year 2 mons -3 days 04:05:06.000001', 'it''s',
     '{sad,NULL,ok}', '(1,sad)', '{"(2,ok)",NULL}', 0.01, '[2020-01-01,2020-02-01)',
     '{"k": [1, null]}', '{{1,2},{3,4}}', '10.0.0.0/8', '{"a b",NULL,"\\""}'),
    (2, 32767, 2147, '-Infinity', 'Infinity', 0.001, 1.500, 'NULL', '     ', '\\x00ff',
     '00000000-0000-0000-0000-000000000000', '-infinity', '-infinity', '-infinity',
     '23:59:59.999999', '0', 'sad', '{}', NULL, '{}', 2, 'empty', '[]', '{}', '::1', '{}'),
    (NULL, 0, 0, '-0', 1e-310, 0, 0, E'\\t\\\\.', NULL, NULL, NULL, '0044-03-15 BC',
     '4713-01-01 00:00:00 BC', '294246-12-31 00:00:00+00', NULL, '178 years', 'ok', NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO odd (parent, i, t) SELECT 1 + i % 3, i, repeat(md5(i::text), 1 + i % 7)
    FROM generate_series(1, 3000) AS g(i);
INSERT INTO hen VALUES (1, NULL), (2, NULL);
INSERT INTO egg VALUES (7, 1), (8, 2);
UPDATE hen SET egg = id + 6;
INSERT INTO tree VALUES (1, NULL), (2, 1);
CREATE INDEX odd_i ON odd (i, day);
CREATE UNIQUE INDEX low ON "Group" (lower("a.b")) WHERE "a.b" <> '';
CREATE VIEW few AS SELECT o.id, upper(o.t) AS text, g."it's", o.j -> 'k' AS k FROM odd o
    JOIN "Group" g ON g."select" = o.parent WHERE o.i < 10;
CREATE VIEW "Sales dept".fewer AS SELECT * FROM few WHERE k IS NULL;
ALTER VIEW few ALTER COLUMN text SET DEFAULT 'a; default';
COMMENT ON TABLE odd IS 'it''s odd';
COMMENT ON COLUMN "Group"."a.b" IS 'a comment';
COMMENT ON VIEW few IS 'not many';
COMMENT ON TYPE "Sales dept".mood IS 'moods';
COMMENT ON SEQUENCE free IS 'free';
COMMENT ON INDEX odd_i IS 'indexed'
"""
TABLES = ('public."Group"', "public.odd", '"Sales dept".nothing', "hen", "egg", "tree")


def definitions(database: Database) -> list[str]:
    """All that a database declares, with the positions of its sequences."""
    raw = postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, database.name)
    try:
        schema = PostgresSchema(PostgresConnection(raw, TypeNames()))
        own = [item for item in schema.objects() if item.schema != "louver"]
        functions: dict[Any, Any] = schema.snapshot(macros=True)
        texts = [seen.sql for (kind, _, _), seen in functions.items() if kind == "MACRO"]
        return sorted([*(f"{i.kind} {i.sql}" for i in own), *texts])
    finally:
        raw.close()


def column_order(text: str) -> str:
    """A text without what differs from run to run."""
    return re.sub(r"\s+", " ", text)
