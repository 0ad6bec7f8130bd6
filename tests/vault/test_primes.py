"""Primes are searched for once per key file, whatever becomes of the place where that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver import errors
from louver.trusted.vault import primes
from louver.trusted.vault.keyring import KeyRing

BITS = 256


class Counting:
    """A key ring that counts the searches."""

    def __init__(self, ring: KeyRing) -> None:
        self.ring, self.searches = ring, 0
        self.key_id = ring.key_id

    def sdb(self, hint: bytes | None, bits: int):
        self.searches += hint is None
        return self.ring.sdb(hint, bits)

    def hom(self, hint: bytes | None, bits: int):
        self.searches += hint is None
        return self.ring.hom(hint, bits)


@pytest.fixture
def keys(tmp_path: Path) -> Counting:
    return Counting(ring(tmp_path / "key"))


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch)


def ring(path: Path) -> KeyRing:
    KeyRing.create(path)
    return KeyRing.open(path)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another process asked."""
    monkeypatch.setattr(primes, "_hints", {})


def space(keys: Counting, hint: bytes | None = None):
    return primes.sdb_space(keys, hint, BITS)  # type: ignore[arg-type]


def test_a_process_searches_once(keys: Counting) -> None:
    assert space(keys).modulus == space(keys).modulus
    assert keys.searches == 1
    first = primes.hom_space(keys, None, BITS)  # type: ignore[arg-type]
    again = primes.hom_space(keys, None, BITS)  # type: ignore[arg-type]
    assert first.modulus == again.modulus != space(keys).modulus
    assert keys.searches == 2


def test_another_process_does_not_search(
    keys: Counting, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modulus = space(keys).modulus
    (file,) = own_state.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    forget(monkeypatch)
    assert space(keys).modulus == modulus
    assert keys.searches == 1


@pytest.mark.parametrize("content", [b"", b"nonsense", bytes(5_000)])
def test_a_damaged_hint_costs_a_search(
    keys: Counting, own_state: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    modulus = space(keys).modulus
    (file,) = own_state.iterdir()
    file.write_bytes(content)
    for _ in range(2):  # the second time, the file has been written again
        forget(monkeypatch)
        assert space(keys).modulus == modulus
    assert keys.searches == 2


def test_another_keys_hint_costs_a_search(
    keys: Counting, tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space(keys)
    other = Counting(ring(tmp_path / "other"))
    wanted = other.ring.sdb(None, BITS).modulus
    (file,) = own_state.iterdir()
    file.rename(own_state / file.name.replace(keys.key_id, other.key_id))
    forget(monkeypatch)
    assert space(other).modulus == wanted
    assert other.searches == 1


def test_no_own_state_is_no_error(
    keys: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOUVER_STATE_DIR", str(tmp_path / "file" / "within"))
    assert space(keys).modulus == space(keys).modulus
    assert keys.searches == 1


def test_a_catalogs_hint_is_believed_or_refused(keys: Counting, tmp_path: Path) -> None:
    first = space(keys)
    assert space(keys, first.hint).modulus == first.modulus
    with pytest.raises(errors.VerificationError):
        space(keys, ring(tmp_path / "other").sdb(None, BITS).hint)
    assert keys.searches == 1
