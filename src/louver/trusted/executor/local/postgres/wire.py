"""What clients of PostgreSQL's protocol receive of the local PostgreSQL: its descriptions, and rows
as an Arrow array for each column, or as the texts that it prints of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from louver import errors
from louver._rust import postgres
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.local.postgres import values
from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.engine import PostgresLocalEngine
from louver.trusted.executor.local.postgres.failures import translated
from louver.trusted.executor.local.postgres.known_trees import KnownTrees
from louver.trusted.planner.sql.postgres_dialect import DIALECT

if TYPE_CHECKING:
    from louver.trusted.executor.local.postgres import numbered

Described = tuple[str, int, int, int, int, int, int]
"""A column: name, table, place in the table, type, size, modifier, format."""
Sent = tuple[pa.Array, bool]
"""A column's values, and whether they are printed already."""
#: Types whose text depends on nothing, and those where it depends on settings.
_FIRM = frozenset((16, 19, 20, 21, 23, 25, 26, 1042, 1043, 1700, 2950))
_OF_DATES, _ZONED = frozenset((1082, 1114)), 1184
_OF_FLOATS, _BYTEA = frozenset((700, 701)), 17
_RECORDS = frozenset((2249, 2287))
_LENGTHS = "SELECT oid::bigint, typlen::integer FROM pg_catalog.pg_type WHERE oid = ANY($1::oid[])"
_SETTINGS = (
    "SELECT current_setting('DateStyle'), current_setting('TimeZone'),"
    " current_setting('bytea_output'), current_setting('extra_float_digits')::integer"
)
#: By the types' own output functions, which a cast to text is not of some.
FIRST_OF_USERS = 16_384
#: Settings under which a text is read as the very value that it was printed of.
_EXACT = (
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = hex",
    "SET LOCAL DateStyle = ISO",
)
_PRINTED = "SELECT format('%s', $1)"
_ALL_PRINTED = (
    "SELECT CASE WHEN num_nulls(v) = 0 THEN format('%s', v) END"
    " FROM pg_temp.louver_texts ORDER BY n"
)


