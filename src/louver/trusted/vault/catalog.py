"""What the client knows of a database: names, types, representations, keys' generations, bounds.

The catalog is pure data. `CatalogStore` keeps it sealed beside the data; the server's own
schema is never believed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from louver.names import fold
from louver.trusted.vault.catalog_text import checked, fields, fingerprint, pack, unpack, unreadable
from louver.trusted.vault.epochs import Epochs

FORMAT = 1
#: Column id of U, the helper column of ones by which constants enter sums (decision 0004).
UNIT_COLUMN = 0
_FIRST_TABLE_ID_LIMIT = 1 << 30
#: How many values of a column are told apart before they count as many, and what then stands.
MOST_SEEN = 32
MANY = "*"
_BOUND_LENGTH = 40
"""Bytes of the longest bound: a sign and 39 digits."""
#: The schema under which objects of the session alone stand; never stored.
TEMPORARY = "temp"
#: The name of the database, which in the place of a schema means its `main`.
DATABASE = "memory"


@dataclass(slots=True)
class Column:
    """One declared column and what is stored for it on the server."""

    name: str
    type: str
    id: int
    encrypted: bool = False
    scheme: str = ""
    ceiling: str = "plaintext"
    generation: int = 0
    #: representation ("plain", "rnd", "sdb", "eq", "ord", "sum" ...) to the server's column name
    stored: dict[str, str] = field(default_factory=dict)
    #: bounds of the unscaled integers ever stored; they only widen
    minimum: int | None = None
    maximum: int | None = None
    has_null: bool = False
    #: whether its declaration allows NULL: all that a plan may depend on
    nullable: bool = True
    #: state of each onion: eq is closed, det or join; ord is closed or open
    layers: dict[str, str] = field(default_factory=dict)
    #: join group: columns of one label share the inmost key; "" for none
    group: str = ""
    #: domain of the order codes, fixed at creation: its lowest value, and its bits (0: no codes)
    low: int | None = None
    bits: int = 0
    #: how many low bits of the order domain its codes leave out: buckets instead of values
    coarse: int = 0
    #: what a generated column is computed by, as DuckDB prints it; "" for others
    expression: str = ""
    #: whether all values but NULL are declared to differ
    unique: bool = False
    #: how many values the declaration admits (BOOLEAN, ENUM, CHECK … IN); 0: no such limit
    choices: int = 0
    #: fingerprints of the values ever stored; just `MANY` where they are many, or not known
    seen: list[str] = field(default_factory=list)

    def see(self, marks: Iterable[str]) -> None:
        """Take in the fingerprints of new values."""
        if self.seen == [MANY]:
            return
        found = dict.fromkeys((*self.seen, *marks))
        self.seen = [MANY] if len(found) > MOST_SEEN else list(found)

    def few(self) -> int:
        """At most how many different values the column has, where these are few; else 0."""
        known = [self.choices] if 0 < self.choices <= MOST_SEEN else []
        if self.seen and self.seen != [MANY]:
            known.append(len(self.seen))
        return min(known, default=0)

    def widen(self, minimum: int | None, maximum: int | None, has_null: bool) -> bool:
        """Take in the bounds of new values; says whether anything changed."""
        before = (self.minimum, self.maximum, self.has_null)
        lows = [bound for bound in (self.minimum, minimum) if bound is not None]
        highs = [bound for bound in (self.maximum, maximum) if bound is not None]
        self.minimum = min(lows, default=None)
        self.maximum = max(highs, default=None)
        self.has_null = self.has_null or has_null
        return (self.minimum, self.maximum, self.has_null) != before


@dataclass(slots=True)
class Table:
    """One user table."""

    schema: str
    name: str
    id: int
    columns: list[Column] = field(default_factory=list)
    row_count: int = 0
    #: server columns of the sdb helpers S (ones) and R (random); "" when there are none
    helper_one: str = ""
    helper_random: str = ""
    #: ones under a key of their own, by which constants and plain columns enter a sum
    helper_unit: str = ""
    #: what the server keeps of products with powers of S: the term's name to its column
    kept: dict[str, str] = field(default_factory=dict)
    #: whether every row has them; rows appended later lack them until they are asked for
    kept_complete: bool = True
    generation: int = 0
    #: the row numbers of all rows as [first, count], where `runs_known` tells that they are
    runs: list[list[int]] = field(default_factory=list)
    runs_known: bool = False
    #: server columns of packed sums, and the ids of the columns in their slots (spec/paillier.md)
    packs: dict[str, list[int]] = field(default_factory=dict)
    #: how the files and their index are made, of a table of a lake; empty for any other
    lake: dict[str, Any] = field(default_factory=dict)

    @property
    def local_name(self) -> str:
        """The table's quoted name in the local engine; on the server see `Backend.table`."""
        return f"{_quote(self.schema)}.{_quote(self.name)}"

    @property
    def label(self) -> str:
        """The table's name for people: without its schema where that is `main`."""
        name = _quote(self.name) if "." in self.name else self.name
        schema = _quote(self.schema) if "." in self.schema else self.schema
        return name if fold(self.schema) == "main" else f"{schema}.{name}"

    @property
    def key(self) -> tuple[str, str]:
        """How the catalog finds this table: schema and name in lower case."""
        return (fold(self.schema), fold(self.name))

    @property
    def has_encrypted(self) -> bool:
        """Whether any column is ENC."""
        return any(column.encrypted for column in self.columns)

    @property
    def has_generated(self) -> bool:
        """Whether any column is computed from others."""
        return any(column.expression for column in self.columns)

    def column(self, name: str) -> Column | None:
        """The column of this name, case-insensitively; None when there is none."""
        for column in self.columns:  # mostly it is written as it was declared
            if column.name == name:
                return column
        wanted = fold(name)
        return next((column for column in self.columns if fold(column.name) == wanted), None)


