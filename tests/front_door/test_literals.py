"""Statements with their literals in the text, which run as one of their shape with parameters:
rows, columns and errors are PostgreSQL's, whatever stands where.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver.trusted.apps.pgproxy import status
from tests.front_door import door as doors
from tests.front_door.door import Door
from tests.generated import cases, generator

_COLUMNS = (
    "id integer{e} PRIMARY KEY, s smallint{e}, n bigint{e}, t text{e}, c char(4){e},"
    " v varchar(4){e}, m numeric(6,2){e}, f real{e}, g double precision{e}, d date{e},"
    " z timestamptz{e}, b boolean{e}, u uuid{e}, j jsonb{e}, y bytea{e},"
    " k interval minute{e}, x bit(3){e}, a integer[]{e}, o time(0){e}, i inet{e}"
)
_NAMES = "id s n t c v m f g d z b u j y k x a o i".split()
_NUMBERS = (
    "1", "2", "3", "7", "-1", "- 2", "+3", "40000", "2147483647", "2147483648", "-2147483648",
    "9223372036854775807", "9223372036854775808", "1.5", "2.50", ".5", "5.", "1e2", "1.5e-1", "0.1",
    "-0.1", "-0", "- 0.00", "007", "1_0", "0x10", "3000000000",
)  # fmt: skip
_STRINGS = (
    "'a'", "'ab'", "'ab  '", "''", "'it''s'", "'''", "E'a\\n'", "'a\\b'", "'1'", "'-7'", "' 2 '",
    "'2024-02-03'", "'2024-02-03'::date", "'2024-02-03 04:05:06+00'::timestamptz", "'today'::date",
    "'00000000-0000-0000-0000-000000000001'", "'00000000-0000-0000-0000-000000000001'::uuid",
    "'{\"a\": 1}'", "'{\"a\":  1}'::jsonb", "'\\x6162'", "'\\x6162'::bytea", "'t'", "'yes'", "'$1'",
    "'a' 'b'", "'a'\n'b'", "$$a$$", "'a -- b'", "'ü€'", "'a'::text", "'1'::int4",
    "'ab'::varchar(1)",
    "'nan'", "B'1'", "U&'\\0061'", "'a'||'b'", "('a')", "'a;b'", "'3'",
    "'101'", "'{1}'", "'04:05:06.7'",
    "'3 day'", "'3'::interval", "'10.0.0.1'", "'04:05:06.7'::time", "' t'",
)  # fmt: skip
_WORDS = ("NULL", "true", "FALSE", "current_date", "1 + 1", "(2)", "-(1)", "lower('A')")
#: {c} is a column, {l} a literal; of SELECT, where others are the same.
_FORMS = (
    "SELECT id, {c} FROM {t} WHERE {c} = {l}", "SELECT id FROM {t} WHERE {c}={l};",
    "select count(*) , min({c}::text) from {t} where {c} <> {l} and id < {l}",
    "SELECT id FROM {t} WHERE {c} IN ({l}, {l},{l})", "SELECT {c} FROM {t} WHERE id IN({l})",
    "SELECT id FROM {t} WHERE {c} BETWEEN {l} AND {l} AND id > 0 ORDER BY id",
    "SELECT id FROM {t} WHERE NOT {c} >= {l} OR ({c} < {l})", "SELECT {l} = {l}, {l} FROM {t}",
    "SELECT {c} = {l} FROM {t} GROUP BY {c} = {l}", "SELECT {c} = {l}, id FROM {t} ORDER BY 2",
    "SELECT * FROM (VALUES ({l}, {l}), ({l}, {l})) AS own", "VALUES ({l})",
    "SELECT id FROM {t} WHERE ({c}, id) IN (({l}, {l}), ({l}, {l}))",
    "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} WHERE {c} = {l}) AND {c} = {l}",
    "SELECT CASE WHEN {c} = {l} THEN {l} ELSE {l} END FROM {t}",
    'SELECT id AS "a=5", {c} FROM {t} AS "it\'s" WHERE id = {l} /* = 5 */',
    "SELECT id FROM {t} WHERE {c} = {l} -- and id = 5",
    "SELECT id FROM {t} WHERE {c} = {l} LIMIT {l}",
    "SELECT id FROM {t}\n\tWHERE  {c}  =  {l}\nOR id = {l}",
    "  SELECT id FROM {t} WHERE id = {l} ; ",
    "SELECT 5 = {l}; SELECT id FROM {t} WHERE id = {l}",
    "SELECT {c} FROM {t} WHERE id =-1 OR id = {l}",
    "SELECT id FROM {t} WHERE {c} = ANY(ARRAY[{l}])",
    "SELECT id FROM {t} WHERE id = {l} AND '1' = {l}",
    "INSERT INTO {t} (id, {c}) VALUES ({l}, {l}) RETURNING id, {c}",
    "INSERT INTO {t} (id, {c}) VALUES ({l},{l})", "INSERT INTO {t} ({c}, id) VALUES ({l}, {l})",
    "INSERT INTO {t} (id, {c}) VALUES ({l}, {l}), ({l}, {l})",
    "INSERT INTO {t} (id, {c}) SELECT {l}, {l}",
    "INSERT INTO {t} (id, {c}) VALUES ({l}, {l}) ON CONFLICT (id) WHERE id > {l} DO NOTHING",
    "UPDATE {t} SET {c} = {l} WHERE id = {l}",
    "UPDATE {t} SET {c} = {l}, n = n + {l} WHERE {c} = {l}",
    "UPDATE {t} SET ({c}, n) = ({l}, {l}) WHERE id = {l} RETURNING {c}, n = {l}",
    "DELETE FROM {t} WHERE id = {l} AND {c} = {l}", "DELETE FROM {t} WHERE id = {l}",
)  # fmt: skip
_REFUSED = "0A000"
#: A value that is not of its column's type may be seen before or behind a missing row.
_VALUE = ("22", "23502", "23505", "42804")


def _literal(draw: random.Random, column: str) -> str:
    """Of a kind that the column has, most of the time."""
    texts = {
        "id": _NUMBERS[:4], "s": _NUMBERS, "n": _NUMBERS, "m": _NUMBERS, "f": _NUMBERS,
        "g": _NUMBERS,
        "b": ("true", "FALSE", "'t'", "'yes'", "NULL"), "d": ("'2024-02-03'", "'2024-02-03'::date"),
        "t": _STRINGS[:8], "c": _STRINGS[:5], "v": _STRINGS[:5],
    }.get(column, _STRINGS)  # fmt: skip
    chance = draw.random()
    if chance < 0.85:
        return draw.choice(texts)
    return draw.choice(_NUMBERS + _STRINGS if chance < 0.95 else _WORDS)


def _ran(con: psycopg.Connection[Any], sql: str, *, simple: bool) -> object:
    """Rows, with the names and types of columns, and the tag; or the state of an error."""
    given = sql.encode()
    done = con.pgconn.exec_(given) if simple else con.pgconn.exec_params(given, None)
    if done.error_message:
        state = done.error_field(psycopg.pq.DiagnosticField.SQLSTATE)
        return state.decode() if state else "lost"
    columns = range(done.nfields)
    rows = [[done.get_value(row, column) for column in columns] for row in range(done.ntuples)]
    shown = [(done.fname(column), done.ftype(column), done.fmod(column)) for column in columns]
    return sorted(map(str, rows)), shown, done.command_status


def _are_like(plain: object, own: object) -> bool:
    if own in (plain, _REFUSED):
        return True
    return isinstance(own, str) and isinstance(plain, str) and own.startswith(_VALUE) and (
        plain.startswith(_VALUE))  # fmt: skip


def _filled(con: psycopg.Connection[Any], *, enc: str) -> None:
    con.execute("DROP TABLE IF EXISTS cut_sealed, cut_plain")
    for name, own in (("cut_sealed", enc), ("cut_plain", "")):
        con.execute(f"CREATE TABLE {name} ({_COLUMNS.format(e=own)})")
        con.execute(
            f"INSERT INTO {name} SELECT i, i, i, (ARRAY['a', 'ab', 'it''s'])[i], 'ab', 'ab',"
            " i * 1.5, i * 0.1, i * 0.1, '2024-02-03', '2024-02-03 04:05:06+00', i > 1,"
            " '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', '\\x6162',"
            " '3', '101', '{1}', '04:05:06', '10.0.0.1'"
            " FROM generate_series(1, 3) AS g(i)"
        )


def _drawn(draw: random.Random) -> list[str]:
    """Several texts of one form and column."""
    form, column = draw.choice(_FORMS), draw.choice(_NAMES)
    form = form.replace("{t}", draw.choice(("cut_sealed", "cut_plain"))).replace("{c}", column)
    results, pieces = [], form.split("{l}")
    # Most statements come again with literals of the same kind.
    kinds = [draw.choice((column, "id")) for _ in pieces]
    if "(id," in form or "id = {l}" in form[-20:]:
        kinds = [
            column if "{c}" in piece else kind for piece, kind in zip(pieces, kinds, strict=True)
        ]
    for _ in range(8):
        text = pieces[0]
        for kind, piece in zip(kinds, pieces[1:], strict=False):
            text += _literal(draw, kind) + piece
        results.append(text)
    return results


@pytest.mark.parametrize("seed", range(3))
def test_texts_mean_what_they_say(door: Door, seed: int) -> None:
    draw = generator(f"literals {seed}")
    ran = refused = 0
    with doors.plain() as plain, door.connect() as own:
        _filled(plain, enc="")
        _filled(own, enc=" ENC")
        for _ in range(cases(45)):
            within, simple = draw.random() < 0.4, draw.random() < 0.7
            for sql in _drawn(draw):
                for con in (plain, own) if within else ():
                    con.execute("BEGIN")
                first, second = (_ran(con, sql, simple=simple) for con in (plain, own))
                assert _are_like(first, second), (sql, first, second)
                keeps = first == second and not isinstance(first, str)
                for con in (plain, own) if within else ():
                    con.execute("COMMIT" if keeps else "ROLLBACK")
                ran += 1
                refused += second == _REFUSED
                if first != second and not isinstance(first, str) and not within:
                    # What is refused was done on the other side.
                    _filled(plain, enc="")
                    _filled(own, enc=" ENC")
        for table in ("cut_sealed", "cut_plain"):
            rows = [sorted(map(repr, con.execute(f"TABLE {table}"))) for con in (plain, own)]
            assert rows[0] == rows[1]
    assert ran > 10 * refused


@pytest.mark.parametrize("simple", [True, False])
def test_they_run_without_python(tmp_path: Path, *, simple: bool) -> None:
    """From the third text of a shape or the fourth on, within transactions as well."""
    monitor, draw = str(tmp_path / "monitor"), random.Random(3)
    forms = (
        "SELECT a, b FROM t WHERE id = {n}", "INSERT INTO t VALUES ({m}, 'it''s', {n})",
        "INSERT INTO t VALUES ({m}, E'\\\\', NULL) RETURNING id",
        "UPDATE t SET a = 'x{n}' WHERE id={n}",
        "UPDATE p SET b = b + 1, a = 'y' WHERE id = {n}", "DELETE FROM t WHERE id = {n} ;",
        "SELECT a FROM p WHERE id IN ({n}, 7, -1) AND b BETWEEN -5 AND {n}", "TABLE none",
    )  # fmt: skip
    with doors.opened("--metrics", monitor) as door, door.connect() as con:
        for name, enc in (("t", " ENC"), ("p", "")):
            columns = f"id integer{enc} PRIMARY KEY, a text{enc}, b bigint{enc}"
            con.execute(f"CREATE TABLE {name} ({columns})")
            con.execute(f"INSERT INTO {name} SELECT i, 'a', i FROM generate_series(1, 300) AS g(i)")
        counts = []
        for form in forms:
            before = status.state_of((monitor, None))["direct_total"]
            for turn in range(20):
                text = form.format(n=draw.randrange(1, 300), m=draw.randrange(10**6, 10**9))
                con.execute("BEGIN") if turn >= 10 else None
                _ran(con, text, simple=simple)
                con.execute("COMMIT") if turn >= 10 else None
            counts.append(status.state_of((monitor, None))["direct_total"] - before)
        # BEGIN and COMMIT are statements too.
        assert min(counts[:-1]) >= 28, counts
        # Of these, what begins and ends transactions.
        assert counts[-1] <= 20, counts


def test_columns_become_others_meanwhile(door: Door) -> None:
    """What another client changes is seen: a number is none of a text, and * is all columns."""
    texts = "SELECT * FROM met WHERE a = {n}", "UPDATE met SET a = {n} WHERE a = {n}"
    changes = (
        "ADD w integer DEFAULT 3", "ALTER a TYPE bigint", "ALTER a TYPE text", "DROP w",
        "ALTER a TYPE integer USING a::integer", "RENAME a TO z", "RENAME z TO a",
        "ALTER a TYPE smallint",
    )  # fmt: skip
    for enc in ("", " ENC"):
        for within in (False, True) if enc else (False,):
            outcomes = []
            for connect, own in ((doors.plain, ""), (door.connect, enc)):
                with connect() as con, psycopg.connect(con.info.dsn, autocommit=True) as other:
                    con.execute("DROP TABLE IF EXISTS met")
                    con.execute(f"CREATE TABLE met (a integer{own}, b text{own})")
                    con.execute("INSERT INTO met VALUES (1, 'x'), (2, 'y')")
                    seen = []
                    for change in ("", *changes):
                        if change:
                            other.execute(f"ALTER TABLE met {change}")
                        for n in (1, 2, 40000, 1):
                            for sql in texts:
                                con.execute("BEGIN") if within else None
                                seen.append(
                                    (change, sql, n, _ran(con, sql.format(n=n), simple=True))
                                )
                                con.execute("ROLLBACK") if within else None
                    outcomes.append(seen)
            for first, second in zip(*outcomes, strict=True):
                assert second[-1] in (first[-1], _REFUSED), (first, second)
