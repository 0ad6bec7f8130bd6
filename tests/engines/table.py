"""The backends that tests run over: a new engine is one line here."""

from __future__ import annotations

BACKENDS: dict[str, tuple[str, str] | None] = {
    "duckdb": None,
    "postgresql": None,
    "sqlite": ("tests.toy.backend", "tests.toy.engine"),
}
"""By the scheme of a URL: the modules of an engine that the product does not have, else None."""

TARGETS = (
    ("sealed", "duckdb"),
    ("sdb", "duckdb"),
    ("cryptdb", "duckdb"),
    *(("cryptdb", backend) for backend in BACKENDS if backend != "duckdb"),
)
"""Profiles and backends for tests whose answers depend on neither."""