@dataclass(slots=True)
class HomeObject:
    """A statement that rebuilds a home object (view, type, sequence, macro, index, ...)."""

    kind: str
    schema: str
    name: str
    sql: str
    #: the search path under which its statement was written; empty for DuckDB's own
    path: list[str] = field(default_factory=list)

    @property
    def temporary(self) -> bool:
        """Whether it ends with the session."""
        return self.schema == TEMPORARY


@dataclass(slots=True)
class Catalog:
    """Everything the client knows of one database."""

    database_id: str
    format: int = FORMAT
    version: int = 0
    next_table_id: int = 1
    next_column_id: int = 1
    tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    objects: list[HomeObject] = field(default_factory=list)
    sdb_hint: bytes = b""
    hom_hint: bytes = b""
    settings: dict[str, Any] = field(default_factory=dict)
    #: fingerprint of the version before this one: two histories never meet again
    previous: str = ""
    #: fresh randomness of every saved version, so that equal contents differ in fingerprint
    stamp: str = ""
    #: the random bits of the epochs that its rows' ids are of
    epochs: Epochs = field(default_factory=Epochs)
    #: folded schemas of the session's search path; never stored
    path: tuple[str, ...] = ()

    @staticmethod
    def create() -> Catalog:
        """An empty catalog of a new database.

        Table ids start at a random number: keys derive from them, so two databases of one key
        file do not share column keys and a value cannot be moved between them.
        """
        return Catalog(
            database_id=secrets.token_hex(16),
            next_table_id=1 + secrets.randbelow(_FIRST_TABLE_ID_LIMIT),
        )

    def table(self, schema: str, name: str) -> Table | None:
        """The table of this name, case-insensitively; None when there is none."""
        return self.tables.get((fold(schema), fold(name)))

    @property
    def schema(self) -> str:
        """The schema in which names without one are made."""
        return self.path[0] if self.path else "main"

    def schemas(self, schema: str, near: str = "") -> tuple[str, ...]:
        """Where DuckDB looks for a name, in order: in the schema that is written before it; else
        in that of the view whose text it stands in, in those of the search path, and in `main`.
        What is temporary is of a schema `main` too, and comes first everywhere.
        """
        if schema:
            known = {"main": (TEMPORARY, "main"), DATABASE: ("main",)}
            return known.get(fold(schema), (fold(schema),))
        return (TEMPORARY, *((fold(near),) if near else ()), *self.path, "main")

    def find(self, schema: str, name: str, near: str = "") -> Table | HomeObject | None:
        """The table or view that a name means; see `schemas`."""
        views = [item for item in self.objects if item.kind == "VIEW"]
        for place in self.schemas(schema, near):
            found = self.table(place, name)
            if found is not None:
                return found
            for item in views:
                if (fold(item.schema), fold(item.name)) == (place, fold(name)):
                    return item
        return None

    def named(self, schema: str, name: str, near: str = "") -> Table | None:
        """The table that a name means; None where it means no table."""
        if not (schema or near or self.path):
            return self.table("main", name)
        found = self.find(schema, name, near)
        return found if isinstance(found, Table) else None

    def column(self, table: int, column: int) -> tuple[Table, Column]:
        """The table and column of these ids; KeyError when there are none."""
        for found in self.tables.values():
            if found.id == table:
                for item in found.columns:
                    if item.id == column:
                        return found, item
        raise KeyError((table, column))

    def add(self, table: Table) -> None:
        """Put a table in, or replace the one of its name."""
        self.tables[table.key] = table

    def drop(self, schema: str, name: str) -> Table | None:
        """Take a table out."""
        return self.tables.pop((fold(schema), fold(name)), None)

    def take_table_id(self) -> int:
        """A table id that was never given before."""
        self.next_table_id += 1
        return self.next_table_id - 1

    def take_column_id(self) -> int:
        """A column id that was never given before."""
        self.next_column_id += 1
        return self.next_column_id - 1

    def copy(self) -> Catalog:
        """An independent copy, to be changed and saved or thrown away."""
        tables = {
            key: replace(
                table,
                columns=[
                    replace(c, stored=dict(c.stored), layers=dict(c.layers)) for c in table.columns
                ],
                kept=dict(table.kept),
                runs=[list(run) for run in table.runs],
                packs={name: list(ids) for name, ids in table.packs.items()},
                lake=dict(table.lake),
            )
            for key, table in self.tables.items()
        }
        made = [replace(item) for item in self.objects]
        return replace(self, tables=tables, objects=made, settings=deepcopy(self.settings))

    def fingerprint(self) -> str:
        """Hash of this version and, through `previous`, of all before it."""
        return fingerprint(self.to_json())

    def to_json(self) -> bytes:
        """The canonical text of this catalog; its length does not depend on encrypted values."""
        body: dict[str, Any] = fields(self)
        del body["path"]
        body["tables"] = [
            fields(table)
            | {"columns": [fields(item) | {"seen": _slots(item)} for item in table.columns]}
            for table in self.tables.values()
        ]
        body["objects"] = [_written(item) for item in self.objects if not item.temporary]
        body["epochs"] = self.epochs.to_json()
        body["sdb_hint"], body["hom_hint"] = self.sdb_hint.hex(), self.hom_hint.hex()
        spare = sum(_spare(c) for table in self.tables.values() for c in table.columns)
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return text.encode() + b" " * spare

    def without_counts(self) -> bytes:
        """The canonical text as if no table had rows: whether anything but these changed."""
        made = self.copy()
        for table in made.tables.values():
            table.row_count = 0
        return made.to_json()

    def to_bytes(self) -> bytes:
        """The padded form that is sealed and stored."""
        return pack(self.to_json())

    @staticmethod
    def from_bytes(data: bytes) -> Catalog:
        """The catalog of `to_bytes`; CatalogError when this is not one."""
        return Catalog.from_json(unpack(data))

    @staticmethod
    def from_json(text: bytes) -> Catalog:
        """The catalog of `to_json`; CatalogError when this is not one."""
        try:
            body = json.loads(text)
            if not isinstance(body, dict):
                raise TypeError("not an object")
            if body.get("format") != FORMAT:
                raise unreadable(f"format {body.get('format')!r:.20}, not {FORMAT}")
            tables = [_table(item) for item in body.pop("tables")]
            objects = [HomeObject(**checked(HomeObject, item)) for item in body.pop("objects")]
            hint = bytes.fromhex(body.pop("sdb_hint"))
            hom_hint = bytes.fromhex(body.pop("hom_hint", ""))
            epochs = Epochs.from_json(body.pop("epochs", None))
            named = {table.key: table for table in tables}
            if len(named) != len(tables):
                raise ValueError("two tables of one name")
            found = Catalog(**checked(Catalog, body))
        except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
            raise unreadable(type(error).__name__) from error
        found.tables, found.objects, found.sdb_hint = named, objects, hint
        found.hom_hint, found.epochs = hom_hint, epochs
        return found


