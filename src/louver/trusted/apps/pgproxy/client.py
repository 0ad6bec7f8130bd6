"""One client of the front door: its statements run in a session of its own.

The compiled module calls these methods, of which one runs at a time but for `cancel`. What they
raise is `Failed`, whose fields the client receives.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.apps.pgproxy import (
    audited,
    binary_records,
    given_values,
    narrowed,
    notices,
    tags,
    visitors,
)
from louver.trusted.apps.pgproxy.copies import Begun, Copies
from louver.trusted.apps.pgproxy.described import Describing, Prepared, in_formats, row_type
from louver.trusted.apps.pgproxy.directed import Directed
from louver.trusted.apps.pgproxy.failures import Failed, Fields, failed, fields_of, reporting
from louver.trusted.apps.pgproxy.visitors import Visitor
from louver.trusted.executor import direct, seen_state
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.change import direct_changes
from louver.trusted.executor.containment import contained
from louver.trusted.executor.local.postgres.wire import Described, Sent
from louver.trusted.executor.postgres import notify
from louver.trusted.executor.postgres import prepared as named
from louver.trusted.executor.session import Session
from louver.trusted.planner.sql import lexer

Rows = tuple[str, list[Described], list[Sent], int]
Result = None | str | Begun | Rows
"""Nothing, a tag, the begin of a COPY (its form and columns, and quote and escape where it
gives data), or rows: a tag, columns, arrays and how many there are.
"""


class Client(Copies, Directed):
    """Runs the statements of one client, or of one after the other."""

    def __init__(self, session: Session, user: str = "", *, shared: bool = False) -> None:
        """Over a session that no other client has, or that is ``shared`` by transactions."""
        super().__init__(session)
        self._user, self._shared = user, shared
        self._wire.numbers_tables = not shared
        self._describing = Describing(session, self._wire)
        self._notices: list[Fields] = []
        self._is_set, self._is_implicit = True, False
        #: whether the open transaction has set or defined something
        self._has_set = self._has_defined = False
        self._generation, self._basis = 0, direct.basis(self._context)

    # ------------------------------------------------------------------ statements

    @reporting
    def split(self, sql: str) -> list[tuple[str, int]]:
        """The statements of a text, and how many characters precede each of them."""
        with contained(self._session):
            results, end = list[tuple[str, int]](), 0
            for text in lexer.split(sql):
                start = max(sql.find(text.home, end), end)
                results.append((text.home, start))
                end = start + len(text.home)
            if len(results) > 1:
                # As in PostgreSQL, which reads all of a text before it runs any of it.
                for home, start in results:
                    self._require_syntax(home, start)
            return results

    def _require_syntax(self, home: str, start: int) -> None:
        (text,) = lexer.split(home)
        try:
            self._describing.require_syntax(text)
        except errors.Error as error:
            fields = fields_of(error, home)
            if "position" in fields:
                fields["position"] = int(fields["position"]) + start
            raise Failed(fields) from None

    @reporting
    def prepare(
        self, sql: str, types: Sequence[int], name: str = "", within: bool = False
    ) -> Prepared:
        """What a text of one statement takes and gives; SQL knows it by its name as well. It may be
        ``within`` a transaction that this does not know of.
        """
        self.text = sql
        with contained(self._session):
            if name and not self._shared:
                named.require_new(self._context, name)
            if not (within or self._context.in_transaction):
                # A client is to learn of the columns that there are now.
                seen_state.refresh(self._context)
            generation = self._renewed()
            item = replace(self._describing.prepared(sql, types), generation=generation)
            if name and not self._shared:
                numbers = item.parameters
                named.put(
                    self._context, name, sql, lambda: [*map(self._wire.type_name, numbers)]
                )  # fmt: skip
            return item

    @reporting
    def named(self, name: str) -> Prepared | None:
        """A statement that SQL has prepared; None where there is none."""
        if self._shared:
            return None
        with contained(self._session):
            self.text = ""
            return self._describing.of_statement(name)

    @reporting
    def close_named(self, name: str) -> None:
        """A statement of this name is not used any more: SQL has prepared it, or the protocol."""
        with contained(self._session):
            named.drop(self._context, name)

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
        if self._shared:
            visitors.require_shared(prepared.tokens)
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
            types = prepared.parameters
            if not all(narrowed.fits(given[at], types[at], own) for at, own in prepared.narrowed):
                prepared = replace(prepared, sql=prepared.wide)
            given = prepared.in_order(given, self._moments(prepared))
        aborted = self._context.state.aborted
        try:
            text = binary_records.asked_for(prepared, formats) or prepared.sql
            answer = self._session.execute(text, given or None)
        finally:
            self._noted(prepared.tokens)
        self._notices += notices.fields_of(self._context, answer.notices)
        return self._result(prepared, answer, formats, aborted=aborted)

    def run_shape(
        self, prepared: Prepared, sql: str, values: Sequence[bytes | None], formats: Sequence[int]
    ) -> Result:
        """Run a text of a client's whose literals are `values` of the statement of its shape; or as
        it is, where that is not the same any more.
        """
        if not self._context.in_transaction:
            self.refresh()
        if not self.holds(prepared):
            return self.run(self.prepare(sql, ()), (), (), formats)
        try:
            return self.run(prepared, values, [0] * len(values), formats)
        except Failed as failure:
            # It would be one in the shape.
            failure.fields.pop("position", None)
            raise

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
        if words[-2:] == ["AND", "CHAIN"]:
            name = tags.tag(prepared.tokens, -1, has_rows=False)
            raise failed("25P01", f"{name} AND CHAIN can only be used in transaction blocks")
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
        try:
            fresh = self._describing.prepared(prepared.text, prepared.types)
        except errors.Error:
            # What it reads may be there again.
            if self._context.in_transaction:
                raise
            seen_state.refresh(self._context)
            generation = self._renewed()
            fresh = self._describing.prepared(prepared.text, prepared.types)
        if row_type(fresh.columns or ()) != row_type(prepared.columns):
            raise failed("0A000", "cached plan must not change result type")
        return replace(fresh, generation=generation)

    def _noted(self, tokens: Sequence[Token]) -> None:
        sets, defines = tags.may_set(tokens), tags.may_define(tokens)
        if tags.may_undo(tokens):
            sets, defines = self._has_set, self._has_defined
        if sets:
            self._settings_changed()
        if defines:
            # What was defined in a transaction that is undone may be numbered as before.
            self._generation += 1
            self._wire.trees.forget()
            self._describing.forget()
        open_still = self._context.in_transaction
        self._has_set = open_still and (self._has_set or sets)
        self._has_defined = open_still and (self._has_defined or defines)

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

    # ------------------------------------------------------------------ the session

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
            if self._has_set:
                self._settings_changed()
            self._has_set = self._has_defined = False

    def fail(self) -> None:
        """A message was wrong: as any error does, that ends a transaction."""
        self._context.state.aborted = self._session.in_transaction

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

    def disclosed(self) -> tuple[list[str], list[direct.Leak]]:
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

    # ------------------------------------------------------------------ one after the other

    @reporting
    def enter(self, visitor: Visitor) -> int:
        """Serve a client from now on, with its rights and settings, whose stamp it has."""
        self._user, self.hides_details = visitor.user, visitor.rights is not None
        with contained(self._session):
            visitors.enter(self._session, visitor)
        self._settings_changed()
        return visitor.stamp

    @reporting
    def leave(self, visitor: Visitor) -> tuple[int, bool]:
        """See a client off outside of a transaction: the stamp of its settings, and whether it has
        to come back to this session.
        """
        with contained(self._session):
            visitors.leave(self._context, visitor)
        visitor.is_pinned |= self._describing.shows_numbers
        self._describing.shows_numbers = False
        return visitor.stamp, visitor.is_pinned

    def reset(self) -> bool:
        """Clear away what a session has, for another client; whether that is certain."""
        self._user, self._is_implicit, self._is_set = "", False, True
        self.hides_details = False
        self._describing.shows_numbers = False
        try:
            self._undo_copy()
            with contained(self._session):
                visitors.reset(self._session)
                self._wire.reseed()
        except Exception:  # noqa: BLE001 - whatever it is, no other client gets this session
            return False
        self._settings_changed()
        self._notices.clear()
        return not self._session.in_transaction

    def close(self) -> None:
        """The client has gone: what it left open is undone."""
        with suppress(Exception):
            self._undo_copy()
        with suppress(Exception):
            direct_changes.count(self._context)
        with suppress(Exception):
            self._session.close()
