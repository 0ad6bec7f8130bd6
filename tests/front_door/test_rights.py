"""Users who may not do everything: random statements under random rights against a PostgreSQL that
has the same rows and rights, and the ways around them.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest

from louver import errors
from louver.trusted.apps.pgproxy import users
from louver.trusted.apps.pgproxy.client import Client
from louver.trusted.client import connect
from louver.trusted.executor.containment import contained
from louver.trusted.executor.local.postgres.role_rights import Grant, Rights, parsed
from louver.trusted.executor.postgres import rights
from louver.trusted.executor.session import Session
from tests import shared
from tests.front_door import door as doors
from tests.front_door.door import opened, root
from tests.postgres import servers

_COLUMNS = {
    "a": ("id", "x", "y", "z"), "b": ("id", "a_id", "w"), "va": ("id", "x"), "vb": ("id", "y"),
}  # fmt: skip
_VIEWS = (
    "CREATE VIEW va AS SELECT id, x FROM a",
    "CREATE VIEW vb AS SELECT b.id, a.y FROM b JOIN a ON a.id = b.a_id",
)
_STATEMENTS = 70
_DENIED, _UNSUPPORTED = "42501", "0A000"
_Result = tuple[str, list[str]]


def _session(url: str) -> Session:
    return connect.open_session(url, str(shared.key_file()), "cryptdb")


def _of_plain(con: psycopg.Connection[Any], sql: str) -> _Result:
    try:
        cursor = con.execute(sql)
    except psycopg.Error as error:
        return error.sqlstate or "?", []
    return "", sorted(map(repr, cursor.fetchall())) if cursor.description else []


def _of_louver(session: Session, sql: str) -> _Result:
    try:
        rows = session.execute(sql).rows
    except errors.Error as error:
        return error.sqlstate or error.code, []
    with contained(session):
        return "", sorted(map(repr, session.python_rows(rows))) if rows is not None else []


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[psycopg.Connection[Any], Session, str]]:
    """Plaintext, all rights on the encrypted database, and its URL."""
    plain, url = doors.plain(), servers.database_url("door_rights")
    full = _session(url)
    for enc in ("", " ENC"):
        texts = (
            f"CREATE TABLE a (id int{enc} PRIMARY KEY, x text{enc}, y int{enc}, z int)",
            f"CREATE TABLE b (id int{enc} PRIMARY KEY, a_id int{enc} REFERENCES a, w text{enc})",
            *_VIEWS,
            "INSERT INTO a SELECT i, 'x' || i % 3, i % 4, i FROM generate_series(1, 12) AS g(i)",
            "INSERT INTO b SELECT i, 1 + i % 12, 'w' || i FROM generate_series(1, 20) AS g(i)",
        )
        for sql in texts:
            assert (_of_louver(full, sql) if enc else _of_plain(plain, sql))[0] == "", sql
    plain.execute("DROP ROLE IF EXISTS clerk")
    plain.execute("CREATE ROLE clerk")
    yield plain, full, url
    plain.execute("DROP OWNED BY clerk")
    plain.execute("DROP ROLE clerk")
    plain.close()
    full.close()
    servers.drop_databases()


def _granted(draw: random.Random) -> list[Grant]:
    results = []
    for table, columns in _COLUMNS.items():
        privileges: list[tuple[str, tuple[str, ...]]] = []
        for name in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            few = tuple(draw.sample(columns, draw.randint(1, len(columns))))
            chance = draw.random()
            if chance < 0.25:
                privileges.append((name, ()))
            elif chance < 0.75 and name != "DELETE":
                privileges.append((name, few))
        if privileges:
            results.append(parsed(str(Grant(tuple(privileges), "public", table))))
    return results


class _Texts:
    """Random statements over these tables and views."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def condition(self, table: str, name: str) -> str:
        column = self.draw.choice(_COLUMNS[table])
        value = f"'x{self.draw.randrange(3)}'" if column in "xw" else str(self.draw.randrange(14))
        return f"{name}.{column} {self.draw.choice(('=', '<>', '>'))} {value}"

    def query(self, depth: int = 0) -> str:
        draw, table = self.draw, self.draw.choice(list(_COLUMNS))
        columns = _COLUMNS[table]
        other = draw.choice(("a", "b"))
        items = draw.choice((
            "*", "count(*)", "1", f"t.{draw.choice(columns)}", f"min(t.{draw.choice(columns)})",
            ", ".join(f"t.{c}" for c in draw.sample(columns, draw.randint(1, len(columns)))),
            f"t.id, (SELECT max(u.{draw.choice(_COLUMNS[other])}) FROM {other} AS u)", "t IS NULL",
        ))  # fmt: skip
        source = f"{table} AS t"
        if depth < 2 and draw.random() < 0.15:
            source, items = f"({self.query(2)}) AS t", draw.choice(("count(*)", "1"))
            return f"SELECT {items} FROM {source}"
        text = f"SELECT {items} FROM {source}"
        if draw.random() < 0.2:
            text += f" JOIN {other} AS o ON o.id = t.id"
            text = text.replace("SELECT * ", "SELECT t.* ")
        if draw.random() < 0.5:
            text += f" WHERE {self.condition(table, 't')}"
            if draw.random() < 0.3:
                text += (
                    f" AND EXISTS (SELECT 1 FROM {other} AS e WHERE {self.condition(other, 'e')})"
                )
        if draw.random() < 0.2 and "(" not in items:
            text += f" ORDER BY t.{draw.choice(columns)}"
        if depth == 0 and draw.random() < 0.1:
            return f"WITH c AS ({self.query(1)}) SELECT count(*) FROM c"
        if depth == 0 and draw.random() < 0.1:
            return f"SELECT 1 WHERE EXISTS ({text}) UNION ALL SELECT count(*)::int FROM b"
        return text

    def change(self) -> str:
        draw, table = self.draw, self.draw.choice(("a", "b"))
        columns, number = _COLUMNS[table], self.draw.randint(100, 10**6)
        returning = f" RETURNING {draw.choice(('*', *columns))}" if draw.random() < 0.4 else ""
        column = draw.choice(columns[1:])
        value = "'x9'" if column in "xw" else str(draw.randint(1, 12))
        kind = draw.randrange(7)
        if kind == 0:
            return f"INSERT INTO {table} (id, {column}) VALUES ({number}, {value}){returning}"
        if kind == 1:
            update = f"{column} = {draw.choice((value, f'excluded.{column}', f't.{column}'))}"
            return (
                f"INSERT INTO {table} AS t (id, {column}) VALUES ({draw.randint(1, 12)}, {value})"
                f" ON CONFLICT (id) DO {draw.choice(('NOTHING', f'UPDATE SET {update}'))}"
                f"{returning}"
            )
        if kind == 2:
            return f"INSERT INTO {table} (id, {column}) SELECT {number} + id, {column} FROM {table}"
        if kind == 3:
            other = "b" if table == "a" else "a"
            return (
                f"MERGE INTO {table} AS t USING {other} AS s ON s.id = t.id AND"
                f" {self.condition(other, 's')} WHEN MATCHED THEN UPDATE SET {column} = {value}"
            )
        where = f" WHERE {self.condition(table, table)}" if draw.random() < 0.8 else ""
        if kind == 4:
            where = where or f" WHERE {table}.id > 90"
            return f"DELETE FROM {table}{where} AND {table}.id > 90{returning}"
        if kind == 5:
            return f"UPDATE {table} SET {column} = {value}{where}{returning}"
        return f"UPDATE {table} SET {column} = {column}{where}{returning}"


