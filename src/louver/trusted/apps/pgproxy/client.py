"""One client of the front door: its statements run in a session of its own.

The compiled module calls these methods, of which one runs at a time but for `cancel`. What they
raise is `Failed`, whose fields the client receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot.tokens import Token

from louver import errors
from louver.names import fold, keyword
from louver.trusted.apps.pgproxy import audited, given_values, reading, tags
from louver.trusted.apps.pgproxy.described import Describing, Prepared, in_formats
from louver.trusted.apps.pgproxy.failures import Fields, failed, fields_of, reporting
from louver.trusted.executor import dispatch, seen_state
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.containment import contained
from louver.trusted.executor.local.postgres.role_rights import Rights
from louver.trusted.executor.local.postgres.wire import Described, Sent, Wire
from louver.trusted.executor.postgres import copying, notify, rights
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql import lexer

Rows = tuple[str, list[Described], list[Sent], int]
Begun = tuple[str, int] | tuple[str, int, int, int]
Result = None | str | Begun | Rows
"""Nothing, a tag, the begin of a COPY (its form and columns, and quote and escape where it
gives data), or rows: a tag, columns, arrays and how many there are.
"""


@dataclass(slots=True)
class _Copying:
    """A COPY that runs: one of both."""

    into: copying.CopyIn | None = None
    out: Iterator[bytes] = field(default_factory=lambda: iter(()))
    count: int = 0


class Client:
    """Runs the statements of one client."""

    def __init__(self, session: Session, user: str, *, hides_details: bool = False) -> None:
        """Over a session that no other client has. With ``hides_details`` the values of rows that
        break a constraint are not shown.
        """
        self.hides_details = hides_details
        self._session, self._context = session, session.context
        self._wire, self._user = Wire(self._context.local), user
        self.text = ""
        self._describing = Describing(session, self._wire)
        self._notices: list[Fields] = []
        self._copy: _Copying | None = None
        self._is_set, self._is_implicit = True, False
        self._generation, self._basis = 0, reading.basis(self._context)

    # ------------------------------------------------------------------ statements

    @reporting
    def split(self, sql: str) -> list[str]:
        """The statements of a text."""
        with contained(self._session):
            self.text = sql
            texts = lexer.split(sql)
            if len(texts) > 1:
                # As in PostgreSQL, which reads all of a text before it runs any of it.
                for text in texts:
                    self._describing.require_syntax(text)
            return [text.home for text in texts]

    @reporting
    def prepare(self, sql: str, types: Sequence[int]) -> Prepared:
        """What a text of one statement takes and gives."""
        self.text = sql
        with contained(self._session):
            if not self._context.in_transaction:
                # A client is to learn of the columns that there are now.
                seen_state.refresh(self._context)
            generation = self._renewed()
            return replace(self._describing.prepared(sql, types), generation=generation)

    @reporting
    def describe(self, prepared: Prepared) -> list[Described] | None:
        """The columns that a statement of which they vary would give now."""
        self.text = prepared.sql
        with contained(self._session):
            return self._describing.columns_now(prepared)

    @reporting
    def cursor(self, name: str) -> list[Described] | None:
        """The columns of a cursor; None where there is none."""
        with contained(self._session):
            return self._describing.of_cursor(name)

    @reporting
    def run(
        self, prepared: Prepared, values: Sequence[bytes | None], forms: Sequence[int],
        formats: Sequence[int],
    ) -> Result:  # fmt: skip
        """Run a statement with values of these forms; its rows in these formats."""
        self.text = prepared.sql
        if prepared.kind == "empty":
            return None
        if prepared.kind == "copies":
            return self._begin_copy(prepared)
        if prepared.kind in ("begins", "controls") and self._is_implicit:
            return self._within_implicit(prepared)
        if len(values) != len(prepared.parameters):
            raise failed("42P02", "there is no parameter $1")
        with contained(self._session):
            given = [
                given_values.value(value, form, type_, self._wire.printed)
                for value, form, type_ in zip(values, forms, prepared.parameters, strict=True)
            ]
            prepared = self._before(prepared, formats)
        aborted = self._context.state.aborted
        try:
            answer = self._session.execute(prepared.sql, given or None)
        finally:
            self._noted(prepared.tokens)
        self._notices += [{"sqlstate": "01000", "message": text} for text in answer.notices]
        return self._result(prepared, answer, formats, aborted=aborted)

    def _within_implicit(self, prepared: Prepared) -> Result:
        """What begins or ends a transaction, within one that the client did not ask for."""
        words = [keyword(token.text) for token in prepared.tokens]
        if prepared.kind == "begins":
            # It goes on as one that was asked for, as in PostgreSQL.
            modes = tags.modes(prepared.sql, prepared.tokens)
            if modes:
                self._session.execute(f"SET TRANSACTION {modes}")
            self._is_implicit = False
            return tags.tag(prepared.tokens, -1, has_rows=False)
        if words[0] in ("SAVEPOINT", "RELEASE") or "TO" in words[1:4]:
            name = "ROLLBACK TO SAVEPOINT" if words[0] == "ROLLBACK" else words[0]
            name = "RELEASE SAVEPOINT" if words[0] == "RELEASE" else name
            raise failed("25P01", f"{name} can only be used in transaction blocks")
        self._is_implicit = False
        try:
            self._session.execute(prepared.sql, None)
        finally:
            self._noted(prepared.tokens)
        return tags.tag(prepared.tokens, -1, has_rows=False)

    def _before(self, prepared: Prepared, formats: Sequence[int]) -> Prepared:
        """A statement as it is now: its columns must be those that the client knows, which has to
        be certain before it changes anything.
        """
        if prepared.columns is not None:
            in_formats(prepared.columns, formats)
            if not self._context.in_transaction and tags.changes(prepared.tokens):
                seen_state.refresh(self._context)
        return self._current(prepared)

    def _current(self, prepared: Prepared) -> Prepared:
        generation = self._renewed()
        if prepared.columns is None or prepared.generation == generation:
            return prepared
        fresh = self._describing.prepared(prepared.text, prepared.types)
        if [c[3] for c in fresh.columns or ()] != [c[3] for c in prepared.columns]:
            raise failed("0A000", "cached plan must not change result type")
        return replace(fresh, generation=generation)

    def _renewed(self) -> int:
        """The generation: what a statement means is the same as long as that is."""
        basis = reading.basis(self._context)
        if basis != self._basis:
            self._generation, self._basis = self._generation + 1, basis
            self._describing.forget()
        return self._generation

    def _noted(self, tokens: Sequence[Token]) -> None:
        if tags.may_set(tokens):
            self._settings_changed()
        if tags.may_define(tokens):
            # What was defined in a transaction that is undone may be numbered as before.
            self._generation += 1
            self._describing.forget()

    def _settings_changed(self) -> None:
        self._is_set = True
        self._wire.settings_changed()

    def _result(
        self, prepared: Prepared, answer: Answer, formats: Sequence[int], *, aborted: bool
    ) -> Result:
        has_rows = answer.count >= 0 and keyword(prepared.tokens[0].text) != "MOVE"
        tokens = self._describing.tokens_run(prepared)
        tag = tags.tag(tokens, answer.affected, has_rows=has_rows)
        if aborted and tag == "COMMIT":
            tag = "ROLLBACK"
        if not has_rows:
            return tag
        with contained(self._session):
            rows = answer.rows
            if rows is None:
                raise errors.make("internal", detail="an answer without rows")
            # Another client may have changed what was read.
            known = self._current(prepared).columns
            if known is None or len(known) != rows.num_columns:
                known = self._describing.of_answer(rows, answer.columns)
            columns = in_formats(known, formats)
            arrays = self._wire.arrays(rows, columns)
            # Rows without columns are counted only.
            count = rows.num_rows if columns else max(answer.affected, rows.num_rows)
            return tag, columns, arrays, count

    # ------------------------------------------------------------------ COPY

    def _begin_copy(self, prepared: Prepared) -> Begun:
        with contained(self._session):
            self._session.require_no_copy()
            try:
                statement, into = copying.begin(self._context, prepared.sql)
                form = copying.form_of(statement.options)
                columns = copying.width(self._context, statement)
                self._copy = _Copying(into)
                if into is None:
                    self._copy.out, self._copy.count = copying.out(self._context, statement)
            except errors.Error as error:
                self._copy = None
                dispatch.failed(self._context, error)
                raise
        name = form.name or "lines"
        return (name, columns, form.quote, form.escape) if into is None else (name, columns)

    @reporting
    def copy_in(self, data: bytes) -> None:
        """Take data in."""
        into = self._copy.into if self._copy is not None else None
        if into is None:
            raise failed("08P01", "no COPY takes data")
        with contained(self._session):
            try:
                into.write(data)
            except errors.Error as error:
                self._copy_failed(error)
                raise

    @reporting
    def copy_end(self, reason: str | None) -> str:
        """End it; with a reason nothing is copied, and that is an error."""
        copy, self._copy = self._copy, None
        if copy is None:
            raise failed("08P01", "no COPY runs")
        if copy.into is None:
            return f"COPY {copy.count}"
        with contained(self._session):
            if reason is not None:
                copy.into.abort()
                raise failed("57014", f"COPY from stdin failed: {reason}")
            try:
                return f"COPY {copy.into.finish()}"
            except errors.Error as error:
                self._copy = copy
                self._copy_failed(error)
                raise

    def _copy_failed(self, error: errors.Error) -> None:
        copy, self._copy = self._copy, None
        if copy is not None and copy.into is not None:
            with suppress(errors.Error):
                copy.into.abort()
        dispatch.failed(self._context, error)

    @reporting
    def copy_out(self) -> bytes | None:
        """The next piece of data; None behind the last."""
        if self._copy is None:
            raise failed("08P01", "no COPY gives data")
        return next(self._copy.out, None)

    # ------------------------------------------------------------------ the session

    @reporting
    def restrict(self, given: Rights) -> None:
        """Let the client do what these rights say, and no more."""
        with contained(self._session):
            rights.restrict(self._context, given)

    @reporting
    def begin(self) -> None:
        """Begin a transaction that the client did not ask for."""
        with contained(self._session):
            self._session.begin()
            self._is_implicit = True

    @reporting
    def end(self, commit: bool) -> None:
        """End it."""
        self._is_implicit = False
        with contained(self._session):
            if not self._session.in_transaction:
                return
            if commit and not self._context.state.aborted:
                self._session.commit()
            else:
                self._session.rollback()
            self._settings_changed()

    def fail(self) -> None:
        """A message was wrong: as any error does, that ends a transaction."""
        self._context.state.aborted = self._session.in_transaction

    @reporting
    def read(self, prepared: Prepared) -> Any | None:
        """What reads a statement's rows without Python from now on, while the generation stays."""
        with contained(self._session):
            return reading.of(self._context, self._wire, prepared)

    def after(self) -> tuple[str, bool, list[tuple[str, str]] | None, list[Fields], int]:
        """What changed: the state of the transaction, whether it listens, settings if they may
        have changed, notices, and the generation of what queries are read by.
        """
        self._renewed()
        self._generation += self._is_set
        notices, self._notices = self._notices, []
        settings, self._is_set = self._settings() if self._is_set else None, False
        status = "I"
        if self._session.in_transaction:
            status = "E" if self._context.state.aborted else "T"
        listens = bool(self._context.state.cache(notify.Channels).names)
        return status, listens, settings, notices, self._generation

    def disclosed(self) -> tuple[list[str], list[audited.Leak]]:
        """Encrypted columns that were opened, and what was newly leaked, since the last call."""
        with contained(self._session):
            return audited.disclosed(self._context)

    def _settings(self) -> list[tuple[str, str]]:
        """Those that clients receive, as the local PostgreSQL has them."""
        known = self._wire.settings()
        known |= {"is_superuser": "off", "session_authorization": self._user}
        return sorted(known.items())

    @reporting
    def notifications(self) -> list[tuple[int, str, str]]:
        """Messages of other clients."""
        with contained(self._session):
            return [(0, item.channel, item.payload) for item in notify.arrived(self._context)]

    def cancel(self) -> None:
        """Stop what runs; from another thread."""
        with suppress(Exception):
            self._context.engine.interrupt()
        with suppress(Exception):
            self._context.local.interrupt()

    def close(self) -> None:
        """The client has gone: what it left open is undone."""
        with suppress(Exception):
            if self._copy is not None and self._copy.into is not None:
                with contained(self._session):
                    self._copy.into.abort()
        with suppress(Exception):
            self._session.close()


def set_startup(client: Client, parameters: Sequence[tuple[str, str]]) -> None:
    """Settings that a client brings along; those that PostgreSQL's clients know nothing of are
    ignored, like replication.
    """
    for name, value in parameters:
        name = fold(name)
        if name in ("user", "database", "replication") or name.startswith("_pq_."):
            continue
        if name == "client_encoding":
            if fold(value.strip("'\"")).replace("-", "") not in ("utf8", "unicode", "auto"):
                raise failed("0A000", f"client_encoding {value}: only UTF8 is spoken")
            continue
        session = client._session
        try:
            session.execute("SELECT set_config($1, $2, false)", [name, value])
        except errors.Error as error:
            raise failed(str(fields_of(error, "")["sqlstate"]), error.message) from None
