"""SHOW CREATE TABLE: what it prints creates the same table again, without a policy."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from louver import errors
from louver.trusted.vault.catalog import Table
from tests.generated import cases, generator
from tests.twin import Twin

CLAUSES = (
    "", "ENC", "ENC USING onion", "ENC MAY REVEAL order WITH (order = 'bucket')",
    "ENC MAY REVEAL size", "ENC USING onion MAY REVEAL order WITH (join = 'it''s', text = false)",
    "ENC MAY REVEAL equality WITH (text = true, join = 'g')", "ENC WITH (sum = 'none')",
    "ENC WITH (sum = 'masked')", "ENC USING onion WITH (sum = 'masked')",
    "ENC MAY REVEAL order WITH (order = 'ore')", "ENC WITH (sum = 'hom')",
)  # fmt: skip
TYPES = (
    "BIGINT", "VARCHAR", "DECIMAL(9,2)", "DATE", "STRUCT(a INTEGER, \"not\" VARCHAR)", "INTEGER[]",
    "TIMESTAMP WITH TIME ZONE", "ENUM('NOT', 'a,b')", "DOUBLE",
)  # fmt: skip
TAILS = ("", "NOT NULL", "DEFAULT NULL", "UNIQUE", "CHECK (true)")
NAMES = ("a", '"primary"', '"with space"', '"ENC"', "order_", '"check"')


def definition(dice: Random) -> str:
    names = dice.sample(NAMES, dice.randint(1, len(NAMES)))
    parts = [
        f"{name} {dice.choice(TYPES)} {dice.choice(CLAUSES)} {dice.choice(TAILS)}" for name in names
    ]
    if dice.random() < 0.3:
        parts.append("PRIMARY KEY (k)")
        parts.insert(0, f"k BIGINT {dice.choice(CLAUSES[:4])}")
    return f"({', '.join(parts)})"


def shape(table: Table) -> list[tuple[object, ...]]:
    """All that is said of the columns but their names on the server."""
    names = {c.id: c.name for c in table.columns}
    packed = sorted(names[i] for ids in table.packs.values() for i in ids)
    return [
        (c.name, c.type, c.scheme, c.ceiling, sorted(c.stored), c.coarse, c.bits, c.layers,
         c.group.partition("#")[0], c.unique, c.nullable, packed)
        for c in table.columns
    ]  # fmt: skip


def test_what_is_printed_creates_the_table_again(twin: Twin) -> None:
    dice, done = generator("printed"), 0
    for _ in range(cases(40)):
        sql = f"CREATE TABLE t {definition(dice)}"
        try:
            twin.louver.execute(sql)
        except errors.Error:
            continue
        done += 1
        twin.louver.execute("COMMENT ON TABLE t IS 'it''s a table'")
        before = shape(twin.table("t"))
        ((name, printed),) = twin.rows("SHOW CREATE TABLE t")
        assert name == "t"
        twin.louver.execute("DROP TABLE t")
        twin.louver.execute(printed)
        assert shape(twin.table("t")) == before, printed
        assert twin.rows("SHOW CREATE TABLE main.t") == [("t", printed)]
        twin.louver.execute("DROP TABLE t")
    assert done > 20
    with pytest.raises(errors.ProgrammingError, match="t"):
        twin.louver.execute("SHOW CREATE TABLE t")


def test_indexes_and_comments_are_printed(twin: Twin) -> None:
    twin.fill(
        "CREATE SCHEMA s",
        "CREATE TABLE s.t (a INTEGER ENC, b INTEGER)",
        "CREATE UNIQUE INDEX i ON s.t (b)",
        "COMMENT ON COLUMN s.t.a IS 'x'",
    )
    ((_, printed),) = twin.rows("SHOW CREATE TABLE s.t")
    assert "a INTEGER ENC USING sealed MAY REVEAL access, b INTEGER" in printed
    assert "CREATE UNIQUE INDEX i" in printed
    assert """COMMENT ON COLUMN "s"."t"."a" IS 'x'""" in printed


@pytest.mark.parametrize(
    "options", ["order = 'rot13'", "scheme = 'sdb'", "text = 'yes'", "join = true", "x = 1"]
)
def test_unknown_options_are_refused(options: str, open_twin: Callable[..., Twin]) -> None:
    twin = open_twin()
    with pytest.raises(errors.ProgrammingError) as caught:
        twin.louver.execute(f"CREATE TABLE t (a VARCHAR ENC WITH ({options}))")
    assert caught.value.code == "enc.options"


def test_names_that_are_enc(open_twin: Callable[..., Twin]) -> None:
    """DuckDB prints ENC without quotes, also where a foreign key names a table or column so."""
    twin = open_twin()
    twin.louver.execute('CREATE TABLE "ENC" ("ENC" VARCHAR ENC PRIMARY KEY)')
    twin.louver.execute('CREATE TABLE t (a VARCHAR ENC REFERENCES "ENC" ("ENC"), b VARCHAR ENC)')
    before = shape(twin.table("t"))
    ((_, printed),) = twin.rows("SHOW CREATE TABLE t")
    twin.louver.execute("DROP TABLE t")
    twin.louver.execute(printed)
    assert shape(twin.table("t")) == before
