"""CREATE TABLE AS: protection of the copy, clauses in its list of columns, rows, and silence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from louver import errors
from louver.trusted.vault.levels import LEVELS, allows
from tests.generated import cases, generator
from tests.recorded import needles
from tests.twin import Twin

SECRET = 7_203_911_000_000
WORD = "okapi-under-the-stairs"
CLAUSES = {
    "": "plaintext",
    "ENC": "access",
    "ENC MAY REVEAL size": "size",
    "ENC MAY REVEAL equality": "equality",
    "ENC USING onion MAY REVEAL order": "order",
    "ENC USING onion": "order",
    "ENC MAY REVEAL order": "order",
}
NAMES = "abcde"


def protected_table(twin: Twin, dice: Random, number: int) -> tuple[str, dict[str, str]]:
    """A table of rows under drawn protections, and the clause of each column."""
    clauses = {name: dice.choice(list(CLAUSES)) for name in NAMES}
    listed = ", ".join(
        f"{name} {'VARCHAR' if name > 'c' else 'BIGINT'} {clauses[name]}" for name in NAMES
    )
    table = f"s{number}"
    twin.run(f"CREATE TABLE {table} ({listed})")
    rows = [
        ", ".join(
            value(name, i, clauses[name] != "") if dice.random() < 0.9 else "NULL" for name in NAMES
        )
        for i in range(dice.randint(0, 6))
    ]
    for row in rows:
        twin.run(f"INSERT INTO {table} VALUES ({row})")
    return table, clauses


def value(name: str, row: int, secret: bool) -> str:
    if name > "c":
        return f"'{WORD if secret else 'plain'} {row}'"
    return str(SECRET + row if secret else row)


def draw(dice: Random) -> tuple[list[str], list[set[str] | None], str, str]:
    """Items of a select list, the columns that each reads (None for constants), a condition, and
    the column in it.
    """
    items: list[str] = []
    reads: list[set[str] | None] = []
    for _ in range(dice.randint(1, 4)):
        first, second = dice.sample(NAMES, 2)
        form, used = dice.choice(
            [
                (first, {first}),
                (f"{first} || '!'", {first}),
                (f"concat({first}, {second})", {first, second}),
                (f"CASE WHEN {first} IS NULL THEN {second} END", {first, second}),
                ("'constant'", None),
            ]
        )
        items.append(form)
        reads.append(used)
    by = dice.choice(NAMES) if dice.random() < 0.3 else ""
    return items, reads, f" WHERE {by} IS NOT NULL" if by else "", by


@pytest.mark.parametrize("profile", ["sealed", "cryptdb"])
def test_the_copy_is_kept_as_well_as_what_it_is_computed_from(
    profile: str, open_twin: Callable[..., Twin]
) -> None:
    """Rows as plaintext DuckDB has them, the strictest protection, no secret at the server, and
    a refusal that sends nothing where a clause asks for less.
    """
    dice, twin = generator(f"create as {profile}"), open_twin(profile)
    usual = {"sealed": "access", "cryptdb": "order"}[profile]
    refused = 0
    for number in range(cases(12)):
        table, clauses = protected_table(twin, dice, number)
        levels = {n: usual if c == "ENC" else CLAUSES[c] for n, c in clauses.items()}
        items, reads, where, by = draw(dice)
        names = [f"x{i}" for i in range(len(items))]
        wanted = [dice.choice(list(CLAUSES)) if dice.random() < 0.4 else "" for _ in items]
        listed = ", ".join(map(" ".join, zip(names, wanted, strict=True)))
        query = f"SELECT {', '.join(items)} FROM {table}{where}"
        sql = f"CREATE TABLE c{number} ({listed}) AS {query}"
        every = {by} - {""} | set().union(*(used or set() for used in reads))
        bounds = [
            least(levels, (every if used is None else used | ({by} - {""}))) for used in reads
        ]
        own = [least(levels, used or set()) for used in reads]
        laxer = [
            (
                said in ("ENC MAY REVEAL size", "ENC MAY REVEAL equality", "ENC MAY REVEAL order")
                and not allows(bound, CLAUSES[said])
            )
            or ("USING" in said and not allows(bound, "order"))
            for said, bound in zip(wanted, own, strict=True)
        ]
        if any(laxer):
            sent = twin.sent()
            with pytest.raises(errors.LeakageRefused, match="would depend on"):
                twin.louver.execute(sql)
            assert twin.sent() <= sent + 1, "the version of the catalog at most"
            refused += 1
            continue
        if by and not allows(levels[by], "access"):
            # The lengths of what is copied may tell which rows there are.
            with suppress(errors.LeakageRefused):
                twin.louver.execute(sql)
            continue
        twin.run(sql)
        twin.run(f"FROM c{number}")
        for name, said, bound, used in zip(names, wanted, bounds, reads, strict=True):
            column = twin.column(f"c{number}", name)
            if not said:
                assert column.encrypted == (bound != "plaintext"), (sql, name)
                assert column.ceiling == bound, (sql, name)
            copied = used is not None and len(used) == 1 and not by
            if copied and not said and bound != "plaintext":
                source = twin.column(table, next(iter(used or ())))
                assert column.scheme == source.scheme, (sql, name)
    assert refused, "some clauses are laxer"
    hidden = [WORD.encode(), *(n for i in range(6) for n in needles(SECRET + i))]
    assert not twin.recorded.holds(*hidden)


def least(levels: dict[str, str], names: set[str]) -> str:
    return min((levels[name] for name in names), key=LEVELS.index, default="plaintext")


def test_clauses_of_the_list(twin: Twin) -> None:
    twin.fill(
        "CREATE TABLE t (a ENC, b ENC USING onion MAY REVEAL order, c) AS SELECT 1, 2, 3",
        "CREATE TABLE fewer (a ENC) AS SELECT 1, 2 AS b",
        "CREATE TABLE enc (enc ENC) AS SELECT 1",
        "CREATE TABLE quoted (\"ENC\", b) AS (SELECT 1, 2)",
        "CREATE TABLE IF NOT EXISTS t (a ENC, b) AS SELECT 5, 6, 7",
        "CREATE OR REPLACE TABLE fewer (a, b ENC MAY REVEAL size) AS SELECT 1, 2 WITH NO DATA",
        "FROM t", "FROM fewer", "FROM enc", "FROM quoted",
    )  # fmt: skip
    twin.run("CREATE TABLE given (a, b ENC) AS SELECT ?, ?::INTEGER", [4, 5])
    twin.run("FROM given")
    assert [(c.scheme, c.ceiling) for c in twin.table("t").columns] == [
        ("sealed", "access"), ("onion", "order"), ("", "plaintext"),
    ]  # fmt: skip
    assert [c.ceiling for c in twin.table("fewer").columns] == ["plaintext", "size"]
    assert not twin.column("quoted", "ENC").encrypted
    for sql in (
        "CREATE TABLE x (a INTEGER ENC) AS SELECT 1",
        "CREATE TABLE x (a ENC USING rot13) AS SELECT 1",
        "CREATE TABLE x (a ENC MAY REVEAL all) AS SELECT 1",
        "CREATE TABLE x (a, a ENC) AS SELECT 1, 2",
    ):
        with pytest.raises(errors.Error):
            twin.louver.execute(sql)


def test_the_details_of_a_copy(open_twin: Callable[..., Twin]) -> None:
    """Buckets stay buckets, and what is not searchable does not become so."""
    rules = {
        "t": {
            "a": {"scheme": "sealed", "may_reveal": "order", "order": "bucket"},
            "b": {"scheme": "onion", "text": False},
        }
    }
    twin = open_twin(rules=rules)
    twin.run("CREATE TABLE t (a BIGINT, b VARCHAR)")
    twin.run("CREATE TABLE copy AS FROM t")
    for name in "ab":
        before, after = twin.column("t", name), twin.column("copy", name)
        assert (sorted(before.stored), before.coarse) == (sorted(after.stored), after.coarse)


def test_constants_beside_secrets_are_sealed(twin: Twin) -> None:
    """What the user writes into a query of encrypted columns is not stored in plain text."""
    twin.run("CREATE TABLE t (a BIGINT ENC MAY REVEAL size, b INTEGER)")
    twin.run("INSERT INTO t VALUES (1, 2)")
    twin.run(f"CREATE TABLE c AS SELECT a, b, '{WORD}' AS note, ? AS given FROM t", [SECRET])
    assert [c.ceiling for c in twin.table("c").columns] == ["size", "plaintext", "size", "size"]
    assert not twin.recorded.holds(WORD.encode(), *needles(SECRET))


@pytest.mark.parametrize("word", ["sealed", "cryptdb", "sdb"])
def test_default_encryption(word: str, twin: Twin, open_twin: Callable[..., Twin]) -> None:
    reference = open_twin(word)
    reference.run("CREATE TABLE t (a BIGINT ENC, b VARCHAR ENC)")
    twin.louver.execute(f"SET default_encryption = '{word}'")
    assert twin.rows("SHOW default_encryption") == [(word,)]
    twin.run("CREATE TABLE t (a BIGINT, b VARCHAR)")
    twin.run(f"CREATE TABLE c AS SELECT {SECRET} AS a, '{WORD}' AS b")
    twin.run("CREATE TABLE d (a BIGINT)")
    twin.run("ALTER TABLE d ADD COLUMN b VARCHAR")
    for table in "tcd":
        actual = [(c.scheme, c.ceiling, sorted(c.stored)) for c in twin.table(table).columns]
        assert actual == [
            (c.scheme, c.ceiling, sorted(c.stored)) for c in reference.table("t").columns
        ]
    assert not twin.recorded.holds(WORD.encode(), *needles(SECRET))
    twin.louver.execute("RESET default_encryption")
    twin.run("CREATE TABLE p (a INTEGER)")
    assert not twin.table("p").has_encrypted
    with pytest.raises(errors.Error, match="default_encryption"):
        twin.louver.execute("SET default_encryption = 'rot13'")


def test_a_policy_goes_before_the_default(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin(rules={"t": {"a": "plain", "b": {"may_reveal": "size"}}})
    twin.louver.execute("SET default_encryption = 'cryptdb'")
    twin.run("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER)")
    assert [c.ceiling for c in twin.table("t").columns] == ["plaintext", "size", "order"]


def test_plain_tables_are_noticed_once(twin: Twin) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        twin.louver.execute("CREATE TABLE e (a INTEGER ENC)")
        assert not caught
        twin.louver.execute("CREATE TABLE t (a INTEGER)")
        twin.louver.execute("CREATE TABLE u AS SELECT 1 AS a")
    assert [w.category for w in caught] == [errors.LeakageWarning]
    assert "every value of t in plain text" in str(caught[0].message)
    rows = twin.rows("SHOW LEAKAGE FOR t")
    assert [(row[0], row[1], row[2]) for row in rows] == [("t", "a", "plaintext")]
    assert "stored in plain text" in rows[0][3]
    assert all(row[0] != "e" or row[2] != "plaintext" for row in twin.rows("SHOW LEAKAGE"))


MISSPELLED = {
    "CREATE TABLE staff (pay INTEGER)": "[staf] matches no table, but is similar to staff",
    "CREATE TABLE sales (price INTEGER, note VARCHAR)": "[sales] prise matches no column, but is",
    "CREATE TABLE sales AS SELECT 1 AS price": "[sales] prise matches no column, but is",
    "ALTER TABLE late ADD COLUMN bonus INTEGER": "[late] bonsu matches no column, but is",
}


def test_misspelled_policies(open_twin: Callable[..., Twin]) -> None:
    rules = {"staf": {"*": "enc"}, "sales": {"prise": "enc"}, "late": {"bonsu": "enc"}}
    twin = open_twin(rules=rules)
    twin.run("CREATE TABLE late (a INTEGER)")
    for sql, message in MISSPELLED.items():
        with pytest.raises(errors.ProgrammingError) as caught:
            twin.louver.execute(sql)
        assert caught.value.code == "policy.misspelled"
        assert message in str(caught.value)
    assert [table.name for table in twin.session.context.catalog.tables.values()] == ["late"]
    twin.fill("CREATE TABLE other (a INTEGER)", "CREATE TABLE staf (a INTEGER)")
    twin.fill("CREATE TABLE staff (a INTEGER)", "CREATE TABLE sales (prise INTEGER, price INTEGER)")


def test_a_misspelled_policy_does_not_connect(open_twin: Callable[..., Twin]) -> None:
    twin = open_twin()
    twin.run("CREATE TABLE staff (pay INTEGER)")
    twin.louver.close()
    from louver.trusted.executor.policy import Policy

    twin._policy = Policy.parse({"staff": {"pya": "enc"}}, "policy")
    with pytest.raises(errors.ProgrammingError, match=r"\[staff\] pya.*staff\.pay"):
        twin._open()
    twin._policy = Policy()
    twin._open()
