"""The names of types by their numbers, as PostgreSQL prints them in one database."""

from __future__ import annotations

from collections.abc import Sequence

from louver._rust import postgres
from louver.trusted.executor.local.postgres.values import Column

#: What is below is PostgreSQL's own, and the same in every database.
_FIRST_OF_USERS = 16_384
_SQL = "SELECT pg_catalog.format_type($1::oid, $2::integer)"
_NUMBER = (
    "SELECT coalesce(nullif(typbasetype, 0), oid)::bigint FROM pg_catalog.pg_type"
    " WHERE oid = $1::regtype"
)
_BASE = """
WITH RECURSIVE b AS (SELECT typtype, typbasetype, typtypmod, NULL::text AS name
    FROM pg_catalog.pg_type WHERE oid = $1::regtype
    UNION ALL SELECT t.typtype, t.typbasetype, t.typtypmod, format_type(t.oid, b.typtypmod)
    FROM b JOIN pg_catalog.pg_type AS t ON t.oid = b.typbasetype WHERE b.typtype = 'd')
SELECT name FROM b WHERE typtype <> 'd'
"""
Key = tuple[int, int]
_own: dict[Key, str] = {}


class TypeNames:
    """By number and modifier, looked up once."""

    def __init__(self) -> None:
        self._of_users: dict[Key, str] = {}
        self._numbers: dict[str, int] = {}
        self._bases: dict[str, str] = {}

    def forget(self) -> None:
        """After CREATE, ALTER or DROP TYPE."""
        self._of_users.clear()
        self._numbers.clear()
        self._bases.clear()

    def of(self, session: postgres.Session, columns: Sequence[Column]) -> list[str]:
        """The names of the types of an answer's columns."""
        keys = [(column[1], column[2]) for column in columns]
        missing = [key for key in dict.fromkeys(keys) if self._known(key) is None]
        if missing:
            steps = [(_SQL, [str(type_), str(modifier)]) for type_, modifier in missing]
            for key, (_, _, (names,)) in zip(missing, session.run(steps), strict=True):
                cache = _own if key[0] < _FIRST_OF_USERS else self._of_users
                cache[key] = names[0].as_py()
        return [self._known(key) or "" for key in keys]

    def numbers(self, session: postgres.Session, names: Sequence[str]) -> list[int]:
        """The numbers of types by their names; of a domain the type that it is of."""
        missing = [name for name in dict.fromkeys(names) if name not in self._numbers]
        if missing:
            steps = [(_NUMBER, [name]) for name in missing]
            for name, (_, _, (numbers,)) in zip(missing, session.run(steps), strict=True):
                self._numbers[name] = numbers[0].as_py()
        return [self._numbers[name] for name in names]

    def base(self, session: postgres.Session, name: str) -> str:
        """The type that a domain is of in the end; of any other type its name."""
        if name not in self._bases:
            ((_, _, (bases,)),) = session.run([(_BASE, [name])])
            self._bases[name] = bases[0].as_py() or name
        return self._bases[name]

    def _known(self, key: Key) -> str | None:
        return _own.get(key) or self._of_users.get(key)
