"""One door for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.front_door.door import Door, opened
from tests.postgres import servers


@pytest.fixture(scope="module")
def door() -> Iterator[Door]:
    """A door over an empty database."""
    with opened() as running:
        yield running
    servers.drop_databases()
