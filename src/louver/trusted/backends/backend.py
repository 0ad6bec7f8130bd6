"""What differs per engine, as the trusted side describes it; whatever is not described is not done.

`Backend` is what every SQL engine has in common. An engine's own module fills in the rest: what it
computes (`operations`), how it stores what (`types`), which of the user's own expressions mean the
same there as in the local engine (`render`), and the maintenance statements that it writes in
words of its own. Rules write AND, OR, NOT, comparisons, IN, IS NULL, EXISTS, count and ORDER BY
themselves; everything else is an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from louver import errors
from louver.names import fold, is_home
from louver.trusted.planner.ir import Node, Sql
from louver.trusted.vault.catalog import Table
from louver.trusted.vault.scheme import Scheme

Leaf = Callable[[exp.Expr], str | None]
"""The server's text of a column, number or placeholder of an expression; None of anything else."""
TypeOf = Callable[[exp.Expr], str]
"""The local engine's type of a column, literal or placeholder; empty where it is not known."""

#: What the printer of remote queries writes, beside names, numbers and operations.
WORDS = frozenset(
    (
        "select from as where group by having join left cross on and or not between in is null "
        "like distinct true false limit cast escape order asc desc nulls first last"
    ).split()
)
FUNCTIONS = frozenset(("count",))


@dataclass(frozen=True, slots=True)
class Costs:
    """What an engine's work costs, in seconds, and how much of it is asked for.

    ``compare_s`` decides one comparison, ``probe_s`` looks one row up in another table,
    ``number_s`` finds one by its number. An inequality join is asked for up to
    ``most_compared_pairs`` pairs of rows where shares are compared, a product of tables up to
    ``most_product_rows``; a filter or semi-join that leaves more than the share ``most_left`` of
    the rows is not worth its leak.
    """

    compare_s: float = 5e-9
    probe_s: float = 3e-8
    number_s: float = 0.0
    most_compared_pairs: int = 20_000
    most_product_rows: int = 20_000
    most_left: float = 0.9


