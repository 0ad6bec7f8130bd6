"""What statements take and give, as the local PostgreSQL describes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, keyword
from louver.trusted.apps.pgproxy import audited, moments, narrowed, tags, visitors
from louver.trusted.apps.pgproxy.failures import failed
from louver.trusted.executor import dispatch
from louver.trusted.executor.local.postgres.wire import Described, Wire
from louver.trusted.executor.postgres import cursors, language
from louver.trusted.executor.postgres import prepared as named
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.postgres_types import own_type

T = TypeVar("T")
_MOST_TEXTS = 512
_WIDER = {21: (23, 20, 1700), 23: (20, 1700), 20: (1700,)}
"""Types of whole numbers, and the wider ones, numeric among them."""
_TEXT = own_type("VARCHAR")
#: PostgreSQL's names of types that an answer of Louver's own has.
_OWN = {"VARCHAR": _TEXT, "VARCHAR[]": f"{_TEXT}[]"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement: its text and tokens, what it is (`tags.kind`), the numbers of its parameters'
    types, and its columns in text form; None of one without rows, or whose columns vary.
    """

    sql: str
    tokens: tuple[Token, ...]
    kind: str
    parameters: tuple[int, ...] = ()
    columns: list[Described] | None = None
    #: the client's own text, the types that it gave, and the client's generation at that time
    text: str = ""
    types: tuple[int, ...] = ()
    generation: int = 0
    #: what it does with a cursor
    cursor: cursors.Use | None = None
    #: what it does, and a fingerprint of its text without values
    does: str = ""
    shape: str = ""
    #: the text for values that are not of their columns' types (`narrowed`), and these types by the
    #: positions of parameters
    wide: str = ""
    narrowed: tuple[tuple[int, int], ...] = ()
    #: the numbers of the types of further parameters, which stand for words of time, and where the
    #: values of all parameters of the text are among the client's and these
    moments: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    @property
    def face(self) -> tuple[object, ...]:
        """The types of what it takes and gives."""
        types = None if self.columns is None else row_type(self.columns)
        own = self.wide, self.narrowed
        return self.sql, own, self.parameters, self.moments, self.places, types

    def in_order(self, own: Sequence[T], moments: Sequence[T]) -> list[T]:
        """What is of the client's parameters and of the words of time, in the order of the text."""
        every = [*own, *moments]
        return [every[position] for position in self.places] if self.moments else every

    @property
    def deallocates(self) -> str | None:
        """The name that DEALLOCATE gives up, as PostgreSQL folds it; "" of all."""
        return tags.deallocated(self.tokens)

    @property
    def ends(self) -> str:
        """Whether it is "commit" or "rollback" of a transaction, and nothing more; "" if not."""
        return tags.ends(self.tokens)


def row_type(columns: Sequence[Described]) -> list[tuple[str, int, int]]:
    """What of columns a statement that was described relies on: name, type, modifier."""
    return [(column[0], column[3], column[5]) for column in columns]


