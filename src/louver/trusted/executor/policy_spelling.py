"""Entries of a policy that name a table or a column almost as it is named.

An entry that matches nothing protects nothing, so what looks like a misspelling is an error. Names
that differ in digits only are different names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from louver import errors
from louver.names import fold
from louver.trusted.executor.policy import ANY, Policy
from louver.trusted.vault.catalog import Catalog

_SHORTEST = 3
"""Shorter names are not compared: too many of them differ in one letter."""
_LETTERS_PER_EDIT = 4
_DIGITS = re.compile(r"\d+")


def require_spelled(
    policy: Policy, label: str, columns: Iterable[str], tables: Collection[str]
) -> None:
    """Raise ``policy.misspelled`` for an entry that seems to mean a table or one of its columns.

    ``label`` is the name of a table that exists or is created now, ``tables`` are the labels of all
    tables that exist.
    """
    table, names = fold(label), {fold(column) for column in columns}
    sections = {section for section, _ in policy.rules}
    if table not in sections:
        similar = _similar(table, sections - {fold(name) for name in tables} - {ANY})
        if similar:
            raise _misspelled(f"[{similar}]", "table", label)
        return
    entries = {column for section, column in policy.rules if section == table} - {ANY}
    for entry in sorted(entries - names):
        similar = _similar(entry, names - entries)
        if similar:
            raise _misspelled(f"[{table}] {entry}", "column", f"{label}.{similar}")


def require_all_spelled(policy: Policy, catalog: Catalog) -> None:
    """Do that for every table of a catalog."""
    tables = {table.label: table for table in catalog.tables.values()}
    for label, table in tables.items():
        require_spelled(policy, label, (column.name for column in table.columns), tables)


def _similar(name: str, candidates: Collection[str]) -> str:
    """The candidate that a name is most like; "" if there is none."""
    if len(name) < _SHORTEST:
        return ""
    plain = _DIGITS.sub("", name)
    others = [other for other in sorted(candidates) if _DIGITS.sub("", other) != plain]
    distances = {other: _edits(name, other) for other in others if len(other) >= _SHORTEST}
    nearest = min(distances, key=distances.__getitem__, default="")
    most = max(1, len(name) // _LETTERS_PER_EDIT)
    return nearest if nearest and distances[nearest] <= most else ""


def _edits(first: str, second: str) -> int:
    """How many letters are inserted, left out, replaced, or exchanged with their neighbour."""
    before: list[int] = []
    current = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        earlier, before, current = before, current, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, current[-1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, first[i - 2]) == (second[j - 2], other):
                cost = min(cost, earlier[j - 2] + 1)
            current.append(cost)
    return current[-1]


def _misspelled(entry: str, kind: str, name: str) -> errors.Error:
    return errors.make("policy.misspelled", entry=entry, kind=kind, name=name)