def _written(item: HomeObject) -> dict[str, Any]:
    found = fields(item)
    if not item.path:
        del found["path"]
    return found


def _spare(column: Column) -> int:
    """How many bytes less than the most its bounds take."""
    if not column.encrypted:
        return 0
    bounds = (column.minimum, column.maximum)
    return sum(_BOUND_LENGTH - len(json.dumps(bound)) for bound in bounds) + column.has_null


def _slots(column: Column) -> list[str]:
    """`seen`, always in as many marks: else the server could count new values by the length."""
    if not column.encrypted:
        return column.seen
    made = [f"{MANY}{'0' * 15}"] if column.seen == [MANY] else column.seen
    digits = hashlib.shake_256(str(column.id).encode()).hexdigest(8 * MOST_SEEN)
    spare = range(0, 16 * (MOST_SEEN - len(made)), 16)
    return [*made, *("-" + digits[place : place + 15] for place in spare)]


def _out_of_slots(marks: list[str]) -> list[str]:
    if any(mark.startswith(MANY) for mark in marks):
        return [MANY]
    return [mark for mark in marks if not mark.startswith("-")]


def _table(values: dict[str, Any]) -> Table:
    for item in values["columns"]:
        # Of a catalog that did not count them, nobody knows which values were stored.
        item["seen"] = _out_of_slots(item.get("seen", [MANY]))
    columns = [Column(**checked(Column, item)) for item in values.pop("columns")]
    table = Table(**checked(Table, values))
    table.columns = columns
    return table


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
