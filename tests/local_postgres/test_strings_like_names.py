"""A string that is like the name of a table, a view or a column changes nothing that is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver.trusted.client.dbapi import Connection
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.session import Session
from louver.trusted.vault.keyring import KeyRing
from louver.wire.messages import Statement
from tests import shared
from tests.local_postgres.tapped import ServerTap
from tests.local_postgres.twin import PostgresTwin
from tests.postgres import servers

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")
_SCHEMA = (
    "CREATE DOMAIN known AS integer NOT NULL",
    "CREATE TABLE other (k bigint ENC, s text ENC)",
    "CREATE TABLE b (k bigint ENC PRIMARY KEY, s text ENC, d known ENC, p integer)",
    "CREATE TABLE c (k bigint ENC UNIQUE, w text ENC)",
    "CREATE VIEW seen AS SELECT * FROM other",
    "CREATE VIEW telling AS SELECT k FROM c WHERE w <> 'seen'",
    "CREATE FUNCTION doubled(a text) RETURNS text LANGUAGE sql RETURN a || a",
    "INSERT INTO b VALUES (1, 'x', 1, 1)",
    "INSERT INTO c VALUES (1, 'x')",
)
_NAMES = ("other", "seen", "telling", "k", "s", "d", "doubled")
_STATEMENTS = (
    "SELECT {}", "SELECT k, {} FROM b", "SELECT max(k) FROM b WHERE s || '' = {}",
    "SELECT count(*) FROM b, c WHERE b.k = c.k AND s LIKE {}",
    "SELECT * FROM telling WHERE k::text = {}",
    "UPDATE b SET s = {} FROM c WHERE b.k = c.k", "DELETE FROM c WHERE w = {}",
    "MERGE INTO b USING c ON b.k = c.k WHEN MATCHED THEN UPDATE SET s = {}",
    "WITH q AS (SELECT {} AS q) UPDATE b SET s = q FROM q",
)  # fmt: skip


@pytest.fixture(scope="module")
def tapped() -> Iterator[tuple[ServerTap, Connection]]:
    tap = ServerTap.at(servers.database_url("strings_like_names"))
    ring = KeyRing.open(shared.key_file())
    connection = Connection(Session(tap, ring, Policy("cryptdb"), language="postgres"))
    for text in _SCHEMA:
        connection.execute(text)
    yield tap, connection
    connection.close()


@pytest.mark.parametrize("statement", _STATEMENTS)
def test_what_is_sent_does_not_depend_on_strings(
    tapped: tuple[ServerTap, Connection], statement: str
) -> None:
    tap, connection = tapped
    connection.execute(statement.format("'nothing'"))  # opens layers

    def sent(literal: str) -> list[str]:
        tap.records.clear()
        connection.execute("BEGIN")
        connection.execute(statement.format(literal))
        connection.execute("ROLLBACK")
        messages = [record.message for record in tap.records]
        texts = [message.sql for message in messages if isinstance(message, Statement)]
        # A record of the ledger counts conditions.
        return [text for text in texts if "louver_" not in text.split(" AS ")[0]]

    # A dollar-quoted string within a change that depends on ENC columns is refused.
    for form in ("'{}'", "E'{}'", "$${}$$")[: 3 if statement.startswith("SELECT") else 2]:
        expected = sent(form.format("nothing"))
        for name in _NAMES:
            assert sent(form.format(name)) == expected, name


@pytest.mark.parametrize("count", [0, 3, 3_000])
def test_a_change_may_read_rows_without_their_columns(count: int) -> None:
    twin = PostgresTwin("cryptdb")
    twin.run("CREATE TABLE t (k integer ENC PRIMARY KEY, s text ENC)")
    twin.run("CREATE TABLE o (v integer ENC NOT NULL, w text ENC)")
    twin.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    twin.run(f"INSERT INTO o SELECT i, 'w' FROM generate_series(1, {count}) AS i")
    twin.run("UPDATE t SET s = 'v' FROM o WHERE t.k = 1")
    twin.run("DELETE FROM t USING o WHERE t.s = 'b'")
    twin.run("SELECT * FROM t ORDER BY k")
    twin.close()
