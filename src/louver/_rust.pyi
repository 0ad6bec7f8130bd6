"""Types of the Rust binding. What the functions do is said where they are written, in `rust/`."""

from typing import Any, Final, NoReturn, final

import pyarrow as pa

#: Most bits of a number in the helper column R; plans must leave room for them below n/2.
RANDOM_BITS: Final[int]

class VerifyError(Exception):
    """Something stored was altered, moved, or sealed under another key."""

class KeyFileError(Exception):
    """A key file is missing, damaged or open to others; `args` is (path, cause, fix)."""

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
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    def open_column(
        self,
        table: int,
        column: int,
        generation: int,
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

    def __init__(self, token: bytes) -> None: ...
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
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    def seal_ones(
        self, table: int, generation: int, row_ids: pa.Array | pa.ChunkedArray
    ) -> pa.Array: ...
    def seal_random(
        self, table: int, generation: int, row_ids: pa.Array | pa.ChunkedArray
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
        ciphertexts: pa.Array | pa.ChunkedArray,
        row_ids: dict[int, pa.Array | pa.ChunkedArray],
        type: pa.DataType,
        low: int,
        high: int,
    ) -> pa.Array: ...
    def __reduce__(self) -> NoReturn: ...

class server:  # noqa: N801
    """A submodule: what a server runs. Knows the public modulus, no key."""

    @staticmethod
    def sdb_mul(a: pa.Array, b: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_key_update(a: pa.Array, s: pa.Array, k: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_add(
        a: pa.Array, b: pa.Array, s: pa.Array, ka: pa.Array, kb: pa.Array, n: pa.Array
    ) -> pa.Array: ...
    @staticmethod
    def sdb_add_kept(
        a: pa.Array,
        b: pa.Array,
        wa: pa.Array,
        wb: pa.Array,
        ka: pa.Array,
        kb: pa.Array,
        n: pa.Array,
    ) -> pa.Array: ...
    @staticmethod
    def sdb_compare(z: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_compare_sum(
        r: pa.Array,
        a: pa.Array,
        b: pa.Array,
        wa: pa.Array,
        wb: pa.Array,
        ka: pa.Array,
        kb: pa.Array,
        n: pa.Array,
    ) -> pa.Array: ...
    @staticmethod
    def sdb_compare_kept(
        x: pa.Array, y: pa.Array, kx: pa.Array, ky: pa.Array, n: pa.Array
    ) -> pa.Array: ...
    @staticmethod
    def sdb_linear(
        x: pa.Array, y: pa.Array, kx: pa.Array, ky: pa.Array, n: pa.Array
    ) -> pa.Array: ...
    @staticmethod
    def sdb_sum(values: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_int_add(r1: pa.Array, r2: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_cartprod(a: pa.Array, s: pa.Array, p: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_power(s: pa.Array, p: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_powers(s: pa.Array, p: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_order(z: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def sdb_residue(text: pa.Array, n: pa.Array) -> pa.Array: ...
    @staticmethod
    def text_match(stored: pa.Array, row_ids: pa.Array, tokens: pa.Array) -> pa.Array: ...
    @staticmethod
    def hom_sum(values: pa.Array, modulus: pa.Array) -> pa.Array: ...
    @staticmethod
    def row_set(ids: pa.Array) -> pa.Array: ...
    @staticmethod
    def onion_open(codes: pa.Array, row_ids: pa.Array, key: pa.Array) -> pa.Array: ...
    @staticmethod
    def onion_open_wide(codes: pa.Array, row_ids: pa.Array, key: pa.Array) -> pa.Array: ...
    @staticmethod
    def onion_join(codes: pa.Array, key: pa.Array) -> pa.Array: ...
    @staticmethod
    def onion_join_wide(codes: pa.Array, key: pa.Array) -> pa.Array: ...
    @staticmethod
    def ore_compare(stored: pa.Array, token: pa.Array) -> pa.Array: ...
    @staticmethod
    def join_adjust(points: pa.Array, delta: pa.Array) -> pa.Array: ...
    @staticmethod
    def encode_update(power: bytes, factor: bytes) -> bytes: ...
    @staticmethod
    def sweep(segment: bytes | memoryview, token: bytes) -> bytes: ...
    @staticmethod
    def segment_header(segment: bytes | memoryview) -> dict[str, Any]: ...
    @staticmethod
    def token_header(token: bytes) -> dict[str, Any]: ...
    class Stopped(Exception):
        """A Stop was set before the work was done."""

    @final
    class Stop:
        """Ends the evaluations that it is given to; they raise Stopped."""

        def __init__(self) -> None: ...
        def set(self) -> None: ...
        def is_set(self) -> bool: ...

    @staticmethod
    def fss_select(
        shares: list[bytes],
        points: Any | None,
        count: int,
        records: Any,
        width: int,
        tags: Any,
        first: int = 0,
        stop: server.Stop | None = None,
    ) -> list[bytes]: ...
    @staticmethod
    def fss_sum(
        shares: list[bytes],
        points: Any,
        starts: Any | None,
        groups: Any | None,
        values: Any | None,
        columns: int,
        group_count: int,
        stop: server.Stop | None = None,
    ) -> list[bytes]: ...
    @staticmethod
    def paillier_sum(
        share: bytes,
        points: Any,
        starts: Any | None,
        groups: Any | None,
        values: Any | None,
        columns: int,
        group_count: int,
        stop: server.Stop | None = None,
    ) -> bytes: ...
    @staticmethod
    def paillier_join(share: bytes, replies: list[bytes]) -> bytes: ...
    @staticmethod
    def fss_search(
        shares: list[bytes],
        codes: Any,
        code_bits: int,
        index_bits: int,
        prefix_bits: int,
        first: int = 0,
        stop: server.Stop | None = None,
    ) -> list[bytes]: ...
    @staticmethod
    def fss_sample(
        shares: list[bytes],
        codes: Any,
        code_bits: int,
        index_bits: int,
        prefix_bits: list[int],
        records: Any,
        width: int,
        tags: Any,
        slots: int,
        seeds: list[int],
        first: int = 0,
        stop: server.Stop | None = None,
    ) -> bytes: ...
    @staticmethod
    def fss_tags(level: int, records: Any, width: int) -> bytes: ...
    @staticmethod
    def fss_hash(salt: bytes, columns: list[pa.Array]) -> tuple[bytes, bytes]: ...
    @staticmethod
    def fss_digest(buffers: list[Any]) -> bytes: ...
    @staticmethod
    def share_header(share: bytes) -> dict[str, Any]: ...
    @final
    class Token:
        """A token made ready for many segments."""

        def __init__(self, token: bytes) -> None: ...
        def sweep(self, segment: bytes | memoryview) -> bytes: ...

class attack:  # noqa: N801
    """A submodule: what a server could learn from its own state."""

    @staticmethod
    def common_key(column: pa.Array | pa.ChunkedArray, n: bytes) -> list[int | None]: ...
    @staticmethod
    def coprime(
        a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray, n: bytes
    ) -> list[tuple[int, int] | None]: ...
    @staticmethod
    def linear(
        r_u: pa.Array | pa.ChunkedArray, r_a: pa.Array | pa.ChunkedArray, n: bytes
    ) -> tuple[int, list[int | None]]: ...

@final
class PaillierSpace:
    """One key ring's Paillier modulus (`spec/paillier.md`)."""

    def __init__(self, ring: KeyRing, hint: bytes | None = None, bits: int = 2048) -> None: ...
    @property
    def hint(self) -> bytes: ...
    @property
    def modulus(self) -> bytes: ...
    @property
    def slots(self) -> int: ...
    def seal(self, columns: list[pa.Array], rows: int) -> pa.Array: ...
    def open(self, ciphertexts: pa.Array, rows: list[int]) -> list[list[tuple[int, int]]]: ...
    def __reduce__(self) -> NoReturn: ...

class codes:  # noqa: N801
    """A submodule: codes of a key ring (`spec/eq.md`, `spec/ord.md`, `spec/onion.md`)."""

    @staticmethod
    def eq_codes(
        ring: KeyRing,
        id: tuple[int, int, int],
        group: str,
        domain: str,
        values: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def eq_join_codes(
        ring: KeyRing, group: str, domain: str, values: pa.Array | pa.ChunkedArray
    ) -> pa.Array: ...
    @staticmethod
    def ord_codes(
        ring: KeyRing,
        id: tuple[int, int, int],
        group: str,
        domain: str,
        low: int,
        bits: int,
        values: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def close_codes(
        ring: KeyRing,
        id: tuple[int, int, int],
        onion: str,
        codes: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def ore_seal(
        ring: KeyRing,
        id: tuple[int, int, int],
        domain: str,
        low: int,
        bits: int,
        values: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def ore_token(
        ring: KeyRing,
        id: tuple[int, int, int],
        domain: str,
        low: int,
        bits: int,
        value: pa.Array | pa.ChunkedArray,
    ) -> bytes: ...
    @staticmethod
    def join_points(
        ring: KeyRing,
        id: tuple[int, int, int],
        domain: str,
        values: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def join_delta(
        ring: KeyRing, source: tuple[int, int, int], target: tuple[int, int, int]
    ) -> bytes: ...
    @staticmethod
    def layer_key(ring: KeyRing, id: tuple[int, int, int], onion: str) -> bytes: ...
    @staticmethod
    def det_key(ring: KeyRing, id: tuple[int, int, int]) -> bytes: ...

class sums:  # noqa: N801
    """A submodule: masked sums of a key ring (`spec/sum.md`)."""

    NARROW_BITS: Final[int]
    WIDE_BITS: Final[int]
    @staticmethod
    def sum_seal(
        ring: KeyRing,
        id: tuple[int, int, int],
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> tuple[pa.Array, pa.Array, pa.Array]: ...
    @staticmethod
    def sum_open(
        ring: KeyRing,
        id: tuple[int, int, int],
        limb_bits: int,
        low: list[int],
        high: list[int] | None,
        count: list[int] | None,
        sets: list[bytes],
    ) -> tuple[list[int], list[int] | None]: ...
    @staticmethod
    def run_set(runs: list[tuple[int, int]]) -> bytes: ...

class text:  # noqa: N801
    """A submodule: searchable text of a key ring (`spec/text.md`)."""

    @staticmethod
    def text_seal(
        ring: KeyRing,
        id: tuple[int, int, int],
        values: pa.Array | pa.ChunkedArray,
        row_ids: pa.Array | pa.ChunkedArray,
    ) -> pa.Array: ...
    @staticmethod
    def text_tokens(
        ring: KeyRing,
        id: tuple[int, int, int],
        kind: str,
        pattern: str,
        escape: str | None = None,
    ) -> bytes | None: ...

class sdb_math:  # noqa: N801
    """A submodule: the scheme's identities on explicit numbers, for known-answer tests."""

    @staticmethod
    def item_key(m: int, x: int, r: int, g: int, phi: int, n: int) -> int: ...
    @staticmethod
    def seal(value: int, item_key: int, n: int) -> int: ...
    @staticmethod
    def open(ciphertext: int, item_key: int, n: int) -> int: ...
    @staticmethod
    def paper_update(
        source: tuple[int, int],
        target: tuple[int, int],
        ones: tuple[int, int],
        phi: int,
        n: int,
    ) -> tuple[int, int]: ...
    @staticmethod
    def update(
        source: tuple[int, int], target: tuple[int, int], ones_m: int, n: int
    ) -> tuple[int, int]: ...

class fss:  # noqa: N801
    """A submodule: private questions as shares, and their answers (`spec/fss.md`)."""

    @final
    class Point:
        """One point function; VerifyError where the joined answers are a lie."""

        def __init__(
            self, bits: int, at: int | None, parties: int = 2, scheme: str = "tree"
        ) -> None: ...
        def shares(self) -> list[bytes]: ...
        def open(self, replies: list[bytes], level: int) -> bytes | None: ...

    @final
    class Sum:
        """One interval, both ends included; None, None adds nothing."""

        def __init__(self, bits: int, low: int | None, high: int | None) -> None: ...
        def shares(self) -> list[bytes]: ...
        def open(self, replies: list[bytes]) -> list[int]: ...

    @final
    class PointSum:
        """One point function with sums as answers; None adds nothing."""

        def __init__(self, bits: int, at: int | None) -> None: ...
        def shares(self) -> list[bytes]: ...
        def open(self, replies: list[bytes]) -> list[int]: ...

    @final
    class PaillierModulus:
        """A modulus and its factors, made afresh in about a second (`spec/fss-many.md`)."""

        def __init__(self) -> None: ...

    @final
    class PaillierSum:
        """One interval for any number of parties; None, None adds nothing.

        Without a modulus, one of this process's own. VerifyError where the answers are a lie.
        """

        def __init__(
            self,
            bits: int,
            low: int | None,
            high: int | None,
            parties: int,
            modulus: fss.PaillierModulus | None = None,
        ) -> None: ...
        def shares(self) -> list[bytes]: ...
        def open(self, replies: list[bytes]) -> list[int]: ...

    @final
    class Sample:
        """Point functions of one payload, of (bits, place or None), that gather rows."""

        def __init__(self, functions: list[tuple[int, int | None]]) -> None: ...
        def shares(self) -> list[list[bytes]]: ...
        def open(
            self, replies: list[bytes], width: int, slots: int, seeds: list[int]
        ) -> list[bytes] | None: ...

    @final
    class Below:
        """Points below an end, at most two to the power of bits, with sums as answers."""

        def __init__(self, bits: int, end: int) -> None: ...
        def shares(self) -> list[bytes]: ...
        def open(self, replies: list[bytes]) -> list[int]: ...
