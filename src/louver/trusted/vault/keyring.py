"""The key ring: a handle on secrets that are stored in Rust, with Louver's errors.

Only schemes and `executor.columns` use keys of columns; Python code never sees a key byte. This
wrapper only adds types and errors.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa

from louver import errors
from louver.names import fold
from louver.trusted.vault import native as compiled
from louver.trusted.vault.code_keys import TileKeys
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.index_keys import LakeKeys

_Result = TypeVar("_Result")

#: A column key <m, {slot: t}>; opaque outside the compiled module.
SdbKey = Any
#: A key update: `.factor` (q) and `.powers` (slot to p), both public.
SdbUpdate = Any


class KeyRing(TileKeys):
    """The keys of one key file. Exposes only its public id; cannot be pickled.

    Data that depends on rows is encrypted and decrypted by the ring `of` a database's epochs.
    """

    __slots__ = ("_epochs", "_ring")

    def __init__(self, ring: Any, epochs: Any = None) -> None:
        """Wrap a ring of the compiled module; use `open`."""
        self._ring, self._epochs = ring, epochs

    def of(self, epochs: Epochs) -> KeyRing:
        """The same keys, for the rows of a database with these epochs."""
        return KeyRing(self._ring, epochs.handle)

    @staticmethod
    def create(path: str | os.PathLike[str], comment: str = "") -> str:
        """Create a key file (mode 0600, never overwriting a file) and return its id."""
        text = os.fspath(path)
        errors.refuse_keys(text, comment)
        if os.path.lexists(text):
            raise errors.make("key.exists", path=text)
        native = _native()
        return cast(str, _file(text, lambda: native.KeyRing.create(text, comment)))

    @staticmethod
    def open(path: str | os.PathLike[str]) -> KeyRing:
        """Open a key file; refuses a damaged one and one that other users may read."""
        text = os.fspath(path)
        errors.refuse_keys(text)
        _check_file(text)
        native = _native()
        return KeyRing(_file(text, lambda: native.KeyRing.open(text)))

    @property
    def key_id(self) -> str:
        """The public name of the key file: 16 hex digits, derived one-way."""
        return cast(str, self._ring.key_id)

    def __repr__(self) -> str:
        return f"KeyRing({self.key_id})"

    def __reduce__(self) -> str:
        raise TypeError("a key ring cannot be pickled or copied")

    def seal_blob(self, purpose: str, context: bytes, plain: bytes) -> bytes:
        """Encrypt and authenticate `plain`, bound to purpose and context."""
        return cast(bytes, self._ring.seal_blob(purpose, context, plain))

    def open_blob(self, purpose: str, context: bytes, sealed: bytes) -> bytes:
        """Undo `seal_blob`; VerificationError if it does not authenticate."""
        return cast(bytes, _verified(lambda: self._ring.open_blob(purpose, context, sealed)))

    def mac(self, purpose: str, data: bytes) -> bytes:
        """A 32-byte HMAC-SHA256 under a key of this purpose."""
        return cast(bytes, self._ring.mac(purpose, data))

    def seal_column(
        self, table: int, column: int, generation: int, values: pa.Array, row_ids: pa.Array
    ) -> pa.Array:
        """Encrypt values, including NULLs, each bound to its row."""
        id_ = (table, column, generation)
        return self._ring.seal_column(*id_, self._epochs, values, row_ids)

    def open_column(
        self,
        table: int,
        column: int,
        generation: int,
        sealed: pa.Array,
        row_ids: pa.Array,
        type: pa.DataType,  # noqa: A002 - the field's term
    ) -> pa.Array:
        """Undo `seal_column`; VerificationError names the first altered row."""
        id_, epochs = (table, column, generation), self._epochs
        return _verified(
            lambda: self._ring.open_column(*id_, epochs, sealed, row_ids, type),
            table,
            column,
        )

    def sum_seal(
        self, table: int, column: int, generation: int, values: pa.Array, row_ids: pa.Array
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Masked whole numbers (spec/sum.md): low limbs, high limbs, flags of non-NULL values.
        All are below 2^60 for types of at most 64 bits, which DuckDB adds fastest as BIGINT. Limbs
        of wider types have 64 bits. A row id must never be used twice.
        """
        id_ = (table, column, generation)
        limbs = _native().sums.sum_seal(self._ring, id_, self._epochs, values, row_ids)
        return cast(tuple[pa.Array, pa.Array, pa.Array], limbs)

    def sum_open(
        self,
        table: int,
        column: int,
        generation: int,
        limb_bits: int,
        low: list[int],
        high: list[int] | None,
        count: list[int] | None,
        sets: list[bytes],
    ) -> tuple[list[int], list[int] | None]:
        """Totals, and counts of values other than NULL, group by group.

        The sums are the server's, without modular reduction; 0 for no row. With `limb_bits` b
        (`sum_limb_bits`) a total must be in [-2^(b-1), 2^(b-1)) if `high` is None, otherwise in
        [-2^(2b-1), 2^(2b-1)); outside, the result is wrong and this cannot be detected.
        """
        id_ = (table, column, generation)
        sums = (limb_bits, low, high, count, sets)
        return cast(
            tuple[list[int], list[int] | None],
            _verified(
                lambda: _native().sums.sum_open(self._ring, id_, self._epochs, *sums),
                computed=True,
            ),
        )

    @staticmethod
    def sum_limb_bits(wide: bool) -> int:
        """Bits of a limb of a masked sum: 60; for HUGEINT and DECIMAL of over 18 digits, 64."""
        sums = _native().sums
        return cast(int, sums.WIDE_BITS if wide else sums.NARROW_BITS)

    @staticmethod
    def run_set(runs: list[tuple[int, int]]) -> bytes:
        """The row set (spec/rowset.md) of ranges: first row id, number of rows."""
        return cast(bytes, _native().sums.run_set(runs))

    @staticmethod
    def set_sizes(sets: list[bytes], known: list[tuple[int, int]] | None, most: int) -> list[int]:
        """The number of rows in each row set of a server; raises if one contains a row outside the
        known ranges (None: not known), or contains a row more than `most` times.
        """
        sizes = _verified(lambda: _native().sums.set_sizes(sets, known, most), computed=True)
        return cast(list[int], sizes)

    def text_seal(
        self, table: int, column: int, generation: int, values: pa.Array, row_ids: pa.Array
    ) -> pa.Array:
        """Filters of the words and substrings of texts (spec/text.md); NULL looks like a value."""
        id_ = (table, column, generation)
        return _native().text.text_seal(self._ring, id_, self._epochs, values, row_ids)

    def text_tokens(
        self,
        table: int,
        column: int,
        generation: int,
        kind: str,
        pattern: str,
        escape: str | None = None,
    ) -> bytes | None:
        """The tokens for `text_match`; None if a search has nothing to match.

        `kind` is word, prefix, suffix, contains, or like (with LIKE's escape character). There are
        false positives but no false negatives: the exact test is local.
        """
        id_ = (table, column, generation)
        native = _native().text
        tokens = native.text_tokens(self._ring, id_, kind, pattern, escape)
        return cast(bytes | None, tokens)

    def lake_table(self, table: int) -> LakeKeys:
        """The keys of one lake table (spec/eds.md)."""
        return LakeKeys(self._ring.lake_table(table))

    def hom(self, hint: bytes | None, bits: int = 2048) -> HomSpace:
        """The Paillier modulus of this ring; `hint` avoids the search for its primes."""
        native = _native()
        return HomSpace(_verified(lambda: native.PaillierSpace(self._ring, hint, bits)))

    def sdb(self, hint: bytes | None, bits: int = 2048) -> SdbSpace:
        """The secret-sharing space of this ring; `hint` avoids the search for the primes."""
        return SdbSpace(_verified(lambda: self._ring.sdb(hint, bits)), self._epochs)


