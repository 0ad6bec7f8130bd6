"""A local engine for each test; all of them share the process's server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.vault.catalog import Catalog, HomeObject

Open = Callable[..., PostgresLocalEngine]


def catalog_of(*texts: tuple[str, str]) -> Catalog:
    """A catalog of objects, by kind and text, whose names are of no importance."""
    catalog = Catalog("00" * 16)
    catalog.objects = [
        HomeObject(kind, "public", f"o{ordinal}", sql) for ordinal, (kind, sql) in enumerate(texts)
    ]
    return catalog


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder of the tests' own, in which the data of a new server is kept."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def open_engine() -> Iterator[Open]:
    opened: list[PostgresLocalEngine] = []

    def open_one(*texts: tuple[str, str]) -> PostgresLocalEngine:
        engine = PostgresLocalEngine()
        opened.append(engine)
        engine.rebuild(catalog_of(*texts))
        whole: LocalEngine = engine  # what mypy compares with the protocol
        assert whole.state == "whole"
        return engine

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture
def engine(open_engine: Open) -> PostgresLocalEngine:
    return open_engine()
