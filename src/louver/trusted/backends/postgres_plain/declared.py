"""The declarations of a plaintext PostgreSQL database as statements of the local engine.

What has no equal there is refused, all of it at once, where values would be lost; or left and
named, where only a rule is: a check whose expression is not known, a trigger, a function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from louver import errors
from louver.names import fold, quoted
from louver.trusted.backends.postgres_plain import expressions
from louver.trusted.backends.postgres_plain.types import LocalType, local_type
from louver.trusted.vault.catalog import HomeObject

if TYPE_CHECKING:
    from louver.untrusted.engines.postgres.plain_catalog import PlainCatalog

_HOME = "public"
_UNIQUE = {"p": "PRIMARY KEY", "u": "UNIQUE"}
_RESERVED = frozenset(("main", "temp", "system"))
_BIGGEST = (1 << 63) - 1
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table: its local name, what it is called on the server, its columns as they are declared,
    its constraints, each with a name for people and the tables that it needs, and how its values
    are asked for.
    """

    schema: str
    name: str
    source: str
    columns: tuple[str, ...]
    constraints: tuple[tuple[str, str, tuple[str, str] | None], ...]
    requests: tuple[tuple[str, str], ...]
    odd: tuple[tuple[str, str, str], ...]

    @property
    def key(self) -> tuple[str, str]:
        """The local schema and name."""
        return self.schema, self.name

    @property
    def path(self) -> str:
        """The local name as text."""
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    @property
    def label(self) -> str:
        """The local name for people."""
        return label_of(self.schema, self.name)

    def query(self, limit: int | None = None) -> str:
        """What the server is sent for the rows."""
        names = ", ".join(f"{text} AS {quoted(name)}" for name, text in self.requests)
        return f"SELECT {names} FROM {self.source}" + ("" if limit is None else f" LIMIT {limit}")

    def census(self) -> str:
        """The query of the number of rows, and of the rows with values that cannot be held."""
        odd = (f", count(*) FILTER (WHERE {t}) AS n{n}" for n, (_, _, t) in enumerate(self.odd))
        return f"SELECT count(*) AS rows{''.join(odd)} FROM {self.source}"


@dataclass(slots=True)
class Declared:
    """Statements in an order in which they can be run; views with the types of their columns."""

    early: list[HomeObject] = field(default_factory=list)
    tables: list[PlainTable] = field(default_factory=list)
    indexes: list[HomeObject] = field(default_factory=list)
    views: list[tuple[HomeObject, tuple[str, ...]]] = field(default_factory=list)
    comments: list[HomeObject] = field(default_factory=list)
    #: Rules and objects that stay behind, by kind.
    left: dict[str, list[str]] = field(default_factory=dict)

    def leave(self, kind: str, name: str) -> None:
        """Note something that is not brought along."""
        self.left.setdefault(kind, []).append(name)


def declared(
    catalog: PlainCatalog,
    *,
    names: Sequence[str] = (),
    into: str = "",
    as_text: bool = False,
    is_target: bool = False,
) -> Declared:
    """The declarations of the tables that ``names`` selects, or of all; ``into``: the local schema
    of all tables; ``as_text``: whether values of other types are stored as the server writes them;
    ``is_target``: whether the encrypted tables go into the same database.
    """
    own = (_HOME if fold(into) == "main" else into) if is_target else ""
    return _Reader(catalog, names, into, as_text, own).read()


def label_of(schema: str, name: str) -> str:
    """A table's local name for people."""
    return name if fold(schema) == "main" else f"{schema}.{name}"