class Wire:
    """The local PostgreSQL of one session, as its own protocol shows it."""

    def __init__(self, local: LocalEngine) -> None:
        """Of a session's local engine; `serve.language` for another than PostgreSQL."""
        if not isinstance(local, PostgresLocalEngine):
            raise errors.make("serve.language", language=local.dialect.name)
        self._local, self.trees = local, KnownTrees(local)
        self._lengths: dict[int, int] = {}
        self._firm: set[int] | None = None
        self._forms: tuple[int, numbered.Forms] | None = None
        #: whether clients learn the numbers of tables, which are others in each session
        self.numbers_tables = True

    def described(self, sql: str, types: Sequence[int]) -> tuple[list[int], list[Described]]:
        """The numbers of the types of a statement's placeholders, some of which are given (0 is
        unknown), and its columns.
        """
        with self._local.binder.guarded(), translated(sql):
            numbers, columns = self._local.binder.raw.describe(sql, list(types))
        return numbers, self._shown(columns)

    def of_names(self, columns: Sequence[tuple[str, str]]) -> list[Described]:
        """Columns by the names of their types."""
        numbers = self._local.binder.numbers([type_ for _, type_ in columns])
        pairs = zip(columns, numbers, strict=True)
        return self._shown([(name, number, -1, 0, 0) for (name, _), number in pairs])

    def type_name(self, number: int) -> str:
        """The name of a type."""
        return self._local.binder.described([("", number, -1, 0, 0)])[0][1]

    def printed(self, data: bytes, type_: int) -> str:
        """The text of a value in its binary form."""
        # Only the binder knows types of users by the numbers that clients have.
        connection = self._local.binder if type_ >= FIRST_OF_USERS else self._local.workspace
        with connection.undone(), translated():
            for text in _EXACT:
                connection.execute(text)
            replies = connection.raw.run([(_PRINTED, [(data, type_)])])
        return str(replies[-1][2][0][0].as_py())

    def settings(self) -> dict[str, str]:
        """Those that PostgreSQL's clients receive."""
        return dict(self._local.workspace.raw.parameters())

    def reseed(self) -> None:
        """Let random() give what no client has chosen with setseed()."""
        for connection in self._local.instances:
            connection.execute(f"SELECT setseed({secrets.randbelow(1 << 30) / (1 << 30)})")

    def settings_changed(self) -> None:
        """How values are printed is to be looked up again."""
        self._firm = None

    @property
    def session(self) -> postgres.Session:
        """The session of the private server that has the settings of this one."""
        return self._local.workspace.raw

    @property
    def sessions(self) -> list[postgres.Session]:
        """All of the private server, that one first."""
        return [self._local.workspace.raw, self._local.binder.raw]

    def time_is_fixed(self) -> None:
        """Transactions have begun on all of them, at whose time they stay."""
        self._local.time_is_fixed()

    def row(self, sql: str) -> tuple[Any, ...]:
        """The only row of a query that reads no table, under the settings of this session."""
        (row,) = self._local.workspace.fetchall(sql)
        return tuple(row)

    def is_printed(self, type_: int) -> bool:
        """Whether values of a type are printed without the local engine."""
        return type_ in self._printed_elsewhere() and type_ != values.OID

    def arrays(self, rows: pa.Table, columns: Sequence[Described]) -> list[Sent]:
        """The columns of rows as they are sent."""
        results: list[Sent] = []
        for column, own in zip(rows.columns, columns, strict=True):
            type_, form = own[3], own[6]
            if form == 1 and type_ in _RECORDS:
                self._require_sendable(column)
            if form == 1 or type_ in self._printed_elsewhere():
                is_number = form == 0 and type_ == values.OID
                array = column.combine_chunks() if is_number else values.sent(column, type_)
                if type_ >= FIRST_OF_USERS:
                    array = self._numbered(array, type_)
                if not pa.types.is_null(array.type):
                    results.append((array, False))
                    continue
            results.append((pa.array(self._texts(column), pa.string()), True))
        return results

    @staticmethod
    def _require_sendable(records: pa.ChunkedArray) -> None:
        from louver.trusted.executor.local.postgres import numbered

        if not pa.types.is_binary(records.type):
            raise errors.make("postgres.refused", statement="The binary form of a record")
        numbered.require_known(records.combine_chunks())

    def _numbered(self, array: pa.Array, type_: int) -> pa.Array:
        """Values of a type of users' in binary form, with the numbers that clients know."""
        forms = self._of_binder()
        if pa.types.is_string(array.type) and forms.of(type_).kind != "plain":
            rows = pa.table({"v": array, "n": pa.array(range(len(array)), pa.int64())})
            sql = f"SELECT v::{self.type_name(type_)} FROM pg_temp.louver_texts ORDER BY n"
            array = values.sent(self._local.binder.over("louver_texts", rows, sql).column(0), type_)
        if pa.types.is_binary(array.type):
            return forms.with_own(array, type_)
        if pa.types.is_string(array.type) and forms.of(type_).kind != "plain":
            raise errors.make("postgres.refused", statement="The binary form of this value")
        return array

    def holds_numbers(self, type_: int) -> bool:
        """Whether binary values of a type have numbers of types in them, which have to be the
        binder's.
        """
        return type_ >= FIRST_OF_USERS and self._of_binder().of(type_).holds_numbers

    def _of_binder(self) -> numbered.Forms:
        from louver.trusted.executor.local.postgres import numbered

        revision = self._local.revision
        if self._forms is None or self._forms[0] != revision:
            self._forms = revision, numbered.Forms(self._local.binder)
        return self._forms[1]

    def _printed_elsewhere(self) -> set[int]:
        """The types that the compiled module prints as this session would."""
        if self._firm is None:
            row = self._local.workspace.fetchone(_SETTINGS)
            style, zone, output, digits = row or ("", "", "", 0)
            firm = set(_FIRM)
            if str(style).startswith("ISO"):
                firm |= _OF_DATES
                if zone in ("UTC", "Etc/UTC"):
                    firm.add(_ZONED)
            if output == "hex":
                firm.add(_BYTEA)
            if digits > 0:
                firm |= _OF_FLOATS
            self._firm = firm
        return self._firm

    def _texts(self, column: pa.ChunkedArray) -> list[Any]:
        type_ = column.type
        if pa.types.is_list(type_):
            lists = column.to_pylist()
            return [None if v is None else "{" + ",".join(map(str, v)) + "}" for v in lists]
        if pa.types.is_string(type_):
            return column.to_pylist()  # type: ignore[no-any-return]
        name = type_.type_name if isinstance(type_, pa.OpaqueType) else ""
        if name == "void":
            return [None if value is None else "" for value in column.to_pylist()]
        numbered = pa.table({"v": column, "n": pa.array(range(len(column)), pa.int64())})
        printed = self._of_type(name).over("louver_texts", numbered, _ALL_PRINTED)
        return printed.column(0).to_pylist()  # type: ignore[no-any-return]

    def _of_type(self, name: str) -> PostgresConnection:
        """Only the binder has the tables that values of types like `regclass` mean."""
        of_names = name.removesuffix("[]") in DIALECT.names_objects
        return self._local.binder if of_names else self._local.workspace

    def _shown(self, columns: Sequence[values.Column]) -> list[Described]:
        missing = {column[1] for column in columns} - self._lengths.keys()
        if missing:
            listed = "{" + ",".join(map(str, missing)) + "}"
            self._lengths |= dict(self._local.binder.fetchall(_LENGTHS, [listed]))
        numbered = self.numbers_tables
        return [
            (
                name, table if numbered else 0, attribute if numbered else 0, type_,
                self._lengths.get(type_, -1), modifier, 0,
            )
            for name, type_, modifier, table, attribute in columns
        ]  # fmt: skip
