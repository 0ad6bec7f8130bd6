"""One key file for all tests, a state directory of their own, connections that are closed.

Hypothesis draws the same examples in every run, so that no run fails where the one before passed,
and no test of it knows a time. To look for new examples: ``LOUVER_EXPLORE=1 make test-python``.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "louver",
    deadline=None,
    derandomize="LOUVER_EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("louver")

# A shell that runs the tests in the background ignores Ctrl-C for them, and they for their
# children; the tests of Ctrl-C need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def state_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pins of tests never touch the user's own."""
    folder = tmp_path_factory.mktemp("state")
    before = os.environ.get("LOUVER_STATE_DIR")
    os.environ["LOUVER_STATE_DIR"] = str(folder)
    yield folder
    if before is None:
        del os.environ["LOUVER_STATE_DIR"]
    else:
        os.environ["LOUVER_STATE_DIR"] = before


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key file."""
    from louver.trusted.vault.keyring import KeyRing

    path = tmp_path_factory.mktemp("keys") / "test.louverkey"
    KeyRing.create(path)
    return path


@pytest.fixture
def signalled() -> Iterator[None]:
    """For tests that send a signal to this process: no collection of garbage may run, for what a
    signal raises within one is lost.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def open_connection(key_file: Path, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens connections to one fresh database file per profile."""
    import louver

    opened: list[Any] = []

    def open_(profile: str = "sealed", **options: Any) -> Any:
        path = tmp_path / f"{profile}.duckdb"
        connection = louver.connect(f"duckdb:///{path}", keys=key_file, profile=profile, **options)
        opened.append(connection)
        return connection

    yield open_
    for connection in opened:
        connection.close()
