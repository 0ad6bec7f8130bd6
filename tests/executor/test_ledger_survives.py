"""Whatever a session does, the next one can read its ledger, and no count is lower than it was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import louver
from tests.generated import cases, generator
from tests.inside import context_of

STATEMENTS = """
UPDATE t SET b = {n} WHERE a = {n}
DELETE FROM t WHERE a = {n}
SELECT a FROM t WHERE b = {n}
INSERT INTO t (a, b) VALUES ({n}, {n})
SELECT sum(a) FROM t WHERE b < {n}
ALTER TABLE t ALTER COLUMN a MAY REVEAL order
ALTER TABLE t ALTER COLUMN a MAY REVEAL access
ALTER TABLE t ALTER COLUMN a MAY REVEAL equality
ALTER TABLE t ALTER COLUMN a TYPE BIGINT
ALTER TABLE t ALTER COLUMN a TYPE INT
ALTER TABLE t ADD COLUMN c{n} INT ENC
ALTER TABLE t DROP COLUMN c{n}
ALTER TABLE t ALTER b SET NOT NULL
ALTER TABLE t RENAME TO u
ALTER TABLE u RENAME TO t
ALTER TABLE t RENAME COLUMN a TO z
ALTER TABLE t RENAME COLUMN z TO a
ALTER TABLE t DROP COLUMN a
ALTER TABLE t ADD COLUMN a INT ENC
BEGIN
COMMIT
ROLLBACK
INSERT INTO d SELECT a FROM t WHERE a < {n}
DROP TABLE t
CREATE TABLE t (a INT ENC, b INT)
SELECT count(*) FROM t WHERE a = {n} OR a > b
""".strip().splitlines()


def counts(connection: louver.Connection) -> dict[tuple[object, ...], int]:
    """How many conditions there were, by fact."""
    ledger = context_of(connection).ledger
    return {fact.key: ledger.conditions(fact) for fact in ledger.facts() if fact.counted}


def test_the_next_session_reads_what_was_recorded(tmp_path: Path, key_file: Path) -> None:
    random = generator("ledger")
    for profile in ("sealed", "cryptdb"):
        url = f"duckdb:///{tmp_path}/{profile}.duckdb"
        for number in range(cases(6)):
            with louver.connect(url, keys=key_file, profile=profile) as connection:
                before = counts(connection)
                if number == 0:
                    connection.execute(
                        "CREATE TABLE t (a INT ENC, b INT); CREATE TABLE d (x INT ENC)"
                    )
                    connection.execute("INSERT INTO t SELECT range, range FROM range(6)")
                for _ in range(14):
                    sql = random.choice(STATEMENTS).format(n=random.randrange(6))
                    with suppress(louver.Error):
                        connection.execute(sql).fetchall()
                after = counts(connection)
                assert all(after.get(key, 0) >= count for key, count in before.items())


def test_generations_of_a_column_are_carried_together(open_connection: object) -> None:
    con = open_connection()  # type: ignore[operator]
    con.execute("CREATE TABLE t (a INT ENC, b INT); INSERT INTO t VALUES (1, 1), (2, 2)")
    for number in range(3):
        con.execute(f"UPDATE t SET b = {number + 3} WHERE a = 1")
    con.execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL order")
    con.execute("UPDATE t SET b = 9 WHERE a = 1")
    con.execute("BEGIN; ALTER TABLE t ADD COLUMN c INT; ROLLBACK")
    con.execute("UPDATE t SET b = 8 WHERE a = 1")
    before = max(counts(con).values()) + 1
    con.execute("ALTER TABLE t ADD COLUMN c INT")
    now = {
        fact.key for fact in context_of(con).ledger.facts() if not context_of(con).ledger.gone(fact)
    }
    assert sum(count for key, count in counts(con).items() if key in now) >= before > 4
