"""Tables whose rows are partly in tiles: the answers of plaintext, whatever is done with them, and
errors where the server has changed something.
"""

from __future__ import annotations

from random import Random

import pytest

from louver import errors
from louver.trusted.executor import streaming
from louver.trusted.vault import tile_forms
from louver.wire.messages import Statement
from tests.executor.tiles.stored import ATTACKS, TYPES, tiles
from tests.generated import cases, generator
from tests.twin import Twin


@pytest.mark.parametrize("type_", TYPES)
def test_values_of_every_type(twin: Twin, type_: str) -> None:
    value = TYPES[type_]
    twin.fill(
        f"CREATE TABLE t (id INTEGER ENC, v {type_} ENC, p INTEGER)",
        f"INSERT INTO t SELECT i, CASE WHEN i % 5 > 0 THEN {value} END, i FROM range(100) r(i)",
        "INSERT INTO t SELECT i, NULL, i FROM range(100, 120) r(i)",
        f"INSERT INTO t SELECT i, {value}, i FROM range(120, 140) r(i)",
    )
    assert tiles(twin).num_rows == 12 + 2 + 2
    for sql in (
        "SELECT * FROM t ORDER BY id", "SELECT v FROM t WHERE id = 17", "SELECT max(id) FROM t",
        "SELECT id FROM t WHERE v IS NULL ORDER BY id", "SELECT count(v), count(*) FROM t",
        "SELECT a.v FROM t AS a JOIN t AS b ON a.id = b.p WHERE b.p > 130 ORDER BY a.id",
        "SELECT p, v FROM t WHERE p BETWEEN 3 AND 11 ORDER BY p",
    ):  # fmt: skip
        twin.run(sql)


_CHANGES = (
    "INSERT INTO t SELECT i, i * {a}, 'x' || i % {b}, i FROM range({n}, {n} + {b}) r(i)",
    "INSERT INTO t SELECT id + 100000, a, b, p FROM t WHERE id < {n}",
    "INSERT INTO t VALUES ({n}, {a}, 'one', {b})",
    "DELETE FROM t WHERE id % {b} = 0", "DELETE FROM t WHERE p < {n}",
    "DELETE FROM t WHERE p = {b}",
    "UPDATE t SET a = a + 1 WHERE id % {b} = 1", "UPDATE t SET b = b || 'y' WHERE p > {n}",
    "UPDATE t SET a = {a}", "UPDATE t SET p = p + 1",
    "CREATE OR REPLACE TABLE u AS SELECT * FROM t", "TRUNCATE t", "CHECKPOINT",
    "INSERT INTO t SELECT * FROM u", "ALTER TABLE t ADD COLUMN c{k} BIGINT",
    "ALTER TABLE t ADD COLUMN d{k} VARCHAR DEFAULT 'd'", "ALTER TABLE t RENAME TO v{k}",
    "DROP TABLE u", "ALTER TABLE t DROP COLUMN c{k}", "ALTER TABLE t ALTER b SET NOT NULL",
    "INSERT INTO t (id, a) SELECT i, 1099511627776 + i FROM range({b}) r(i)",
)  # fmt: skip
_READS = (
    "SELECT * FROM t ORDER BY ALL",
    "SELECT * FROM u ORDER BY ALL",
    "SELECT sum(a), max(b) FROM t",
    "SELECT b, count(*) FROM t GROUP BY b ORDER BY b",
    "SELECT a FROM t WHERE id = {n} ORDER BY a",
    "SELECT t.a, u.b FROM t LEFT JOIN u ON t.id = u.id AND u.p > {n} ORDER BY ALL",
)


@pytest.mark.in_turn
@pytest.mark.parametrize("session", range(cases(12)))
def test_changes_of_all_kinds(twin: Twin, session: int) -> None:
    """Statements drawn at random, within transactions and without, of which some are undone."""
    draw = generator(f"tiles {session}")
    twin.fill(
        "CREATE TABLE t (id BIGINT ENC, a BIGINT ENC, b VARCHAR ENC, p INTEGER)",
        "CREATE TABLE u AS SELECT * FROM t",
    )
    within = False
    for _ in range(30):
        if draw.random() < 0.2:
            within = not within
            twin.either("BEGIN" if within else draw.choice(("COMMIT", "ROLLBACK")))
        if draw.random() < 0.1 and not within:
            twin.reopen()
        within = _step(twin, draw) and within
    if within:
        twin.either("ROLLBACK")
    twin.either(_READS[0])


def _step(twin: Twin, draw: Random) -> bool:
    """A change and a question; False if the open transaction was undone for an error."""
    values = {"n": draw.randint(0, 60), "a": draw.randint(-9, 9), "b": draw.randint(2, 40), "k": 1}
    change = draw.choice(_CHANGES)
    if "RENAME" in change:
        twin.either(change.format(**values))
        twin.either("ALTER TABLE v1 RENAME TO t")
        return True
    if change != "CHECKPOINT" or not twin.session.context.in_transaction:
        twin.either(change.format(**values))
    if _undone(twin):
        return False
    twin.either(draw.choice(_READS).format(**values))
    return not _undone(twin)


def _undone(twin: Twin) -> bool:
    """Whether a transaction was aborted, which is undone then."""
    aborted = twin.session.context.state.aborted
    if aborted:
        twin.either("ROLLBACK")
    return aborted


