"""COPY … FROM STDIN and COPY … TO STDOUT: the private PostgreSQL reads and writes the data.

What comes in goes to its own COPY in batches of whole rows, which are sealed and sent like those of
INSERT, all within one transaction. What goes out are the rows of a query, as its COPY prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword, quoted
from louver.trusted.executor import constraint_check, dry_run, seen_state, select, transaction
from louver.trusted.executor.change import sending
from louver.trusted.executor.context import Context
from louver.trusted.executor.local.local import Described
from louver.trusted.executor.postgres import admitted, copy_columns, rights
from louver.trusted.executor.postgres.copy_rows import (
    Format,
    Splitter,
    lines_of,
    uncounted_lines,
)
from louver.trusted.executor.postgres.words import Words, refuse
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import Table

BATCH_BYTES = 8 * 1024 * 1024
"""Data of so many bytes is read at a time, and a row more."""
Outlasting = Callable[[Context, Callable[[], int]], int]
_BAD_DATA = "22P04"
_LINE = re.compile(r"^(COPY .*?, line )(\d+)", re.DOTALL | re.MULTILINE)
#: Options, and their values, that are understood here.
_PLAIN = {
    "format": re.compile("text|csv|binary"), "freeze": re.compile("off"),
    "header": re.compile("|true|on|1|false|off|0"),
}  # fmt: skip
_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(")


@dataclass(frozen=True, slots=True)
class Statement:
    """A COPY: the table with the columns that are listed, or a query; and the options as text."""

    text: lexer.Text
    schema: str
    name: str
    columns: tuple[str, ...]
    query: str
    reads: bool
    options: str

    @property
    def path(self) -> str:
        """The table's name as SQL."""
        name = quoted(self.name)
        return f"{quoted(self.schema)}.{name}" if self.schema else name

    @property
    def listed(self) -> str:
        """The columns in brackets; "" of none."""
        return f" ({', '.join(self.columns)})" if self.columns else ""


def parse(context: Context, sql: str) -> Statement:
    """Read a COPY; one that is wrong raises PostgreSQL's own error."""
    texts = lexer.split(sql)
    tokens = lexer.tokens(texts[0].plain) if len(texts) == 1 else []
    if not tokens or keyword(tokens[0].text) != "COPY" or texts[0].parameters:
        raise errors.make("sql.syntax", detail="there is no COPY, and nothing else, in the text")
    words = Words(context, texts[0], tokens)
    schema = name = query = ""
    columns: tuple[str, ...] = ()
    if words.peek() == "(":
        query = ", ".join(words.brackets())
    else:
        name = words.name()
        if words.takes("."):
            schema, name = name, words.name()
        columns = tuple(words.brackets())
    reads = words.takes("FROM")
    if not reads:
        words.needs("TO")
    if not words.takes("STDIN" if reads else "STDOUT"):
        refuse("COPY of files and programs, which would be the private PostgreSQL's machine's,")
    options = words.rest()
    if reads and context.in_transaction:
        options = _thawed(options)
    return Statement(texts[0], schema, name, columns, query, reads, options)


def _thawed(options: str) -> str:
    """Options without FREEZE, which a table that its transaction has made or truncated may have:
    the private PostgreSQL's was made before.
    """
    tokens = lexer.tokens(options)
    for before, token, behind in zip(tokens, tokens[1:], [*tokens[2:], None], strict=False):
        if fold(token.text) == "freeze" and before.text in ("(", ","):
            is_bare = behind is None or behind.text in (",", ")")
            end = token if is_bare or behind is None else behind
            return f"{options[: token.start]}FREEZE off{options[end.end + 1 :]}"
    return options


def is_plain(options: str) -> bool:
    """Whether options say nothing but a format, and whether a header goes first."""
    tokens = lexer.tokens(options)
    if any(token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) for token in tokens):
        return False
    words = [fold(token.text) for token in tokens]
    if words[:1] == ["with"]:
        words = words[1:]
    if words[:1] != ["("] or words[-1] != ")":
        return words in ([], ["csv"], ["csv", "header"], ["binary"])
    given = dict[str, str]()
    for item in " ".join(words[1:-1]).split(","):
        name, _, value = item.strip().partition(" ")
        if name not in _PLAIN or name in given or not _PLAIN[name].fullmatch(value):
            return False
        given[name] = value
    return "header" not in given or given.get("format") != "binary"


