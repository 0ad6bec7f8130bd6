"""What the client knows of a database: names, types, representations, key generations, bounds.

The catalog is pure data. `CatalogStore` stores it encrypted next to the data; the server's own
schema is never trusted.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from louver.names import fold, is_home, own_schemas, quoted
from louver.trusted.vault import catalog_text, seen_values
from louver.trusted.vault.catalog_text import checked, fields, fingerprint, pack, spare_of, unpack
from louver.trusted.vault.epochs import Epochs
from louver.trusted.vault.seen_values import MANY, MOST_SEEN

FORMAT = 1
#: Column id of U, the helper column of ones by which constants enter sums (decision 0004).
UNIT_COLUMN = 0
_REVISIONS = count()
#: The rows that a table may have that is not counted.
MOST_ROWS = 1 << 36
#: The setting that names the language of a database's texts, where it is not DuckDB's.
LANGUAGE, DUCKDB = "language", "duckdb"
#: The schema of objects that exist only in the session; never stored.
TEMPORARY = "temp"
_PASSING = ("path", "revision")
#: The name of the database; used as a schema, it means the database's `main`.
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
    #: representation (`vault.scheme`), or "plain", to the server's column name
    stored: dict[str, str] = field(default_factory=dict)
    #: bounds of the unscaled integers ever stored; they only widen (`vault.bounds`)
    minimum: int | None = None
    maximum: int | None = None
    has_null: bool = False
    #: whether the declaration allows NULL: plans depend on this only
    nullable: bool = True
    #: state of each onion: eq is closed, det or join; ord is closed or open
    layers: dict[str, str] = field(default_factory=dict)
    #: join group: columns with the same label share the innermost key; "" for none
    group: str = ""
    #: domain of the order codes, fixed at creation: lowest value, and bits (0: no codes)
    low: int | None = None
    bits: int = 0
    #: low bits of the order domain that its codes omit: buckets instead of values
    coarse: int = 0
    #: the expression of a generated column, as printed by DuckDB; "" for others
    expression: str = ""
    #: whether the declaration makes all values other than NULL distinct
    unique: bool = False
    #: number of values that the declaration allows (BOOLEAN, ENUM, CHECK … IN); 0: no limit
    choices: int = 0
    #: fingerprints of the values ever stored; only `MANY` if they are many or not known
    seen: list[str] = field(default_factory=list)

    def see(self, marks: Iterable[str]) -> None:
        """Add the fingerprints of new values."""
        if self.seen == [MANY]:
            return
        values = dict.fromkeys((*self.seen, *marks))
        self.seen = [MANY] if len(values) > MOST_SEEN else list(values)

    def cardinality(self) -> int:
        """Upper bound on the number of distinct values, if it is small; otherwise 0."""
        known = [self.choices] if 0 < self.choices <= MOST_SEEN else []
        if self.seen and self.seen != [MANY]:
            known.append(len(self.seen))
        return min(known, default=0)


@dataclass(slots=True)
class Table:
    """One user table."""

    schema: str
    name: str
    id: int
    columns: list[Column] = field(default_factory=list)
    #: how many rows there are; of a table that is not counted what this client knows of that
    row_count: int = 0
    #: whether `row_count` and `runs` are exact: every change of rows then changes the catalog
    counted: bool = True
    #: server columns of the sdb helpers S (ones) and R (random); "" if not present
    helper_one: str = ""
    helper_random: str = ""
    #: ones under a separate key, by which constants and plain columns enter a sum
    helper_unit: str = ""
    #: materialized terms: the name of a product with powers of S, to its server column
    kept: dict[str, str] = field(default_factory=dict)
    #: whether every row has them; rows appended later lack them until a query needs them
    kept_complete: bool = True
    generation: int = 0
    #: the ids of all rows as ranges [first, count]; valid only if `runs_known`
    runs: list[list[int]] = field(default_factory=list)
    runs_known: bool = False
    #: server columns of packed sums, and the ids of the columns in their slots (spec/hom.md)
    packs: dict[str, list[int]] = field(default_factory=dict)
    #: server columns of the tags of keys, and the ids of each key's columns (spec/key.md)
    tags: dict[str, list[int]] = field(default_factory=dict)
    #: settings of a lake table's files and index; empty for other tables
    lake: dict[str, Any] = field(default_factory=dict)
    #: the server's table of its tiles, that one's columns, and forms (`vault.tile_forms`)
    tile_table: str = ""
    tile_columns: list[str] = field(default_factory=list)
    tiles: dict[str, list[int]] = field(default_factory=dict)

    @property
    def most_rows(self) -> int:
        """No more rows than these can there be."""
        return self.row_count if self.counted else MOST_ROWS

    def has_in_tiles(self, stored: str) -> bool:
        """Whether values of a stored column may be in tiles."""
        return bool(self.tiles) and stored in self.tile_columns

    @property
    def local_name(self) -> str:
        """The table's quoted name in the local engine; on the server see `Backend.table`."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def label(self) -> str:
        """The table's name for display: without its schema if that is the home."""
        name = quoted(self.name) if "." in self.name else self.name
        schema = quoted(self.schema) if "." in self.schema else self.schema
        return name if is_home(self.schema) else f"{schema}.{name}"

    @property
    def key(self) -> tuple[str, str]:
        """The table's key in the catalog: schema and name in lower case."""
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
        """The column with this name, case-insensitively; None if it does not exist."""
        for column in self.columns:  # usually as it was declared
            if column.name == name:
                return column
        wanted = fold(name)
        return next((column for column in self.columns if fold(column.name) == wanted), None)


