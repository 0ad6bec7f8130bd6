"""Queries over tables of several connections: each table is read where it lies, under its own
ceilings and into its own ledger, and the query is finished locally.

An attached connection's tables stand under a schema of its name. They can be read only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver import errors
from louver.names import fold, quoted
from louver.trusted.executor import seen_state, storage
from louver.trusted.executor.answer import Clock
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Fact
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.schema import objects
from louver.trusted.executor.state import State
from louver.trusted.executor.storage import Answers, Narrow, Request
from louver.trusted.planner.ir import RemoteQuery, RowFilter
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.write import sequence_draws
from louver.trusted.vault.catalog import Catalog, HomeObject, Table


def mentions(context: Context, tokens: Sequence[Token]) -> bool:
    """Whether a statement names an attached connection in front of a dot."""
    if not context.attached:
        return False
    names = {fold(name) for name in context.attached}
    return any(
        fold(token.text) in names and after.text == "." and token.token_type != TokenType.STRING
        for token, after in pairwise(tokens)
    )


def require_found(context: Context, error: errors.Error) -> None:
    """Raise Louver's own error where DuckDB misses the schema of an attached connection: only what
    `over` runs finds that schema.
    """
    if error.code == "duckdb.catalog":
        detail = fold(str(error))
        for name in context.attached:
            if f'schema "{name}" does not exist' in detail:
                raise errors.make("attach.reads", name=name) from error


@contextmanager
def over(context: Context, tokens: Sequence[Token]) -> Iterator[Context]:
    """The context that plans and runs a statement: of the context itself, or of all databases that
    the statement names.
    """
    if not mentions(context, tokens):
        yield context
        return
    if context.in_transaction:
        statement = "A query over attached tables within a transaction"
        raise errors.make("sql.unsupported", statement=statement)
    if sequence_draws.draws(context.catalog, tokens):
        statement = "Drawing numbers from a sequence in a query over attached tables"
        raise errors.make("sql.unsupported", statement=statement)
    for other in context.attached.values():
        seen_state.refresh(other)
    databases = _Databases({"main": context, **context.attached})
    local = context.local.beside(databases.catalog)
    try:
        yield _federated(context, local, databases)
    finally:
        local.close()


def _federated(context: Context, local: LocalEngine, databases: _Databases) -> Context:
    """A context over all databases, for queries alone."""
    catalog = databases.catalog
    planner = Planner(
        local, context.columns.modulus_bits, lambda table: databases.owner(table)[0].backend
    )
    # As within a transaction, nothing is changed on a server for the sake of a query.
    planning = replace(context.planning, opens_layers=False, apart=True)
    state = State(catalog, planning, saved=catalog, origins=context.state.origins)
    return replace(
        context,
        local=local,
        planner=planner,
        state=state,
        ledger=_Ledgers(databases),
        storage=_Storages(databases),
        attached={},
    )


class _Databases:
    """All databases of a query, by the schema that their tables stand under; the context's own
    is "main".
    """

    def __init__(self, contexts: Mapping[str, Context]) -> None:
        self.contexts = contexts
        self.catalog, self.names = _merged(contexts)

    def owner(self, table: Table) -> tuple[Context, Table]:
        """The database that a table is of, and the table as that one knows it."""
        context = self.contexts[self.names[table.id]]
        return context, next(t for t in context.catalog.tables.values() if t.id == table.id)


def catalog_of(context: Context, tokens: Sequence[Token]) -> Catalog:
    """The catalog by which a statement's names are resolved."""
    if not mentions(context, tokens):
        return context.catalog
    return _merged({"main": context, **context.attached})[0]


