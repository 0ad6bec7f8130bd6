"""The session: takes statements, finds their handlers, and repeats what another client outran.

parse → analyse → rewrite → choose → split → check → seal literals → server → open → finish.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.executor import (
    attached_files,
    dispatch,
    federation,
    local_frames,
    policy_spelling,
    repeated,
    seen_state,
    select,
    session_context,
    show,
    transaction,
)
from louver.trusted.executor.answer import Answer, Described
from louver.trusted.executor.containment import contained, recovered
from louver.trusted.executor.context import Context, Opener, no_opener
from louver.trusted.executor.error_position import in_own_words
from louver.trusted.executor.front import Resolve
from louver.trusted.executor.parameters import Parameters, bound, split
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.schema import blocks
from louver.trusted.executor.server_storage import ServerStorage
from louver.trusted.executor.storage import Parts, Storage
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.dialect import speaking
from louver.trusted.vault.keyring import KeyRing
from louver.untrusted.engines.engine import Engine

Done = TypeVar("Done")
_ATTEMPTS = 8
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 4, 256
_UNBOUND = {f"duckdb.{kind}" for kind in ("binder", "catalog", "parser", "syntax", "permission")}


class Session:
    """One client of one database: runs statements in its context."""

    transactional = True

    def __init__(
        self,
        engine: Engine,
        keyring: KeyRing,
        policy: Policy,
        *,
        modulus_bits: int = 2048,
        storage: Callable[[Parts], Storage] = ServerStorage,
        opener: Opener = no_opener,
        writable: bool = True,
        language: str = "",
    ) -> None:
        """``opener`` opens the connections that ATTACH names. One that is not ``writable`` changes
        neither the database nor its ledger, so it opens no layer. A database that is created has
        the ``language``, or its backend's.
        """
        self.closed = False
        database = session_context.database_of(engine, keyring, language, writable=writable)
        catalog = database.state.catalog
        local = session_context.local_engine(catalog.language, engine)
        self.dialect = local.dialect
        try:
            with speaking(local.dialect):
                self.context = session_context.of(
                    database, keyring, policy, local, modulus_bits, storage, opener, run
                )
                local.rebuild(self.context.catalog)
                policy_spelling.require_all_spelled(policy, self.context.catalog)
        except BaseException:
            local.close()
            raise

    def execute(
        self, sql: str, parameters: Parameters = None, resolve: Resolve | None = None
    ) -> Answer:
        """Run every statement of a text; the last one's answer. ``resolve`` says what the names of
        a statement mean that are not of the database.
        """
        if self.closed:
            raise errors.make("connection.closed")
        self.require_no_copy()
        answer, notices = Answer(), list[str]()
        with contained(self):
            for text in split(sql, parameters):
                values, frames = bound(text, parameters), dict[str, object]()
                if resolve is not None:
                    try:
                        text, values, frames = resolve(text, values)
                    except errors.Error as error:
                        dispatch.unread(self.context, text, error)
                        raise
                try:
                    with self.local_data(frames):
                        answer = self.run(text, values)
                except KeyboardInterrupt:
                    self.context.engine.interrupt()
                    raise
                notices += answer.notices
        answer.notices = notices
        return answer

    def run(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one statement."""
        with in_own_words(text):
            if len(text.parameters) > 1 and self.dialect.reads_off:
                from louver.trusted.executor import typed_parameters

                text = typed_parameters.said_once(self.context, text)
            answer = self.context.run(text, parameters)
        self._fold()
        return answer

    def _fold(self) -> None:
        """Fold rows that were stored one by one, where they are many by now."""
        if self.context.state.unfolded.due and not self.in_transaction:
            from louver.trusted.executor import folding

            folding.step(self.context)

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Answer:
        """Run a SELECT, and nothing around it."""
        return select.query(self.context, sql, parameters)

    def bound(self, text: lexer.Text, parameters: Parameters) -> list[object]:
        """The values of a statement's placeholders, in the order of the text."""
        return bound(text, parameters)

    def described(
        self, text: lexer.Text, parameters: list[object], *, plan: bool = True
    ) -> Described | None:
        """What is known of a query before it runs; None for what is not a query."""
        tokens = lexer.tokens(text.plain)
        with contained(self), in_own_words(text):
            if not show.is_query(tokens) and not show.describes(tokens):
                return None
            dispatch.handler(tokens, self.context)
            return select.described(self.context, text, tokens, parameters, plan=plan)

    def frames_of(self, text: lexer.Text, objects: Mapping[str, object]) -> dict[str, object]:
        """The objects of the caller's that a statement reads as tables, by name."""
        with contained(self):
            return local_frames.named(self.context, text, objects)

    def local_data(self, frames: Mapping[str, object]) -> AbstractContextManager[None]:
        """Let statements read objects of the caller's by these names, for as long as this lasts."""
        return local_frames.standing(self.context, frames) if frames else nullcontext()

    def would_send(self, text: lexer.Text, parameters: list[object]) -> list[str]:
        """What each server would be sent for a query; nothing is sent."""
        with contained(self):
            return show.would_send(self.context, text, parameters)

    def explained(
        self, text: lexer.Text, parameters: list[object], *, leakage: bool = False,
        form: str = "text",
    ) -> str:  # fmt: skip
        """What would happen on a query, and with ``leakage`` what it would newly show."""
        with contained(self):
            return show.explained(self.context, text, parameters, leakage=leakage, form=form)

    def refresh(self) -> None:
        """Take over what another client has committed."""
        seen_state.refresh(self.context)

    @property
    def in_transaction(self) -> bool:
        """Whether the user has said BEGIN."""
        return self.context.in_transaction

    def require_no_copy(self) -> None:
        """Raise within COPY … FROM STDIN, as what ends a transaction would end it half done."""
        if self.context.state.copying:
            raise errors.make("postgres.refused", statement="A statement while a COPY takes data")

    def begin(self) -> None:
        """BEGIN."""
        self.require_no_copy()
        dispatch.begin(self.context)

    def commit(self) -> None:
        """COMMIT."""
        self.require_no_copy()
        transaction.commit(self.context)
        self._fold()

    def rollback(self) -> None:
        """ROLLBACK."""
        self.require_no_copy()
        transaction.rollback(self.context)

    def python_rows(self, rows: pa.Table) -> list[tuple[Any, ...]]:
        """Rows as Python values."""
        return self.context.local.python_rows(rows)

    def recover(self) -> None:
        """Make the local engines fit for the next statement after one that failed."""
        for context in (self.context, *self.context.attached.values()):
            recovered(context.local, context.catalog)
            with suppress(errors.Error):
                transaction.keep_drawn(context)

    def close(self) -> None:
        """End the session; an open transaction is undone."""
        if self.closed:
            return
        self.closed, self.context.state.copying = True, False
        with speaking(self.dialect):
            if self.in_transaction:
                with suppress(errors.Error):
                    self.rollback()
            with suppress(errors.Error):
                blocks.release(self.context)
            self.context.close()


