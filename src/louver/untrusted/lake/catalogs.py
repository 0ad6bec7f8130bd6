"""Iceberg catalogs that do not do what the tables' metadata tells them to.

PyIceberg imports and calls whatever class a table's properties name (`py-io-impl`,
`write.py-location-provider.impl`) or a REST server's configuration names (`auth`), and reads and
deletes files wherever metadata says they are. Metadata comes from machines that we do not trust.
So every file goes through `Objects`, which leads nowhere but into the warehouse, and no name of a
class is taken from elsewhere than our own user.
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
#: A property: makes the sessions of a `rest` catalog that bring their own credentials.
SESSION = "louver.session"
_IO = {"py-io-impl": f"{__name__}.ObjectsIO"}
#: What a REST server may tell about itself.
_TOLD = ("prefix", "namespace-separator", "uri")


class ObjectsIO(FileIO):
    """PyIceberg's way to files, through the objects of one warehouse."""

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
        # Names are fresh, so that to write over one is never meant: the end refuses it.
        return cast(OutputStream, _Output(self._objects, self._path))


class _Output(io.BytesIO):
    """What is written is kept here until the end, and is there then as a whole."""

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
    """What all our catalogs have in common; stands before a class of PyIceberg's."""

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
        """Commit, unless a change would have properties name code."""
        for update in updates:
            require_tame(getattr(update, "updates", {}), str(table.name()[-1]))
        return super().commit_table(table, requirements, updates)  # type: ignore[safe-super]


class GuardedSql(_Guarded, SqlCatalog):
    """A catalog in an SQL database."""


class GuardedRest(_Guarded, RestCatalog):
    """A catalog behind HTTP, whose server may tell where things are, and not what to run."""

    def _fetch_config(self) -> None:
        own = dict(self.properties)
        super()._fetch_config()
        known = {key: self.properties[key] for key in _TOLD if key in self.properties}
        # The address stays: credentials go to nobody but whom the user has named.
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
    # Kinds that need packages of their own are not imported before they are wanted.
    catalog.__class__ = type("Guarded", (_Guarded, type(catalog)), {})
    return catalog


def require_tame(properties: Properties, name: str) -> None:
    """`lake.format` when properties of a table name code to be loaded."""
    for key in properties:
        if str(key).startswith("py-") or "impl" in fold(str(key)):
            raise errors.make(
                "lake.format", path=name, detail="its properties name executable code"
            )


def _as_os(work: Any) -> Any:
    """Errors of objects in the words that PyIceberg knows."""
    try:
        return work()
    except errors.Error as error:
        kind = {"lake.missing": FileNotFoundError, "lake.exists": FileExistsError}
        raise kind.get(error.code, OSError)(error.message) from error
