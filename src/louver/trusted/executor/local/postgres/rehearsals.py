"""Dry runs on the binder's tables, and what is read off them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from louver import errors
from louver.names import quoted
from louver.trusted.executor.local.changed_rows import Filled, MetRows, Outcome
from louver.trusted.executor.local.local import Described, LocalConnection, Parameters
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.emptying import Emptying
from louver.trusted.executor.local.postgres.instances import Identity
from louver.trusted.executor.local.postgres.session_settings import PostgresSettings
from louver.trusted.vault.catalog import HomeObject, Table
from louver.untrusted.servers import private_postgres

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres import at_once

_COPIED = "pg_temp.louver_copied"
_CHUNK_BYTES = 64 * 1024


class PostgresRehearsals(PostgresSettings):
    """The part of a local engine that runs changes without keeping them."""

    def __init__(self, identity: Identity = ("", "")) -> None:
        super().__init__(identity)
        self._emptying = Emptying()
        self._seen: at_once.Memory | None = None
        #: views, and functions that need tables, which the workspace has while a query runs
        self._views: dict[tuple[str, str, str], HomeObject] = {}
        self.unresolved: list[HomeObject] = []

    def _replace(self) -> None:
        super()._replace()
        self._emptying = Emptying()

    def forget_types(self) -> None:
        """See `Lifecycle`."""
        super().forget_types()
        self._seen = None

    def remake_views(self) -> None:
        """Have the temporary views in the binder again that its temporary tables took along."""
        from louver.trusted.executor.local.postgres import remade_views

        if any(item.temporary for item in (*self._views.values(), *self.unresolved)):
            self.unresolved = remade_views.remake(self.binder, self._views, self.unresolved)
            self.forget_types()

    @contextmanager
    def rehearsal(self, *, undone: bool = True) -> Iterator[PostgresConnection]:
        """See `Binder`."""
        if not undone:
            yield self.binder
            return
        with self._emptying.after(self.binder), self.binder.undone():
            yield self.binder

    def effect_of(
        self,
        connection: LocalConnection,
        filled: Sequence[Filled],
        sql: str,
        parameters: Parameters = (),
        *,
        deferred: bool = False,
    ) -> Outcome:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres import difference

        return difference.run(self._own(connection), filled, sql, parameters, deferred=deferred)

    def effect_at_once(
        self, filled: Sequence[Filled], sql: str, parameters: Parameters = ()
    ) -> Outcome | None:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres import at_once

        if self._seen is None:
            self._seen = at_once.Memory()
        with self._emptying.after(self.binder):
            return at_once.run(self.binder, self._seen, filled, sql, parameters)

    def met_by(
        self,
        connection: LocalConnection,
        filled: Sequence[Filled],
        text: tuple[str, str],
        parameters: Parameters,
        aliases: Sequence[tuple[str, Filled]],
    ) -> MetRows:
        """See `Binder`."""
        from louver.trusted.executor.local.postgres import met_rows

        return met_rows.run(self._own(connection), filled, text, parameters, aliases)

    def _own(self, connection: LocalConnection) -> PostgresConnection:
        if connection is not self.binder:
            raise errors.make("internal", detail="rows beside the binder")
        return self.binder

    def changed_by(
        self, table: Table, rows: pa.Table, sql: str, beside: Sequence[Filled] = ()
    ) -> pa.Table:
        """See `Workspace`."""
        from louver.trusted.executor.local.postgres import difference

        with self.rehearsal():
            difference.fill(self.binder, [Filled(table.schema, table.name, rows), *beside])
            self.binder.execute(sql)
            return self.binder.fetch_arrow(f"SELECT * FROM {table.local_name}")

    def copy_from(self, connection: LocalConnection, text: tuple[str, str], data: bytes) -> None:
        """See `Binder`. The folder of the server, which is in memory where there is room, is not to
        be entered by others.
        """
        with _file(self._server.folder, data) as path:
            connection.execute(f"{text[0]} FROM '{path}' {text[1]}")

    def copy_to(self, rows: pa.Table, columns: Described, options: str) -> Iterator[bytes]:
        """See `Workspace`."""
        workspace = self.workspace
        own = [(f"c{number}", type_) for number, (_, type_) in enumerate(columns)]
        items = ", ".join(
            f"c{number} AS {quoted(name)}" for number, (name, _) in enumerate(columns)
        )
        with _file(self._server.folder, b"") as path:
            with workspace.undone():
                workspace.create(_COPIED, own, rows.rename_columns([name for name, _ in own]))
                workspace.execute(f"COPY (SELECT {items} FROM {_COPIED}) TO '{path}' {options}")
            with path.open("rb") as file:
                while piece := file.read(_CHUNK_BYTES):
                    yield piece


@contextmanager
def _file(folder: Path, data: bytes) -> Iterator[Path]:
    """A file of the private server's, for as long as this lasts."""
    path = folder / f"copy-{os.urandom(8).hex()}"
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        yield private_postgres.given(path)
    finally:
        path.unlink(missing_ok=True)
