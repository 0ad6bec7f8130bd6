"""Blindness: what crosses to the server, and what lies in its file, holds no secret.

Every way into the product is tried with canaries in place of secrets, over a tap; afterwards every
byte that was sent and every byte of the database file is searched. `test_slt` does the same with
the whole SQL corpus.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from louver import errors
from louver.wire.messages import Statement
from tests.generated import generator
from tests.local_duckdb import local_duckdb
from tests.recorded import OFFSET, TEXT, RecordedSession, needles


def test_texts_of_every_way_in(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    run = watched.session.execute
    run("CREATE TABLE zoo (quokka_name VARCHAR ENC PRIMARY KEY, quokka_n BIGINT ENC, kind INT)")
    run(f"INSERT INTO zoo VALUES ('{TEXT}', {OFFSET}, 1)")
    run("INSERT INTO zoo VALUES (?, ?, 2)", [TEXT + "2", OFFSET + 1])
    change = f"ON CONFLICT DO UPDATE SET quokka_n = {OFFSET + 2}"
    run(f"INSERT INTO zoo VALUES ('{TEXT}', 5, 1) {change}")
    run(f"UPDATE zoo SET quokka_name = '{TEXT}3' WHERE quokka_n = {OFFSET + 1}")
    run(f"CREATE VIEW v AS SELECT * FROM zoo WHERE quokka_name <> '{TEXT}4'")
    run(f"CREATE TABLE copied AS SELECT quokka_name || '{TEXT}' AS quokka_both FROM zoo")
    for query in (
        f"SELECT * FROM zoo WHERE quokka_name LIKE '{TEXT}%' AND kind = 1",
        f"SELECT kind FROM zoo WHERE quokka_name = '{TEXT}' OR quokka_n IN ({OFFSET}, NULL)",
        f"SELECT * FROM v WHERE quokka_n IS NOT DISTINCT FROM {OFFSET}",
        f"SELECT '{TEXT}', max(quokka_name) FROM zoo GROUP BY ALL",
        f"SELECT * FROM zoo WHERE quokka_n = ANY([{OFFSET}, {OFFSET + 1}])",
        f"WITH x AS (SELECT '{TEXT}' AS y) SELECT * FROM zoo JOIN x ON y = quokka_name",
        "SELECT DISTINCT quokka_name, row_number() OVER (ORDER BY quokka_name) FROM zoo",
    ):
        run(query)
    for wrong in (
        f"INSERT INTO zoo VALUES ('{TEXT}', 1, 1)",
        f"SELECT * FROM zoo WHERE quokka_n = '{TEXT}'",
        f"SELECT nothing, '{TEXT}' FROM zoo",
        f"INSERT INTO zoo VALUES ('{TEXT}9', '{TEXT}', 1)",
    ):
        with pytest.raises(errors.Error):
            run(wrong)
    hidden = (TEXT.encode(), b"quokka", b"QUOKKA", *needles(OFFSET), *needles(OFFSET + 2))
    assert not watched.holds(*hidden)
    watched.session.close()


def test_no_exponent_is_reduced(tmp_path: Path, key_file: Path) -> None:
    """A number modulo phi(n) would have about 2,048 bits; offsets have at most 258."""
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sdb")
    run = watched.session.execute
    run("CREATE TABLE t (x INT ENC, y INT ENC, p INT)")
    run("CREATE TABLE u (z INT ENC)")
    run("INSERT INTO t SELECT i, i * 2, i FROM range(600) r(i)")
    run("INSERT INTO u SELECT i FROM range(5) r(i)")
    for query in (
        "SELECT x + y, x + p, x - 5 FROM t WHERE x < y AND x > 3",
        "SELECT sum(x * y + 1), avg(x), min(y) FROM t GROUP BY p HAVING sum(x) > 3",
        "SELECT x + z FROM t JOIN u ON x = z",
        "SELECT s FROM (SELECT sum(x) AS s FROM t) WHERE s > 3",
    ):
        run(query)
    exponents = [p for record in watched.tap.sent() for p in exponents_of(record)]
    assert len(exponents) > 10
    assert max(p.bit_length() for p in exponents) <= 260
    watched.session.close()


def exponents_of(message: object) -> list[int]:
    """The exponents among the constants of a statement: of updates, lifts and kept powers."""
    if not isinstance(message, Statement) or "sdb_" not in message.sql:
        return []
    exponents: list[int] = []
    for constant in message.constants:
        if not isinstance(constant, bytes) or len(constant) == 256:
            continue
        if constant[:1] == b"\x01" and len(constant) > 3:
            length = int.from_bytes(constant[1:3], "big")
            exponents.append(int.from_bytes(constant[3 : 3 + length], "big"))
        elif "sdb_powers" in message.sql or "sdb_cartprod" in message.sql:
            exponents.append(int.from_bytes(constant, "big"))
    return exponents


def test_a_trace_would_be_seen(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    watched.session.execute("CREATE TABLE t (x BIGINT, y VARCHAR)")
    watched.session.execute(f"INSERT INTO t VALUES ({OFFSET}, '{TEXT}')")
    watched.session.execute(f"SELECT * FROM t WHERE y = '{TEXT}'")
    assert watched.holds(OFFSET.to_bytes(8, "little"))
    assert watched.holds(TEXT.encode())
    watched.session.close()


def test_home_spills_privately(tmp_path: Path, key_file: Path) -> None:
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    workspace = local_duckdb(watched.session.context.local).workspace
    settings = dict(
        workspace.execute(
            "SELECT name, value FROM duckdb_settings()"
            " WHERE name IN ('temp_directory', 'temp_file_encryption')"
        ).fetchall()
    )
    folder = Path(settings["temp_directory"])
    assert settings["temp_file_encryption"] == "true"
    assert folder.stat().st_mode & 0o077 == 0
    watched.session.close()
    assert not folder.exists()
    assert duckdb.__version__ >= "1.4"


def test_every_needle_is_searched(tmp_path: Path, key_file: Path) -> None:
    """Needles that are alike are searched by what they share first; each is still seen alone."""
    watched = RecordedSession(tmp_path / "watched.duckdb", key_file, "sealed")
    alike = [needle for value in range(5) for needle in needles(OFFSET + value)]
    alike += [TEXT.encode(), TEXT[:8].encode(), TEXT.upper().encode(), b"quokka", b"q" * 40]
    draw = generator("needles")
    watched.execute("CREATE TABLE zoo (a INT)")
    for needle in alike:
        planted = watched.path.with_name(f"{watched.path.name}.planted")
        planted.write_bytes(draw.randbytes(50) + needle + draw.randbytes(50))
        expected = [other for other in alike if other in needle]
        seen = [other for other, trace in watched.holds(*alike) if trace == planted.name]
        assert sorted(seen) == sorted(expected)
        planted.unlink()
    assert not watched.holds(*alike)
    watched.session.close()
