"""SET of a column to DEFAULT, and of a part of an array or of a jsonb, as on plaintext."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from louver import errors
from tests.generated import cases, generator
from tests.local_postgres.twin import PostgresTwin

pytestmark = pytest.mark.filterwarnings("ignore::louver.LeakageWarning")


@pytest.fixture(scope="module", params=["cryptdb", "sealed"])
def twin(request: pytest.FixtureRequest) -> Iterator[PostgresTwin]:
    opened = PostgresTwin(request.param)
    opened.run(
        "CREATE TABLE t (id integer ENC PRIMARY KEY, r integer[] ENC DEFAULT '{7}', m text[] ENC,"
        " j jsonb ENC DEFAULT '{}', n integer ENC DEFAULT 4, a text ENC, p integer DEFAULT 3)"
    )
    opened.run(
        "INSERT INTO t (id, r, m, n) VALUES (1, '{1,2}', '{{a,b},{c,d}}', 5), (2, NULL, NULL, 1),"
        " (3, '{5}', '{}', 2)"
    )
    yield opened
    opened.close()


def test_parts_and_defaults_are_set_as_on_plaintext(twin: PostgresTwin) -> None:
    random = generator("assignments")
    for number in range(cases(40)):
        items = random.sample([
            f"r[{random.randint(1, 4)}] = {random.randint(0, 9)}", f"r[{random.randint(1, 3)}] = n",
            "r[2:3] = '{7,8}'", "r[:2] = ARRAY[n, id]", "r = DEFAULT", "n = DEFAULT", "p = DEFAULT",
            "n = n + 1", "m[1][2] = 'it''s, = [] WHERE'", "m = DEFAULT", "j['a'] = '5'",
            "j['a']['b'] = '[1]'", "a = DEFAULT", "a = 'r[1] = 2'", "(n, a) = (DEFAULT, 'x')",
        ], k=random.choice((1, 1, 2)))  # fmt: skip
        where = random.choice(("", " WHERE n > 2", " WHERE id = 1", " WHERE r IS NOT NULL"))
        back = random.choice(("", " RETURNING *"))
        sql = f"UPDATE t SET {', '.join(items)}{where}{back}"
        outcome = twin.differs(sql)
        assert not outcome, (sql, outcome)
        if number % 8 == 0:
            twin.run("SELECT * FROM t ORDER BY id")
    twin.run("SELECT * FROM t ORDER BY id")


def test_other_tables_and_placeholders(twin: PostgresTwin) -> None:
    sql = "UPDATE t SET r[$1] = $2, n = $2 WHERE id = $3 RETURNING r::text, n"
    for given in ([1, 8, 1], [2, None, 2], [4, 3, 3], [1, 9, 1]):
        twin.run(sql, given)
    twin.run("UPDATE t AS x SET r[1] = y.n FROM t AS y WHERE y.id = x.id + 1")
    twin.run(
        "MERGE INTO t USING (VALUES (1)) v(k) ON id = k WHEN MATCHED THEN UPDATE SET n = DEFAULT"
    )
    twin.run(
        "INSERT INTO t (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = DEFAULT, r = DEFAULT"
    )
    twin.run("SELECT * FROM t ORDER BY id")
    for wrong in ("UPDATE t SET r[1] = 'x'", "UPDATE t SET missing[1] = 2", "UPDATE t SET n[1] = 2",
                  "UPDATE t SET r[1] = 1, r[2] = 2, r = '{}'", "UPDATE t SET r[] = 1"):  # fmt: skip
        assert twin.on_louver(wrong).state == twin.on_plain(wrong).state, wrong


def test_a_part_carries_what_the_whole_would(twin: PostgresTwin) -> None:
    twin.louver.execute(
        "CREATE TABLE s (k integer, r integer[] ENC MAY REVEAL access,"
        " n integer ENC MAY REVEAL size)"
    )
    twin.louver.execute("INSERT INTO s VALUES (1, '{1}', 5)")
    for sql in ("UPDATE s SET r[1] = n", "UPDATE s SET r[n] = 1", "UPDATE s SET r[1:n] = '{1}'"):
        outcome = twin.on_louver(sql)
        assert isinstance(outcome.error, errors.LeakageRefused), (sql, outcome)
