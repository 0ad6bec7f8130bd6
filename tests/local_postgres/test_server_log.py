"""What a server that logs everything has in its log and its catalogs: nothing of what is secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import louver
from louver import errors
from louver._rust import postgres
from tests import shared
from tests.local_postgres.in_place import SECRETS, encrypt
from tests.postgres import servers
from tests.postgres.moving import Database

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
#: Every canary has this word, or is this number.
WORD, NUMBER = "canary", "918273645"
_DATABASE, _PLAIN = "logged", 555444333
_SETTINGS = {
    "log_statement": "all", "log_min_duration_statement": "0", "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1", "log_duration": "on", "log_lock_waits": "on",
    "log_min_messages": "debug1", "log_error_verbosity": "verbose", "log_temp_files": "0",
}  # fmt: skip
_CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_type", "pg_proc", "pg_enum",
    "pg_description", "pg_namespace", "pg_rewrite", "pg_stats", "pg_stat_activity", "pg_cursors",
    "pg_prepared_statements", "pg_locks", "pg_sequences", "pg_trigger", "pg_index",
)  # fmt: skip

STATEMENTS = (
    "CREATE TYPE canary_mood AS ENUM ('canary_fine', 'cross')",
    "CREATE DOMAIN canary_domain AS integer CHECK (VALUE <> 918273645)",
    "CREATE SCHEMA canary_schema",
    "CREATE SEQUENCE canary_sequence START 918273645",
    """CREATE TABLE parent (p integer, canary_key text ENC CONSTRAINT canary_pk PRIMARY KEY,
        canary_feels canary_mood ENC)""",
    """CREATE TABLE t (p integer, canary_k integer ENC PRIMARY KEY,
        canary_x text ENC DEFAULT 'canary default' CHECK (canary_x <> 'canary check'),
        canary_j jsonb ENC, canary_d canary_domain ENC,
        canary_r text ENC CONSTRAINT canary_fk REFERENCES parent DEFERRABLE)""",
    "CREATE INDEX canary_index ON t (canary_x, p)",
    "CREATE INDEX canary_index_2 ON t (lower(canary_x)) WHERE canary_x <> 'canary index'",
    "CREATE VIEW canary_view AS SELECT p, canary_x AS canary_y FROM t WHERE canary_x > 'canary'",
    "CREATE FUNCTION canary_function(a text) RETURNS text LANGUAGE sql RETURN a || 'canary'",
    "COMMENT ON TABLE t IS 'canary comment'",
    "COMMENT ON COLUMN t.canary_x IS 'canary comment'",
    "SET app.canary = 'canary'", "SET application_name = 'canary'",
    "INSERT INTO parent VALUES (1, 'canary parent', 'canary_fine')",
    """INSERT INTO t VALUES (1, 918273645, 'canary', '{"canary": "canary"}', 4, 'canary parent'),
        (2, 5, DEFAULT, '"canary"', 4, NULL) RETURNING canary_x || 'canary'""",
    "SELECT 'canary', canary_x AS canary, 918273645 FROM t AS canary /* canary */ -- canary",
    "SELECT * FROM t WHERE canary_x = 'canary' AND canary_k = 918273645",
    "SELECT * FROM t WHERE canary_x LIKE 'canary%' ORDER BY canary_x LIMIT 5",
    "SELECT max(canary_x), count(*) FROM t WHERE canary_k < 918273645 GROUP BY canary_k",
    "SELECT * FROM canary_view WHERE canary_y = canary_function('canary')",
    "SELECT * FROM t JOIN parent ON canary_r = canary_key WHERE p.canary_none = 1",
    "SELECT * FROM t JOIN parent ON canary_r = canary_key WHERE canary_x = 'canary'",
    "BEGIN", "SAVEPOINT canary_savepoint", "UPDATE t SET canary_x = 'canary 2' WHERE p = 1",
    "INSERT INTO t VALUES (4, 918273645, 'canary')", "ROLLBACK TO canary_savepoint",
    "INSERT INTO t VALUES (4, 44, 'canary check')", "ROLLBACK TO canary_savepoint",
    "INSERT INTO t (canary_k, canary_r) VALUES (45, 'canary missing')",
    "ROLLBACK TO canary_savepoint", "SET CONSTRAINTS canary_fk DEFERRED",
    "INSERT INTO t (canary_k, canary_r) VALUES (918273646, 'canary missing')",
    "DECLARE canary_cursor CURSOR FOR SELECT * FROM t WHERE canary_x >= 'canary'",
    "FETCH ALL FROM canary_cursor", "RELEASE canary_savepoint", "COMMIT",
    "PREPARE canary_statement AS SELECT * FROM t WHERE canary_x = $1",
    "EXECUTE canary_statement('canary')", "DEALLOCATE canary_statement",
    "LISTEN canary_channel", "NOTIFY canary_channel, 'canary payload'",
    "SELECT pg_notify('canary_channel', 'canary payload')", "UNLISTEN *",
    "SELECT pg_advisory_lock(918273645)", "SELECT pg_advisory_unlock(918273645)",
    "SELECT pg_try_advisory_lock(918273, 645)", "SELECT pg_advisory_unlock_all()",
    "SELECT pg_advisory_lock(canary_k) FROM t",
    "MERGE INTO t USING (VALUES (918273645)) AS canary(n) ON canary_k = canary.n"
    " WHEN MATCHED THEN UPDATE SET canary_x = 'canary merged'",
    "INSERT INTO t VALUES (9, 918273645) ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE"
    " SET canary_x = 'canary conflict'",
    "UPDATE t SET canary_x = 'canary locked' WHERE canary_k ="
    " (SELECT canary_k FROM t WHERE canary_x LIKE 'canary%' LIMIT 1 FOR UPDATE)",
    "DELETE FROM t WHERE canary_k IN (SELECT canary_d + 918273641 FROM t FOR UPDATE SKIP LOCKED)",
    "ALTER TABLE t ADD COLUMN canary_new text ENC DEFAULT 'canary new'",
    "ALTER TABLE t RENAME COLUMN canary_new TO canary_newer",
    "ALTER TABLE t ADD CONSTRAINT canary_check CHECK (canary_newer <> 'canary')",
    "ALTER TABLE t ALTER COLUMN canary_k TYPE bigint USING canary_k + 918273645",
    "CREATE TABLE copied AS SELECT p, canary_x FROM t WHERE canary_x LIKE 'canary%'",
    "CREATE TEMP TABLE canary_temporary (canary text)",
    "INSERT INTO canary_temporary SELECT canary_x FROM t",
    "SELECT * FROM t WHERE canary_x IN (SELECT canary FROM canary_temporary)",
    "EXPLAIN SELECT * FROM t WHERE canary_x = 'canary'",
    "SELECT 1 / (canary_k - canary_k) FROM t WHERE canary_x = 'canary'",
    "SELECT canary_x::integer FROM t", "SELECT 'canary", "canary",
    "SET canary = 1", "SELECT nextval('canary_sequence')", "TRUNCATE parent CASCADE",
    "ALTER TABLE t DROP COLUMN canary_j", "DROP VIEW canary_view",
)  # fmt: skip


@contextmanager
def logged(admin: postgres.Session, database: str) -> Iterator[list[str]]:
    """The lines that the server logs meanwhile, of new sessions with this database all that it can;
    they are there in the end.
    """
    for name, value in _SETTINGS.items():
        admin.run([(f"ALTER DATABASE {database} SET {name} = '{value}'", [])])
    log, lines = Path(servers.shared().folder) / "log", list[str]()
    before = log.stat().st_size
    yield lines
    for name in _SETTINGS:
        admin.run([(f"ALTER DATABASE {database} RESET {name}", [])])
    with log.open("rb") as file:
        file.seek(before)
        # What sets and resets this is in it as well.
        lines += file.read().decode().splitlines()


@pytest.fixture
def admin() -> Iterator[postgres.Session]:
    servers.database_url(_DATABASE)
    folder = str(servers.shared().folder)
    session = postgres.Session(folder, servers.PORT, servers.USER, _DATABASE)
    yield session
    session.close()


def test_neither_log_nor_catalogs_have_what_is_secret(admin: postgres.Session) -> None:
    url, keys = servers.database_url(_DATABASE), str(shared.key_file())
    outcomes = dict[str, str]()
    with (
        logged(admin, _DATABASE) as lines,
        louver.connect(url, keys, "cryptdb", language="postgres") as con,
    ):
        for text in STATEMENTS:
            try:
                con.execute(text)
            except errors.Error as error:
                outcomes[text] = error.code
            _require_unknown(admin, text)
        with con.cursor().copy("COPY t (p, canary_k, canary_x) FROM STDIN (FORMAT csv)") as copy:
            copy.write(f"8,{NUMBER},canary copied\n")
        with con.cursor().copy("COPY (SELECT canary_x FROM t) TO STDOUT") as copy:
            assert WORD in b"".join(copy).decode()
        con.execute("SELECT * FROM t WHERE canary_x = $1", ["canary"]).fetchall()
        con.execute(f"INSERT INTO t (p, canary_k) VALUES ({_PLAIN}, 3)")
        _require_unknown(admin, "COPY")
    assert any(str(_PLAIN) in line for line in lines)  # what is plain is there
    telling = [line for line in lines if WORD in line.lower() or NUMBER in line]
    assert not telling, "\n".join(telling[:20])
    assert len(outcomes) < 20, outcomes


def test_no_value_is_logged_while_a_database_is_encrypted_in_place(
    admin: postgres.Session, tmp_path: Path
) -> None:
    """Definitions are in the plan, which the server logs; values are read and come back sealed."""
    shop = Database()
    shop.run(SECRETS)
    with logged(admin, shop.name) as lines:
        encrypt(shop, tmp_path, "--yes")
    assert any("hush_name" in line for line in lines)
    values = ("hush 7", "hush 8", "hush 9", "hush 7hush 14")
    assert not [line for line in lines if any(value in line for value in values)]


def _require_unknown(admin: postgres.Session, text: str) -> None:
    """Search the server's catalogs."""
    for name in _CATALOGS:
        own = " WHERE pid <> pg_backend_pid()" if name == "pg_stat_activity" else ""
        query = f"SELECT count(*) FROM (SELECT t::text AS row FROM {name} AS t{own}) AS s"
        ((_, _, (counts,)),) = admin.run(
            [(f"{query} WHERE lower(row) LIKE '%' || $1 || '%' OR row LIKE '%' || $2 || '%'",
              [WORD, NUMBER])]
        )  # fmt: skip
        assert counts[0].as_py() == 0, (name, text)
