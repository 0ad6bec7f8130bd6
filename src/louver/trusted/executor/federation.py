"""Queries over tables of several connections: each table is read where it lies, under its own
ceilings and into its own ledger, and the query is finished at home.

An attached connection's tables stand under a schema of its name. They can be read only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local.local_engine import Home, quoted
from louver.trusted.executor.storage import Answers, Narrow, Request
from louver.trusted.planner.plan import Remote
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import Catalog, HomeObject, Table

if TYPE_CHECKING:
    from louver.trusted.executor.session import Session


class Joint:
    """A session and those attached to it, as far as a SELECT needs one session."""

    in_transaction = True
    """So that nothing is changed on a server for the sake of a query."""

    def __init__(self, sessions: dict[str, Session]) -> None:
        """``sessions`` by schema; that of the session itself is "main"."""
        self.sessions = sessions
        self.catalog, self.names = _merged(sessions)
        self.home = Home()
        self.local = sessions["main"].local
        self.home.variables = sessions["main"].home.variables
        self.home.path = sessions["main"].home.path
        self.home.files = sessions["main"].home.files
        try:
            self.home.rebuild(self.catalog)
            own = sessions["main"].home
            if own.temporary.names:
                rows = own.temporary.state(own.hall)
                self.home.temporary.restore(self.home.schema, self.home.hall, rows)
        except BaseException:
            self.home.close()
            raise
        main = sessions["main"]
        self.attached: dict[str, Session] = {}
        self.engine, self.columns, self.keyring = main.engine, main.columns, main.keyring
        self.backend = main.backend
        self.planner = Planner(
            self.home, main.columns.modulus_bits, lambda table: self.owner(table)[0].backend
        )
        self.planner.finish_at_home = main.planner.finish_at_home
        self.planner.opens_layers = False
        self.planner.apart = True
        self.planner.link = main.planner.link
        self.ledger = _Ledgers(self)
        self.storage = _Storages(self)

    def owner(self, table: Table) -> tuple[Session, Table]:
        """The session that a table is of, and the table as that session knows it."""
        session = self.sessions[self.names[table.id]]
        return session, next(t for t in session.catalog.tables.values() if t.id == table.id)

    def close(self) -> None:
        """Let go of the home that stood for all."""
        self.home.close()


def mentions(session: Session, found: Sequence[Token]) -> bool:
    """Whether a statement names an attached connection in front of a dot."""
    if not session.attached:
        return False
    names = {fold(name) for name in session.attached}
    return any(
        fold(token.text) in names and after.text == "." and token.token_type != TokenType.STRING
        for token, after in pairwise(found)
    )


def require_found(session: Session, error: errors.Error) -> None:
    """Raise Louver's own error where DuckDB misses the schema of an attached connection: only what
    `over` runs finds that schema.
    """
    if error.code == "duckdb.catalog":
        detail = fold(str(error))
        for name in session.attached:
            if f'schema "{name}" does not exist' in detail:
                raise errors.make("attach.reads", name=name) from error


@contextmanager
def over(session: Session, found: Sequence[Token]) -> Iterator[Session]:
    """What plans and runs a statement: the session itself, or all that the statement names."""
    if not mentions(session, found):
        yield session
        return
    if session.in_transaction:
        statement = "A query over attached tables within a transaction"
        raise errors.make("sql.unsupported", statement=statement)
    if sequence_draws.draws(session.catalog, found):
        statement = "Drawing numbers from a sequence in a query over attached tables"
        raise errors.make("sql.unsupported", statement=statement)
    for other in session.attached.values():
        other.refresh()
    joint = Joint({"main": session, **session.attached})
    try:
        # As far as a query goes, it is a session.
        yield cast("Session", joint)
    finally:
        joint.close()


def catalog_of(session: Session, found: Sequence[Token]) -> Catalog:
    """The catalog by which a statement's names are resolved."""
    if not mentions(session, found):
        return session.catalog
    return _merged({"main": session, **session.attached})[0]


