"""One server of each kind for a session of tests, one database for each test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from louver._rust import postgres
from tests.client.harness import Done, run
from tests.postgres import servers
from tests.postgres.moving import Database, Encrypt

_numbers = itertools.count()
Open = Callable[[], postgres.Session]


@pytest.fixture(scope="session", params=sorted(servers.binaries()))
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    with servers.started(servers.binaries()[request.param]) as running:
        yield running


@pytest.fixture
def open_session(server: servers.Server) -> Iterator[Open]:
    """Opens sessions of a database that is the test's own."""
    name = f"test_{next(_numbers)}"
    admin = postgres.Session(str(server.folder), servers.PORT, servers.USER, "postgres")
    admin.run([(f"CREATE DATABASE {name}", [])])
    opened: list[postgres.Session] = []

    def open_one() -> postgres.Session:
        folder, tests = str(server.folder), [("application_name", "tests")]
        opened.append(postgres.Session(folder, servers.PORT, servers.USER, name, parameters=tests))
        return opened[-1]

    yield open_one
    for session in opened:
        session.close()
    admin.run([(f"DROP DATABASE {name} WITH (FORCE)", [])])
    admin.close()


@pytest.fixture
def session(open_session: Open) -> postgres.Session:
    return open_session()


@pytest.fixture
def source() -> Database:
    return Database()


@pytest.fixture
def target() -> Database:
    return Database()


@pytest.fixture
def back() -> Database:
    return Database()


@pytest.fixture
def encrypt(source: Database, target: Database, tmp_path: Path) -> Encrypt:
    def run_it(*words: str, **options: Any) -> Done:
        return run(
            "encrypt", source.url, "--to", target.url, "--language", "duckdb", *words,
            folder=tmp_path, **options,
        )  # fmt: skip

    return run_it