def form_of(options: str) -> Format:
    """The format that options say; what they mean else PostgreSQL knows."""
    tokens = lexer.tokens(options)
    words = [fold(token.text) for token in tokens]
    name = next((word for word in words if word in ("csv", "binary")), "")
    header = "header" in words
    if header and words[words.index("header") + 1 :][:1] in (["false"], ["off"], ["0"]):
        header = False
    quote = _character(tokens[words.index("quote") + 1 :], '"') if "quote" in words else '"'
    escape = _character(tokens[words.index("escape") + 1 :], quote) if "escape" in words else quote
    return Format(name, header, ord(quote), ord(escape))


def _character(tokens: list[Token], default: str) -> str:
    given = next((t.text for t in tokens if fold(t.text) != "as"), "")
    return given if len(given.encode()) == 1 else default


class CopyIn:
    """A COPY … FROM STDIN that runs; `finish` or `abort` ends it."""

    def __init__(self, context: Context, statement: Statement) -> None:
        """Nothing is sent before a batch is whole."""
        transaction.require_writable(context)
        table = context.catalog.named(statement.schema, statement.name)
        if table is None or statement.query:
            require_known(context, statement)
            refuse("COPY into anything but a table of this database")
        _require_admitted(context, statement)
        if context.state.restricted:
            columns = _columns(context, statement)
            values = f"({', '.join(columns)}) VALUES ({', '.join(['DEFAULT'] * len(columns))})"
            rights.require_sql(context, f"INSERT INTO {statement.path} {values}")
        self._key = table.key
        self._start(context, statement)
        self._require_options()
        if not self._own:
            transaction.fix(context)
        context.state.copying = True

    def _start(self, context: Context, statement: Statement) -> None:
        self._context, self._statement = context, statement
        self._form, self._is_plain = form_of(statement.options), is_plain(statement.options)
        self._splitter = Splitter(self._form, BATCH_BYTES)
        self._own = not context.in_transaction
        self._rows = self._batches = self._lines = 0

    def _require_options(self) -> None:
        """Raise PostgreSQL's own error for options, before any data."""
        if self._is_plain:
            return
        try:
            self._read(b"")
        except errors.Error as error:
            # No data is not what a form begins with.
            if error.sqlstate != _BAD_DATA:
                raise

    def write(self, data: bytes) -> None:
        """Take data in."""
        for batch in self._splitter.add(data):
            self._enter()
            self._send(batch)

    def finish(self, outlasting: Outlasting) -> int:
        """The end of the data; the number of rows. Data that is all still here is sent again where
        others are faster, as any change is run again: by `session.outlasting`.
        """
        rest = self._splitter.rest()
        if self._own and not self._batches:
            return outlasting(self._context, lambda: self._whole(rest))
        if rest or not self._batches:
            self._send(rest)
        return self._end()

    def _whole(self, data: bytes) -> int:
        self._rows = self._lines = self._batches = 0
        try:
            self._enter()
            self._send(data)
            return self._end()
        except BaseException as error:
            if self._context.in_transaction:
                transaction.rollback(self._context)
            if isinstance(error, errors.Error) and error.code == "server.conflict":
                raise errors.make("catalog.conflict") from error
            raise

    def _enter(self) -> None:
        """Open the transaction of its own, not before there is something to send: the less others
        do meanwhile.
        """
        if self._own and not self._context.in_transaction:
            seen_state.refresh(self._context)
            transaction.begin(self._context)
            transaction.fix(self._context)

    def _end(self) -> int:
        self._context.state.copying = False
        if self._own:
            transaction.commit(self._context)
        return self._rows

    def abort(self) -> None:
        """Nothing was copied."""
        context = self._context
        context.state.copying = False
        if context.in_transaction and self._own:
            transaction.rollback(context)
        elif context.in_transaction:
            context.state.aborted = True

    def _send(self, batch: bytes) -> None:
        table = self._table
        uncounted = uncounted_lines(self._form, batch)
        # The private server counts from the beginning of the batch.
        self._lines += uncounted if self._batches else 0
        rows = self._read_here(table, batch)
        is_known = rows is not None
        if rows is None:
            rows = self._read(batch)
        self._batches += 1
        try:
            if rows.num_rows:
                sending.send_new(self._context, table, rows)
        except errors.IntegrityError:
            if is_known:
                # Of rows that break a key among themselves PostgreSQL says in which line.
                self._read(batch)
            raise
        self._rows += rows.num_rows
        lines = lines_of(self._form, batch, len(self._splitter.head), rows.num_rows)
        self._lines += lines - uncounted

    def _read_here(self, table: Table, batch: bytes) -> pa.Table | None:
        """The rows of a batch; None where PostgreSQL is to read it."""
        if not self._is_plain or (self._form.header and not self._splitter.head):
            return None
        start = 0 if self._form.name == "binary" else len(self._splitter.head)
        listed = self._statement.columns
        return copy_columns.read(self._context, table, self._form, listed, batch, start)

    @property
    def _table(self) -> Table:
        table = self._context.catalog.tables.get(self._key)
        if table is None:
            require_known(self._context, self._statement)
            raise errors.make("catalog.conflict")
        return table

    def _read(self, batch: bytes) -> pa.Table:
        """The rows of a batch, as the declared table takes them."""
        context, statement, table = self._context, self._statement, self._table
        without = constraint_check.rules(context, table).without_foreign
        name = dry_run.stand_in(table) if without else table.local_name
        text = f"COPY {name}{statement.listed}", statement.options
        with context.local.rehearsal() as connection:
            if without:
                connection.execute(without)
            try:
                context.local.copy_from(connection, text, batch)
            except errors.Error as error:
                raise _in_whole(error, self._lines) from None
            listed = ", ".join(quoted(column.name) for column in table.columns)
            return connection.fetch_arrow(f"SELECT {listed} FROM {name}")


