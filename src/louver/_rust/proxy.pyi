"""The front door: PostgreSQL's wire protocol as a server speaks it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

from louver._rust import Epochs, KeyRing
from louver._rust.look_ups import LookUp
from louver._rust.postgres import Session

@final
class Server:
    def __new__(
        cls,
        addresses: Sequence[tuple[str, int | None]],
        opener: Callable[[str, str, list[tuple[str, str]], list[tuple[str, str]]], Any],
        users: Path | str | None = None,
        certificate: tuple[Path | str, Path | str] | None = None,
        tls_required: bool = False,
        most_clients: int = 500,
        most_message_bytes: int = ...,
        patience_ms: int = 60000,
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
    def counts(self) -> tuple[int, int, int, int]: ...

def verifier(password: str) -> str: ...

@final
class Reserve:
    def __new__(cls) -> Reserve: ...
    def has(self, condition: str) -> bool: ...
    def take(self, condition: str) -> bool | None: ...
    def begin(self, condition: str, more: int) -> None: ...

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
        reserves: Sequence[tuple[Reserve, tuple[list[str], str, str, int]]],
        opens: Sequence[str],
    ) -> Read: ...
