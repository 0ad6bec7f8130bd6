"""Functions in SQL whose bodies are strings, which PostgreSQL's analyser reads when they run.

Such a function can only call what it names: there are neither operators nor casts of the user's,
and it has no tables, for it was made in a database without any. So its words decide.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from louver.names import fold
from louver.trusted.executor.local.postgres import dependence, effects
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.planner.sql.postgres_dialect import DIALECT

_BODIES = """
SELECT p.proname::text, l.lanname::text, p.prosqlbody IS NULL, p.prosrc || ' '
    || coalesce(pg_get_function_arguments(p.oid), '')
FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang WHERE p.oid >= 16384
"""
_FUNCTIONS = """
SELECT p.proname::text, p.provolatile::text
FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace
"""
_RELATIONS = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace
UNION ALL SELECT typname::text FROM pg_type WHERE typname ~ '^_?reg'
"""
_TABLES = "SELECT relname::text FROM pg_class WHERE oid >= 16384"
_WORD = re.compile(r"\w+")
#: A name that is written with escapes is not among the words.
_ESCAPED = re.compile(r"\bu&", re.IGNORECASE)
#: Words of statements other than queries, and the one that gives the private database's name.
_ORDERS = frozenset(
    "alter analyze analyse call checkpoint close cluster comment copy create current_catalog"
    " deallocate declare delete discard do drop execute explain fetch grant import insert into"
    " listen load lock merge move notify prepare reassign refresh reindex release reset revoke"
    " rollback savepoint security set show truncate unlisten update vacuum".split()
)


def only_computes(binder: PostgresConnection, name: str) -> bool:
    """Whether the functions of a name do nothing that another statement could see."""
    return _names_none_of(binder, name, _ORDERS | _loud(binder) | DIALECT.draws)


def reads_arguments(binder: PostgresConnection, name: str) -> bool:
    """Whether the functions of a name depend on their arguments alone."""
    tables = {fold(relation) for (relation,) in binder.fetchall(_TABLES)}
    return _names_none_of(binder, name, _ORDERS | _of_schema(binder) | tables)


def _names_none_of(binder: PostgresConnection, name: str, denied: Collection[str]) -> bool:
    """Whether neither functions of a name, nor those that they call, have any of these words."""
    bodies: dict[str, set[str] | None] = {}
    for other, language, is_string, source in binder.fetchall(_BODIES):
        if not _WORD.fullmatch(other):
            # It may be called by words that are not its name.
            bodies.update(dict.fromkeys(map(fold, _WORD.findall(other))))
        words = bodies.setdefault(fold(other), set())
        is_known = language == "sql" and is_string and not _ESCAPED.search(source)
        if words is None or not is_known:
            bodies[fold(other)] = None
        else:
            words.update(map(fold, _WORD.findall(source)))
    left, seen = {fold(name)}, set[str]()
    while left:
        other = left.pop()
        seen.add(other)
        own_words = bodies.get(other)
        if own_words is None or not own_words.isdisjoint(denied):
            return False
        left |= (own_words & {*bodies}) - seen
    return True


@cache
def _names() -> dict[str, frozenset[str]]:
    """Names of PostgreSQL's own, which are the same for all sessions of a process."""
    return {}


def _loud(binder: PostgresConnection) -> frozenset[str]:
    if "loud" not in _names():
        rows = binder.fetchall(_FUNCTIONS)
        rows += [(name, "s") for (name,) in binder.fetchall(_RELATIONS)]  # views are such calls
        _names()["loud"] = frozenset(fold(name) for name, kind in rows if effects.loud(name, kind))
    return _names()["loud"]


def _of_schema(binder: PostgresConnection) -> frozenset[str]:
    if "schema" not in _names():
        rows = binder.fetchall(_FUNCTIONS)
        names = {fold(name) for name, kind in rows if not dependence.is_of_arguments(name, kind)}
        names |= {fold(relation) for (relation,) in binder.fetchall(_RELATIONS)}
        _names()["schema"] = frozenset({*names, "information_schema"})
    return _names()["schema"]