def run(context: Context, text: lexer.Text, parameters: list[object]) -> Answer:
    """Run one statement, which was read in the language of the context's local engine."""
    if text.dialect is not context.local.dialect:
        raise errors.make("internal", detail=f"a text of {text.dialect.name} for another language")
    try:
        return _run(context, text, parameters)
    except errors.Error as error:
        dispatch.failed(context, error)
        raise


def _run(context: Context, text: lexer.Text, parameters: list[object]) -> Answer:
    known = repeated.find(context, text) if text.parameters else None
    if known is not None and dispatch.is_permitted(context, text):
        try:
            answer = dispatch.deferring(
                context,
                lambda: dispatch.seeing(context, lambda: repeated.run(context, known, parameters)),
            )
        except errors.Error as error:
            _failed(context, error)
            raise
        if answer is not None:
            context.state.untried = False
            return answer
    text, results = dispatch.reworded(context, text, lexer.tokens(text.plain))
    state = context.state
    handler = dispatch.handler(results, context)
    if state.aborted and handler is not dispatch.control:
        raise errors.make("transaction.aborted")
    if state.in_transaction:
        context.fix_time(results, parameters)
    elif handler is not dispatch.control:  # which looks by itself where it begins something
        seen_state.refresh(context, results)
    if context.local.files.known:
        attached_files.require_readable(context, results)
    if context.local.files.frames.known:
        local_frames.require_readable(context, text, results)
    dispatch.admit(context, text, results)
    try:
        word = keyword(results[0].text) if results else ""
        answer = dispatch.deferring(
            context,
            lambda: dispatch.seeing(
                context,
                lambda: _repeated(context, handler, text, results, parameters),
                handler,
                word,
            ),
        )
        dispatch.ran(context, results, answer)
        counted = answer.rows is None and word in dispatch.CHANGES
        if counted and context.local.is_pivot_by_rows(text.home, results):
            answer.affected = -1  # of several statements DuckDB reports no count
        return answer
    except errors.Error as error:
        _failed(context, error)
        federation.require_found(context, error)
        raise