@pytest.mark.parametrize("what", ATTACKS)
@pytest.mark.parametrize("query", ["SELECT a, b FROM t", "SELECT a FROM t WHERE p = 2", "stream"])
def test_what_the_server_changes_is_found(twin: Twin, what: str, query: str) -> None:
    twin.fill(
        "CREATE TABLE t (a BIGINT ENC, b BIGINT ENC, p INTEGER)",
        "INSERT INTO t SELECT i, i + 1, i FROM range(20) r(i)",
        "INSERT INTO t SELECT i, i + 1, i % 5 FROM range(20, 60) r(i)",
    )
    table, held = twin.table("t"), tiles(twin)
    first, second = held.column("first_row").to_pylist()[:2]
    copy, other = table.tile_columns
    sql = ATTACKS[what].format(
        tiles=f'"{table.tile_table}"', copy=copy, other=other, first=first, second=second,
        layout=held.column_names[1],
    )  # fmt: skip
    assert twin.tap.run(Statement(sql, kind="write"))
    if "WHERE" in query and ("a row " in what or what == "renumbered"):
        return  # of what it reads nothing was changed
    with pytest.raises(errors.VerificationError):
        _read(twin, query)


def _read(twin: Twin, query: str) -> None:
    if query != "stream":
        twin.session.execute(query)
        return
    stream = streaming.stream(twin.session.context, "SELECT a, b FROM t")
    assert stream is not None
    assert [*stream[1]]


def test_what_is_undone_leaves_nothing(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (a BIGINT ENC, b BIGINT ENC)", "BEGIN")
    twin.fill("INSERT INTO t SELECT i, i FROM range(100) r(i)", "ROLLBACK")
    assert tiles(twin).num_rows == 0
    assert not twin.table("t").tiles
    twin.either("INSERT INTO t SELECT i, 1 // (i - 99) FROM range(100) r(i)")
    twin.either(
        "INSERT INTO t SELECT i, (CASE WHEN i = 99 THEN 'x' ELSE '1' END)::INT FROM range(100) r(i)"
    )
    twin.fill("INSERT INTO t SELECT i, i FROM range(20) r(i)", "SELECT * FROM t ORDER BY a")
    assert tiles(twin).num_rows >= 2


def test_numbers_that_need_more_bits(twin: Twin) -> None:
    """They begin a layout where they are of a larger size class; what is there is opened by its
    own.
    """
    twin.fill("CREATE TABLE t (a BIGINT ENC, b VARCHAR ENC)")
    # With a sign 5 bits, 45, 47, 46 and 62; of which 8, 48 and 64 are size classes.
    for scale in (1, 1 << 40, 1 << 42, -(1 << 41), 1 << 57):
        twin.fill(f"INSERT INTO t SELECT i * {scale}, 'x' FROM range(16) r(i)")
    layouts = {name.partition("/")[0] for name in twin.table("t").tiles}
    assert len(layouts) == 3
    twin.run("SELECT * FROM t ORDER BY a")
    twin.reopen()
    twin.run("SELECT * FROM t WHERE a > 3 ORDER BY a")


def test_columns_that_became_encrypted_later(twin: Twin) -> None:
    """They stay row by row beside others of the same rows, in the types that these come in."""
    columns = ("DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(30,1)", "BIGINT", "VARCHAR", "DATE")
    plain = ", ".join(f"p{i} {type_}" for i, type_ in enumerate(columns))
    sealed = ", ".join(f"c{i} {type_} ENC" for i, type_ in enumerate(columns))
    values = ", ".join(
        f"CASE WHEN i % 5 > 0 THEN {'make_date(2000, 1, 1 + i::INT % 28)' if t == 'DATE' else 'i'}"
        f"::{t} END"
        for t in columns * 2
    )
    twin.fill(f"CREATE TABLE t (id INTEGER, {plain}, {sealed})")
    twin.fill(f"INSERT INTO t SELECT i, {values} FROM range(40) r(i)")
    for i in range(len(columns)):
        twin.session.execute(f"ALTER TABLE t ALTER p{i} SET ENC")
        twin.run(f"SELECT max(p{i}), max(c{i}), count(*) FROM t")
        twin.run(f"SELECT count(*) FROM t AS x JOIN t AS y ON x.p{i} = y.c{i}")
    twin.fill(f"INSERT INTO t SELECT i, {values} FROM range(40, 60) r(i)")
    twin.run("SELECT * FROM t ORDER BY id")


def test_long_values_stay_with_their_rows(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_forms, "LIMIT_BYTES", 1000)
    twin.fill("CREATE TABLE t (a BIGINT ENC, b VARCHAR ENC)")
    twin.fill("INSERT INTO t SELECT i, repeat('x', 200) || i FROM range(32) r(i)")
    assert tiles(twin).num_rows == 0
    twin.fill("INSERT INTO t SELECT i, 'x' FROM range(32) r(i)")
    assert tiles(twin).num_rows == 4
    twin.run("SELECT * FROM t ORDER BY ALL")


def test_checkpoint_removes_tiles_of_rows_that_are_gone(twin: Twin) -> None:
    twin.fill("CREATE TABLE t (a BIGINT ENC, p INTEGER)")
    twin.fill(
        "INSERT INTO t SELECT i, i FROM range(80) r(i)", "DELETE FROM t WHERE p BETWEEN 5 AND 40"
    )
    assert tiles(twin).num_rows == 10
    twin.fill("CHECKPOINT")
    assert tiles(twin).num_rows == 6
    twin.fill("SELECT * FROM t ORDER BY a", "DELETE FROM t", "CHECKPOINT")
    assert tiles(twin).num_rows == 0
    twin.fill("DROP TABLE t")
    names = twin.tap.table_names()
    assert not [name for name in names if "tiles" in name]
