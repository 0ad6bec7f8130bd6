"""What a provider keeps of clients, questions and versions is bounded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.untrusted.providers.dataset import LoadedData
from louver.untrusted.providers.folder import Folder
from louver.untrusted.providers.versions import Seen, Versions
from louver.untrusted.servers.provider_limits import Gate, address_of
from louver.untrusted.servers.provider_options import Limits
from louver.wire import question_codec as codec
from tests.providers.echo import Provider


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(errors.Error) as found:
        call()
    return found.value.code


def test_questions_are_remembered_in_bounded_memory() -> None:
    seen = Seen(100)
    names = [os.urandom(16) for _ in range(1_000)]
    for place, name in enumerate(names):
        seen.add(name)
        for old in names[max(0, place - 99) : place + 1]:
            assert code(partial(seen.add, old)) == "provider.replayed"
    seen.add(names[0])


def test_an_address_is_one_client() -> None:
    assert address_of("ipv4:10.0.0.7:4711") == "10.0.0.7"
    assert address_of("ipv6:%5B::ffff:10.0.0.7%5D:4711") == "10.0.0.7"
    near, far = (address_of(f"ipv6:%5B2001:db8:0:{n}::{n}%5D:1") for n in (1, 2))
    assert near == address_of("ipv6:%5B2001:db8:0:1:ffff::1%5D:9") != far
    for strange in ("", "unix:", "unix:/x", "ipv6:nonsense", "ipv4:"):
        assert isinstance(address_of(strange), str)


def test_addresses_are_forgotten_in_time() -> None:
    now = [0.0]
    gate = Gate(Limits(asks=1), None, "here", lambda: now[0])
    with gate.admitted("busy") as busy:
        for number in range(10_000):
            with gate.admitted(str(number)):
                pass
        assert len(gate._clients) <= 4_097
        with gate.admitted("busy") as again:
            assert (again, again.running) == (busy, 2)
        for _ in range(2):
            busy.asks.take()
        assert code(busy.asks.take) == "serve.busy"
        now[0] += 1
        busy.asks.take()


def test_a_version_that_cannot_be_opened_is_removed(tmp_path: Path) -> None:
    def held(version: bytes) -> LoadedData:
        path = tmp_path / version.hex()
        path.write_bytes(b"")
        return LoadedData(version, path, ())

    def fails(loaded: LoadedData) -> Provider:
        raise errors.make("provider.data", detail="no")

    versions = Versions(60)
    make = lambda loaded: Provider(loaded, tmp_path, None)  # noqa: E731
    assert versions.install(held(b"1" * 32), make)
    assert code(lambda: versions.install(held(b"2" * 32), fails)) == "provider.data"
    assert [path.name for path in tmp_path.iterdir()] == [(b"1" * 32).hex()]
    for number in range(100, 200):
        assert versions.install(held(bytes([number]) * 32), make)
    assert len(versions.describe().versions) == codec.MAX_VERSIONS
    assert versions.sweep() == codec.MAX_VERSIONS
    assert len(list(tmp_path.iterdir())) == codec.MAX_VERSIONS
    versions.close()
    assert not list(tmp_path.iterdir())


def test_what_killed_providers_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    long_ago = time.time() - 1_000
    running = Folder()
    for name in ("louver-provider-left", "louver-provider-young", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data-1.duckdb").write_bytes(b"x")
    (tmp_path / "louver-provider-link").symlink_to(tmp_path / "other")
    for path in tmp_path.iterdir():
        if "young" not in path.name:
            os.utime(path, (long_ago, long_ago), follow_symlinks=False)
    second = Folder()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        running.path.name, second.path.name, "louver-provider-young", "other",
        "louver-provider-link",
    }  # fmt: skip
    assert (tmp_path / "other/data-1.duckdb").exists(), "no link is followed"
    assert second.path.stat().st_mode & 0o777 == 0o700
    for folder in (running, second):
        folder.close()
        folder.close()
        assert not folder.path.exists()
