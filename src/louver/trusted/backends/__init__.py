"""The engines that hold data: for each URL scheme the module that describes it and the one that
speaks to it. A new engine is these two modules and a line here.

The first has ``BACKEND`` (see `backend.Backend`), the second ``open_url(url)`` and its like (see
`untrusted.engines.engine`). Neither is imported before a connection needs it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from louver import errors
from louver.trusted.backends.backend import Backend
from louver.trusted.planner.sql import dialect

ENGINES: dict[str, tuple[str, str]] = {
    "duckdb": ("louver.trusted.backends.duckdb", "louver.untrusted.engines.duckdb"),
    "postgresql": ("louver.trusted.backends.postgres", "louver.untrusted.engines.postgres"),
    "postgres": ("louver.trusted.backends.postgres", "louver.untrusted.engines.postgres"),
    "lake": ("louver.trusted.backends.lake", "louver.untrusted.engines.lake"),
    "lake+http": ("louver.trusted.backends.lake", "louver.untrusted.engines.lake"),
    "lake+https": ("louver.trusted.backends.lake", "louver.untrusted.engines.lake"),
}


def named(name: str) -> Backend:
    """The backend of an engine: by the name that it gives, or by the scheme of its URL."""
    if name not in ENGINES:
        raise errors.make("internal", detail=f"no backend describes the engine {name!r:.40}")
    backend = import_module(ENGINES[name][0]).BACKEND
    if not isinstance(backend, Backend):
        raise errors.make("internal", detail=f"{ENGINES[name][0]} describes no engine")
    for language in backend.languages:
        if dialect.named(language) is None:
            raise errors.make("internal", detail=f"no local engine speaks {language:.40}")
    return backend


#: Schemes of databases that are brought over from plaintext, and written back as plaintext.
PLAIN: dict[str, str] = dict.fromkeys(
    ("postgresql", "postgres"), "louver.trusted.backends.postgres_plain"
)


def plain(scheme: str) -> ModuleType:
    """The module that reads and writes plaintext databases of a URL scheme."""
    return import_module(PLAIN[scheme])


def engine(scheme: str) -> ModuleType:
    """The module that speaks to the engines of a URL scheme."""
    return import_module(ENGINES[scheme][1])
