"""What COPY … FROM STDIN goes into: a stored table, or a temporary one, whose rows stay here."""

from __future__ import annotations

import pyarrow as pa

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import seen_state, transaction
from louver.trusted.executor.context import Context
from louver.trusted.executor.postgres import copying, rights
from louver.trusted.executor.postgres.copying import CopyIn, Outlasting, Statement
from louver.trusted.executor.postgres.words import refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write.reads import NOTHING

_ROWS = "louver_copied_rows"
#: Options that compute with what the table declares.
_REFUSED = ("WHERE", "DEFAULT", "FREEZE")


def begin(context: Context, sql: str) -> tuple[Statement, CopyIn | None]:
    """Begin a COPY, as any statement begins."""
    if context.state.aborted:
        raise errors.make("transaction.aborted")
    if not context.in_transaction:
        seen_state.refresh(context)
    statement = copying.parse(context, sql)
    if not statement.reads:
        return statement, None
    if _is_temporary(context, statement):
        return statement, TemporaryCopyIn(context, statement)
    return statement, CopyIn(context, statement)


def _is_temporary(context: Context, statement: Statement) -> bool:
    """Whether the table is one of the session's own."""
    is_named = not statement.query and fold(statement.name) in context.local.temporary.names
    if not is_named or statement.schema not in ("", "pg_temp"):
        return False
    if not statement.schema and context.catalog.named("", statement.name) is not None:
        raise errors.make("table.temporary", table=statement.name)
    return True


class TemporaryCopyIn(CopyIn):
    """A COPY … FROM STDIN into a temporary table: its rows are kept until the data ends, and go
    into the workspace at once. What they depend on is what a client sends, as constants are.
    """

    def __init__(self, context: Context, statement: Statement) -> None:
        """Nothing is read yet; raises PostgreSQL's own error for names and options."""
        words = {keyword(token.text) for token in lexer.tokens(statement.options)}
        if words.intersection(_REFUSED):
            refuse(f"COPY with {', '.join(_REFUSED)} into a TEMP table")
        copying.require_known(context, statement)
        self._columns = self._filled(context, statement)
        if context.state.restricted:
            values = f"({self._listed}) VALUES ({', '.join(['DEFAULT'] * len(self._columns))})"
            rights.require_sql(context, f"INSERT INTO {statement.path} {values}")
        self._tables: list[pa.Table] = []
        self._start(context, statement)
        self._require_options()
        if context.in_transaction:
            transaction.fix(context)
        context.state.copying = True

    @property
    def _listed(self) -> str:
        return ", ".join(self._columns)

    def _filled(self, context: Context, statement: Statement) -> tuple[str, ...]:
        """The columns of the data."""
        if statement.columns:
            return statement.columns
        with context.local.rehearsal() as connection:
            rows = connection.fetch_arrow(
                "SELECT attname::text AS name FROM pg_attribute WHERE attrelid = "
                f"'pg_temp.{quoted(statement.name)}'::regclass AND attnum > 0"
                " AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
            )
        return tuple(map(quoted, rows.column(0).to_pylist()))

    def write(self, data: bytes) -> None:
        """Take data in."""
        self._tables += map(self._read, self._splitter.add(data))

    def finish(self, outlasting: Outlasting) -> int:
        """The end of the data; the number of rows. No other client can be faster."""
        del outlasting
        context, rest = self._context, self._splitter.rest()
        if rest or not self._tables:
            self._tables.append(self._read(rest))
        context.state.copying = False
        rows = pa.concat_tables(self._tables)
        if rows.num_rows:
            self._keep(context, rows)
        self._rows = int(rows.num_rows)
        return self._rows

    def _keep(self, context: Context, rows: pa.Table) -> None:
        local, name = context.local, fold(self._statement.name)
        target = f"pg_temp.{quoted(self._statement.name)}"
        declared = context.local.describe(f"SELECT {self._listed} FROM {target}")
        insert = f"INSERT INTO {target} ({self._listed}) OVERRIDING SYSTEM VALUE SELECT * FROM "
        if context.in_transaction:
            local.temporary.keep()
        if context.in_transaction and local.temporary.deferrable()[1]:
            refuse("COPY in a transaction into TEMP tables with rules that are DEFERRED")
        local.finish({("", _ROWS): (declared, rows)}, insert + _ROWS, keeps=True)
        definitions = lexer.tokens(" ".join(local.temporary.texts({name})))
        transaction.keep_sequences(context, definitions)
        context.state.origins.keep_table(context.catalog, name, NOTHING, fresh=False, plain=False)
        context.state.flows.clear()

    def _read(self, batch: bytes) -> pa.Table:
        """The rows of a batch; rules of the table are checked when they go into it."""
        statement = self._statement
        target, own = f"pg_temp.{quoted(statement.name)}", quoted(statement.name)
        with self._context.local.rehearsal() as connection:
            connection.execute(f"ALTER TABLE {target} RENAME TO {_ROWS}")
            connection.execute(
                f"CREATE TEMP TABLE {own} AS SELECT {self._listed} FROM pg_temp.{_ROWS}"
                " WITH NO DATA"
            )
            text = f"COPY {target} ({self._listed})", statement.options
            self._context.local.copy_from(connection, text, batch)
            return connection.fetch_arrow(f"SELECT {self._listed} FROM {target}")