class Describing:
    """Describes the statements of one session; what was said of a text holds while no name means
    something else.
    """

    def __init__(self, session: Session, wire: Wire) -> None:
        """None is known at first."""
        self._session, self._context, self._wire = session, session.context, wire
        self._known: dict[tuple[object, ...], Prepared] = {}
        #: whether a client may have learned numbers that other sessions have not
        self.shows_numbers = False

    def forget(self) -> None:
        """Names may mean something else."""
        self._known.clear()

    def require_syntax(self, text: lexer.Text) -> None:
        """Raise for a text that PostgreSQL cannot read, as far as it knows all of it."""
        try:
            tokens = lexer.every_token(text.plain)
        except errors.Error as error:
            dispatch.unread(self._context, text, error)
            raise
        self._require_known(text, tokens, read=True)

    def _require_known(
        self, text: lexer.Text, tokens: Sequence[Token], *, read: bool = False
    ) -> None:
        """PostgreSQL's own error for a word that begins no statement, or with ``read`` for what it
        cannot read of those that it can.
        """
        described = keyword(tokens[0].text) in tags.DESCRIBED
        if (described and read) or not language.is_known(tokens):
            self._context.local.statements.require_syntax(text.home)

    def prepared(self, sql: str, types: Sequence[int]) -> Prepared:
        """Describe a text of one statement, of whose parameters these types are given."""
        item = self._prepared(sql, types)
        self.shows_numbers |= visitors.shows_numbers(item.tokens, item.parameters, item.columns)
        return item

    def again(self, item: Prepared, generation: int) -> Prepared | None:
        """A statement as it is now; None where it takes or gives something else."""
        if not item.text or item.generation == generation:
            return item
        now = self._prepared(item.text, item.types)
        return now if now.face == item.face else None

    def _prepared(self, sql: str, types: Sequence[int]) -> Prepared:
        context = self._context
        key = (sql, tuple(types))
        if key in self._known and not context.state.aborted:
            return self._known[key]
        texts = lexer.split(sql)
        if len(texts) > 1:
            raise failed("42601", "cannot insert multiple commands into a prepared statement")
        if not texts:
            return Prepared("", (), "empty")
        try:
            tokens = lexer.every_token(texts[0].plain)
        except errors.Error as error:
            dispatch.unread(context, texts[0], error)
            raise
        kind = tags.kind(tokens)
        if context.state.aborted and kind != "controls":
            raise errors.make("transaction.aborted")
        word = keyword(tokens[0].text)
        if word not in tags.DESCRIBED:
            self._require_known(texts[0], tokens)
            item = _with_looks(self._of_other(texts[0], tokens, kind, types))
        else:
            item = _with_looks(self._of_query(texts[0], tokens, types))
            if len(self._known) >= _MOST_TEXTS:
                self._known.pop(next(iter(self._known)))
            self._known[key] = item = replace(item, text=sql, types=tuple(types))
        return item

    def _of_query(
        self, text: lexer.Text, tokens: tuple[Token, ...], types: Sequence[int]
    ) -> Prepared:
        timed = moments.timed(text, tokens)
        if timed is not None:
            known = timed.of_places(types)
            described = self._wire.described(timed.text.home, known)
            parts = timed.split(described[0])
            if parts is not None:
                item = self._of_described(timed.text, tokens, known, described, narrows=False)
                places = tuple(timed.places)
                return replace(item, parameters=parts[0], moments=parts[1], places=places)
        return self._of_described(text, tokens, types, self._wire.described(text.home, types))

    def _of_described(
        self, text: lexer.Text, tokens: tuple[Token, ...], types: Sequence[int],
        described: tuple[list[int], list[Described]], *, narrows: bool = True,
    ) -> Prepared:  # fmt: skip
        numbers, columns = described
        inferred = self._inferred(text) if any(types) else []
        narrow = narrowed.types(text, numbers, inferred) if narrows else {}
        wide = self._typed(text, types, numbers, inferred)
        sql = self._typed(text, types, numbers, inferred, narrow)
        returns = bool(columns) or keyword(tokens[0].text) in ("SELECT", "VALUES", "TABLE", "(")
        shown = columns if returns and not self._stores(tokens) else None
        own = (wide, tuple(sorted(narrow.items()))) if narrow and sql != wide else ("", ())
        return Prepared(
            sql, tokens, "other", tuple(numbers), shown, wide=own[0], narrowed=own[1]
        )  # fmt: skip

    @staticmethod
    def _stores(tokens: Sequence[Token]) -> bool:
        """Whether it is SELECT … INTO."""
        depth = 0
        for token in tokens:
            depth += (token.text == "(") - (token.text == ")")
            word = keyword(token.text)
            if depth == 0 and word == "FROM":
                return False
            if depth == 0 and word == "INTO":
                return keyword(tokens[0].text) == "SELECT"
        return False

    def _inferred(self, text: lexer.Text) -> list[int]:
        """The types of parameters as they are found where the client says none."""
        try:
            return self._wire.described(text.home, ())[0]
        except errors.Error:
            return []

    def _typed(
        self, text: lexer.Text, types: Sequence[int], numbers: Sequence[int],
        inferred: Sequence[int], narrow: Collection[int] = (),
    ) -> str:  # fmt: skip
        """The text with the types that the client says, where they are not found without; but for
        parameters at these positions.
        """
        if not any(types):
            return text.home
        written = {}
        for at, own in enumerate(numbers):
            other = inferred[at] if at < len(inferred) else 0
            if at not in narrow and own != other and other not in _WIDER.get(own, ()):
                written[str(at + 1)] = f"(${at + 1}::{self._wire.type_name(own)})"
        return lexer.filled(text.home, written) if written else text.home

    def _of_other(
        self, text: lexer.Text, tokens: tuple[Token, ...], kind: str, types: Sequence[int]
    ) -> Prepared:
        if not text.parameters:
            use = cursors.use_of(self._context, text, tokens)
            return Prepared(text.home, tokens, kind, cursor=use)
        query = self._declared(text, tokens)
        if query is None:
            # Whatever they are, PostgreSQL reads them as texts.
            count = max(int(key) for key in text.parameters)
            return Prepared(text.home, tokens, kind, (25,) * count)
        numbers, _ = self._wire.described(query, types)
        use = cursors.use_of(self._context, text, tokens)
        return Prepared(text.home, tokens, kind, tuple(numbers), cursor=use)

    @staticmethod
    def _declared(text: lexer.Text, tokens: Sequence[Token]) -> str | None:
        """The query of DECLARE CURSOR."""
        if keyword(tokens[0].text) != "DECLARE":
            return None
        at = next((t.end for t in tokens[1:] if keyword(t.text) == "FOR"), None)
        # No placeholder precedes the query, so both texts are alike up to there.
        return None if at is None else text.home[tokens[0].end + at + 2 :]

    # ------------------------------------------------------------------ columns

    def columns_now(self, prepared: Prepared) -> list[Described] | None:
        """The columns of a statement of which they vary. SHOW and EXPLAIN run for that."""
        tokens = prepared.tokens
        word = keyword(tokens[0].text)
        if word == "FETCH":
            name = tokens[-1]
            is_quoted = name.token_type == TokenType.IDENTIFIER
            return self.of_cursor(name.text if is_quoted else fold(name.text))
        if word == "EXECUTE":
            item = self._named(prepared)
            _, columns = self._wire.described(item.text.home, ())
            return columns or None
        answer = self._session.execute(prepared.sql, None)
        if answer.rows is None:
            return None
        return self.of_answer(answer.rows, answer.columns)

    def of_cursor(self, name: str) -> list[Described] | None:
        """Those of a cursor; None where there is none."""
        cursor = self._context.state.cache(cursors.Cursors).open.get(name)
        return None if cursor is None else self.of_answer(cursor.rows, cursor.columns)

    def of_answer(self, rows: pa.Table, columns: Sequence[tuple[str, str]]) -> list[Described]:
        """Those of an answer, by the names of their types."""
        known = columns or [(name, _TEXT) for name in rows.column_names]
        return self._wire.of_names([(name, _OWN.get(type_, type_)) for name, type_ in known])

    def tokens_run(self, prepared: Prepared) -> Sequence[Token]:
        """The tokens of what ran: of EXECUTE those of the statement that was prepared."""
        if keyword(prepared.tokens[0].text) != "EXECUTE":
            return prepared.tokens
        item = self._named(prepared)
        return lexer.every_token(item.text.plain)

    def of_statement(self, name: str) -> Prepared | None:
        """A statement of PREPARE, for the protocol; None where there is none."""
        known = named.by_name(self._context, name)
        if known is None:
            return None
        if known.used != tuple(range(1, len(known.types) + 1)):
            statement = "Bind to a statement of PREPARE that leaves out some of its parameters"
            raise errors.make("postgres.refused", statement=statement)
        return self.prepared(known.text.home, ())

    def _named(self, prepared: Prepared) -> named.Prepared:
        (text,) = lexer.split(prepared.sql)
        return named.named(self._context, text, lexer.tokens(text.plain))


def _with_looks(item: Prepared) -> Prepared:
    return replace(item, does=audited.kind(item.tokens), shape=audited.shape(item.tokens))


def in_formats(columns: Sequence[Described], formats: Sequence[int]) -> list[Described]:
    """Columns in the formats that were asked for: none is text, one is for all."""
    if len(formats) > 1 and len(formats) != len(columns):
        raise failed(
            "08P01",
            f"bind message has {len(formats)} result formats but query has {len(columns)} columns",
        )
    own = list(formats) or [0]
    own = own * len(columns) if len(own) == 1 else own
    return [(*column[:6], form) for column, form in zip(columns, own, strict=True)]
