"""Pins: kept at home, sealed, and never moved backwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from louver import errors
from louver.trusted.vault import pin as pins
from louver.trusted.vault.pin import Keys, Pins, PinState, state_directory


def test_a_pin_starts_at_nothing_and_moves_forward(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    assert pin.read() == PinState()
    pin.advance_catalog(3, "h3")
    pin.advance_ledger(2, "l2")
    assert pin.claim_epoch(lambda seen: seen + 9) == 9
    wanted = PinState(3, "h3", 2, "l2", 9)
    assert Pins(keys).pin("db").read() == wanted
    pin.advance_catalog(2, "h2")
    pin.advance_ledger(1, "l1")
    assert pin.claim_epoch(lambda seen: seen - 1) == 8
    assert pin.read() == wanted


def test_tables_of_a_lake_are_pinned_each(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    assert pin.lake_seen(5) == (0, "")
    pin.advance_lake(5, 3, "aa")
    pin.advance_lake(6, 1, "bb")
    pin.advance_lake(5, 2, "older")
    again = Pins(keys).pin("db")
    assert (again.lake_seen(5), again.lake_seen(6)) == ((3, "aa"), (1, "bb"))
    pin.advance_catalog(1, "h1")
    assert again.lake_seen(5) == (3, "aa")
    pin.forget_lake(5)
    pin.forget_lake(7)
    assert (again.lake_seen(5), again.lake_seen(6)) == ((0, ""), (1, "bb"))


def test_a_pin_of_before_there_were_lakes_is_read(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    pin.advance_catalog(3, "h3")
    assert pin.path is not None
    older = {"version": 4, "hash": "h4", "ledger_length": 0, "ledger_hash": "", "epoch": 2}
    pins._write(keys, pin.path, "db", older)
    assert pin.read() == PinState(4, "h4", 0, "", 2)
    pin.advance_lake(5, 1, "aa")
    assert pin.read() == PinState(4, "h4", 0, "", 2, {"5": [1, "aa"]})


def test_pins_of_databases_and_keys_are_apart(keys: Keys, other_keys: Keys) -> None:
    Pins(keys).pin("db").advance_catalog(1, "a")
    assert Pins(keys).pin("other").read() == PinState()
    assert Pins(other_keys).pin("db").read() == PinState()


def test_what_a_pin_refuses(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    pin.read().check_catalog(1, "h1", "", "x")
    pin.advance_catalog(3, "h3")
    pin.read().check_catalog(3, "h3", "h2", "x")
    pin.read().check_catalog(4, "h4", "h3", "x")
    pin.read().check_catalog(9, "h9", "h8", "x")
    for version, fingerprint, previous in ((2, "h2", "h1"), (3, "f3", "h2"), (4, "f4", "f3")):
        with pytest.raises(errors.VerificationError) as caught:
            pin.read().check_catalog(version, fingerprint, previous, "x")
        assert caught.value.code == "catalog.rollback"


def test_an_altered_pin_is_found(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    pin.advance_catalog(3, "h3")
    assert pin.path is not None
    original = pin.path.read_text()
    outer = json.loads(original)
    outer["body"] = outer["body"].replace('"version":3', '"version":1')
    for text in (json.dumps(outer), original[:-5], "", "[]", "{}", "null", '"x"', "\x00"):
        pin.path.write_text(text)
        with pytest.raises(errors.VerificationError) as caught:
            pin.read()
        assert caught.value.code == "pin.format"
    pin.path.write_text(original)
    assert pin.read().version == 3


def test_a_pin_of_another_database_does_not_fit(keys: Keys) -> None:
    first, two = Pins(keys).pin("one"), Pins(keys).pin("two")
    first.advance_catalog(1, "a")
    assert first.path is not None
    assert two.path is not None
    two.path.write_bytes(first.path.read_bytes())
    with pytest.raises(errors.VerificationError):
        two.read()


def test_files_are_private_and_replaced_at_once(keys: Keys) -> None:
    pin = Pins(keys).pin("db")
    pin.advance_catalog(1, "a")
    pin.advance_catalog(2, "b")
    assert pin.path is not None
    assert pin.path.stat().st_mode & 0o777 == 0o600
    assert pin.path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(path.suffix for path in pin.path.parent.iterdir()) == ["", ".pin"]


def test_a_pin_that_cannot_be_kept_is_an_error(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.OperationalError) as caught:
        Pins(keys, tmp_path / "file").pin("db").advance_catalog(1, "a")
    assert caught.value.code == "pin.io"


def test_places_are_remembered_and_forgotten(keys: Keys) -> None:
    pins = Pins(keys)
    assert pins.database_at("duckdb:/x") is None
    pins.remember("duckdb:/x", "db")
    pins.pin("db").advance_catalog(4, "d")
    assert Pins(keys).database_at("duckdb:/x") == "db"
    pins.forget("duckdb:/x")
    assert pins.database_at("duckdb:/x") is None
    assert pins.pin("db").read() == PinState()


def test_where_pins_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "own"))
    assert state_directory() == tmp_path / "own"
    monkeypatch.delenv("LOUVER_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_directory() == tmp_path / "xdg" / "louver"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory() == tmp_path / ".local" / "state" / "louver"