def _failed(context: Context, error: errors.Error) -> None:
    """As in DuckDB: a statement that fails while it runs ends the transaction, one that does not
    bind leaves it usable.
    """
    failed = error.code.startswith("duckdb.") and error.code not in _UNBOUND
    if failed or isinstance(error, errors.IntegrityError | errors.DataError):
        context.state.aborted = context.state.in_transaction


def _repeated(
    context: Context,
    handler: dispatch.Handler,
    text: lexer.Text,
    tokens: Sequence[Token],
    parameters: list[object],
) -> Answer:
    """Run a handler; again where another client wrote, or opened a layer, while it read; at last on
    the layers that are open.
    """

    def whole() -> Answer:
        dispatch.permit(context, text, tokens)
        return handler(context, text, tokens, parameters)

    if dispatch.is_repeatable(context, tokens):
        return outlasting(context, whole)
    left = _ATTEMPTS
    while True:
        left, version = left - 1, context.catalog.version
        context.state.declined = False
        try:
            return whole() if left else _without_openings(context, whole)
        except errors.VerificationError:
            if not seen_state.is_outrun(context, version):
                raise
            if handler is dispatch.select:
                from louver.trusted.executor import one_state

                return one_state.in_snapshot(context, whole)
            if not left:
                raise
        except errors.OperationalError as error:
            if error.code != "catalog.conflict" or not left:
                raise
            if context.state.declined:
                left = 1
                continue
            if context.in_transaction or handler is not dispatch.select:
                raise
        seen_state.refresh(context)


def outlasting(context: Context, run: Callable[[], Done]) -> Done:
    """Run a change until no other client is faster; the waits between grow, and differ."""
    end = time.monotonic() + context.patience_s
    longest_ms = _FIRST_WAIT_MS
    while True:
        context.state.declined, version = False, context.catalog.version
        try:
            return run()
        except errors.VerificationError:
            if time.monotonic() > end or not seen_state.is_outrun(context, version):
                raise
        except errors.OperationalError as error:
            if time.monotonic() > end or error.code != "catalog.conflict":
                raise
            if context.state.declined:
                return _without_openings(context, lambda: outlasting(context, run))
        time.sleep(secrets.randbelow(longest_ms) / 1000)
        longest_ms = min(2 * longest_ms, _LONGEST_WAIT_MS)
        seen_state.refresh(context)


def _without_openings(context: Context, run: Callable[[], Done]) -> Done:
    """Run a query on the layers that are open: another client keeps the rest from opening."""
    state = context.state
    state.planning = replace(state.planning, opens_layers=False)
    try:
        return run()
    finally:
        state.planning = replace(state.planning, opens_layers=state.writable)
