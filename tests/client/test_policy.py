"""Policies: what ENC means, from SQL, file and profile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.executor.policy import Policy
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault import scheme
from louver.trusted.vault.catalog import Column
from louver.trusted.vault.protection import PLAIN, Protection

TEXT = """
profile = "sdb"

[staff]
salary = { scheme = "sdb" }
name = { may_reveal = "equality" }
Born = { scheme = "sealed", may_reveal = "order" }
note = "enc"

["sales.orders"]
"*" = "sealed"
id = "plain"

["*"]
secret = "enc"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "policy.toml"
    path.write_text(TEXT)
    return Policy.read(path)


def enc(scheme: str = "", ceiling: str = "") -> Declared:
    return Declared("c", scheme, ceiling)


@pytest.mark.parametrize(
    ("profile", "type_", "declared", "wanted"),
    [
        ("sealed", "BIGINT", None, PLAIN),
        ("sealed", "BIGINT", enc(), Protection(True, "sealed", "access")),
        ("sealed", "BIGINT", enc(ceiling="size"), Protection(True, "sealed", "size")),
        ("sealed", "BIGINT", enc("sdb"), Protection(True, "sdb", "plaintext")),
        ("sealed", "VARCHAR", enc("sdb"), Protection(True, "sealed", "access")),
        ("sdb", "BIGINT", enc(), Protection(True, "sdb", "plaintext")),
        ("sdb", "DECIMAL(9,2)", enc(), Protection(True, "sdb", "plaintext")),
        ("sdb", "DOUBLE", enc(), Protection(True, "sealed", "access")),
        ("sdb", "BIGINT", enc(ceiling="order"), Protection(True, "sealed", "order")),
        ("sdb", "BIGINT", enc("sealed"), Protection(True, "sealed", "access")),
    ],
)
def test_profile(profile: str, type_: str, declared: Declared | None, wanted: Protection) -> None:
    assert Policy(profile).protection("t", "c", type_, declared) == wanted


def test_sdb_below_plaintext_is_refused() -> None:
    with pytest.raises(errors.LeakageRefused) as caught:
        Policy().protection("t", "c", "BIGINT", enc("sdb", "order"))
    assert caught.value.code == "enc.ceiling"


ONION = Protection(True, "onion", "order", words={"text": True})


def test_under_cryptdb_a_bare_enc_is_an_onion() -> None:
    policy = Policy("cryptdb")
    assert policy.protection("t", "c", "BIGINT", None) == PLAIN
    assert policy.protection("t", "c", "BIGINT", enc("sealed")).scheme == "sealed"
    assert policy.protection("t", "c", "BIGINT", enc()) == ONION
    low = policy.protection("t", "c", "BIGINT", enc(ceiling="access"))
    assert (low.scheme, low.ceiling) == ("onion", "access")
    assert Policy().protection("t", "c", "BIGINT", enc("onion")) == ONION


def test_what_a_rule_says_beyond_scheme_and_ceiling() -> None:
    text = {
        "t": {
            "a": {"scheme": "onion", "text": False, "join": "people", "sum": "none"},
            "b": {"may_reveal": "order", "order": "ore", "text": True},
            "c": {"scheme": "sdb", "text": True},
        }
    }
    policy = Policy.parse(text, "policy")
    protections = [policy.protection("t", name, "VARCHAR", None) for name in "abc"]
    assert protections[0] == Protection(True, "onion", "order", "people", {"sum": "none"})
    assert protections[1] == Protection(True, "sealed", "order", "", {"order": "ore", "text": True})
    column = Column("c", "VARCHAR", 1, encrypted=True)
    assert "text" not in scheme.held(column, protections[2])
    searchable = replace(protections[2], ceiling="equality")
    assert "text" in scheme.held(column, searchable)
    shares = policy.protection("t", "c", "BIGINT", None)
    assert (shares.scheme, "text" in scheme.held(column, shares)) == ("sdb", False)


@pytest.mark.parametrize(
    "rule", [{"order": "ord"}, {"sum": True}, {"join": 1}, {"text": "yes"}, {"group": "x"}]
)
def test_a_rule_with_an_unknown_word_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(errors.Error) as caught:
        Policy.parse({"t": {"a": rule}}, "policy")
    assert caught.value.code in ("policy.unknown", "policy.format")


def test_unknown_profile() -> None:
    with pytest.raises(errors.InterfaceError) as caught:
        Policy("rot13")
    assert caught.value.code == "profile.unknown"


@pytest.mark.parametrize(
    ("table", "column", "wanted"),
    [
        ("staff", "salary", Protection(True, "sdb", "plaintext")),
        ("STAFF", "Salary", Protection(True, "sdb", "plaintext")),
        ("staff", "name", Protection(True, "sealed", "equality")),
        ("staff", "born", Protection(True, "sealed", "order")),
        ("staff", "note", Protection(True, "sdb", "plaintext")),
        ("staff", "age", PLAIN),
        ("staff", "secret", Protection(True, "sdb", "plaintext")),
        ("sales.orders", "amount", Protection(True, "sealed", "access")),
        ("sales.orders", "secret", Protection(True, "sealed", "access")),
        ("sales.orders", "id", PLAIN),
        ("orders", "amount", PLAIN),
    ],
)
def test_file(policy: Policy, table: str, column: str, wanted: Protection) -> None:
    assert policy.protection(table, column, "BIGINT", None) == wanted


def test_sql_goes_before_the_file(policy: Policy) -> None:
    def protection(column: str, declared: Declared) -> Protection:
        return policy.protection("staff", column, "BIGINT", declared)

    assert protection("born", enc()) == Protection(True, "sealed", "order")
    assert protection("born", enc(ceiling="size")) == Protection(True, "sealed", "size")
    assert protection("born", enc("sdb")) == Protection(True, "sdb", "plaintext")
    assert protection("salary", enc("sealed")) == Protection(True, "sealed", "access")
    assert policy.protection("sales.orders", "id", "BIGINT", enc()).encrypted


def test_profile_argument_goes_before_the_file(tmp_path: Path, policy: Policy) -> None:
    assert policy.profile == "sdb"
    assert Policy.read(tmp_path / "policy.toml", "sealed").profile == "sealed"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[t]\na = 'encrypted'", "policy.unknown"),
        ("[t]\na = {scheme = 'garlic'}", "policy.unknown"),
        ("[t]\na = {may_reveal = 'some'}", "policy.unknown"),
        ("[t]\na = {ceiling = 'order'}", "policy.unknown"),
        ("[t]\na = {may_reveal = 3}", "policy.format"),
        ("[t]\na = 3", "policy.format"),
        ("t = 3", "policy.format"),
        ("[t]\na = {scheme = 'sdb', may_reveal = 'order'}", "policy.format"),
        ("[t", "policy.format"),
        ("profile = 'x'", "profile.unknown"),
    ],
)
def test_bad_file(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(errors.Error) as caught:
        Policy.read(path)
    assert caught.value.code == code


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(errors.OperationalError) as caught:
        Policy.read(tmp_path / "nothing.toml")
    assert caught.value.code == "policy.file"