@dataclass(slots=True)
class HomeObject:
    """A statement that recreates a local object (view, type, sequence, macro, index, ...)."""

    kind: str
    schema: str
    name: str
    sql: str
    #: the search path under which the statement was written; empty for DuckDB's default
    path: list[str] = field(default_factory=list)
    #: of a sequence of which numbers were claimed: tells it from another one of its name
    id: str = ""

    @property
    def temporary(self) -> bool:
        """Whether the object ends with the session."""
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
    #: fingerprint of the previous version: two histories that diverge stay different
    previous: str = ""
    #: fresh randomness in every saved version, so that equal contents differ in fingerprint
    stamp: str = ""
    #: the random bits of the epochs of its row ids
    epochs: Epochs = field(default_factory=Epochs)
    #: folded schemas of the session's search path; never stored
    path: tuple[str, ...] = ()
    #: changes with everything that plans depend on (`touch`); a copy has it too; never stored
    revision: int = field(default_factory=lambda: next(_REVISIONS), compare=False)

    @staticmethod
    def create(language: str = DUCKDB) -> Catalog:
        """An empty catalog, whose texts will be of a language. Table ids start at a random number:
        keys derive from them, so databases of one key file share no column keys, and a value cannot
        be moved between them. All have nine digits: lengths of what is sealed depend on none.
        """
        first = 10**8 + secrets.randbelow(8 * 10**8)
        settings = {} if language == DUCKDB else {LANGUAGE: language}
        return Catalog(secrets.token_hex(16), next_table_id=first, settings=settings)

    @property
    def language(self) -> str:
        """The name of the language of its texts, and so of the sessions on it."""
        return str(self.settings.get(LANGUAGE, DUCKDB))

    def table(self, schema: str, name: str) -> Table | None:
        """The table with this name, case-insensitively; None if it does not exist."""
        return self.tables.get((fold(schema), fold(name)))

    @property
    def schema(self) -> str:
        """The schema in which unqualified names are created."""
        return self.path[0] if self.path else own_schemas().home

    def schemas(self, schema: str, near: str = "") -> tuple[str, ...]:
        """The schemas in which a name is looked up, in order: the one written before it; else that
        of the view whose text contains it, then the search path, then the home. In DuckDB,
        temporary objects belong to a schema of the home's name too, and come first.
        """
        own, folded = own_schemas(), fold(schema)
        if folded:
            if folded == own.temporary:
                return (TEMPORARY, own.home)[: 1 + (folded == own.home)]
            return (own.home,) if folded == own.database else (folded,)
        home = () if self.path and own.path_is_all else (own.home,)
        return (TEMPORARY, *((fold(near),) if near else ()), *self.path, *home)

    def find(self, schema: str, name: str, near: str = "") -> Table | HomeObject | None:
        """The table or view that a name refers to; see `schemas`."""
        views = {(fold(v.schema), fold(v.name)): v for v in self.objects if v.kind == "VIEW"}
        for folded in self.schemas(schema, near):
            known = self.table(folded, name) or views.get((folded, fold(name)))
            if known is not None:
                return known
        return None

    def named(self, schema: str, name: str, near: str = "") -> Table | None:
        """The table that a name refers to; None if it refers to no table."""
        if not (schema or near or self.path):
            return self.table(own_schemas().home, name)
        item = self.find(schema, name, near)
        return item if isinstance(item, Table) else None

    def touch(self) -> None:
        """Rows, bounds or the schema changed: what was proved of the earlier state is void."""
        self.revision = next(_REVISIONS)

    def by_id(self, table: int) -> Table:
        """The table with this id; KeyError if it does not exist."""
        for owner in self.tables.values():
            if owner.id == table:
                return owner
        raise KeyError(table)

    def column(self, table: int, column: int) -> tuple[Table, Column]:
        """The table and column with these ids; KeyError if they do not exist."""
        owner = self.by_id(table)
        for item in owner.columns:
            if item.id == column:
                return owner, item
        raise KeyError((table, column))

    def add(self, table: Table) -> None:
        """Add a table, or replace the one with its name."""
        self.tables[table.key] = table

    def drop(self, schema: str, name: str) -> Table | None:
        """Remove and return a table."""
        return self.tables.pop((fold(schema), fold(name)), None)

    def take_table_id(self) -> int:
        """A table id that was never used before."""
        self.next_table_id, number = self.next_table_id + 1, self.next_table_id
        return number

    def take_column_id(self) -> int:
        """A column id that was never used before."""
        self.next_column_id, number = self.next_column_id + 1, self.next_column_id
        return number

    def copy(self) -> Catalog:
        """An independent copy, to be changed and then saved or discarded."""
        tables = {
            key: replace(
                table,
                columns=[
                    replace(column, stored=dict(column.stored), layers=dict(column.layers))
                    for column in table.columns
                ],
                kept=dict(table.kept),
                runs=[list(run) for run in table.runs],
                packs={name: list(ids) for name, ids in table.packs.items()},
                tags={name: list(ids) for name, ids in table.tags.items()},
                lake=dict(table.lake),
                tile_columns=list(table.tile_columns),
                tiles={name: list(said) for name, said in table.tiles.items()},
            )
            for key, table in self.tables.items()
        }
        objects = [replace(item) for item in self.objects]
        return replace(self, tables=tables, objects=objects, settings=deepcopy(self.settings))

    def fingerprint(self) -> str:
        """Hash of this version and, through `previous`, of all earlier versions."""
        return fingerprint(self.to_json())

    def to_json(self) -> bytes:
        """The canonical text of this catalog; its length does not depend on encrypted values."""
        body: dict[str, Any] = {k: v for k, v in fields(self).items() if k not in _PASSING}
        body["tables"] = [
            fields(table)
            | {"columns": [fields(item) | {"seen": _seen(item)} for item in table.columns]}
            for table in self.tables.values()
        ]
        body["objects"] = [_written(item) for item in self.objects if not item.temporary]
        body["epochs"] = self.epochs.to_json()
        body["sdb_hint"], body["hom_hint"] = self.sdb_hint.hex(), self.hom_hint.hex()
        spare = sum(spare_of(c) for t in self.tables.values() for c in t.columns if c.encrypted)
        text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        return text.encode() + b" " * spare

    def without_counts(self) -> bytes:
        """The canonical text with all row counts zero: shows whether anything else changed."""
        tables = {key: replace(table, row_count=0) for key, table in self.tables.items()}
        return replace(self, tables=tables).to_json()

    def to_bytes(self) -> bytes:
        """The padded bytes that are encrypted and stored."""
        return pack(self.to_json())

    @staticmethod
    def from_bytes(data: bytes) -> Catalog:
        """The catalog of `to_bytes`; CatalogError for other bytes."""
        return Catalog.from_json(unpack(data))

    @staticmethod
    def from_json(text: bytes) -> Catalog:
        """The catalog of `to_json`; CatalogError for other text."""
        try:
            body = json.loads(text)
            if not isinstance(body, dict):
                raise TypeError("not an object")
            if body.get("format") != FORMAT:
                raise catalog_text.unreadable(f"format {body.get('format')!r:.20}, not {FORMAT}")
            tables = [_table(item) for item in body.pop("tables")]
            objects = [HomeObject(**checked(HomeObject, item)) for item in body.pop("objects")]
            hint, hom_hint = map(bytes.fromhex, (body.pop("sdb_hint"), body.pop("hom_hint", "")))
            epochs = Epochs.from_json(body.pop("epochs", None))
            named = {table.key: table for table in tables}
            if len(named) != len(tables):
                raise ValueError("two tables of one name")
            catalog = Catalog(**checked(Catalog, body))
        except (KeyError, TypeError, ValueError, RecursionError, AttributeError) as error:
            raise catalog_text.unreadable(type(error).__name__) from error
        catalog.tables, catalog.objects, catalog.sdb_hint = named, objects, hint
        catalog.hom_hint, catalog.epochs = hom_hint, epochs
        return catalog


def _seen(column: Column) -> list[str]:
    return seen_values.padded(column.seen, column.id) if column.encrypted else column.seen


def _written(item: HomeObject) -> dict[str, Any]:
    return {name: said for name, said in fields(item).items() if said or name not in ("path", "id")}


def _table(values: dict[str, Any]) -> Table:
    for item in values["columns"]:
        # A catalog without this list does not know which values were stored.
        item["seen"] = seen_values.unpadded(item.get("seen", [MANY]))
    columns = [Column(**checked(Column, item)) for item in values.pop("columns")]
    table = Table(**checked(Table, values))
    table.columns = columns
    return table
