"""What a provider keeps of clients, questions and versions is bounded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from louver import errors
from louver.untrusted.providers.dataset import LoadedData
from louver.untrusted.providers.folder import Folder
from louver.untrusted.providers.versions import Seen, Versions
from louver.untrusted.servers.provider_data import printable
from louver.untrusted.servers.provider_limits import Gate, address_of
from louver.untrusted.servers.provider_options import Limits
from louver.wire import question_codec as codec
from tests.providers.echo import Provider


def code(call: Callable[[], Any]) -> str:
    with pytest.raises(errors.Error) as caught:
        call()
    return caught.value.code


def test_questions_are_remembered_in_bounded_memory() -> None:
    seen = Seen(100)
    names = [os.urandom(16) for _ in range(1_000)]
    for number, name in enumerate(names):
        seen.add(name)
        for old in names[max(0, number - 99) : number + 1]:
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


def test_no_two_addresses_have_all_places() -> None:
    gate = Gate(Limits(requests=4, client_requests=2, memory=100), None, "here")
    with ExitStack() as stack:
        clients = [stack.enter_context(gate.admitted(name)) for name in ("a", "a", "b", "b")]
        assert code(lambda: stack.enter_context(gate.admitted("b"))) == "serve.busy"
        stack.enter_context(gate.admitted("c"))
        assert code(lambda: stack.enter_context(gate.admitted("c"))) == "serve.busy"
        hold, more = (stack.enter_context(gate.memory(clients[0])) for _ in range(2))
        hold(50)
        assert code(lambda: more(30)) == "serve.busy", "one address does not fill it"
        stack.enter_context(gate.memory(clients[2]))(30)
    assert (gate._running, gate._held, clients[0].held) == (0, 0, 0)


def test_versions_do_not_pile_up(tmp_path: Path) -> None:
    """What cannot be removed is tried again, and keeps nothing else from being removed."""

    class Stuck(Provider):
        tries = 1

        def close(self) -> None:
            if self.loaded.version[0] == 1 and self.tries:
                self.tries -= 1
                raise OSError
            super().close()

    now = [0.0]
    versions = Versions(5, lambda: now[0])
    for number in range(6):
        path = tmp_path / str(number)
        path.write_bytes(b"")
        loaded = LoadedData(bytes([number]) * 32, path, ())
        versions.install(loaded, lambda loaded: Stuck(loaded, tmp_path, None))
    now[0] += 10
    assert versions.sweep() == 1
    assert {path.name for path in tmp_path.iterdir()} == {"1", "5"}
    versions.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"5"}
    versions.close()


def test_nobody_else_can_write_to_the_folder_of_tables(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("link", "open"):
        (tmp_path / name).mkdir()
    (tmp_path / "link/prepared").symlink_to(other)
    (tmp_path / "open/prepared").mkdir()
    (tmp_path / "open/prepared").chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(errors.Error, match="a link, another user's, or others can write"):
            Folder(str(tmp_path / name))
    (tmp_path / "lock-link").mkdir()
    (tmp_path / "lock-link/lock").symlink_to(other / "made")
    assert code(lambda: Folder(str(tmp_path / "lock-link"))) == "provider.data"
    assert not (other / "made").exists()


def test_a_terminal_gets_what_can_be_printed() -> None:
    assert printable("a\x1b[2J\r\nb é\x07") == "a?[2J?\nb é?"
