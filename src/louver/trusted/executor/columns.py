"""Where plan symbols meet keys: updates to numbers, literals to shares, ciphertexts to values.

The one module beside the schemes that holds the key ring. It sees no SQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from louver import errors
from louver.trusted.executor import constant_encoding, server_numbers
from louver.trusted.planner.ir import (
    SEALED,
    Bindable,
    Code,
    Factor,
    Fixed,
    Key,
    Numbers,
    Output,
    Public,
    RemoteQuery,
    Share,
    SharedExpr,
    Summed,
    Tag,
    Update,
    UpdateConstant,
    wire_update,
)
from louver.trusted.planner.operators import keys
from louver.trusted.planner.render import answer_name
from louver.trusted.vault import primes, schemes, sums
from louver.trusted.vault.arrays import joined, storage, unwrapped, wrapped
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.keyring import HomSpace, KeyRing, SdbKey, SdbSpace
from louver.wire.messages import Constant

if TYPE_CHECKING:
    from louver.trusted.executor.tiles.reading import Fetched, Tiles

FieldOf = Callable[[str], pa.Field]
Tables = Mapping[int, Table]
"""Tables by their ids."""
MODULUS_BITS = 2048


def _nothing(text: str) -> pa.Array:
    raise errors.make("internal", detail=f"no local engine to evaluate {len(text)} characters")


class Columns:
    """Seals rows for the server and opens its answers."""

    def __init__(
        self,
        keyring: KeyRing,
        catalog: Callable[[], Catalog],
        bits: int = MODULUS_BITS,
        evaluate: constant_encoding.Evaluate = _nothing,
        stop_sums: Callable[[tuple[int, int]], None] = lambda _: None,
    ) -> None:
        self._ring = keyring
        self._codes = constant_encoding.Codes(evaluate)
        self._stop_sums = stop_sums
        self._bits = bits
        self._space: SdbSpace | None = None
        self._hom_space: HomSpace | None = None
        self._modulus = 0
        self._updates: dict[tuple[Key, Key], Numbers] = {}
        self._keys: dict[Key, SdbKey] = {}
        self.recipes = schemes.Recipes()
        # The schemas of answers that had every column which was asked for.
        self._complete: WeakKeyDictionary[RemoteQuery, pa.Schema] = WeakKeyDictionary()
        self._catalog = catalog
        #: makes what reads the tiles of tables that have any
        self.tiles: Callable[[], Tiles] | None = None
        #: tables and columns, by id, of which something was opened
        self.opened: set[tuple[int, int]] = set()

    @property
    def catalog(self) -> Catalog:
        """The catalog that rows and answers are read by."""
        return self._catalog()

    @property
    def keyring(self) -> KeyRing:
        """The keys, for the rows that the catalog describes."""
        return self._ring.of(self.catalog.epochs)

    @property
    def space(self) -> SdbSpace:
        """The secret-sharing space; its primes are found at the first use."""
        if self._space is None:
            hint = self.catalog.sdb_hint or None
            self._space = primes.sdb_space(self._ring, hint, self._bits)
            self._modulus = int.from_bytes(self._space.modulus, "big")
        return self._space.of(self.catalog.epochs)

    @property
    def hom_space(self) -> HomSpace:
        """The space of packed sums; its primes are found at the first use."""
        if self._hom_space is None:
            self._hom_space = primes.hom_space(self._ring, self.catalog.hom_hint or None)
        return self._hom_space

    def note_hints(self, catalog: Catalog) -> None:
        """Note in a catalog that is to be saved how the primes in use are found again."""
        if self._space is not None:
            catalog.sdb_hint = self._space.hint
        if self._hom_space is not None:
            catalog.hom_hint = self._hom_space.hint

    def modulus_bits(self) -> int:
        """The size of n."""
        return self._bits

    def modulus(self) -> bytes:
        """n, which the server knows."""
        return self.space.modulus

    def powers(self, update: Update) -> dict[int, int]:
        """The exponents of an update per table occurrence."""
        return self._numbers(update).powers

    def _numbers(self, update: Update) -> Numbers:
        """What does not depend on the statement's numbers, computed once."""
        pair = (update.source, update.target)
        known = self._updates.get(pair)
        if known is None:
            update_numbers = self.space.update(self._key(update.source), self._key(update.target))
            powers = {slot: int.from_bytes(p, "big") for slot, p in update_numbers.powers.items()}
            known = self._updates[pair] = Numbers(
                int.from_bytes(update_numbers.factor, "big"), powers
            )
        return known

    def constant(self, item: Bindable, literals: Sequence[str]) -> Constant:
        """What is bound to a placeholder of a remote query: literals are sealed here."""
        match item:
            case Fixed(value):
                return value
            case UpdateConstant(update, p):
                factor = factor_value(update.factor, literals)
                return wire_update(p, self._numbers(update).factor * factor % self._modulus)
            case Share(key, factor):
                return self.space.literal(self._key(key), factor_value(factor, literals))
            case Public(scheme):
                return schemes.public(self, scheme)
            case Tag(index):
                return literals[index]
            case Code():
                owner = self.catalog.column(item.table, item.column)
                return self._codes.code(self, *owner, item, literals)

    def _key(self, key: Key) -> SdbKey:
        known = self._keys.get(key)
        if known is None:
            known = self._keys[key] = self._make(key)
        return known

    def _make(self, key: Key) -> SdbKey:
        space, args = self.space, key.args
        numbers = [arg for arg in args if isinstance(arg, int)]
        match key.op:
            case "column":
                return space.column_key(numbers[0], numbers[1], numbers[2], numbers[3])
            case "ones":
                return space.ones_key(numbers[0], numbers[1], numbers[2])
            case "random":
                return space.random_key(numbers[0], numbers[1], numbers[2])
            case "plain":
                return space.plain_key()
            case "multiply":
                left, right = (self._key(arg) for arg in args if isinstance(arg, Key))
                return space.multiply(left, right)
            case "sum_target":
                keys = [self._key(arg) for arg in args if isinstance(arg, Key)]
                return space.sum_target(keys, repr(key).encode())
            case "common_target":
                return space.common_target(str(args[0]).encode())
            case "compare_target":
                (random,) = (arg for arg in args if isinstance(arg, Key))
                return space.compare_target(self._key(random))
        raise errors.make("internal", detail=f"an unknown key operation {key.op}")

    def open(
        self, remote: RemoteQuery, tables: Tables, answer: pa.Table, literals: Sequence[str],
        field_of: FieldOf, tiles: Tiles | None = None,
    ) -> pa.Table:  # fmt: skip
        """The server's answer with every column opened, named and typed as the plan says;
        ``tables`` are the plan's tables by id. Values that are in tiles are read with these.
        """
        if self._complete.get(remote) != answer.schema:
            schema = answer.schema
            answer = _required(remote, answer)
            if answer.schema.equals(schema):
                self._complete[remote] = schema
        slots = [] if remote.grouped else remote.row_slots()
        row_ids = {slot: joined(answer.column(f"r{slot}")) for slot in slots}
        opened: dict[str, pa.Array | pa.ChunkedArray] = {}
        held: dict[int, Fetched] = {}
        if self.tiles is not None and any(table.tiles for table in tables.values()):
            from louver.trusted.executor.tiles.opening import fetched

            held = fetched(remote, tables, answer, row_ids, tiles or self.tiles())
        for output in remote.outputs:
            if output.kind == "raw":
                continue
            opened[output.name] = self._open(
                output, remote, tables, answer, row_ids, held, opened, literals, field_of
            )
        if not opened:
            opened["louver_c0"] = pa.nulls(answer.num_rows, pa.int32())
        return pa.table(opened)

    def _open(
        self, output: Output, remote: RemoteQuery, tables: Tables, answer: pa.Table,
        row_ids: dict[int, pa.Array], held: dict[int, Fetched],
        opened: Mapping[str, pa.Array | pa.ChunkedArray], literals: Sequence[str],
        field_of: FieldOf,
    ) -> pa.Array | pa.ChunkedArray:  # fmt: skip
        field = field_of(output.type)
        if output.kind == "absent":
            # Of no type, for not every type can be cast to from a number.
            return pa.nulls(answer.num_rows)
        if output.kind == "average":
            return server_numbers.quotients(opened[output.parts[0]], opened[output.parts[1]])
        if output.summed is not None:
            return self._open_sum(output, output.summed, remote, tables, answer, field)
        parts = answer.column(answer_name(output.name, remote))
        if output.kind == SEALED and output.row is None:
            table, column = _column_of(output, remote, tables)
            ids, tiles = row_ids[output.slot], held.get(output.slot)
            if remote.finished and tiles is not None:
                field = tiles.narrowed(column, field)
            return self._open_parts(table, column, parts, ids, field, tiles)
        values = joined(parts)
        if output.kind == "plain":
            return server_numbers.declared(values, field)
        if output.kind == SEALED:
            table, column = _column_of(output, remote, tables)
            rows = joined(answer.column(f"{answer_name(output.name, remote)}_r"))
            return self._open_picked(table, column, values, rows, field)
        if output.secret is None:
            raise errors.make("internal", detail="a share without its key")
        return self._open_share(output.secret, values, row_ids, literals, field)

    def _open_picked(
        self, table: Table, column: Column, values: pa.Array, rows: pa.Array, field: pa.Field
    ) -> pa.Array:
        """Values of chosen rows; a group without any has neither value nor row."""
        if values.null_count != rows.null_count:
            raise errors.make("reply.format", detail="a value without its row")
        if not values.null_count:
            return self.open_column(table, column, values, rows, field)
        there = values.is_valid()
        opened = self.open_column(table, column, values.filter(there), rows.filter(there), field)
        places = pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1)
        return opened.take(pc.if_else(there, places, pa.scalar(None, pa.int64())))

    def _open_sum(
        self, output: Output, summed: Summed, remote: RemoteQuery, tables: Tables,
        answer: pa.Table, field: pa.Field,
    ) -> pa.Array:  # fmt: skip
        table, column = _column_of(output, remote, tables)
        self.opened.add((table.id, column.id))
        named = zip(summed.parts, output.parts, strict=True)
        parts = {
            part: server_numbers.python_values(joined(answer.column(answer_name(name, remote))))
            for (part, _), name in named
        }
        # How often a row can stand in a product with all other tables.
        others = [tables[s.table] for s in remote.sources if s.slot != output.slot]
        most = prod(max(table.most_rows, 1) for table in others)
        try:
            opened = schemes.open_sum(self, summed.scheme, table, column, summed.what, parts, most)
            return sums.as_type(opened, field)
        except sums.Mismatch:
            # Before anything else happens: a server that watches learns this once.
            self._stop_sums((table.id, column.id))
            raise errors.make("result.sum", table=table.label, column=column.name) from None

    def _open_share(
        self, secret: SharedExpr, values: pa.Array, row_ids: dict[int, pa.Array],
        literals: Sequence[str], field: pa.Field,
    ) -> pa.Array:  # fmt: skip
        self.opened |= secret.key.columns()
        key = self._key(secret.key)
        factor = factor_value(secret.factor, literals)
        if factor != 1:
            key = self.space.scale(key, factor)
        used = {slot: row_ids[slot] for slot in secret.slots}
        # The type as it is: of 128 bits only the extension says whether there is a sign.
        opened = self.space.open(key, values, used, field.type, secret.low, secret.high)
        return wrapped(unwrapped(opened), field.type)

    def open_column(
        self, table: Table, column: Column, values: pa.Array, row_ids: pa.Array, field: pa.Field
    ) -> pa.Array:
        """A sealed column opened; an altered or moved value raises, naming column and row. What is
        in tiles is fetched.
        """
        parts = pa.chunked_array([values])
        opened = self._open_parts(table, column, parts, row_ids, field)
        return joined(opened)

    def _open_parts(
        self, table: Table, column: Column, values: pa.ChunkedArray, row_ids: pa.Array,
        field: pa.Field, held: Fetched | None = None,
    ) -> pa.Array | pa.ChunkedArray:  # fmt: skip
        """The same; what is in tiles is read from those that are ``held``, or else fetched."""
        self.opened.add((table.id, column.id))
        own, type_ = (self, table, column), storage(field.type)
        try:
            if table.tiles and self.tiles is not None:
                from louver.trusted.executor.tiles import opening

                tiles = held or self.tiles()
                opened = opening.copies(*own, values, row_ids, type_, tiles)
            else:
                opened = schemes.open_copy(*own, joined(values), row_ids, type_)
        except errors.VerificationError as error:
            named = re.search(r"\brow(?: id)? (-?\d+)", error.detail)
            row = named[1] if named else "?"
            raise errors.make(
                "value.tampered", table=table.label, column=column.name, row=row
            ) from None
        return opened if type_ == field.type else wrapped(joined(opened), field.type)

    def decided_again(
        self, remote: RemoteQuery, tables: Tables, rows: pa.Table, literals: Sequence[str]
    ) -> pa.Table | None:
        """The opened rows that have the codes which they were chosen by; None where no scheme can
        tell. All of WHERE compares codes with constants.
        """
        for codes in map(keys.codes_of, remote.where):
            if not codes:
                return None
            table = tables[codes[0].table]
            columns = constant_encoding.columns_of(table, codes[0])
            values = [unwrapped(joined(rows.column(c.name))) for c in columns]
            constants = [self.constant(item, literals) for item in codes]
            fit = schemes.matches(self, table, columns, codes[0].onion, values, constants)
            if fit is None:
                return None
            rows = rows if fit.true_count == rows.num_rows else rows.filter(fit)
        return rows

    def seal(self, table: Table, rows: pa.Table, row_ids: pa.Array) -> pa.Table:
        """Rows of declared columns as rows of the server's table."""
        return self.recipes.seal(self, table, rows, row_ids)


