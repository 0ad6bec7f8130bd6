"""What tests of moving databases share: databases of the shared server, and the command."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import louver
from louver._rust import postgres
from tests.client.harness import Done, key_file
from tests.postgres import servers

_numbers = itertools.count()
Encrypt = Callable[..., Done]


class Database:
    """A database of the shared server."""

    def __init__(self) -> None:
        self.name = f"move_{next(_numbers)}"
        self.url = servers.database_url(self.name)

    def run(self, text: str) -> list[list[Any]]:
        """Run statements; the rows of the last one."""
        session = postgres.Session(
            str(servers.shared().folder), servers.PORT, servers.USER, self.name
        )
        try:
            for sql in text.split(";\n"):
                if sql.strip():
                    ((_, _, arrays),) = session.run([(sql, [])])
        finally:
            session.close()
        return [list(row) for row in zip(*(array.to_pylist() for array in arrays), strict=True)]

    def texts(self, table: str) -> list[str]:
        """The rows of a table, as the server writes them."""
        row = self.run(f"SELECT whole::text FROM {table} AS whole ORDER BY 1")
        return [text for (text,) in row]


def opened(target: Database) -> louver.Connection:
    return servers.connect(target.url, keys=key_file())
