"""Join groups on servers that have pgcrypto: columns are compared there, elsewhere locally."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from louver.trusted import backends
from louver.trusted.backends.backend import Backend
from louver.untrusted.engines.postgres import PostgresEngine, open_url
from louver.wire.messages import Statement
from tests.postgres import servers
from tests.sources import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
VECTORS = json.loads((ROOT / "spec/vectors/eq.json").read_text(encoding="utf-8"))
_numbers = itertools.count()
WIDE = ("text", "int128")
TABLES = (
    "CREATE TABLE parent (k BIGINT ENC PRIMARY KEY, s VARCHAR ENC UNIQUE, v INTEGER ENC)",
    "CREATE TABLE child (pk BIGINT ENC REFERENCES parent (k), t VARCHAR ENC REFERENCES parent (s),"
    " n INTEGER)",
    "INSERT INTO parent SELECT i * 31 - 300, 'text ' || i || repeat('x', i), i FROM range(30) r(i)",
    "INSERT INTO child SELECT i % 25 * 31 - 300, 'text ' || i % 20 || repeat('x', i % 20), i"
    " FROM range(70) r(i)",
    "INSERT INTO child VALUES (NULL, NULL, 70), (-300, NULL, 71)",
)
JOINS = (
    "SELECT p.v, c.n FROM parent p JOIN child c ON p.k = c.pk WHERE c.n > 20 ORDER BY ALL",
    "SELECT p.v, c.n FROM parent p JOIN child c ON p.s = c.t ORDER BY ALL",
    "SELECT count(*), sum(c.n) FROM child c LEFT JOIN parent p ON p.k = c.pk AND p.s = c.t",
    "SELECT n FROM child WHERE pk IN (SELECT k FROM parent WHERE v < 9) ORDER BY ALL",
)


@pytest.fixture(scope="module")
def server() -> Iterator[servers.Server]:
    """The system's server, whose contributed extensions may be installed."""
    names = [name for name in sorted(servers.binaries()) if name != "wheel"]
    if not names:
        pytest.skip("the system has no PostgreSQL; the wheel's has no pgcrypto")
    with servers.started(servers.binaries()[names[-1]]) as running:
        engine = open_url(running.url())
        available = engine.value(
            Statement("SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'")
        )
        engine.close()
        if not available:
            pytest.skip("the system's PostgreSQL has no pgcrypto")
        yield running


def administer(server: servers.Server, sql: str) -> None:
    engine = open_url(server.url())
    engine.run(Statement(sql, kind="write"))
    engine.close()


@pytest.fixture
def engine(server: servers.Server) -> Iterator[PostgresEngine]:
    name = f"crypto_{next(_numbers)}"
    administer(server, f"CREATE DATABASE {name}")
    engine = open_url(server.url(name))
    for sql in ("CREATE SCHEMA tools", "CREATE EXTENSION pgcrypto SCHEMA tools"):
        engine.run(Statement(sql, kind="write"))
    yield engine
    engine.close()
    administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def url_of(engine: PostgresEngine, user: str = servers.USER) -> str:
    return f"{engine.address}&user={user}"


def backend_of(engine: PostgresEngine) -> Backend:
    backend = backends.named("postgresql")
    answer = engine.query(Statement(backend.probe))
    return backend.having(answer.column(0).to_pylist())


@pytest.mark.parametrize("case", [case for case in VECTORS["cases"] if case["group"]],
                         ids=lambda case: case["domain"])  # fmt: skip
def test_codes_of_a_group(engine: PostgresEngine, case: dict[str, Any]) -> None:
    backend, key = backend_of(engine), bytes.fromhex(VECTORS["det_key"])
    wide = case["domain"] in WIDE
    code_type = "uuid" if wide else "bigint"
    sql = backend.adjusted(f"$2::text::{code_type}", "join", "$1", wide=wide)
    for code, expected in zip(case["codes"], case["join_codes"], strict=True):
        answer = engine.value(Statement(f"SELECT ({sql})::text", (key, code)))
        assert answer is None if expected is None else answer is not None
        if answer is not None:
            assert (str(answer).replace("-", "") if wide else answer) == expected


@pytest.mark.parametrize("has_aes", [True, False])
def test_joins(engine: PostgresEngine, key_file: Path, has_aes: bool) -> None:
    if not has_aes:
        engine.run(Statement("DROP EXTENSION pgcrypto", kind="write"))
    plain = duckdb.connect()
    with servers.connect(url_of(engine), keys=key_file, profile="cryptdb") as con:
        for sql in TABLES:
            con.execute(sql)
            plain.execute(sql.replace(" ENC", ""))
        for sql in JOINS:
            assert con.execute(sql).fetchall() == plain.execute(sql).fetchall(), sql
        # Rows that come later have the codes of the group.
        for database in (con, plain):
            database.execute("INSERT INTO child VALUES (-269, 'text 0', 99)")
        for sql in JOINS:
            assert con.execute(sql).fetchall() == plain.execute(sql).fetchall(), sql
        together = any("EXISTS" in text for text in con.sql(JOINS[-1]).remote_sql())
        assert together is has_aes


def test_a_role_without_rights_to_it(engine: PostgresEngine) -> None:
    assert backend_of(engine).has("rejoin")
    engine.run(Statement("CREATE ROLE weak LOGIN", kind="write"))
    weak = open_url(url_of(engine, "weak"))
    assert not backend_of(weak).has("rejoin")
    weak.close()
    engine.run(Statement("DROP ROLE weak", kind="write"))


def test_a_schema_that_nobody_names_so(engine: PostgresEngine) -> None:
    """What a server says of itself is not put into statements unless it is a plain name."""
    backend = backends.named("postgresql")
    for name in ('x"; DROP', "Tools", "", "a.b", "ü"):
        assert not backend.having([name]).has("rejoin")
    assert backend.having(["tools"]).has("rejoin")