@pytest.mark.parametrize("seed", range(5))
def test_postgresql_decides(sides: tuple[psycopg.Connection[Any], Session, str], seed: int) -> None:
    plain, full, url = sides
    draw = random.Random(seed)
    texts, counts = _Texts(draw), Counter[str]()
    clerk, grants = _session(url), _granted(draw)
    try:
        with contained(clerk):
            rights.restrict(clerk.context, Rights("clerk", tuple(grants)))
        plain.execute("DROP OWNED BY clerk")
        for grant in grants:
            plain.execute(f"GRANT {grant} TO clerk")
        for _ in range(_STATEMENTS):
            sql = texts.query() if draw.random() < 0.6 else texts.change()
            plain.execute("SET ROLE clerk")
            wanted = _of_plain(plain, sql)
            plain.execute("RESET ROLE")
            result = _of_louver(clerk, sql)
            counts[result[0]] += 1
            if result[0] == _UNSUPPORTED and wanted[0] in ("", _DENIED):
                if wanted[0] == "":
                    _of_louver(full, sql)
                continue
            assert result == wanted, (sql, [str(grant) for grant in grants])
        for table in ("a", "b"):
            sql = f"SELECT * FROM {table}"
            assert _of_louver(full, sql) == _of_plain(plain, sql)
    finally:
        clerk.close()
    assert counts[_DENIED] > 10, counts
    assert counts[""] > 5, counts
    assert counts[_UNSUPPORTED] < 5, counts


