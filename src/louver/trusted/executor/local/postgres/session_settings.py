"""What a session changes of the local PostgreSQL besides its schema, and what only DuckDB has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NoReturn

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.executor.local.postgres.instances import Identity, PostgresInstances

LIMITS = ("statement_timeout", "lock_timeout")
"""Settings that hold for the user's own queries, and not for what the engine does for them."""


class PostgresPath:
    """The search path that a session has set."""

    def __init__(self) -> None:
        self.text = ""
        self.schemas: list[str] = []


class PostgresSettings(PostgresInstances):
    """Both databases with what a session has set in them."""

    def __init__(self, identity: Identity = ("", "")) -> None:
        super().__init__(identity)
        self._arrow_types: dict[str, pa.Field] = {}
        self._values: dict[str, pa.Array] = {}
        self._of_rows: dict[str, bool] = {}
        self._stored_as: dict[str, str] = {}
        self._changed: dict[str, str] = {}
        self._limits: dict[str, str] = {}
        self._path, self._revision, self._time_is_fixed = PostgresPath(), 0, False

    @property
    def path(self) -> PostgresPath:
        """See `LocalEngine`."""
        return self._path

    @property
    def revision(self) -> int:
        """See `Lifecycle`."""
        return self._revision

    def forget_types(self) -> None:
        """See `Lifecycle`."""
        self._revision += 1
        self._arrow_types.clear()
        self._of_rows.clear()
        self._stored_as.clear()
        self._values.clear()
        for types in self._types:
            types.forget()

    def stored_as(self, type_: str) -> str:
        """See `Binder`."""
        if type_ not in self._stored_as:
            from louver.trusted.executor.local.postgres import server_columns

            self._stored_as[type_] = server_columns.stored_as(self.binder, type_)
        return self._stored_as[type_]

    def as_stored(self, type_: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres import server_columns

        if server_columns.is_same(values.type):
            return values
        return server_columns.as_stored(values, self.stored_as(type_))

    def require_received(self, values: pa.ChunkedArray) -> None:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres import server_columns

        server_columns.require_received(values)

    def change_setting(self, name: str, sql: str) -> None:
        """See `Settings`."""
        if name in LIMITS:
            self._limits[name] = sql
            return
        self.forget_types()
        for connection in self.instances:
            connection.execute(sql)
        self._changed[name] = sql

    def settings_changed(self, names: Sequence[str]) -> list[str]:
        """See `Settings`."""
        return [name for name in names if name in self._changed]

    def change_path(self, sql: str) -> tuple[str, ...]:
        """See `Settings`."""
        self.forget_types()
        if sql:
            for connection in self.instances:
                connection.execute(sql)
            self._path.text = sql
        rows = self.binder.fetchall("SELECT unnest(current_schemas(false))::text")
        # A path of schemas that do not exist is not the default one: nothing is found by it.
        names = [name for (name,) in rows] or ["pg_catalog"]
        self._path.schemas = names if self._path.text else []
        return tuple(map(fold, self._path.schemas))

    def reorders_nulls(self) -> bool:
        """See `Settings`; PostgreSQL has no setting for it."""
        return False

    def collated(self) -> bool:
        """See `Settings`; a collation is of a database, a column or an expression."""
        return False

    def fix_time(self, moment: datetime) -> None:
        """See `Settings`. PostgreSQL's time is that of the transaction's begin, and so of one that
        begins now; it cannot be given another.
        """
        self.release_time()
        for connection in self.instances:
            connection.execute("BEGIN")
        self.time_is_fixed()

    def time_is_fixed(self) -> None:
        """Transactions have begun on both connections, at whose time they stay."""
        for connection in self.instances:
            connection.is_guarded = True
        self._time_is_fixed = True
        self._values.clear()

    def is_fit(self) -> bool:
        """See `Lifecycle`; the transactions of a time that is fixed stay, with what was declared in
        them.
        """
        if not self._time_is_fixed:
            return super().is_fit()
        try:
            for connection in self.instances:
                if connection.raw.state() != "within":
                    return False
                connection.execute("SELECT 1")
        except errors.Error:
            return False
        return True

    def release_time(self) -> None:
        """See `Settings`; what was declared meanwhile stays."""
        if self._time_is_fixed:
            self._time_is_fixed = False
            for connection in self.instances:
                connection.is_guarded = False
                connection.execute("COMMIT")
            self._values.clear()

    def set_variable(self, name: str, rows: pa.Table, type_: str) -> None:
        """See `Settings`."""
        refuse("variables")

    def drop_variable(self, name: str) -> None:
        """See `Settings`; there is none."""

    def attach(self, name: str, path: str) -> None:
        """See `Settings`."""
        refuse("ATTACH of files")

    def detach(self, name: str) -> None:
        """See `Settings`."""
        refuse("DETACH of files")

    def put_frame(self, name: str, data: object) -> None:
        """See `Settings`."""
        refuse("names for objects of the process")

    def drop_frame(self, name: str) -> None:
        """See `Settings`; there is none."""


def refuse(feature: str) -> NoReturn:
    """Raise for what only DuckDB has."""
    raise errors.make("local.feature", feature=feature)
