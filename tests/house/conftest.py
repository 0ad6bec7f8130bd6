"""What the tests of the house share: the parsed sources, for as long as these tests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import sources


@pytest.fixture(scope="package", autouse=True)
def parsed_sources() -> Iterator[None]:
    """The nodes are many: collections of garbage of later tests should not look through them."""
    yield
    sources.nodes.cache_clear()