def _column_of(output: Output, remote: RemoteQuery, tables: Tables) -> tuple[Table, Column]:
    table = tables[remote.table_of(output.slot)]
    return table, next(c for c in table.columns if c.id == output.column)


def _required(remote: RemoteQuery, answer: pa.Table) -> pa.Table:
    """The reply with every column that was asked for, of the kind that was asked for. Where all
    values are NULL, or there are none, some engines give no type.
    """
    wanted = {answer_name(o.name, remote): o.kind for o in remote.outputs if o.node is not None}
    if not remote.grouped:
        wanted |= {f"r{slot}": "row" for slot in remote.row_slots()}
    wanted |= {f"{answer_name(o.name, remote)}_r": "row" for o in remote.outputs if o.row}
    for name, kind in wanted.items():
        if answer.column_names.count(name) != 1:
            raise errors.make("reply.format", detail=f"column {name} is missing")
        results = answer.schema.field(name).type
        if pa.types.is_null(results) and kind not in ("plain", "raw"):
            results = pa.int64() if kind == "row" else pa.binary()
            nulls = pa.nulls(answer.num_rows, results)
            answer = answer.set_column(answer.column_names.index(name), name, nulls)
        binary = pa.types.is_binary(results) or pa.types.is_large_binary(results)
        fits = {"row": pa.types.is_int64(results), "plain": True, "raw": True}.get(kind, binary)
        if not fits:
            raise errors.make("reply.format", detail=f"column {name} is of type {results}")
    return answer


def factor_value(factor: Factor, literals: Sequence[str]) -> int:
    """A factor with the statement's numbers put in."""
    value = factor.number
    for literal in factor.literals:
        value *= int(literals[literal.index].replace(".", "")) * 10**literal.shift
    return value
