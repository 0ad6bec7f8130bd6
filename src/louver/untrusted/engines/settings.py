"""How an embedded DuckDB is opened as a server."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from urllib.parse import unquote

from louver import errors
from louver.untrusted.engines import memory
from louver.wire.messages import Statement

MEMORY = ":memory:"
#: Of the current schema as they are, of others as schema.name.
TABLE_NAMES = Statement(
    "SELECT CASE WHEN table_schema = current_schema() THEN table_name"
    " ELSE table_schema || '.' || table_name END FROM information_schema.tables"
    " WHERE table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY 1"
)
_places = itertools.count()


def file_of(url: str) -> str:
    """The database file of a ``duckdb://`` URL."""
    rest = url.partition("://")[2]
    if not rest.startswith("/"):
        raise errors.make("url.format", detail="duckdb:///file does not take a host")
    name = unquote(rest[1:])
    if not name or "\0" in name or name.endswith("/"):
        raise errors.make("url.format", detail="a file name must follow duckdb:///")
    return name


def config(path: str, threads: int | None) -> dict[str, str | bool | int | float | list[str]]:
    """How a server is opened: it reaches neither the network nor any other file."""
    by_name: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        # Neither a file nor a Python variable can be named in a statement's FROM.
        "enable_external_access": "false",
        "python_enable_replacements": "false",
        # Wide codes cross as UUIDs, not as their text.
        "arrow_lossless_conversion": "true",
    }
    if most := memory.limit():
        by_name["memory_limit"] = most
    if path == MEMORY:
        spill = Path(tempfile.gettempdir()) / f"louver-server-{os.getpid()}-{next(_places)}"
        by_name["temp_directory"] = str(spill)
    if threads is not None:
        by_name["threads"] = str(threads)
    return by_name
