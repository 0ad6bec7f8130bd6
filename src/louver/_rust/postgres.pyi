"""Sessions of a PostgreSQL server: statements, pipelines, portals, COPY; rows as Arrow."""

from collections.abc import Iterable, Sequence
from typing import Any, final

import pyarrow as pa

class ServerError(Exception):
    """The server refused a statement; args are one dict of the fields of its error."""

class ConnectionLost(Exception):
    """There is no connection any more; args are what is known of why."""

class ProtocolError(Exception):
    """The server sent what the protocol does not allow."""

class TlsError(Exception):
    """There is no TLS with the server, or it is not who it should be; args say why."""

class Refused(Exception):
    """The client does not do what the server asks for; args say what."""

_Column = tuple[str, int, int, int, int]
_Value = None | bool | int | float | str | bytes | tuple[str, int] | tuple[pa.Array, int]

@final
class Reply(Sequence[Any]):
    """`(tag, columns, arrays)` of a statement, made as they are read."""

    def __len__(self) -> int: ...
    def __getitem__(self, item: Any, /) -> Any: ...
    def size(self) -> tuple[int, int]: ...

@final
class Session:
    def __new__(
        cls,
        host: str,
        port: int,
        user: str,
        database: str,
        password: str | None = None,
        parameters: Sequence[tuple[str, str]] = ...,
        timeout_ms: int = 10_000,
        most_message_bytes: int = ...,
        tls: tuple[str, str | None, tuple[str, str] | None] | None = None,
        binding: str = "offered",
    ) -> Session: ...
    def describe(self, sql: str, types: Sequence[int] = ...) -> tuple[list[int], list[_Column]]: ...
    def run(self, statements: Sequence[tuple[str, Sequence[_Value]]]) -> list[Reply]: ...
    def open_portal(self, portal: str, sql: str, values: Sequence[_Value]) -> list[_Column]: ...
    def fetch(
        self, portal: str, columns: Sequence[_Column], most: int
    ) -> tuple[list[pa.Array], bool]: ...
    def copy_in(self, sql: str, types: Sequence[int], batches: Iterable[pa.RecordBatch]) -> int: ...
    def cancel(self) -> None: ...
    def state(self) -> str: ...
    def is_broken(self) -> bool: ...
    def traffic(self) -> tuple[int, int]: ...
    def keep_no_statements(self) -> None: ...
    def keeps_statements(self) -> bool: ...
    def parameters(self) -> dict[str, str]: ...
    def notices(self) -> list[dict[str, Any]]: ...
    def notifications(self) -> list[tuple[str, str]]: ...
    def close(self) -> None: ...