@dataclass(frozen=True, slots=True)
class Backend:
    """One engine. Without anything filled in it stores nothing and computes nothing of its own.

    Attributes:
        name: how connections, EXPLAIN and the table of backends call it.
        operations: what the server computes, as templates with ``⟦i⟧`` for the operands.
        types: its SQL type of each of `vault.stored_types`.
        words: what texts of this engine hold beside `WORDS`.
        functions: what texts of this engine may call beside `FUNCTIONS`.
        languages: those that databases on it can have, first the one of a new database.
        local_dialect: of these the language of the database at hand, whose local engine's answers
            are the right ones.
        storage: "server" where SQL reaches the rows, "files" where they are files of a lake.
        computes: whether it runs queries; else rows are only fetched.
        narrowed: the leak of a narrowed read: "rows" or "files".
        probe: a query for what one server of this engine has and another has not; "" for none.
        keys_choose: whether keys read of one table choose what is fetched of another.
        catalog_counts: whether the catalog counts rows, and so changes; else the tables do.
        tags_plain_keys: whether rows of plain tables too are looked up by the tags of their keys.
        concurrent: whether several clients change rows of a table at once, each on a state of its
            own, and side connections see all tables; else every table is counted.
        embedded: whether a database is a file that one process writes at a time.
        sieves: whether it is to be told to decide IN while it scans.
        adds_columns: whether a new column that is NULL everywhere needs no rewriting.
        schemas: whether tables can be in schemas other than `main`.
        unique: what after a column's type makes the server refuse a value twice; "" for none.
        replaces: whether a row with a `unique` column is set anew; else it is deleted and inserted.
        has_indexes: whether it looks rows up by indexes that are made for columns.
        row_key: what after the type of row_id has the server find rows by it; "" where it does.
        has_tiles: whether loads are stored in tiles (spec/tile.md).
        settings: settings of the local engine that are sent to the server.
        unaffected: those that change nothing that the server computes; all others are refused.
        costs: what its work costs.
    """

    name: str
    operations: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    languages: tuple[str, ...] = ("duckdb",)
    local_dialect: str = "duckdb"
    storage: str = "server"
    computes: bool = True
    narrowed: str = "rows"
    probe: str = ""
    keys_choose: bool = False
    catalog_counts: bool = True
    concurrent: bool = False
    tags_plain_keys: bool = False
    embedded: bool = False
    sieves: bool = False
    adds_columns: bool = False
    schemas: bool = True
    unique: str = ""
    replaces: bool = False
    has_indexes: bool = False
    row_key: str = ""
    has_tiles: bool = False
    settings: frozenset[str] = frozenset()
    unaffected: frozenset[str] = frozenset()
    costs: Costs = Costs()

    # ------------------------------------------------------------------ whose answers are right

    def speaking(self, language: str) -> Backend:
        """The backend of a database of a language."""
        if language not in self.languages:
            raise errors.make(
                "language.unknown", name=f"{language:.40}", engine=self.name,
                known=", ".join(self.languages),
            )  # fmt: skip
        return replace(self, local_dialect=language)

    # ------------------------------------------------------------------ what it computes

    def has(self, operation: str) -> bool:
        """Whether the server computes this."""
        return operation in self.operations

    def serves(self, row: Scheme) -> bool:
        """Whether the server can do what a scheme needs of it; else its columns are not stored."""
        if row.layers and not self.has("adjust"):
            return False
        return set(row.functions) <= self.functions | set(self.operations)

    def having(self, extensions: Sequence[str]) -> Backend:
        """The backend of a server that answered the probe with these."""
        return self

    def operation(self, name: str, *operands: Node) -> Sql | None:
        """What the server computes of operands; None where it cannot."""
        template = self.operations.get(name)
        return None if template is None else Sql(template, operands)

    def render(self, node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> str | None:
        """An expression of the user's over plain columns as the server's text, if it means there
        exactly what it means in the local engine.
        """
        return None

    def require_setting(self, name: str) -> None:
        """Refuse a setting under which the server would compute something else."""
        if self.computes and name not in self.settings | self.unaffected:
            raise errors.make("engine.operation", engine=self.name, operation=f"with SET {name}")

    # ------------------------------------------------------------------ names and types

    def quote(self, name: str) -> str:
        """A name as a quoted identifier."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, table: Table) -> str:
        """A table's name on the server."""
        return f"{self.quote(table.schema)}.{self.quote(table.name)}"

    def table_words(self, table: Table) -> set[str]:
        """The folded identifiers that a table's name on the server consists of."""
        return {fold(table.schema), fold(table.name)}

    def cast(self, placeholder: str, stored: str) -> str:
        """A placeholder whose value has a stored type."""
        return f"CAST({placeholder} AS {self.stored_type(stored)})"

    def stored_type(self, stored: str) -> str:
        """The SQL type of a stored column."""
        sql_type = self.types.get(stored)
        if sql_type is None:
            raise errors.make("engine.type", engine=self.name, type=stored)
        return sql_type

    def compares(self, _declared: str) -> bool:
        """Whether the server groups, sorts and compares plain values of a type, by the catalog's
        name, as the local engine does.
        """
        return True

    def plain_type(self, declared: str) -> str:
        """The SQL type of a plain column; an error where the engine has none that loses nothing."""
        raise errors.make("engine.type", engine=self.name, type=declared)

    # ------------------------------------------------------------------ maintenance

    def create_schema(self, schema: str) -> list[str]:
        """The statements that make sure of a schema."""
        if is_home(schema):
            return []
        if not self.schemas:
            raise errors.make("engine.schema", engine=self.name, schema=schema)
        return [f"CREATE SCHEMA IF NOT EXISTS {self.quote(schema)}"]

    def drop_schema(self, schema: str) -> list[str]:
        """The statements that remove a schema without tables."""
        return [f"DROP SCHEMA IF EXISTS {self.quote(schema)}"] if self.schemas else []

    def create_table(self, table: Table, columns: Sequence[tuple[str, str]]) -> str:
        """A table with columns of these names and SQL types."""
        listed = ", ".join(f"{self.quote(name)} {type_}" for name, type_ in columns)
        return f"CREATE TABLE {self.table(table)} ({listed})"

    def index(self, table: Table, columns: Sequence[str]) -> str:
        """An index over stored columns, for one that `has_indexes`."""
        raise errors.make("engine.operation", engine=self.name, operation="indexes")

    def drop_index(self, table: Table, columns: Sequence[str]) -> str:
        """The index that `index` made, gone."""
        raise errors.make("engine.operation", engine=self.name, operation="indexes")

    def drop_table(self, table: Table) -> str:
        """The table without its rows, gone."""
        return f"DROP TABLE {self.table(table)}"

    def rename_table(self, before: Table, table: Table) -> str:
        """A table under another name."""
        return f"ALTER TABLE {self.table(before)} RENAME TO {self.quote(table.name)}"

    def move_table(self, before: Table, table: Table) -> list[str]:
        """The statements that move a table to another schema, which is there."""
        raise errors.make("engine.operation", engine=self.name, operation="ALTER … SET SCHEMA")

    def add_column(self, table: Table, name: str, type_: str) -> str:
        """One more column, NULL everywhere."""
        return f"ALTER TABLE {self.table(table)} ADD COLUMN {self.quote(name)} {type_}"

    def drop_column(self, table: Table, name: str) -> str:
        """One column less."""
        return f"ALTER TABLE {self.table(table)} DROP COLUMN {self.quote(name)}"

    def clear(self, table: Table, columns: Sequence[str]) -> str:
        """Stored columns set to NULL in every row."""
        return f"UPDATE {self.table(table)} SET {', '.join(f'{c} = NULL' for c in columns)}"

    def copy_beside(
        self,
        table: Table,
        target: Table,
        names: Sequence[str],
        fresh: Sequence[str],
        rows: str,
        key: str,
    ) -> str:
        """Stored columns of all rows of a table put into another one beside those of an Arrow
        input, whose ``key`` holds row ids; in the order of these.
        """
        listed = [self.quote(name) for name in ("row_id", *names, *fresh)]
        taken = [f"t.{self.quote(name)}" for name in ("row_id", *names)]
        taken += [f"n.{self.quote(name)}" for name in fresh]
        return (
            f"INSERT INTO {self.table(target)} ({', '.join(listed)}) SELECT {', '.join(taken)}"
            f" FROM {self.table(table)} AS t JOIN {rows} AS n ON n.{key} = t.row_id"
            " ORDER BY t.row_id"
        )

    def repeated(self, message: str) -> tuple[str, bool] | None:
        """The value of a `unique` column that a refusal names, and whether a row had it before the
        transaction; None where the message is of another sort.
        """
        return None

    def delete_rows(self, table: Table, numbers: str) -> str:
        """Without the rows whose ids are in column row_id of an Arrow input."""
        return f"DELETE FROM {self.table(table)} WHERE row_id IN (SELECT row_id FROM {numbers})"

    def delete_few(self, table: Table, count: int) -> str:
        """Without as many rows, whose ids are bound."""
        listed = ", ".join(f"${number}" for number in range(1, count + 1))
        return f"DELETE FROM {self.table(table)} WHERE row_id IN ({listed})"

    def lock_rows(self, table: Table, count: int, numbers: str, how: str) -> str:
        """The ids of rows that are locked until the transaction ends: of ``count`` rows, whose ids
        are bound, or of those in column row_id of an Arrow input; in the order of the ids, so that
        two who lock the same rows do not wait for each other. ``how`` is SQL's: FOR UPDATE NOWAIT.
        """
        raise errors.make("engine.operation", engine=self.name, operation="locks of rows")

    def lock_table(self, tables: Sequence[Table], mode: str, *, waits: bool) -> str:
        """Locks of whole tables in one of PostgreSQL's modes."""
        raise errors.make("engine.operation", engine=self.name, operation=f"locks ({mode})")

    def session_call(self, function: str) -> str:
        """A call of a function of sessions of the server's own, with bound arguments, or true."""
        raise errors.make("engine.operation", engine=self.name, operation=function)

    def insert_row(self, table: Table, names: Sequence[str]) -> str:
        """One row whose values are bound with their types."""
        columns = ", ".join(map(self.quote, names))
        bound = ", ".join(f"${number}" for number in range(1, len(names) + 1))
        return f"INSERT INTO {self.table(table)} ({columns}) VALUES ({bound})"

    def replace_row(self, table: Table, names: Sequence[str]) -> str:
        """One row, whose id is bound last, with all of its stored columns as they are bound."""
        sets = (f"{self.quote(name)} = ${number}" for number, name in enumerate(names, 1))
        key = f"row_id = ${len(names) + 1}"
        return f"UPDATE {self.table(table)} SET {', '.join(sets)} WHERE {key}"

    def update_from(self, table: Table, names: Sequence[str], rows: str, key: str) -> str:
        """Columns set to those of an Arrow input, whose ``key`` holds row ids."""
        changes = ", ".join(f"{self.quote(n)} = {rows}.{self.quote(n)}" for n in names)
        return f"UPDATE {self.table(table)} SET {changes} FROM {rows} WHERE row_id = {rows}.{key}"

    def row_ids(self, table: Table) -> str:
        """All row ids in order."""
        return f"SELECT row_id FROM {self.table(table)} ORDER BY row_id"

    def epochs(self, table: Table, counter_bits: int) -> str:
        """The numbers of the epochs of all rows."""
        return f"SELECT DISTINCT row_id >> {counter_bits} AS epoch FROM {self.table(table)}"

    def row_range(self, table: Table, column: str) -> str:
        """A stored column between two row ids."""
        return f"SELECT row_id, {column} FROM {self.table(table)} WHERE row_id BETWEEN $1 AND $2"

    def rows_without(self, table: Table, column: str, marker: str) -> str:
        """A stored column of the first rows behind a row id where another one is NULL, in order;
        the row id and the number of rows are bound.
        """
        return (
            f"SELECT row_id, {self.quote(column)} FROM {self.table(table)}"
            f" WHERE {self.quote(marker)} IS NULL AND row_id > $1 ORDER BY row_id LIMIT $2"
        )

    def chosen_rows(self, table: Table, columns: Sequence[str], count: int) -> str:
        """Stored columns of as many rows, whose ids are bound."""
        listed = ", ".join(f"${number}" for number in range(1, count + 1))
        names = ", ".join(("row_id", *columns))
        return f"SELECT {names} FROM {self.table(table)} WHERE row_id IN ({listed})"

    def numbered_rows(self, table: Table, columns: Sequence[str], numbers: str) -> str:
        """Stored columns of the rows whose ids are in column row_id of an Arrow input."""
        names = ", ".join(("row_id", *columns))
        chosen = f"SELECT row_id FROM {numbers}"
        return f"SELECT {names} FROM {self.table(table)} WHERE row_id IN ({chosen})"

    def some_rows(self, table: Table, columns: Sequence[str], count: int) -> str:
        """Stored columns of so many rows that the server picks by chance."""
        names = ", ".join(("row_id", *columns))
        return f"SELECT {names} FROM {self.table(table)} ORDER BY random() LIMIT {count}"

    def adjust(self, table: Table, codes: Mapping[str, str], keys: str, shift: int) -> str:
        """Stored columns set to what `adjusted` makes of them, in one pass over the rows. ``keys``
        is an Arrow input by epoch (column epoch), or empty; ``shift`` makes one of a row id.
        """
        sets = ", ".join(f"{column} = {code}" for column, code in codes.items())
        rows = f" FROM {keys} WHERE row_id >> {shift} = {keys}.epoch" if keys else ""
        return f"UPDATE {self.table(table)} SET {sets}{rows}"

    def adjusted(self, code: str, layer: str, keys: str, *, wide: bool) -> str:
        """A code without its outermost layer, or (``layer`` join) under its group's key.

        Args:
            code: the stored column, or what an earlier adjustment made of it.
            layer: "open" or "join".
            keys: the expression of the key.
            wide: whether the codes are wide.
        """
        raise errors.make("engine.operation", engine=self.name, operation="layers of onions")

    def materialize(
        self,
        table: Table,
        terms: Mapping[str, tuple[int, Sequence[str]]],
        columns: Mapping[str, str],
        powers: int,
    ) -> str:
        """Products with powers of S computed where they are missing.

        Args:
            table: the table that they are of.
            terms: by name, which of the bound exponents, and the columns that it is multiplied by.
            columns: by name, the column that gets it.
            powers: how many exponents are bound; the modulus follows these.
        """
        raise errors.make("engine.operation", engine=self.name, operation="powers of shares")

    def tidied(self, _table: Table, *, whole: bool = False) -> str:
        """What takes back the room of rows that were changed, where nothing hinders it, and with
        ``whole`` writes a table anew; empty where an engine does so by itself.
        """
        return self.checkpoint()

    def checkpoint(self) -> str:
        """What writes memory to where it stays; empty where nothing does."""
        return ""
