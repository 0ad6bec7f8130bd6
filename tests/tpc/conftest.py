"""Plaintext data per benchmark and a loaded database per policy, each made when first asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tpc import harness, splits
from tests.tpc.sources import BENCHMARKS


@pytest.fixture(scope="session")
def plain() -> Iterator[Callable[[str], harness.Plain]]:
    """The plaintext data of a benchmark, by its name."""
    twins: dict[str, harness.Plain] = {}

    def of(name: str) -> harness.Plain:
        if name not in twins:
            twins[name] = harness.Plain.make(BENCHMARKS[name])
        return twins[name]

    yield of
    for twin in twins.values():
        twin.con.close()


@pytest.fixture(scope="session")
def loaded(
    plain: Callable[[str], harness.Plain], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, str], Any]]:
    """A connection to a benchmark's data, every column ENC, by names of benchmark and policy."""
    connections: dict[tuple[str, str], Any] = {}
    failed: dict[tuple[str, str], Exception] = {}
    folder: Path = tmp_path_factory.mktemp("tpc")

    def of(name: str, policy: str) -> Any:
        # What could not be loaded is not loaded again for each of the queries.
        if (name, policy) in failed:
            raise failed[name, policy]
        if (name, policy) not in connections:
            con = connections[name, policy] = harness.connect(folder, BENCHMARKS[name], policy)
            try:
                harness.load(con, plain(name))
            except Exception as error:
                failed[name, policy] = error
                raise
        return connections[name, policy]

    yield of
    for con in connections.values():
        con.close()


@pytest.fixture(scope="session")
def planned(
    plain: Callable[[str], harness.Plain], loaded: Callable[[str, str], Any]
) -> Callable[[str, str], dict[str, str]]:
    """The split of every query of a benchmark under a policy, planned once."""
    return functools.cache(lambda name, policy: splits.planned(loaded(name, policy), plain(name)))
