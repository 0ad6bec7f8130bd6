"""Two databases of the private server for one session, the binder and the workspace.

The *binder* holds what is declared, empty. The *workspace* holds no table between queries, so that
one which a plan forgot to fill is an error there.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from louver._rust import postgres
from louver.names import quoted
from louver.trusted.executor.local.postgres import server as servers
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.type_names import TypeNames

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres.role_rights import Rights

FAILURES = (postgres.ServerError, postgres.ConnectionLost)
_numbers = itertools.count(1)
#: Of every session. Bodies of functions may name tables that are not there yet.
_OPENING = (
    "SET client_min_messages = error",
    "SET check_function_bodies = off",
)
#: Names of databases are of a server's, so that theirs cannot be those that their sessions see.
_NAMED = (
    "CREATE OR REPLACE FUNCTION pg_catalog.current_database() RETURNS name"
    " LANGUAGE sql STABLE PARALLEL SAFE RETURN {}::name"
)
Identity = tuple[str, str]
"""The names of the database and of the user as the server has them; "" of none."""


class PostgresInstances:
    """Both databases, each with one session and the names of its types."""

    def __init__(self, identity: Identity = ("", "")) -> None:
        """Of a session that has the ``identity`` on the server, or of none."""
        self.identity = identity
        self._server = servers.running()
        #: a private directory that goes with the session, and with the server at the latest
        self.directory = tempfile.mkdtemp(prefix="session-", dir=self._server.folder)
        self._types = TypeNames(), TypeNames()
        self._databases: list[str] = []
        self._open()
        #: another number when the databases are others
        self.generation = 0
        #: what the session's user may do, where that is not everything
        self.rights: Rights | None = None

    def _open(self) -> None:
        number = f"{os.getpid()}_{next(_numbers)}"
        names = [f"louver_{number}_binder", f"louver_{number}_workspace"]
        with translated():
            admin = self._server.session("postgres")
            try:
                for name in names:
                    # This needs no checkpoint, which would wait for other sessions.
                    admin.run([(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY wal_log", [])])
                    self._databases.append(name)
            finally:
                admin.close()
            self.binder, self.workspace = (
                PostgresConnection(self._session(name), types)
                for name, types in zip(names, self._types, strict=True)
            )
        if self.identity[0]:
            for connection in self.instances:
                name = self.identity[0].replace("'", "''")
                connection.execute(_NAMED.format(f"'{name}'"))

    def _session(self, database: str) -> postgres.Session:
        session = self._server.session(database, self.identity[1])
        # Tables change all the time here, and a plan of before would be an error.
        session.keep_no_statements()
        session.run([(text, []) for text in _OPENING])
        return session

    def _replace(self) -> None:
        """Other databases, of the server that runs now."""
        self._drop()
        before, self._server = self._server, servers.running()
        if self._server is not before:
            self.directory = tempfile.mkdtemp(prefix="session-", dir=self._server.folder)
        for types in self._types:
            types.forget()
        self._open()
        self.generation += 1

    def _drop(self) -> None:
        """Drop the databases, with a server that may be gone."""
        names, self._databases = self._databases, []
        for connection in (self.binder, self.workspace):
            connection.close()
        if not self._server.is_alive():
            return
        with suppress(*FAILURES):
            admin = self._server.session("postgres")
            try:
                for name in names:
                    admin.run([(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", [])])
            finally:
                admin.close()

    def another(self, ordinal: int) -> PostgresConnection:
        """A session more, of the binder (0) or of the workspace (1)."""
        with translated():
            session = self._session(self._databases[ordinal])
        return PostgresConnection(session, self._types[ordinal])

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Run statements of the binder with the rights of the session's user."""
        if self.rights is None:
            yield
            return
        from louver.trusted.executor.local.postgres import role_rights

        self._server.restrict(self.rights.user)
        with self.binder.undone():
            role_rights.enter(self.binder, self.rights)
            yield

    def require_right(self, sql: str) -> bool:
        """Raise where the session's user may not run a query or change; whether it may read what a
        text or number names, which is not decided here.
        """
        from louver.trusted.executor.local.postgres import role_rights

        with self.acting(), translated(sql):
            types = self.binder.raw.describe(sql)[0]
            # Its executor decides, which begins with EXPLAIN and goes no further.
            self.binder.raw.run([(f"EXPLAIN (COSTS off) {sql}", [None] * len(types))])
        return role_rights.require_functions(self.binder, self.workspace, sql)

    @property
    def instances(self) -> tuple[PostgresConnection, PostgresConnection]:
        """Binder and workspace."""
        return self.binder, self.workspace

    def close(self) -> None:
        """End the sessions and drop their databases; the server goes with the process."""
        self._drop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def interrupt(self) -> None:
        """Stop what runs now; may be called from another thread."""
        for connection in self.instances:
            with suppress(*FAILURES):
                connection.raw.cancel()

    def is_fit(self) -> bool:
        """Whether both sessions answer, once none is left in a transaction."""
        try:
            for connection in self.instances:
                if connection.raw.state() != "idle":
                    connection.raw.run([("ROLLBACK", [])])
                connection.raw.run([("SELECT 1", [])])
        except FAILURES:
            return False
        return True


@contextmanager
def path_instead(connection: PostgresConnection, schemas: Sequence[str]) -> Iterator[None]:
    """Another search path, for as long as something is defined."""
    if not schemas:
        yield
        return
    before = str((connection.fetchone("SHOW search_path") or ("",))[0])
    connection.execute(f"SET search_path = {', '.join(map(quoted, schemas))}")
    try:
        yield
    finally:
        if connection.raw.state() != "failed":
            connection.execute(f"SET search_path = {before or quoted('')}")
