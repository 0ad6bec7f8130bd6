"""Iceberg catalogs that do not follow instructions in the tables' metadata.

PyIceberg imports and calls any class named by a table's properties (`py-io-impl`,
`write.py-location-provider.impl`) or by a REST server's configuration (`auth`), and reads and
deletes files wherever metadata locates them. Metadata comes from untrusted machines. So every file
is accessed through `Objects`, which is confined to the warehouse, and class names are only accepted
from our own user.
"""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any, cast

import requests
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from louver import errors
from louver.names import fold
from louver.untrusted.lake.objects import Objects, whole

_OBJECTS = "louver.objects"
_ROOT = "louver.location"
#: A property: creates the sessions of a `rest` catalog with their own credentials.
SESSION = "louver.session"
_IO = {"py-io-impl": f"{__name__}.ObjectsIO"}
#: The settings that a REST server may provide.
_TOLD = ("prefix", "namespace-separator", "uri")


class ObjectsIO(FileIO):
    """PyIceberg's file access, through the objects of one warehouse."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        """`properties` come from `bound`."""
        super().__init__(properties)
        self._objects: Objects = properties[_OBJECTS]
        self._root = str(properties[_ROOT]).rstrip("/") + "/"

    def new_input(self, location: str) -> InputFile:
        """A file to read."""
        return _File(location, self._objects, self._path(location))

    def new_output(self, location: str) -> OutputFile:
        """A file to write, once."""
        return _File(location, self._objects, self._path(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file."""
        text = location if isinstance(location, str) else location.location
        _as_os(lambda: self._objects.delete(self._path(text)))

    def _path(self, location: str) -> str:
        if not self._root.startswith("file://"):
            location = location.removeprefix("file://")
        if not location.startswith(self._root):
            raise PermissionError("a table names a file outside of its warehouse")
        return location[len(self._root) :]


class _File(InputFile, OutputFile):
    def __init__(self, location: str, objects: Objects, path: str) -> None:
        super().__init__(location)
        self._objects = objects
        self._path = path

    def __len__(self) -> int:
        return int(_as_os(lambda: self._objects.size(self._path)))

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except FileNotFoundError:
            return False

    def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002
        return io.BytesIO(_as_os(lambda: whole(self._objects, self._path)))

    def to_input_file(self) -> InputFile:
        return self

    def create(self, overwrite: bool = False) -> OutputStream:  # noqa: ARG002
        # Names are fresh, so overwriting is never intended: closing the file refuses it.
        return cast(OutputStream, _Output(self._objects, self._path))


class _Output(io.BytesIO):
    """Buffers writes until the file is closed, and then creates it as a whole."""

    def __init__(self, objects: Objects, path: str) -> None:
        super().__init__()
        self._objects = objects
        self._path = path

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            _as_os(lambda: self._objects.create(self._path, data))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().close() if error is not None else self.close()

    def __del__(self) -> None:
        super().close()


class _Guarded(Catalog):
    """Common to all our catalogs; a base before one of PyIceberg's classes."""

    def _load_file_io(
        self, properties: Properties = EMPTY_DICT, location: str | None = None  # noqa: ARG002
    ) -> FileIO:  # fmt: skip
        return ObjectsIO(self.properties)

    def load_table(self, identifier: str | Identifier) -> Table:
        """The table, if its properties name no code."""
        table = super().load_table(identifier)  # type: ignore[safe-super]
        require_tame(table.metadata.properties, str(table.name()[-1]))
        return table

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:  # fmt: skip
        """Commit, unless a change sets properties that name code."""
        for update in updates:
            require_tame(getattr(update, "updates", {}), str(table.name()[-1]))
        return super().commit_table(table, requirements, updates)  # type: ignore[safe-super]


class GuardedSql(_Guarded, SqlCatalog):
    """A catalog in an SQL database."""


class GuardedRest(_Guarded, RestCatalog):
    """A catalog over HTTP, whose server may provide locations, but not code to run."""

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        known = {key: self.properties[key] for key in _TOLD if key in self.properties}
        # The address stays fixed: credentials are only sent to the server that the user named.
        self.properties = own | known | {"uri": own["uri"]}
        self.uri = own["uri"]

    def _create_session(self) -> requests.Session:
        make = self.properties.get(SESSION)
        if not callable(make):
            return super()._create_session()
        session: requests.Session = make()
        session.headers["Content-Type"] = "application/json"
        return session

    def _refresh_token(self) -> None:
        if SESSION not in self.properties:
            super()._refresh_token()


def opened(kind: str, properties: dict[str, Any], location: str, objects: Objects) -> Catalog:
    """A guarded catalog of this kind (`sql`, `rest` or any other that PyIceberg knows)."""
    bound = dict(properties) | _IO | {_OBJECTS: objects, _ROOT: location, "warehouse": location}
    if kind == "sql":
        return GuardedSql("louver", **bound)
    if kind == "rest":
        return GuardedRest("louver", **bound)
    catalog = load_catalog("louver", **{"type": kind} | bound)
    # Kinds that need additional packages are imported on first use.
    catalog.__class__ = type("Guarded", (_Guarded, type(catalog)), {})
    return catalog


def require_tame(properties: Properties, name: str) -> None:
    """Raise `lake.format` if properties of a table name code to be loaded."""
    for key in properties:
        if str(key).startswith("py-") or "impl" in fold(str(key)):
            raise errors.make(
                "lake.format", path=name, detail="its properties name executable code"
            )


def _as_os(work: Any) -> Any:
    """Translate errors of objects to those that PyIceberg handles."""
    try:
        return work()
    except errors.Error as error:
        kind = {"lake.missing": FileNotFoundError, "lake.exists": FileExistsError}
        raise kind.get(error.code, OSError)(error.message) from error