def record(context: Context, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
    """Write facts into the ledgers of the contexts whose tables they are of."""
    return _record({"main": context, **context.attached}, facts, statement_shape)


def _merged(contexts: Mapping[str, Context]) -> tuple[Catalog, dict[int, str]]:
    """All tables in one catalog, and whose they are, by id."""
    catalog, owners = Catalog("joint"), dict[int, str]()
    catalog.path = contexts["main"].catalog.path
    for name, context in contexts.items():
        if name == "main":
            catalog.objects += [replace(item) for item in context.catalog.objects]
        else:
            catalog.objects.append(
                HomeObject("SCHEMA", name, name, f"CREATE SCHEMA {quoted(name)}")
            )
        for table in context.catalog.tables.values():
            if name != "main" and fold(table.schema) != "main":
                continue
            schema = table.schema if name == "main" else name
            copy = replace(table, schema=schema)
            owners[copy.id] = name
            catalog.add(copy)
            if name != "main":
                body = ", ".join(f"{quoted(c.name)} {c.type}" for c in table.columns)
                sql = f"CREATE TABLE {copy.local_name} ({body})"
                catalog.objects.append(HomeObject("TABLE", schema, table.name, sql))
    objects.sort(catalog)
    return catalog, owners


class _Ledgers:
    """What is shown to a server is written into that server's ledger."""

    def __init__(self, databases: _Databases) -> None:
        self._databases = databases

    def facts(self, kinds: Collection[str] = ()) -> list[Fact]:
        """What any of the servers knows, under the names that the query uses."""
        facts: list[Fact] = []
        for name, context in self._databases.contexts.items():
            facts += [replace(f, table=_label(name, f.table)) for f in context.ledger.facts(kinds)]
        return facts

    def new(self, facts: Iterable[Fact]) -> list[Fact]:
        records: list[Fact] = []
        for fact in dict.fromkeys(facts):
            owner, texts = _owned(self._databases.contexts, fact)
            if self._databases.contexts[owner].ledger.new([texts]):
                records.append(fact)
        return records

    def record(self, facts: Iterable[Fact], statement_shape: str) -> list[Fact]:
        return _record(self._databases.contexts, facts, statement_shape)

    def conditions(self, fact: Fact) -> int:
        owner, facts = _owned(self._databases.contexts, fact)
        return self._databases.contexts[owner].ledger.conditions(facts)

    @property
    def length(self) -> int:
        return self._databases.contexts["main"].ledger.length

    @property
    def head(self) -> str:
        return self._databases.contexts["main"].ledger.head

    def gone(self, fact: Fact) -> bool:
        owner, facts = _owned(self._databases.contexts, fact)
        return self._databases.contexts[owner].ledger.gone(facts)

    def kinds(self, table: int, column: int) -> Collection[str]:
        owner = self._databases.names[table]
        return self._databases.contexts[owner].ledger.kinds(table, column)

    def level(self, table: str, column: str) -> str:
        schema, dot, rest = table.partition(".")
        owned = bool(dot) and schema in self._databases.contexts
        ledger = self._databases.contexts[schema if owned else "main"].ledger
        return ledger.level(rest if owned else table, column)

    def table(self) -> pa.Table:
        raise storage.only_reads()

    def carry(self, _moved: Mapping[Fact, Fact], _statement_shape: str) -> None:
        raise storage.only_reads()

    def refresh(self) -> None:
        for context in self._databases.contexts.values():
            context.ledger.refresh()


def _record(
    contexts: Mapping[str, Context], facts: Iterable[Fact], statement_shape: str
) -> list[Fact]:
    fresh: list[Fact] = []
    by_owner: dict[str, list[Fact]] = {}
    for fact in facts:
        owner, own = _owned(contexts, fact)
        by_owner.setdefault(owner, []).append(own)
    for name, texts in by_owner.items():
        fresh += contexts[name].ledger.record(texts, statement_shape)
    return fresh


def _owned(contexts: Mapping[str, Context], fact: Fact) -> tuple[str, Fact]:
    """Whose fact it is, and the fact under the name that its owner knows."""
    schema, dot, rest = fact.table.partition(".")
    owner = schema if dot and schema in contexts else "main"
    return owner, replace(fact, table=rest) if owner != "main" else fact


def _label(name: str, label: str) -> str:
    return label if name == "main" else f"{name}.{label}"


class _Storages(storage.ReadOnly):
    """Every question goes to where its table lies."""

    def __init__(self, databases: _Databases) -> None:
        self._databases = databases

    def _of(self, remote: RemoteQuery) -> Context:
        """The owner of a remote's tables, which has them under the same ids."""
        owners = {self._databases.names[other.table] for other in (*remote.sources, *remote.inner)}
        if len(remote.sources) != 1 or len(owners) != 1:
            raise errors.make("internal", detail="one query to two servers")
        return self._databases.contexts[owners.pop()]

    def request(self, remote: RemoteQuery, literals: Sequence[str]) -> Request:
        return self._of(remote).storage.request(remote, literals)

    def answer(
        self, remote: RemoteQuery, request: Request, literals: Sequence[str], clock: Clock
    ) -> pa.Table:
        return self._of(remote).storage.answer(remote, request, literals, clock)

    def sent(self, remote: RemoteQuery, request: Request, rows: float) -> str:
        return self._of(remote).storage.sent(remote, request, rows)

    def batches(
        self, table: Table, columns: Sequence[str] | None = None, where: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        if where is not None:
            raise storage.only_reads()
        context, own = self._databases.owner(table)
        return context.storage.batches(own, columns)

    def stamp(self, table: Table) -> str:
        context, own = self._databases.owner(table)
        return context.storage.stamp(own)

    def shows(self, request: Request) -> list[Fact]:
        """Each fact under the name that the query uses."""
        for name, context in self._databases.contexts.items():
            facts = context.storage.shows(request)
            if facts:
                return [replace(fact, table=_label(name, fact.table)) for fact in facts]
        return []

    def narrowing(self, literals: Sequence[str]) -> Narrow:
        narrowing = {
            name: context.storage.narrowing(literals)
            for name, context in self._databases.contexts.items()
        }

        def narrow(remote: RemoteQuery, request: Request, answers: Answers) -> Request:
            name = self._databases.names[remote.sources[0].table]
            return narrowing[name](remote, request, answers)

        return narrow
