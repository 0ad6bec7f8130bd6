"""What every scheme's row must say and its module must do; a toy scheme is held to the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import louver
from louver.trusted.backends.duckdb import BACKEND
from louver.trusted.vault import scheme, schemes, stored_types
from louver.trusted.vault.catalog import Column
from louver.trusted.vault.levels import LEVELS
from louver.trusted.vault.protection import BUNDLES, FILES
from louver.wire.messages import Statement
from tests.inside import context_of
from tests.sources import ROOT
from tests.toy import scheme as toy

MODULES = [*schemes.modules(), toy]
WORDS = {
    "=": "a = {}", "<>": "a <> {}", "IN": "a IN ({})", "<": "a < {}", "<=": "a <= {}",
    ">": "a > {}", ">=": "a >= {}",
}  # fmt: skip
VALUES: dict[str, tuple[str, list[Any]]] = {
    "INT": ("2", [1, 2, None, 2, -5]),
    "TEXT": ("'bob'", ["ann", "bob", None, "bob", ""]),
    "DATE": ("DATE '2001-02-03'", [date(2001, 2, 3), date(1999, 1, 1), None, date(2020, 1, 1)]),
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    schemes.register(toy)
    yield
    schemes.unregister(toy)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.SCHEME.name)
def test_a_row_is_whole(module: ModuleType) -> None:
    row: scheme.Scheme = module.SCHEME
    assert (ROOT / row.spec).exists()
    assert re.match(r"Leaks: .*\nAnswers: .*\nStored as: .*\nSpec: .*\nBroken by: ", module.__doc__
                    or "", re.DOTALL)  # fmt: skip
    assert row.ceiling in LEVELS
    assert row.representations
    for representation in row.representations:
        assert scheme.scheme_of(representation.name) is row
        assert len(representation.letter) <= 1
    for leak in row.leaks():
        assert leak.level in LEVELS
        assert scheme.leak(leak.name) == leak
    names = {leak.name for leak in row.leaks()}
    states = {layer.state for layer in row.layers}
    for answer in row.answers.values():
        assert answer.leak in {"", *names}
        assert {answer.opens, answer.pairs} <= {"", *states}
        assert not answer.operation or BACKEND.has(answer.operation)
        assert answer.opens or answer.leak
    assert set(row.functions) <= BACKEND.functions
    assert not row.layers or (row.opened in row.leaks() and not row.rank(""))
    assert not row.joined or row.paired in row.leaks()


def test_every_word_of_a_declaration_is_a_row_or_a_bundle() -> None:
    assert set(scheme.using_words()) == {"sdb", "toy", *BUNDLES}
    assert scheme.policy_words() == {
        "order": ("ope", "bucket", "ore"),
        "sum": ("masked", "none", "hom"),
        "text": (False, True),
    }


def test_a_row_that_contradicts_the_others_is_refused() -> None:
    reading = replace(scheme.scheme_of("rnd"), name="other", ceiling="access")
    packing = replace(scheme.scheme_of("hom"), name="other")
    for row in (reading, packing):
        with pytest.raises(ValueError, match=r"copy|packed"):
            scheme.publish(row)
    assert "other" not in {row.name for row in scheme.rows()}


def _declared(row: scheme.Scheme) -> tuple[str, dict[str, Any]]:
    """The clause and the policy under which a column has the scheme."""
    using = row.name if row.using else "sealed"
    level = "equality" if row.name == "toy" else row.ceiling
    entry = ""
    if row.policy is not None:
        word = row.policy.says(Column("a", "INT", 1, coarse=1, scheme="sealed"))
        entry = f"{row.policy.name} = {json.dumps(row.policy.words[0] if word is None else word)}"
    return f"ENC USING {using} MAY REVEAL {level}", {"policy": f"[t]\na = {{ {entry} }}\n"}


SERVED = [m for m in MODULES if m.SCHEME.name not in ("file", "eds")]


@pytest.mark.parametrize("type_", VALUES)
@pytest.mark.parametrize("module", SERVED, ids=lambda m: m.SCHEME.name)
def test_what_a_row_says_is_what_is_stored_and_answered(
    module: ModuleType, type_: str, tmp_path: Path, key_file: Path
) -> None:
    """Stored types are those of the row, and every comparison that it answers is right."""
    row: scheme.Scheme = module.SCHEME
    clause, more = _declared(row)
    rules = tmp_path / "policy.toml"
    rules.write_text(more["policy"] if row.policy or row.name == "text" else "")
    constant, values = VALUES[type_]
    con = louver.connect(f"duckdb:///{tmp_path}/a.duckdb", keys=key_file, policy=rules)
    con.execute(f"CREATE TABLE t (a {type_} {clause})")
    con.load("t", pa.table({"a": values}))
    context = context_of(con)
    (table,) = context.catalog.tables.values()
    (column,) = table.columns
    for name in [name for name in column.stored if scheme.scheme_of(name) is row]:
        kind = scheme.representation(name).type(column)
        assert kind in stored_types.ALL
        sql = f"SELECT typeof({column.stored[name]}) FROM {context.backend.table(table)}"
        shown = context.engine.query(Statement(sql)).column(0).to_pylist()
        assert shown == [BACKEND.stored_type(kind)] * len(values)
    plain = [value for value in values if value is not None]
    for sign in [sign for sign in row.answers if sign in WORDS]:
        sql = f"SELECT a FROM t WHERE {WORDS[sign].format(constant)}"
        answer = [row[0] for row in con.execute(sql).fetchall()]
        assert sorted(answer) == sorted(_expected(plain, sign, constant))
    kinds = {fact["kind"] for fact in con.leakage().arrow().to_pylist()}
    held = any(scheme.scheme_of(name) is row for name in column.stored)
    assert not held or row.at_rest.kind in kinds
    con.close()


def _expected(values: list[Any], sign: str, constant: str) -> list[Any]:
    rows = duckdb.sql("SELECT unnest(?) AS a", params=[values])
    return [row[0] for row in rows.filter(WORDS[sign].format(constant)).fetchall()]


def test_lakes_keep_their_own() -> None:
    column = Column("a", "INTEGER", 1, True, FILES, "access")
    assert scheme.held(column, scheme.Protection(True, FILES, "access")) == ["file", "eds"]
    assert scheme.held(column, scheme.Protection(True, FILES, "size")) == ["file"]