@pytest.mark.parametrize(
    "sql",
    [
        "TABLE a", "SELECT a FROM a", "SELECT x FROM a", "SELECT * FROM vb", "COPY a TO STDOUT",
        "COPY (SELECT x FROM a) TO STDOUT", "COPY a (id, x) TO STDOUT", "COPY a FROM STDIN",
        "COPY b (id) FROM STDIN", "EXPLAIN SELECT x FROM a", "EXPLAIN ANALYZE SELECT x FROM a",
        "DROP TABLE a", "ALTER TABLE a RENAME x TO y2", "CREATE TABLE c AS SELECT x FROM a",
        "SELECT x INTO c FROM a", "CREATE VIEW c AS SELECT x FROM a", "TRUNCATE a", "VACUUM a",
        "CREATE TEMP TABLE c (a int)", "LOCK TABLE a", "SELECT id FROM a FOR UPDATE",
        "COMMENT ON TABLE a IS 'x'", "DELETE FROM a", "SELECT nextval('s')",
        "SELECT c.relname FROM pg_class AS c, a WHERE a.x = 'x1' AND c.relname = 'a'",
        "EXECUTE q", "DECLARE k CURSOR WITH HOLD FOR SELECT x FROM a",
    ],
)  # fmt: skip
def test_ways_around(sides: tuple[psycopg.Connection[Any], Session, str], sql: str) -> None:
    """Of a user who may see one column."""
    from louver.trusted.executor.postgres import copy_targets, copying

    _, full, url = sides
    _of_louver(full, "CREATE SEQUENCE s")
    clerk = _session(url)
    try:
        with contained(clerk):
            rights.restrict(clerk.context, Rights("clerk", (parsed("SELECT (id) ON a"),)))
        clerk.execute("PREPARE q AS SELECT x FROM a")
        assert _of_louver(clerk, "SELECT id FROM a WHERE id = 1") == ("", ["(1,)"])
        if sql.startswith("COPY"):
            with pytest.raises(errors.Error) as caught, contained(clerk):
                copying.out(clerk.context, copy_targets.begin(clerk.context, sql)[0])
            assert caught.value.sqlstate == _DENIED
        else:
            assert _of_louver(clerk, sql)[0] == _DENIED
        # It is what may be seen that counts, not what was when the session began.
        truth = (
            "SELECT has_column_privilege('a', 'x', 'SELECT'), has_table_privilege('a', 'DELETE')"
        )
        assert _of_louver(clerk, truth) == ("", ["(False, False)"])
    finally:
        clerk.close()


def test_names_are_those_of_now(sides: tuple[psycopg.Connection[Any], Session, str]) -> None:
    """What another client renames, adds or replaces is decided as it is then, at every run."""
    _, full, url = sides
    _of_louver(full, "CREATE TABLE n (id int ENC PRIMARY KEY, x text ENC)")
    _of_louver(full, "INSERT INTO n VALUES (1, 'one')")
    _of_louver(full, "CREATE VIEW nv AS SELECT id FROM n")
    clerk = _session(url)
    grants = (parsed("SELECT (id, old) ON n"), parsed("SELECT (id) ON nv"))
    try:
        with contained(clerk):
            rights.restrict(clerk.context, Rights("clerk", grants))
        for _ in range(3):
            assert clerk.execute("SELECT id FROM n WHERE id = $1", [1]).rows is not None
            assert _of_louver(clerk, "SELECT * FROM nv") == ("", ["(1,)"])
        assert _of_louver(clerk, "SELECT x FROM n")[0] == _DENIED
        for sql in (
            "DROP VIEW nv", "CREATE VIEW nv AS SELECT id, x FROM n",
            "ALTER TABLE n RENAME id TO number", "ALTER TABLE n RENAME x TO id",
        ):  # fmt: skip
            assert _of_louver(full, sql)[0] == "", sql
        assert _of_louver(clerk, "SELECT * FROM nv")[0] == _DENIED
        assert _of_louver(clerk, "SELECT number FROM n")[0] == _DENIED
        assert _of_louver(clerk, "SELECT * FROM n")[0] == _DENIED
        assert _of_louver(clerk, "SELECT id FROM n") == ("", ["('one',)"])
    finally:
        clerk.close()


