"""The front door: PostgreSQL's wire protocol as a server speaks it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, final

from louver._rust import Epochs, KeyRing
from louver._rust.look_ups import LookUp
from louver._rust.postgres import Session
from louver._rust.recipe import RowForm

#: columns, level and kind of a fact, and how many conditions are new
_Leak: TypeAlias = tuple[list[str], str, str, int]

@final
class Server:
    def __new__(
        cls,
        addresses: Sequence[tuple[str, int | None]],
        opener: object,
        users: Path | str | None = None,
        certificate: tuple[Path | str, Path | str] | None = None,
        tls_required: bool = False,
        most_clients: int = 500,
        most_message_bytes: int = ...,
        patience_ms: int = 60000,
        by_transaction: bool = False,
        pool_size: int = 16,
        pool_patience_ms: int = 60000,
        audit: Path | str | None = None,
        log: tuple[Path | str | None, str] | None = None,
        monitor: tuple[tuple[str, int | None], Callable[[], bool]] | None = None,
    ) -> Server: ...
    @property
    def addresses(self) -> list[tuple[str, int]]: ...
    @property
    def monitored(self) -> list[tuple[str, int]]: ...
    def run(self, patience_ms: int) -> int: ...
    def stop(self) -> None: ...
    def pooled(self) -> tuple[int, int, int]: ...
    def counts(self) -> tuple[int, int, int, int]: ...

def verifier(password: str) -> str: ...

@final
class Reserve:
    def __new__(cls) -> Reserve: ...
    def has(self, condition: str) -> bool: ...
    def take(self, condition: str) -> bool | None: ...
    def begin(self, condition: str, more: int) -> None: ...
    def extend(self, more: int) -> None: ...

@final
class Read:
    def __new__(
        cls,
        session: Session,
        ring: KeyRing,
        epochs: Epochs,
        look_up: LookUp,
        sql: str,
        guard: tuple[str, Sequence[Any]],
        sources: Sequence[Sequence[Sequence[Any]]],
        shown: Sequence[tuple[int, tuple[str, int, int, int, int, int, int], bool]],
        reserves: Sequence[tuple[Reserve, _Leak]],
        opens: Sequence[str],
        finish: Finish | None = None,
    ) -> Read: ...

@final
class Finish:
    def __new__(
        cls,
        constants: Sequence[tuple[Any, ...]],
        conditions: Sequence[tuple[int, Any, bool, Sequence[Any]]],
        order: Sequence[tuple[int, bool, bool, bool]],
        limit: object,
        offset: object,
        looks_again: bool,
    ) -> Finish: ...

@final
class Pass:
    def __new__(
        cls,
        session: Session,
        guard: tuple[str, Sequence[Any]] | None,
        sql: str,
        parameters: Sequence[tuple[int, int, bool]],
        columns: Sequence[tuple[tuple[str, int, int, int, int, int, int], bool]],
    ) -> Pass: ...

@final
class PassedChange:
    def __new__(
        cls,
        session: Session,
        opening: Sequence[tuple[str, Sequence[Any]]],
        alone: tuple[str, Sequence[Any]] | None,
        verb: str,
        sql: str,
        parameters: Sequence[tuple[int, int, bool]],
        longest: int | None,
        columns: Sequence[tuple[tuple[str, int, int, int, int, int, int], bool]] | None,
        checks: int,
        growth: Growth | None,
        numbers: tuple[RowNumbers, tuple[str, str] | None] | None,
    ) -> PassedChange: ...

@final
class Begin:
    def __new__(
        cls,
        session: Session,
        opening: Sequence[tuple[str, Sequence[Any]]],
        guard: tuple[str, Sequence[Any]],
        clock: Sequence[Session],
        tag: str,
    ) -> Begin: ...

@final
class RowNumbers:
    def __new__(cls) -> RowNumbers: ...
    def begin(self, first: int, count: int) -> None: ...
    def left(self) -> int: ...

@final
class SequenceNumbers:
    def __new__(cls) -> SequenceNumbers: ...
    @property
    def id(self) -> int: ...
    def begin(self, next: int, step: int, count: int) -> None: ...
    def taken(self) -> tuple[int, int] | None: ...
    def last(self) -> int | None: ...

@final
class Growth:
    def __new__(cls) -> Growth: ...
    def begin(self, room: int) -> None: ...
    def know(self, seen: Sequence[frozenset[str] | None]) -> None: ...
    def taken(self) -> tuple[int, list[tuple[int, str]]]: ...

@final
class Chosen:
    def __new__(
        cls,
        look_up: LookUp,
        sql: str,
        sources: Sequence[Sequence[Sequence[Any]]],
        places: Sequence[int],
        reserves: tuple[Sequence[tuple[Reserve, _Leak]], Sequence[tuple[Reserve, _Leak]]],
        touched: Sequence[tuple[Reserve, _Leak]],
        opens: Sequence[str],
    ) -> Chosen: ...

@final
class NewRow:
    def __new__(
        cls,
        terms: Sequence[Any],
        types: Sequence[Any],
        bounds: Sequence[tuple[bool, tuple[int, int] | None]],
        form: RowForm,
        places: tuple[Sequence[int], Sequence[int]],
        numbers: RowNumbers,
    ) -> NewRow: ...

@final
class Returning:
    def __new__(
        cls, shown: Sequence[tuple[int, Any, tuple[str, int, int, int, int, int, int], bool]]
    ) -> Returning: ...

@final
class Write:
    def __new__(
        cls,
        session: Session,
        ring: KeyRing,
        epochs: Epochs,
        opening: Sequence[tuple[str, Sequence[Any]]],
        alone: tuple[str, Sequence[Any]] | None,
        verb: str,
        sql: str,
        unread: str | None,
        chosen: Chosen | None,
        new_row: NewRow | None,
        growth: Growth,
        returning: Returning | None,
    ) -> Write: ...
    def recorded(self) -> None: ...
    def apply(self, values: Sequence[Any]) -> tuple[int | None, bool]: ...
    def taken(self) -> tuple[bool, list[int]]: ...
