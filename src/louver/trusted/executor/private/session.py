"""A session over providers: questions are private, the providers' data is public.

plan → prepare the shape → record leakage → shares → round by round → open → finish locally.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress

import pyarrow as pa

from louver import errors
from louver.names import keyword, quoted
from louver.trusted.executor import settings, show
from louver.trusted.executor.answer import Answer, Clock, Described
from louver.trusted.executor.containment import recovered
from louver.trusted.executor.front import Resolve
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.local.standing import standing
from louver.trusted.executor.parameters import Parameters, bound, split
from louver.trusted.executor.private import asking, explaining
from louver.trusted.executor.private.context import (
    Agreed,
    Measures,
    ProviderContext,
    ProviderEngine,
)
from louver.trusted.executor.private.fleet import Fleet
from louver.trusted.executor.private.query_log import QueryLog
from louver.trusted.executor.schema_queries import asks_schema
from louver.trusted.planner.planner import home_values
from louver.trusted.planner.private import describe, functions
from louver.trusted.planner.private.question import Question
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Catalog, Column, HomeObject, Table
from louver.wire.questions import LEFT_OUT

_QUERIES = ("SELECT", "FROM", "WITH", "VALUES", "TABLE", "(")
_LOOKS = {"DESCRIBE": show.schema, "DESC": show.schema, "PRAGMA": show.schema, "SHOW": show.show}
#: The most texts for which it is remembered whether they are answered locally.
_MOST_TEXTS = 1_024
_REFUSED = "providers serve read-only public data: only SELECT is possible"


class ProviderSession:
    """One client of several providers."""

    in_transaction = False
    """Providers are read-only, so there is nothing to roll back."""

    transactional = False

    def __init__(self, fleet: Fleet, address: str, scheme: str = "owf") -> None:
        """``scheme`` answers sums of three or more providers: owf or paillier."""
        self.closed = False
        local = DuckDBLocalEngine()
        self.dialect = local.dialect
        self.context = ProviderContext(
            fleet,
            scheme,
            ProviderEngine(fleet, address),
            QueryLog(),
            Measures(fleet),
            local,
            Agreed(Catalog("providers")),
        )
        self._local: dict[str, bool] = {}
        try:
            # Providers read timestamps in UTC, and local results must agree with them.
            local.change_setting("timezone", "SET TimeZone = 'UTC'")
            self._adopt()
        except BaseException:
            local.close()
            raise

    # ------------------------------------------------------------------ statements

    def execute(
        self, sql: str, parameters: Parameters = None, resolve: Resolve | None = None
    ) -> Answer:
        """Run every statement of a text; returns the last one's answer."""
        if self.closed:
            raise errors.make("connection.closed")
        answer = Answer()
        for text in split(sql, parameters):
            values, frames = self.bound(text, parameters), dict[str, object]()
            if resolve is not None:
                text, values, frames = resolve(text, values)
            with self.local_data(frames):
                answer = self.run(text, values)
        return answer

    def frames_of(
        self,
        text: lexer.Text,  # noqa: ARG002
        objects: Mapping[str, object],  # noqa: ARG002
    ) -> dict[str, object]:
        """None: the tables of a question are the providers'."""
        return {}

    def local_data(self, frames: Mapping[str, object]) -> AbstractContextManager[None]:
        """Let queries that read no table of the providers read objects of the caller's."""
        home = self.context.local
        return standing(home, frames, home.forget_types) if frames else nullcontext()

    def bound(self, text: lexer.Text, parameters: Parameters) -> list[object]:
        """The values of the placeholders; EXPLAIN of a question needs none."""
        if parameters is None and keyword(text.plain.lstrip()[:7]) == "EXPLAIN":
            return [None] * len(text.parameters)
        return bound(text, parameters)

    def run(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one statement."""
        tokens = lexer.tokens(text.plain)
        word = keyword(tokens[0].text) if tokens else ""
        if word in _QUERIES:
            return self.select(text, parameters)
        if word == "EXPLAIN":
            wanted = show.explaining_of(text)
            lines = self.explained(
                wanted.text, parameters, leakage=wanted.leakage, form=wanted.form
            )
            return show.told_by(
                wanted, lines, self.context.storage, lambda: self.run(wanted.text, parameters)
            )
        if word in _LOOKS:
            return _LOOKS[word](self.context, text, tokens, parameters)
        if word in ("SET", "RESET"):
            self._require_at_home(text)
            return settings.change(self.context, text)
        raise errors.make(
            "provider.language", detail=word or "an empty statement", instead=_REFUSED
        )

    def _require_at_home(self, text: lexer.Text) -> None:
        """Refuse a setting that would change the meaning of an expression on this side only."""
        name, _ = settings.read(text)
        if name in settings.BOTH_SIDES:
            raise errors.make(
                "provider.language",
                detail=f"SET {name}, which providers cannot be told",
                instead="Say it in the question itself, as by AT TIME ZONE or NULLS FIRST",
            )

    def select(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run one question; repeated once if a provider was reloaded or restarted meanwhile."""
        if self._is_local(text):
            return self._at_home(text, parameters)
        clock = Clock()
        try:
            return self._run_question(text, parameters, clock)
        except errors.OperationalError as error:
            if error.code not in ("provider.version", "provider.shape", "provider.differ"):
                raise
        self.refresh_data()
        return self._run_question(text, parameters, clock)

    def described(
        self, text: lexer.Text, parameters: list[object], *, plan: bool = True
    ) -> Described | None:
        """What is known of a question before it is asked; nothing is sent."""
        tokens = lexer.tokens(text.plain)
        word = keyword(tokens[0].text) if tokens else ""
        if word not in _QUERIES:
            return None
        if self._is_local(text) or not plan:
            return Described(self.context.local.describe(text.home, home_values(text, parameters)))
        clock = Clock()
        with clock.step("plan"):
            question = self.question(text, parameters)
        columns = list(zip(question.names, question.types, strict=True))
        return Described(columns, dict(clock.times_ms))

    def would_send(self, text: lexer.Text, parameters: list[object]) -> list[str]:
        """The public part of a question, as each provider sees it."""
        question = self.question(text, parameters)
        parties = self.context.fleet.parties
        return describe.statements(question.shape, parties, len(question.clauses))

    def explained(
        self, text: lexer.Text, parameters: list[object], *, leakage: bool = False,
        form: str = "text",
    ) -> str:  # fmt: skip
        """What is private, what is public, the protocol and the cost."""
        question = self.question(text, parameters)
        return explaining.explained(self.context, question, leakage=leakage, form=form)

    def question(self, text: lexer.Text, parameters: list[object]) -> Question:
        """The plan of a question."""
        from louver.trusted.planner.private.planner import plan

        return plan(
            text,
            parameters,
            self.context.fleet.dataset,
            self.context.fleet.parties,
            self.context.scheme,
        )

    def _run_question(self, text: lexer.Text, parameters: list[object], clock: Clock) -> Answer:
        with clock.step("plan"):
            question = self.question(text, parameters)
        return asking.ask(self.context, question, clock)

    def _is_local(self, text: lexer.Text) -> bool:
        """Whether a query reads no table of the providers; cached, since questions repeat."""
        is_local = self._local.get(text.home)
        if is_local is None:
            if len(self._local) >= _MOST_TEXTS:
                self._local.clear()
            is_local = self._local[text.home] = self._reads_nothing(text)
        return is_local

    def _reads_nothing(self, text: lexer.Text) -> bool:
        """Whether it reads the schema, or nothing."""
        if asks_schema(self.context, text, lexer.tokens(text.plain)):
            return True
        with suppress(errors.Error):
            names = self.context.local.statements.names_read(text.home)
            return not names - self.context.local.files.frames.known.keys()
        return False

    def _at_home(self, text: lexer.Text, parameters: list[object]) -> Answer:
        values = home_values(text, parameters)
        described = self.context.local.describe(text.home, values)
        return Answer(
            self.context.local.ask_schema(text.home, values), described, home_sql=text.home
        )

    # ------------------------------------------------------------------ data

    def refresh_data(self) -> None:
        """Choose a version of the data again."""
        self.context.fleet.refresh()
        self._adopt()

    def _adopt(self) -> None:
        """Create the providers' tables, empty, in the local engine."""
        catalog = Catalog("providers")
        for number, facts in enumerate(self.context.fleet.dataset.tables, 1):
            table = Table("main", facts.name, number, row_count=facts.rows)
            columns = [column for column in facts.columns if column[1] != LEFT_OUT]
            for ordinal, (name, type_) in enumerate(columns, 1):
                table.columns.append(Column(name, type_, ordinal, stored={"plain": name}))
            catalog.add(table)
            body = ", ".join(f"{quoted(name)} {type_}" for name, type_ in columns)
            sql = f"CREATE TABLE {quoted('main')}.{quoted(facts.name)} ({body})"
            catalog.objects.append(HomeObject("TABLE", "main", facts.name, sql))
        self.context.state.catalog = catalog
        self._local.clear()
        self.context.local.rebuild(catalog)
        self.context.local.add_functions(functions.register)
        if self.context.local.unresolved:
            names = ", ".join(item.name for item in self.context.local.unresolved)
            raise errors.make(
                "provider.reply",
                place=self.context.engine.address,
                detail=f"no schema: {names:.200}",
            )

    # ------------------------------------------------------------------ transactions, end

    def begin(self) -> None:
        """Refused: there are no transactions at providers."""
        raise errors.make("provider.language", detail="a transaction", instead=_REFUSED)

    commit = rollback = begin

    def python_rows(self, rows: pa.Table) -> list[tuple[object, ...]]:
        """Rows as Python values."""
        return self.context.local.python_rows(rows)

    def recover(self) -> None:
        """Make the local engine fit for the next statement after one that failed."""
        recovered(self.context.local, self.context.catalog)

    def close(self) -> None:
        """Close all connections."""
        if self.closed:
            return
        self.closed = True
        self.context.local.close()
        self.context.fleet.close()
