"""The commands of `louver`, one file each: `add` declares the options, `run` does the work."""

from __future__ import annotations

#: Every command, in the order of `louver --help`; each is the name of a module.
NAMES: tuple[str, ...] = (
    "demo",
    "key",
    "sql",
    "load",
    "explain",
    "leakage",
    "inspect",
    "advise",
    "attack",
    "status",
    "encrypt",
    "export",
    "serve",
    "lake",
)

#: The commands that print tables, in any form that the command line selects.
TABLES = frozenset(("encrypt", "sql"))