def _in_whole(error: errors.Error, lines: int) -> errors.Error:
    """An error of a batch with the number that its line has in the whole data."""
    context = str(error.said.get("context") or "") if error.said else ""
    if lines and context:
        number = _LINE.sub(lambda m: f"{m[1]}{int(m[2]) + lines}", context, count=1)
        error.said = {**error.said, "context": number}
    return error


def _require_admitted(context: Context, statement: Statement) -> None:
    """The condition of WHERE is held to the same as that of a query."""
    depth, tokens = 0, lexer.tokens(statement.options)
    for token in tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and keyword(token.text) == "WHERE":
            condition = statement.options[token.start :]
            admitted.require_query(context, f"SELECT 1 FROM {statement.path} {condition}")
            if sequence_draws.draws(context.catalog, lexer.tokens(condition)):
                refuse("COPY with a condition that draws from a sequence")
            return


def require_known(context: Context, statement: Statement) -> None:
    """Raise PostgreSQL's own error for a name that it does not know."""
    if statement.query:
        context.local.statements.require_syntax(statement.text.home)
        return
    with context.local.rehearsal() as connection:
        connection.execute(f"COPY {statement.path}{statement.listed} TO '/dev/null'")


def query_out(context: Context, statement: Statement) -> str:
    """The query whose rows COPY … TO STDOUT gives."""
    if statement.query:
        (text,) = lexer.split(statement.query) or (None,)
        if text is None or keyword(lexer.tokens(text.plain)[0].text) not in _QUERIES:
            refuse("COPY of anything but a query")
        admitted.require_query(context, statement.query)
        query = statement.query
    else:
        query = _query_of(context, statement)
    if context.state.restricted:
        rights.require_sql(context, query)
    return query


def rows_out(context: Context, query: str) -> tuple[pa.Table, Described]:
    """The rows of a query, and their columns."""
    answer = select.query(context, query)
    if answer.rows is None:
        raise errors.make("internal", detail="a query without rows")
    return answer.rows, answer.columns


def out(context: Context, statement: Statement) -> tuple[Iterator[bytes], int]:
    """The data of COPY … TO STDOUT, in pieces, and how many rows it is of; it is all there before
    the first.
    """
    rows, columns = rows_out(context, query_out(context, statement))
    return printed(context, statement, rows, columns), rows.num_rows


def printed(
    context: Context, statement: Statement, rows: pa.Table, columns: Described
) -> Iterator[bytes]:
    """Rows as PostgreSQL's COPY prints them, in pieces."""
    pieces = context.local.copy_to(rows, columns, statement.options)
    # What is wrong with the options is said before the first piece.
    first = next(pieces, None)
    return pieces if first is None else chain((first,), pieces)


def width(context: Context, statement: Statement) -> int:
    """How many columns the data has."""
    query = statement.query or _query_of(context, statement)
    return len(context.local.describe(query))


def _query_of(context: Context, statement: Statement) -> str:
    """What COPY of a table reads: all columns but those that are generated."""
    require_known(context, statement)
    return f"SELECT {', '.join(_columns(context, statement)) or '*'} FROM {statement.path}"


def _columns(context: Context, statement: Statement) -> tuple[str, ...]:
    table = context.catalog.named(statement.schema, statement.name)
    if table is None or statement.columns:
        return statement.columns
    generated = constraint_check.rules(context, table).generated
    return tuple(quoted(c.name) for c in table.columns if fold(c.name) not in generated)
