"""Types of the Rust binding. What the functions do is said where they are written, in `rust/`."""

from typing import Any, Final, NoReturn, final

import pyarrow as pa

from louver._rust import attack as attack
from louver._rust import codes as codes
from louver._rust import fss as fss
from louver._rust import look_ups as look_ups
from louver._rust import parquet as parquet
from louver._rust import postgres as postgres
from louver._rust import proxy as proxy
from louver._rust import recipe as recipe
from louver._rust import sdb_math as sdb_math
from louver._rust import server as server
from louver._rust import sums as sums
from louver._rust import text as text
from louver._rust import tiles as tiles

#: Most bits of a number in the helper column R; plans must leave room for them below n/2.
RANDOM_BITS: Final[int]

class VerifyError(Exception):
    """Something stored was altered, moved, or sealed under another key."""

class WidenError(Exception):
    """A value lies outside of the form in which its column's tiles are sealed."""

class KeyFileError(Exception):
    """A key file is missing, damaged or open to others; `args` is (path, cause, fix)."""

@final
class Epochs:
    """The random bits of epochs, by number; others below `legacy_below` are of older releases."""

    def __new__(cls, legacy_below: int, known: list[tuple[int, bytes]]) -> Epochs: ...

@final
class KeyRing:
    """The keys of one key file (`spec/keyfile.md`). The secret itself never reaches Python."""

    @staticmethod
    def create(path: str, comment: str = "") -> str: ...
    @staticmethod
    def open(path: str) -> KeyRing: ...
    @property
    def key_id(self) -> str: ...
    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes: ...
    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes: ...
    def mac(self, purpose: str, data: bytes) -> bytes: ...
    def seal_column(
        self,
        table: int,
        column: int,
        generation: int,
        epochs: Epochs,
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    def open_column(
        self,
        table: int,
        column: int,
        generation: int,
        epochs: Epochs,
        sealed: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
        type: pa.DataType,
    ) -> pa.Array: ...
    def sdb(self, hint: bytes | None = None, bits: int = 2048) -> SdbSpace: ...
    def lake_table(self, table_id: int) -> LakeKeys: ...
    def __reduce__(self) -> NoReturn: ...

@final
class LakeKeys:
    """The keys of one table of a lake (`spec/eds.md`)."""

    def index_id(self, column_id: int, generation: int, spec: bytes) -> bytes: ...
    def segment(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        lows: pa.Array,
        highs: pa.Array,
        states: pa.Array,
    ) -> bytes: ...
    def token(
        self,
        column_id: int,
        generation: int,
        spec: bytes,
        low: int,
        high: int,
        sides: bool = False,
    ) -> bytes: ...
    def opened(self, token: bytes) -> list[int]: ...
    def check(
        self,
        column_id: int,
        generation: int,
        segment: bytes | memoryview,
        token: bytes | None = None,
    ) -> None: ...
    def sign(self, purpose: str, context: bytes, data: bytes | memoryview) -> bytes: ...
    def verify(
        self, purpose: str, context: bytes, data: bytes | memoryview, tag: bytes
    ) -> None: ...
    def __reduce__(self) -> NoReturn: ...

def mappable(duckdb_type: str, letters: bool = False) -> bool: ...
def map_bounds(
    array: pa.Array | pa.ChunkedArray, duckdb_type: str, letters: bool = False
) -> tuple[int | None, int | None, int]: ...
def map_values(
    array: pa.Array | pa.ChunkedArray, duckdb_type: str, letters: bool = False
) -> pa.Array: ...

@final
class Token:
    """A token made ready for many segments; also in `server`."""

    def __new__(cls, token: bytes) -> Token: ...
    def sweep(self, segment: bytes | memoryview) -> bytes: ...

def sweep(segment: bytes | memoryview, token: bytes) -> bytes: ...
def segment_header(segment: bytes | memoryview) -> dict[str, Any]: ...
def token_header(token: bytes) -> dict[str, Any]: ...

@final
class SdbKey:
    """The key of an expression: `m`, and an integer offset a slot (table occurrence)."""

    @property
    def slots(self) -> list[int]: ...
    def __reduce__(self) -> NoReturn: ...

@final
class SdbUpdate:
    """What the server is sent to move a column to another key."""

    @property
    def factor(self) -> bytes: ...
    @property
    def powers(self) -> dict[int, bytes]: ...

@final
class SdbSpace:
    """One key ring's SDB modulus and keys (`spec/sdb.md`)."""

    @property
    def hint(self) -> bytes: ...
    @property
    def modulus(self) -> bytes: ...
    def seal(
        self,
        table: int,
        column: int,
        generation: int,
        epochs: Epochs,
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    def seal_ones(
        self, table: int, generation: int, epochs: Epochs, row_ids: pa.Array | pa.ChunkedArray
    ) -> pa.Array: ...
    def seal_random(
        self, table: int, generation: int, epochs: Epochs, row_ids: pa.Array | pa.ChunkedArray
    ) -> pa.Array: ...
    def column_key(self, table: int, column: int, generation: int, slot: int) -> SdbKey: ...
    def ones_key(self, table: int, generation: int, slot: int) -> SdbKey: ...
    def random_key(self, table: int, generation: int, slot: int) -> SdbKey: ...
    def plain_key(self) -> SdbKey: ...
    def multiply(self, a: SdbKey, b: SdbKey) -> SdbKey: ...
    def scale(self, a: SdbKey, constant: int) -> SdbKey: ...
    def sum_target(self, keys: list[SdbKey], label: bytes) -> SdbKey: ...
    def common_target(self, label: bytes) -> SdbKey: ...
    def compare_target(self, random: SdbKey) -> SdbKey: ...
    def update(self, source: SdbKey, target: SdbKey) -> SdbUpdate: ...
    def literal(self, key: SdbKey, value: int) -> bytes: ...
    def open(
        self,
        key: SdbKey,
        epochs: Epochs,
        ciphertexts: pa.Array | pa.ChunkedArray,
        row_ids: dict[int, pa.Array | pa.ChunkedArray],
        type: pa.DataType,
        low: int,
        high: int,
    ) -> pa.Array: ...
    def __reduce__(self) -> NoReturn: ...

@final
class PaillierSpace:
    """One key ring's Paillier modulus (`spec/hom.md`)."""

    def __new__(
        cls, ring: KeyRing, hint: bytes | None = None, bits: int = 2048
    ) -> PaillierSpace: ...
    @property
    def hint(self) -> bytes: ...
    @property
    def modulus(self) -> bytes: ...
    @property
    def slots(self) -> int: ...
    def seal(self, columns: list[pa.Array], rows: int) -> pa.Array: ...
    def open(self, ciphertexts: pa.Array, rows: list[int]) -> list[list[tuple[int, int]]]: ...
    def __reduce__(self) -> NoReturn: ...
