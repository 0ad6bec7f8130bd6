"""Masked sums are usual on engines without tiles, and asked for on those that have them
(docs/decisions/0045). What a column has it keeps, until its ceiling forbids it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from louver import errors
from louver.trusted import backends
from louver.trusted.executor.policy import Policy
from louver.trusted.vault import scheme
from tests.engines import suite
from tests.engines.suite import EngineTwin
from tests.engines.table import BACKENDS
from tests.generated import cases, generator

MASKED, NONE = "WITH (sum = 'masked')", "WITH (sum = 'none')"
CLAUSES = ("", MASKED, NONE, f"MAY REVEAL equality {MASKED}", "MAY REVEAL order", "USING onion",
           f"USING onion MAY REVEAL equality {NONE}", f"MAY REVEAL size {MASKED}")  # fmt: skip
TYPES = ("BIGINT", "DECIMAL(9,2)", "INTEGER NOT NULL", "VARCHAR", "DOUBLE")
NUMBERS = ("BIGINT", "DECIMAL(9,2)", "INTEGER NOT NULL")


@pytest.fixture(params=BACKENDS)
def twin(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    key_file: Path,
) -> Iterator[EngineTwin]:
    suite.register(request.param, monkeypatch)
    opened = EngineTwin(request.param, tmp_path, key_file)
    yield opened
    opened.close()


def tiles(twin: EngineTwin) -> bool:
    return twin.session.context.backend.has_tiles


def serves(twin: EngineTwin) -> bool:
    return twin.session.context.backend.serves(scheme.scheme_of("sum"))


def added(twin: EngineTwin, table: str = "t") -> dict[str, bool]:
    """Which columns the server can add."""
    return {column.name: "sum" in column.stored for column in twin.table(table).columns}


def printed(twin: EngineTwin, table: str = "t") -> str:
    return str(twin.rows(f"SHOW CREATE TABLE {table}")[0][1])


def wanted(twin: EngineTwin, type_: str, clause: str) -> bool:
    """Whether a column of this declaration is to have masked sums."""
    if not serves(twin) or type_ not in NUMBERS or "size" in clause or NONE in clause:
        return False
    return MASKED in clause or not tiles(twin)


def test_some_backends_have_tiles_and_some_do_not() -> None:
    known = {name: backends.named(name).has_tiles for name in ("duckdb", "postgresql")}
    assert known == {"duckdb": True, "postgresql": False}


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_what_a_policy_means(profile: str) -> None:
    for name in ("duckdb", "postgresql"):
        backend = backends.named(name)
        for rule, word in (({}, ""), ({"sum": "none"}, "none"), ({"sum": "masked"}, "masked")):
            policy = Policy.parse({"t": {"a": rule}}, "a test", profile).stored_on(backend)
            protection = policy.protection("t", "a", "BIGINT", None)
            usual = "none" if backend.has_tiles else "masked"
            assert scheme.word(protection, "sum") == (word or usual)
        derived = Policy(profile).stored_on(backend).derived("access")
        assert scheme.word(derived, "sum") == usual


def test_what_is_printed_makes_the_same_columns(twin: EngineTwin) -> None:
    dice = generator("usual sums")
    for _ in range(cases(12)):
        drawn = {f"c{n}": (dice.choice(TYPES), dice.choice(CLAUSES)) for n in range(4)}
        parts = [
            f"{name} {type_.removesuffix(' NOT NULL')} ENC {clause}"
            + " NOT NULL" * type_.endswith("NOT NULL")
            for name, (type_, clause) in drawn.items()
        ]
        twin.louver.execute(f"CREATE TABLE t ({', '.join(parts)})")
        assert added(twin) == {name: wanted(twin, *said) for name, said in drawn.items()}
        text, before = printed(twin), added(twin)
        assert ("sum = 'masked'" in text) == (tiles(twin) and any(before.values()))
        assert ("sum = 'none'" in text) == (
            serves(twin)
            and not tiles(twin)
            and any(NONE in c and t in NUMBERS for t, c in drawn.values())
        )
        twin.louver.execute("DROP TABLE t")
        twin.louver.execute(text)
        assert (added(twin), printed(twin)) == (before, text)
        twin.louver.execute("CREATE TABLE copy AS FROM t")
        assert added(twin, "copy") == before
        twin.louver.execute("DROP TABLE copy")
        twin.louver.execute("DROP TABLE t")


def test_what_a_column_has_it_keeps(twin: EngineTwin) -> None:
    dice = generator("kept sums")
    for _ in range(cases(6)):
        twin.fill(
            f"CREATE TABLE t (a BIGINT ENC {MASKED}, b BIGINT ENC {NONE}, c INTEGER ENC {MASKED}"
            f" NOT NULL, d VARCHAR ENC, e INTEGER ENC)",
            "INSERT INTO t VALUES (1, 2, 3, 'x', 4), (NULL, NULL, 5, NULL, NULL), (7, 8, 9, '', 0)",
        )
        before = added(twin)
        masked = {"a": True, "b": False, "c": True, "d": False, "e": not tiles(twin)}
        assert before == {name: has and serves(twin) for name, has in masked.items()}
        for _ in range(4):
            change = altered(dice)
            if "REVEAL" in change:
                twin.louver.execute(f"ALTER TABLE t {change}")
            else:
                twin.either(f"ALTER TABLE t {change}")
            assert {n: has for n, has in added(twin).items() if n in before} == before, change
            twin.run("SELECT sum(a), sum(b), avg(c), count(e), count(*) FROM t")
        twin.reopen()
        twin.run("SELECT sum(a), sum(b), avg(c), count(e), count(*) FROM t")
        twin.fill("DROP TABLE t")


def altered(dice: Random) -> str:
    name = dice.choice("abce")
    return dice.choice((
        f"ALTER COLUMN {name} MAY REVEAL {dice.choice(('access', 'equality', 'order'))}",
        f"ALTER COLUMN {name} TYPE {dice.choice(('BIGINT', 'INTEGER'))}",
        f"ALTER COLUMN {name} {dice.choice(('DROP NOT NULL', 'DROP DEFAULT'))}",
        f"ADD COLUMN f{dice.randrange(10**9)} INTEGER DEFAULT 5",
        f"ALTER COLUMN {name} TYPE BIGINT USING {name} + 1",
    ))  # fmt: skip


def test_a_policy_adds_them_later(twin: EngineTwin) -> None:
    twin.fill(f"CREATE TABLE t (a BIGINT ENC {NONE}, b BIGINT)", "INSERT INTO t VALUES (4, 1)")
    session = twin.session
    rule = Policy.parse({"t": {"a": {"sum": "masked"}}}, "a test")
    stored = rule.stored_on(session.context.backend)
    session.context = replace(session.context, policy=stored)
    twin.louver.execute("ALTER TABLE t ALTER COLUMN a MAY REVEAL access")
    twin.louver.execute(f"ALTER TABLE t ALTER COLUMN b SET ENC {MASKED}")
    assert added(twin) == dict.fromkeys("ab", serves(twin))
    twin.run("SELECT sum(a), sum(b) FROM t")


def test_packed_sums_are_copied(twin: EngineTwin) -> None:
    context = twin.session.context
    if not context.backend.serves(scheme.scheme_of("hom")):
        with pytest.raises(errors.Error):
            twin.louver.execute("CREATE TABLE t (a BIGINT ENC USING hom)")
        return
    twin.fill("CREATE TABLE t (a BIGINT ENC WITH (sum = 'hom'), b INT)")
    twin.fill("INSERT INTO t VALUES (4, 1), (NULL, 2)", "CREATE TABLE copy AS FROM t")
    twin.run("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5")
    for name in ("t", "copy"):
        assert len(twin.table(name).packs) == 1
        assert "sum = 'hom'" in printed(twin, name)
        twin.run(f"SELECT sum(a), count(a) FROM {name}")
