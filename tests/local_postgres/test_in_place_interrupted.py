"""A database that is encrypted within itself while processes are killed, sessions end, and other
clients write: no row is lost or there twice.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import louver
from louver._rust import postgres
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import in_place as within
from louver.trusted.executor.postgres import trial
from tests import shared
from tests.client.harness import answers, key_file, run
from tests.generated import SEED, cases
from tests.local_postgres import moving
from tests.local_postgres.in_place import encrypt, seen, state
from tests.postgres import servers
from tests.postgres.moving import Database


@pytest.fixture
def shop() -> Database:
    return Database()


class Moving:
    """A database before, and what it must be in the end."""

    def __init__(self, shop: Database, folder: Path) -> None:
        self.shop, self.folder = shop, folder
        shop.run(moving.RICH)
        self.views = ("few", '"Sales dept".fewer')
        self.definitions = moving.definitions(shop)
        self.rows = {table: shop.texts(table) for table in (*moving.TABLES, *self.views)}

    def plaintext(self) -> set[str]:
        """The tables that are there as plaintext; each with all of its rows."""
        tables = set()
        for schema, name, columns in self.shop.run(
            "SELECT n.nspname::text, c.relname::text, (SELECT string_agg(attname::text, ',')"
            " FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0) FROM pg_class AS c"
            " JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'r'"
            " AND nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'louver')"
            " AND relname <> 'plan'"
        ):
            if "row_id" in columns.split(","):
                continue
            whole = next(t for t in moving.TABLES if t.rpartition(".")[2].strip('"') == name)
            assert self.shop.texts(f'"{schema}"."{name}"') == self.rows[whole], name
            tables.add(whole)
        return tables

    def encrypted(self) -> set[str]:
        """The tables that are there as ciphertext; each with all of its rows."""
        tables = set()
        with louver.connect(self.shop.url, keys=key_file(), language="postgres") as con:
            names = con.execute(
                "SELECT c.relname FROM pg_class AS c JOIN pg_namespace AS n"
                " ON n.oid = c.relnamespace WHERE c.relkind = 'r'"
                " AND n.nspname IN ('public', 'Sales dept')"
            )
            for (name,) in names.fetchall():
                whole = next(t for t in moving.TABLES if t.rpartition(".")[2].strip('"') == name)
                done = con.execute(f"SELECT x::text FROM (SELECT * FROM {whole}) AS x ORDER BY 1")
                assert [text for (text,) in done.fetchall()] == self.rows[whole], whole
                tables.add(whole)
        return tables

    def is_one_of_two(self) -> None:
        """Every table is there once."""
        plain, encrypted = self.plaintext(), self.encrypted()
        assert plain | encrypted == set(moving.TABLES)
        assert not plain & encrypted

    def is_done(self) -> None:
        """Everything is encrypted, nothing else is there, and it comes back as it was."""
        assert not self.plaintext()
        assert self.encrypted() == set(moving.TABLES)
        assert self.shop.run("SELECT count(*) FROM pg_namespace WHERE nspname ~ '^louver_'") == [
            [0]
        ]
        back = Database()
        run("-u", self.shop.url, "export", "--to", back.url, folder=self.folder)
        assert moving.definitions(back) == self.definitions
        for table, texts in self.rows.items():
            assert back.texts(table) == texts, table


def process(shop: Database, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    own = {
        **os.environ, "LOUVER_STATE_DIR": str(shared.state(folder / "state")),
        "LOUVER_KEYS": key_file(),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "louver.trusted.apps.cli",
        "encrypt",
        shop.url,
        "--in-place",
        *words,
    ]
    return subprocess.Popen(
        command, env=own, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def test_a_killed_process_and_lost_sessions(shop: Database, tmp_path: Path) -> None:
    dice, moved, ended = random.Random(SEED), Moving(shop, tmp_path), 0
    for number in range(cases(8)):
        child = process(shop, tmp_path, "--yes", "--resume")
        time.sleep(dice.uniform(0.4, 3.0))
        ended += child.poll() is None
        if number % 2:
            shop.run(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        else:
            child.kill()
        said, _ = child.communicate()
        assert b"Traceback" not in said
        moved.is_one_of_two()
    assert ended
    last = process(shop, tmp_path, "--yes", "--resume")
    said, _ = last.communicate()
    assert last.returncode == 0, said
    moved.is_done()


def test_two_at_once(shop: Database, tmp_path: Path) -> None:
    moved = Moving(shop, tmp_path)
    children = [process(shop, tmp_path, "--yes", "--resume") for _ in range(2)]
    for child in children:
        said, _ = child.communicate(timeout=120)
        assert b"cannot be brought along" not in said
        assert b"Traceback" not in said
    moved.is_one_of_two()
    encrypt(shop, tmp_path, "--yes", "--resume")
    moved.is_done()


def test_an_interruption_before_or_behind_any_commit(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice, moved, commits, say = random.Random(SEED), Moving(shop, tmp_path), 0, trial.say
    until, before = 0, False

    def interrupted(context: Context, sql: str) -> Any:
        nonlocal commits
        if sql != "COMMIT":
            return say(context, sql)
        commits += 1
        if commits == until and before:
            raise KeyboardInterrupt
        done = say(context, sql)
        if commits == until:
            raise KeyboardInterrupt
        return done

    left, before = 3, True
    while left:
        commits, until, before = 0, dice.randrange(1, min(left, 3) + 1), not before
        with monkeypatch.context() as patch:
            patch.setattr(trial, "say", interrupted)
            encrypt(shop, tmp_path, "--yes", "--resume", code=130)
        moved.is_one_of_two()
        begun = "SELECT count(*) FROM pg_namespace WHERE nspname = 'louver_plaintext'"
        left = 0
        if shop.run(begun) == [[1]]:
            (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
            assert body["code"] == "source.begun"
            ((left,),) = shop.run("SELECT count(DISTINCT part) FROM louver_plaintext.plan")
    moved.is_done()


def test_another_policy_does_not_go_on(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY, secret text);\nCREATE TABLE u (k integer);\n"
             "INSERT INTO t VALUES (1, 'canary-1')")  # fmt: skip
    policy = tmp_path / "policy.toml"
    policy.write_text('[t]\nsecret = { scheme = "sealed" }\n', encoding="utf-8")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(within._Move, "make", interrupted)
        encrypt(shop, tmp_path, "--policy", str(policy), "--yes", code=130)
    (body,) = answers(encrypt(shop, tmp_path, "--resume", code=1))
    assert body["code"] == "source.policy"
    encrypt(shop, tmp_path, "--policy", str(policy), "--resume")
    assert not seen(shop, "canary")
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM t").fetchall() == [(1, "canary-1")]


def session(shop: Database) -> postgres.Session:
    """Another client."""
    return postgres.Session(str(servers.shared().folder), servers.PORT, servers.USER, shop.name)


def test_what_others_depend_on_is_removed_later(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TYPE mood AS ENUM ('fine');\nCREATE TABLE t (m mood);\n"
             "INSERT INTO t VALUES ('fine')")  # fmt: skip

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(within._Database, "_end", interrupted)
        encrypt(shop, tmp_path, "--yes", code=130)
    shop.run("CREATE TABLE public.fresh (m public.mood)")
    (body,) = answers(encrypt(shop, tmp_path, "--resume", code=1))
    assert body["code"] == "source.left"
    assert "type mood" in body["error"]
    shop.run("DROP TABLE public.fresh;\nCREATE TABLE public.other (k integer)")
    (body,) = answers(encrypt(shop, tmp_path, "--resume"))
    assert "Still there as plaintext: table public.other." in body["notices"]
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT m FROM t").fetchall() == [("fine",)]


@pytest.mark.parametrize("sql", ["INSERT INTO t VALUES (2)", "SELECT * FROM v"])
def test_tables_in_use_are_refused(sql: str, shop: Database, tmp_path: Path) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY);\nINSERT INTO t VALUES (1);\n"
             "CREATE VIEW v AS SELECT k FROM t")  # fmt: skip
    before = state(shop)
    other = session(shop)
    other.run([("BEGIN", [])])
    other.run([(sql, [])])
    (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "source.locked"
    other.close()
    assert state(shop) == before
    encrypt(shop, tmp_path, "--yes")


def test_what_others_wrote_by_then_is_there(shop: Database, tmp_path: Path) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY, name text);\nCREATE TABLE u (k integer)")
    written, ends = list[int](), threading.Event()

    def write() -> None:
        other = session(shop)
        for number in range(10**6):
            if ends.is_set():
                break
            try:
                other.run([(f"INSERT INTO public.t VALUES ({number}, 'x')", [])])
            except postgres.ServerError:
                break
            written.append(number)
        other.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        encrypt(shop, tmp_path, "--yes")
    finally:
        ends.set()
        thread.join()
    assert written
    with louver.connect(shop.url, keys=key_file()) as con:
        rows = con.execute("SELECT k FROM t ORDER BY k").fetchall()
    assert rows == [(number,) for number in written]


def test_definitions_that_change_meanwhile(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run("CREATE TABLE t (k integer PRIMARY KEY)")
    tried = within._Database._tried

    def meanwhile(*arguments: Any) -> Any:
        shop.run("CREATE TABLE public.later (k integer)")
        return tried(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(within._Database, "_tried", meanwhile)
        (body,) = answers(encrypt(shop, tmp_path, "--yes", code=1))
    assert body["code"] == "source.changed"
    encrypt(shop, tmp_path, "--yes")
    with louver.connect(shop.url, keys=key_file()) as con:
        assert con.execute("SELECT * FROM t, later").fetchall() == []