class HomSpace:
    """HomSum sums with Paillier encryption; see spec/hom.md."""

    __slots__ = ("_space",)

    def __init__(self, space: Any) -> None:
        """Wrap a space of the compiled module; use `KeyRing.hom`."""
        self._space = space

    @property
    def hint(self) -> bytes:
        """An encrypted blob with which the primes are reconstructed without a search."""
        return cast(bytes, self._space.hint)

    @property
    def modulus(self) -> bytes:
        """The square of n, big endian; public, and the second argument of `hom_sum`."""
        return cast(bytes, self._space.modulus)

    @property
    def slots(self) -> int:
        """The number of columns in a ciphertext: 15 at 2,048 bits."""
        return cast(int, self._space.slots)

    def seal(self, columns: list[pa.Array], rows: int) -> pa.Array:
        """One ciphertext per row, of all columns (whole numbers of 64 bits, including NULLs)."""
        return self._space.seal(columns, rows)

    def open(self, ciphertexts: pa.Array, rows: list[int]) -> list[list[tuple[int, int]]]:
        """For every sum, with the number of rows it added: each slot's total and number of values.

        VerificationError for anything that is not a ciphertext, or not a sum of so many rows.
        """
        return cast(
            list[list[tuple[int, int]]],
            _verified(lambda: self._space.open(ciphertexts, rows), computed=True),
        )