def test_a_session_that_goes_to_another_user(
    sides: tuple[psycopg.Connection[Any], Session, str],
) -> None:
    """What is remembered of statements of a user who may all is nothing to the next one."""
    _, full, url = sides
    _of_louver(full, "CREATE TABLE big (id int ENC PRIMARY KEY, x text ENC)")
    _of_louver(full, "INSERT INTO big SELECT i, 'x' FROM generate_series(1, 400) AS g(i)")
    client = Client(_session(url), "any")
    sql, context = "SELECT x FROM big WHERE id = $1", client._session.context
    few = Rights("clerk", (parsed("SELECT (id) ON big"),))
    previous: Rights | None = None
    try:
        for may in (None, few, None, Rights("clerk", (parsed("SELECT ON big"),)), few):
            before = client.after()[4]
            with contained(client._session):
                rights.restrict(context, may)
            assert (client.after()[4] > before) == (may is not previous)
            previous = may
            for number in range(4):
                if may is few:
                    with pytest.raises(errors.Error) as caught:
                        client._session.execute(sql, [number + 1])
                    assert caught.value.sqlstate == _DENIED
                else:
                    assert client._session.execute(sql, [number + 1]).rows is not None
    finally:
        client.close()


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("select(ID, \"a, b\") , Delete ON s.T", 'SELECT ("id", "a, b"), DELETE ON "s"."t"'),
        ("ALL PRIVILEGES ON TABLE t",
         'SELECT, INSERT, UPDATE, DELETE ON "public"."t"'),
        ('UPDATE ("x""y") ON "T t"', 'UPDATE ("x""y") ON "public"."T t"'),
    ],
)  # fmt: skip
def test_grants_are_read(text: str, again: str) -> None:
    assert str(parsed(text)) == again
    assert parsed(again) == parsed(text)


@pytest.mark.parametrize(
    "text",
    ["", "SELECT", "SELECT ON", "SELECT () ON t", "SELECT (a ON t", "DELETE (a) ON t",
     "SELECT ON t;", "TRUNCATE ON t", "SELECT ON t, u", "SELECT (a) (b) ON t", "SELECT ON a.b.c",
     "SELECT 'a' ON t"],
)  # fmt: skip
def test_other_texts_grant_nothing(text: str) -> None:
    with pytest.raises(ValueError):
        parsed(text)


def command(*words: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "louver.trusted.apps.cli", "serve", "pg", *words], input=text,
        capture_output=True, text=True, check=True, cwd=root(),
    )  # fmt: skip
    return done.stdout + done.stderr


def test_by_the_file_of_users(tmp_path: Path) -> None:
    """Through a door: by the line of the user, in both protocols, and beside a user who may all."""
    path = tmp_path / "users"
    for name in ("full", "clerk", "nobody", "louver"):
        command("--users", str(path), "--add-user", name, text="secret\n")
    grant = ("--users", str(path), "--grant")
    command(*grant, "clerk", "SELECT (id, name), INSERT ON people")
    assert "UPDATE" in command(*grant, "clerk", 'UPDATE (name) ON "people"')
    command(*grant, "nobody", "NOTHING")
    command(*grant, "louver", "SELECT ON people")
    with opened("--users", str(path)) as door:

        def client(name: str) -> psycopg.Connection[Any]:
            dsn = door.dsn.replace("anna", name)
            return psycopg.connect(dsn, password="secret", autocommit=True)

        with client("full") as full, client("clerk") as clerk, client("nobody") as nobody:
            full.execute(
                "CREATE TABLE people (id int ENC PRIMARY KEY, name text ENC, ssn text ENC)"
            )
            full.execute(
                "INSERT INTO people SELECT i, 'n', 's' FROM generate_series(1, 400) AS g(i)"
            )
            clerk.execute("INSERT INTO people VALUES (401, 'Ann', '7')")
            for _ in range(5):
                for sql, state in (
                    ("SELECT name FROM people WHERE id = %s", None),
                    ("SELECT ssn FROM people WHERE id = %s", _DENIED),
                    ("SELECT 1 FROM people WHERE ssn = '7' AND id = %s", _DENIED),
                ):
                    if state is None:
                        row = clerk.execute(sql, (401,), prepare=True).fetchone()
                        assert row == ("Ann",)
                        continue
                    with pytest.raises(psycopg.Error) as caught:
                        clerk.execute(sql, (401,), prepare=True)
                    assert caught.value.sqlstate == state
                    assert full.execute(sql, (401,), prepare=True).fetchone() is not None
            with pytest.raises(psycopg.errors.UniqueViolation) as broken:
                clerk.execute("INSERT INTO people VALUES (401, 'Ann', '8')")
            assert broken.value.diag.message_detail is None
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                nobody.execute("SELECT id FROM people")
        with pytest.raises(psycopg.OperationalError, match=r"rights\.user"):
            client("louver")


def test_words_that_are_not_known_let_nobody_in() -> None:
    assert users.rights("a", []) is None
    assert users.rights("a", [("rights", "")]) == Rights("a", ())
    words: Sequence[tuple[str, str]]
    for words in ([("right", "")], [("rights", "SELECT")], [("rights", "%ff")]):
        with pytest.raises(errors.Error, match=r"rights|word"):
            users.rights("a", words)