def record(session: Session, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
    """Write facts into the ledgers of the sessions whose tables they are of."""
    return _record({"main": session, **session.attached}, facts, statement_shape)


def _merged(sessions: dict[str, Session]) -> tuple[Catalog, dict[int, str]]:
    """All tables in one catalog, and whose they are, by id."""
    catalog, owners = Catalog("joint"), dict[int, str]()
    catalog.path = sessions["main"].catalog.path
    for name, session in sessions.items():
        if name == "main":
            catalog.objects += [replace(item) for item in session.catalog.objects]
        else:
            catalog.objects.append(
                HomeObject("SCHEMA", name, name, f"CREATE SCHEMA {quoted(name)}")
            )
        for table in session.catalog.tables.values():
            if name != "main" and fold(table.schema) != "main":
                continue
            schema = table.schema if name == "main" else name
            made = replace(table, schema=schema)
            owners[made.id] = name
            catalog.add(made)
            if name != "main":
                body = ", ".join(f"{quoted(c.name)} {c.type}" for c in table.columns)
                sql = f"CREATE TABLE {made.local_name} ({body})"
                catalog.objects.append(HomeObject("TABLE", schema, table.name, sql))
    from louver.trusted.executor.define import objects

    objects.sort(catalog)
    return catalog, owners


class _Ledgers:
    """What is shown to a server is written into that server's ledger."""

    def __init__(self, joint: Joint) -> None:
        self._joint = joint

    def facts(self, kinds: Collection[str] = ()) -> list[Fact]:
        """What any of the servers knows, under the names that the query uses."""
        found: list[Fact] = []
        for name, session in self._joint.sessions.items():
            found += [replace(f, table=_label(name, f.table)) for f in session.ledger.facts(kinds)]
        return found

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        found: list[Fact] = []
        for fact in dict.fromkeys(facts):
            owner, told = _owned(self._joint.sessions, fact)
            if self._joint.sessions[owner].ledger.new([told]):
                found.append(fact)
        return found

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        return _record(self._joint.sessions, facts, statement_shape)

    def conditions(self, fact: Fact) -> int:
        owner, told = _owned(self._joint.sessions, fact)
        return self._joint.sessions[owner].ledger.conditions(told)


def _record(
    sessions: Mapping[str, Session], facts: Iterable[Fact], statement_shape: str
) -> list[Fact]:
    fresh: list[Fact] = []
    by_owner: dict[str, list[Fact]] = {}
    for fact in facts:
        owner, own = _owned(sessions, fact)
        by_owner.setdefault(owner, []).append(own)
    for name, told in by_owner.items():
        fresh += sessions[name].ledger.record(told, statement_shape)
    return fresh


def _owned(sessions: Mapping[str, Session], fact: Fact) -> tuple[str, Fact]:
    """Whose fact it is, and the fact under the name that its owner knows."""
    schema, dot, rest = fact.table.partition(".")
    owner = schema if dot and schema in sessions else "main"
    return owner, replace(fact, table=rest) if owner != "main" else fact


def _label(name: str, label: str) -> str:
    return label if name == "main" else f"{name}.{label}"


class _Storages:
    """Every question goes to where its table lies."""

    def __init__(self, joint: Joint) -> None:
        self._joint = joint

    def _of(self, remote: Remote) -> tuple[Session, Remote]:
        """The owner of a remote's table, and the remote as the owner would have made it."""
        if len(remote.sources) != 1:
            raise errors.make("internal", detail="one query to two servers")
        (source,) = remote.sources
        session, table = self._joint.owner(source.table)
        inner = [replace(one, table=self._joint.owner(one.table)[1]) for one in remote.inner]
        return session, replace(
            remote, sources=[replace(source, table=table)], inner=inner, templates={}
        )

    def request(self, remote: Remote, literals: Sequence[str]) -> Request:
        session, own = self._of(remote)
        return session.storage.request(own, literals)

    def answer(
        self, remote: Remote, request: Request, literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        session, own = self._of(remote)
        return session.storage.answer(own, request, literals, clock)

    def stamp(self, table: Table) -> str:
        session, own = self._joint.owner(table)
        return session.storage.stamp(own)

    def shows(self, request: Request) -> list[Fact]:
        """Each fact under the name that the query uses."""
        for name, session in self._joint.sessions.items():
            told = session.storage.shows(request)
            if told:
                return [replace(fact, table=_label(name, fact.table)) for fact in told]
        return []

    def narrowing(self, literals: Sequence[str]) -> Narrow:
        narrowing = {
            name: session.storage.narrowing(literals)
            for name, session in self._joint.sessions.items()
        }

        def narrow(remote: Remote, request: Request, answers: Answers) -> Request:
            name = self._joint.names[remote.sources[0].table.id]
            return narrowing[name](self._of(remote)[1], request, answers)

        return narrow