class SdbSpace:
    """Keys and encryption of the scheme `sdb`; see spec/sdb.md."""

    __slots__ = ("_epochs", "_space")

    def __init__(self, space: Any, epochs: Any = None) -> None:
        """Wrap a space of the compiled module; use `KeyRing.sdb`."""
        self._space, self._epochs = space, epochs

    def of(self, epochs: Epochs) -> SdbSpace:
        """The same space, for the rows of a database with these epochs."""
        return SdbSpace(self._space, epochs.handle)

    @property
    def hint(self) -> bytes:
        """An encrypted blob with which the primes are reconstructed without a search."""
        return cast(bytes, self._space.hint)

    @property
    def modulus(self) -> bytes:
        """n, big endian; public."""
        return cast(bytes, self._space.modulus)

    def seal(
        self, table: int, column: int, generation: int, values: pa.Array, row_ids: pa.Array
    ) -> pa.Array:
        """Ciphertexts of whole numbers (also decimals, dates, timestamps); NULL stays NULL."""
        return self._space.seal(table, column, generation, self._epochs, values, row_ids)

    def seal_ones(self, table: int, generation: int, row_ids: pa.Array) -> pa.Array:
        """The helper column S."""
        return self._space.seal_ones(table, generation, self._epochs, row_ids)

    def seal_random(self, table: int, generation: int, row_ids: pa.Array) -> pa.Array:
        """The helper column R."""
        return self._space.seal_random(table, generation, self._epochs, row_ids)

    def column_key(self, table: int, column: int, generation: int, slot: int) -> SdbKey:
        """The key of a column in one occurrence (slot) of its table."""
        return self._space.column_key(table, column, generation, slot)

    def ones_key(self, table: int, generation: int, slot: int) -> SdbKey:
        """The key of S."""
        return self._space.ones_key(table, generation, slot)

    def random_key(self, table: int, generation: int, slot: int) -> SdbKey:
        """The key of R."""
        return self._space.random_key(table, generation, slot)

    def plain_key(self) -> SdbKey:
        """<1, 0>: treats a plain column as a share."""
        return self._space.plain_key()

    def multiply(self, left: SdbKey, right: SdbKey) -> SdbKey:
        """The key of a product of two shares."""
        return self._space.multiply(left, right)

    def scale(self, key: SdbKey, constant: int) -> SdbKey:
        """The key under which the same shares hold `constant` times the value."""
        return self._space.scale(key, constant)

    def sum_target(self, keys: list[SdbKey], label: bytes) -> SdbKey:
        """A key to which all of `keys` can be updated with exponents that are not negative."""
        return self._space.sum_target(keys, label)

    def common_target(self, label: bytes) -> SdbKey:
        """A key that is the same for every row: for SUM, GROUP BY and equi-joins."""
        return self._space.common_target(label)

    def compare_target(self, random: SdbKey) -> SdbKey:
        """The key under which a product with R opens without a further update."""
        return self._space.compare_target(random)

    def update(self, source: SdbKey, target: SdbKey) -> SdbUpdate:
        """The public values with which the server converts shares from one key to another."""
        return self._space.update(source, target)

    def literal(self, key: SdbKey, value: int) -> bytes:
        """A constant's share under a key without slots."""
        return cast(bytes, self._space.literal(key, value))

    def open(
        self,
        key: SdbKey,
        ciphertexts: pa.Array,
        row_ids: Mapping[int, pa.Array],
        type: pa.DataType,  # noqa: A002 - the field's term
        low: int,
        high: int,
    ) -> pa.Array:
        """Open shares; VerificationError if a value is outside [low, high] or its type."""
        given = (key, self._epochs, ciphertexts, dict(row_ids), type, low, high)
        return _verified(lambda: self._space.open(*given), computed=True)


_native = compiled.module


def _check_file(path: str) -> None:
    """The simple cases, with a specific message each; Rust checks again on the open file."""
    try:
        status = Path(path).stat()
    except FileNotFoundError as error:
        raise errors.make("key.missing", path=path) from error
    except OSError as error:
        raise errors.make("key.io", path=path, detail=str(error.strerror)) from error
    if not stat.S_ISREG(status.st_mode):
        raise errors.make("key.format", path=path, detail="it is not a regular file")
    with Path(path).open("rb") as file:
        head = file.read(10)  # a comment or the name of the format, and no part of the key
    if not head.startswith((b"#", b"LOUVER-KEY")):
        raise errors.make("key.format", path=path, detail="it does not begin as a key file does")
    if status.st_mode & 0o077:
        raise errors.make("key.mode", path=path, mode=f"{stat.S_IMODE(status.st_mode):04o}")


def _file(path: str, act: Callable[[], _Result]) -> _Result:
    native = _native()
    try:
        return act()
    except native.KeyFileError as error:
        # (path, cause, fix); our own error table has the fix.
        text = str(error.args[1] if len(error.args) > 1 else error).rstrip(".")
        code = "key.checksum" if "checksum" in fold(text) else "key.format"
        raise errors.make(code, path=path, detail=text) from error
    except FileExistsError as error:
        raise errors.make("key.exists", path=path) from error
    except OSError as error:
        raise errors.make("key.io", path=path, detail=str(error.strerror or error)) from error


def _verified(
    act: Callable[[], _Result], table: int = 0, column: int = 0, computed: bool = False
) -> _Result:
    """Run a function and translate verification failures to Louver's errors."""
    native = _native()
    try:
        return act()
    except native.VerifyError as error:
        text = str(error)
        if computed or not table:
            raise errors.make("result.tampered", detail=text) from error
        row = getattr(error, "row_id", None)
        raise errors.make(
            "value.tampered",
            table=f"table {table}",
            column=f"column {column}",
            row=text if row is None else row,
            detail=text,
        ) from error