class _Reader:
    def __init__(
        self, catalog: PlainCatalog, names: Sequence[str], into: str, as_text: bool, own: str
    ) -> None:
        self._catalog, self._as_text, self._result = catalog, as_text, Declared()
        self._own = own
        server_schemas = {row["schema"] for row in (*catalog.tables, *catalog.sequences)}
        if into:
            self._schemas: dict[str, str] = dict.fromkeys(server_schemas, into)
        else:
            self._schemas = {name: "main" if name == _HOME else name for name in server_schemas}
        self._wanted = {fold(name.replace('"', "")) for name in names}
        self._tables = self._chosen()
        self._keys = {row["oid"]: self._key(row) for row in self._tables}
        self._drawn: set[tuple[str, str]] = set()

    def read(self) -> Declared:
        """Everything, after what cannot be held was refused."""
        self._refuse()
        result = self._result
        result.tables = [self._table(row) for row in self._tables if self._has_columns(row)]
        self._sequences()
        self._early()
        self._indexes()
        for row in self._catalog.tables:
            if row["kind"] == "v" and not self._is_ours(row):
                self._view(row)
        for row in self._catalog.foreign:
            if not self._wanted and row["schema"] in self._schemas:
                result.leave(row["kind"], self._label(row))
        return result

    # ------------------------------------------------------------------ what is chosen

    def _chosen(self) -> list[Row]:
        tables = [row for row in self._catalog.tables if row["kind"] in ("r", "p")]
        tables = [row for row in tables if not self._is_ours(row)]
        if not self._wanted:
            for row in self._catalog.tables:
                kind = {"m": "materialized view", "f": "foreign table"}.get(row["kind"])
                if kind:
                    self._result.leave(kind, self._label(row))
            return tables
        chosen = [row for row in tables if fold(self._label(row)) in self._wanted]
        missing = self._wanted - {fold(self._label(row)) for row in chosen}
        if missing:
            raise errors.make("table.missing", table=min(missing))
        return chosen

    def _is_ours(self, row: Row) -> bool:
        """Whether a table is in the schema that is written to, in the same database."""
        return bool(row["schema"] == self._own)

    def _key(self, row: Row) -> tuple[str, str]:
        return self._schemas[row["schema"]], row["name"]

    def _label(self, row: Row) -> str:
        return label_of(self._schemas.get(row["schema"], str(row["schema"])), row["name"])

    def _has_columns(self, row: Row) -> bool:
        if self._catalog.columns.get(row["oid"]):
            return True
        self._result.leave("table without columns", self._label(row))
        return False

    def _refuse(self) -> None:
        """Raise for names and types that cannot be held: all at once."""
        seen: dict[tuple[str, str], str] = {}
        alike, unknown = [], []
        for row in self._tables:
            label = self._label(row)
            key = (fold(self._schemas[row["schema"]]), fold(row["name"]))
            if key in seen:
                alike.append(f"{seen[key]} and {label}")
            seen[key] = label
            if fold(row["schema"]) in _RESERVED and row["schema"] == self._schemas[row["schema"]]:
                alike.append(f"schema {row['schema']}")
            columns: dict[str, str] = {}
            for column in self._catalog.columns.get(row["oid"], []):
                name = fold(column["name"])
                if name in columns:
                    alike.append(f"{label}.{columns[name]} and {label}.{column['name']}")
                columns[name] = column["name"]
                if local_type(column, as_text=self._as_text) is None:
                    unknown.append(f"{label}.{column['name']} ({column['written']})")
        if alike:
            raise errors.make("source.names", names=", ".join(dict.fromkeys(alike)))
        if unknown:
            raise errors.make("source.types", columns=", ".join(unknown))

    # ------------------------------------------------------------------ tables

    def _type_path(self, column: Row) -> tuple[str, str]:
        """The local schema and name of an enumerated type."""
        schema = self._schemas.get(column["type_schema"], str(column["type_schema"]))
        return ("main" if schema == _HOME else schema), column["type_name"]

    def _type(self, column: Row) -> LocalType:
        known = local_type(column, as_text=self._as_text)
        if known is None:
            raise errors.make("source.types", columns=column["name"])
        if column["kind"] != "e":
            return known
        path = ".".join(map(quoted, self._type_path(column)))
        return LocalType(path, known.request, known.odd, known.kind)

    def _kinds(self, columns: Collection[Row]) -> dict[str, str | None]:
        return {column["name"]: self._type(column).kind for column in columns}

    def _table(self, row: Row) -> PlainTable:
        schema, name = self._key(row)
        columns = self._catalog.columns[row["oid"]]
        constraints = self._catalog.constraints.get(row["oid"], [])
        nullable = {
            name
            for rule in constraints
            if rule["kind"] == "n" and not rule["is_valid"]
            for name in rule["columns"]
        }
        texts, requests, odd = [], [], []
        for column in columns:
            type_, path = self._type(column), quoted(column["name"])
            not_null = " NOT NULL" if column["not_null"] and column["name"] not in nullable else ""
            texts.append(f"{path} {type_.name}{self._default(row, column, type_)}{not_null}")
            requests.append((column["name"], type_.request.format(path)))
            if type_.odd is not None:
                odd.append((column["name"], type_.odd[0], type_.odd[1].format(path)))
            if column["comment"]:
                self._comment("COLUMN", column["comment"], schema, name, column["name"])
            if column["is_domain"]:
                self._result.leave("domain's own checks", f"{self._label(row)}.{column['name']}")
        if row["has_children"]:
            self._result.leave("inheritance (each table has its own rows)", self._label(row))
        if row["comment"]:
            self._comment("TABLE", row["comment"], schema, name)
        path = ".".join(map(quoted, (row["schema"], row["name"])))
        source = f"ONLY {path}" if row["kind"] == "r" else path
        rules = [self._constraint(row, rule, columns) for rule in constraints]
        return PlainTable(
            schema, name, source, tuple(texts), tuple(rule for rule in rules if rule),
            tuple(requests), tuple(odd),
        )  # fmt: skip

    def _default(self, row: Row, column: Row, type_: LocalType) -> str:
        label = f"{self._label(row)}.{column['name']}"
        if column["generated"]:
            self._result.leave("computation of a generated column", label)
            return ""
        sequence, text = column["sequence"], column["expression"]
        if sequence and (column["identity"] or str(text).startswith("nextval(")):
            key = (sequence[0], sequence[1])
            self._drawn.add(key)
            local = self._schemas.get(key[0], str(key[0]))
            path = ".".join(map(quoted, (local, key[1]))).replace("'", "''")
            return f" DEFAULT nextval('{path}')"
        if text is None or text.startswith("NULL::"):
            return ""
        value = expressions.default(text, type_.name, is_enum=column["kind"] == "e")
        if value is None:
            self._result.leave("default", label)
            return ""
        return f" DEFAULT {value}"

    def _constraint(
        self, row: Row, rule: Row, columns: Collection[Row]
    ) -> tuple[str, str, tuple[str, str] | None] | None:
        kind, label = rule["kind"], f"{self._label(row)}.{rule['name']}"
        names = ", ".join(map(quoted, rule["columns"] or ()))
        if kind == "n":
            return None
        text, parent = None, None
        # Values that are equal may be different texts.
        texts = {c["name"] for c in columns if local_type(c, as_text=False) is None}
        if texts.intersection(rule["columns"] or ()):
            self._result.leave("constraint", label)
            return None
        if rule["is_valid"] and kind in _UNIQUE and not rule["nulls_alike"]:
            text = f"{_UNIQUE[kind]} ({names})"
        elif rule["is_valid"] and kind == "c":
            written = expressions.condition(rule["expression"], self._kinds(columns))
            text = None if written is None else f"CHECK {written}"
        elif rule["is_valid"] and kind == "f" and not rule["is_full"]:
            parent = self._parent(row, rule)
            text = (
                f"FOREIGN KEY ({names}) REFERENCES {'.'.join(map(quoted, parent))}"
                f" ({', '.join(map(quoted, rule['parent_columns']))})"
            )
            if rule["acts"]:
                self._result.leave("action of a foreign key (now refused)", label)
        if text is None:
            self._result.leave("constraint", label)
            return None
        return label, text, parent

    def _parent(self, row: Row, rule: Row) -> tuple[str, str]:
        if rule["parent"] in self._keys:
            return self._keys[rule["parent"]]
        parents = [self._label(t) for t in self._catalog.tables if t["oid"] == rule["parent"]]
        raise errors.make(
            "file.parent", table=self._label(row), parent=parents[0] if parents else "another table"
        )

    # ------------------------------------------------------------------ other objects

    def _comment(self, kind: str, text: str, *path: str) -> None:
        value = text.replace("'", "''")
        sql = f"COMMENT ON {kind} {'.'.join(map(quoted, path))} IS '{value}'"
        self._result.comments.append(HomeObject("COMMENT", path[0], path[1], sql))

    def _sequences(self) -> None:
        for row in self._catalog.sequences:
            key = (row["schema"], row["name"])
            if self._wanted and key not in self._drawn:
                continue
            step = row["increment"]
            value = row["last_value"] + step if row["is_called"] else row["last_value"]
            if not row["least"] <= value <= row["most"]:
                # Past its end: the next draw must fail, or begin again.
                value = (row["least"] if step > 0 else row["most"]) if row["cycles"] else None
            if value is None:
                self._result.leave("sequence that is used up", self._label(row))
                continue
            schema, name = self._key(row)
            path = f"{quoted(schema)}.{quoted(name)}"
            least = max(row["least"], -_BIGGEST)
            sql = (
                f"CREATE SEQUENCE {path} INCREMENT BY {step} MINVALUE {least}"
                f" MAXVALUE {row['most']} START WITH {value}{' CYCLE' if row['cycles'] else ''}"
            )
            self._result.early.append(HomeObject("SEQUENCE", schema, name, sql))

    def _early(self) -> None:
        """Schemas and enumerated types, before what needs them."""
        types: dict[tuple[str, str], str] = {}
        for row in self._tables:
            for column in self._catalog.columns.get(row["oid"], []):
                if column["labels"]:
                    labels = ", ".join("'" + v.replace("'", "''") + "'" for v in column["labels"])
                    key = self._type_path(column)
                    path = ".".join(map(quoted, key))
                    types[key] = f"CREATE TYPE {path} AS ENUM ({labels})"
        objects = [HomeObject("TYPE", *key, sql) for key, sql in types.items()]
        objects += self._result.early
        used = {item.schema for item in objects} | {table.schema for table in self._result.tables}
        schemas = [
            HomeObject("SCHEMA", name, name, f"CREATE SCHEMA {quoted(name)}")
            for name in sorted(used - {"main"})
        ]
        self._result.early = schemas + objects

    def _indexes(self) -> None:
        taken = {table.key for table in self._result.tables}
        for row in self._catalog.indexes:
            key = self._keys.get(row["oid"])
            if key is None or key not in taken:
                continue
            if not row["is_plain"] or not row["columns"]:
                kind = "unique index" if row["is_unique"] else "index"
                self._result.leave(kind, label_of(key[0], row["name"]))
                continue
            names = ", ".join(map(quoted, row["columns"]))
            unique = "UNIQUE " if row["is_unique"] else ""
            path = ".".join(map(quoted, key))
            sql = f"CREATE {unique}INDEX {quoted(row['name'])} ON {path} ({names})"
            self._result.indexes.append(HomeObject("INDEX", key[0], row["name"], sql))

    def _view(self, row: Row) -> None:
        columns = self._catalog.columns.get(row["oid"], [])
        types = [local_type(column, as_text=self._as_text) for column in columns]
        kinds: dict[str, str | None] = {}
        for table in self._tables:
            for name, kind in self._kinds(self._catalog.columns.get(table["oid"], [])).items():
                kinds[name] = kind if kinds.get(name, kind) == kind else None
        text = expressions.view(row["definition"], kinds, self._schemas)
        # A parent has the rows of its children there, and here its own.
        parents = any(table["has_children"] for table in self._tables)
        if text is None or None in types or parents:
            self._result.leave("view", self._label(row))
            return
        schema, name = self._key(row)
        path = f"{quoted(schema)}.{quoted(name)}"
        listed = ", ".join(quoted(column["name"]) for column in columns)
        item = HomeObject("VIEW", schema, name, f"CREATE VIEW {path} ({listed}) AS {text}")
        self._result.views.append((item, tuple(type_.name for type_ in types if type_)))


def notices(left: Mapping[str, Sequence[str]]) -> list[str]:
    """What is left, for the user."""
    return [f"Not brought along, {kind}: {', '.join(names)}." for kind, names in left.items()]
