"""The context: what every step of a statement is given. It is frozen; what changes is its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot.tokens import Token

from louver import errors
from louver.names import keyword
from louver.trusted.backends.backend import Backend
from louver.trusted.executor.answer import Answer
from louver.trusted.executor.columns import Columns
from louver.trusted.executor.front import Recording
from louver.trusted.executor.local import transaction_time
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.executor.plan_leakage import facts_of, joinable_kinds
from louver.trusted.executor.policy import Policy
from louver.trusted.executor.row_ids import RowIds
from louver.trusted.executor.state import State
from louver.trusted.executor.stopped_sums import Stopped
from louver.trusted.executor.storage import Storage
from louver.trusted.planner.ir import Plan
from louver.trusted.planner.planner import Planner
from louver.trusted.planner.settings import PlannerSettings
from louver.trusted.planner.sql import lexer
from louver.trusted.planner.sql.declarations import Declared
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.catalog_store import CatalogStore
from louver.trusted.vault.facts import Fact, condition_of
from louver.trusted.vault.keyring import KeyRing
from louver.trusted.vault.protection import Protection
from louver.untrusted.engines.engine import Engine, Nesting

Opener = Callable[[str, object, str], "Context"]
"""Opens a connection by its URL, the path of a key file or an open one, and a profile."""


def no_opener(url: str, _keys: object, _profile: str) -> Context:
    """For a session that nothing can be attached to."""
    raise errors.make("url.unsupported", scheme=url.partition("://")[0])


#: Where the connection says nothing.
_PATIENCE_S = 30.0


@dataclass(frozen=True, eq=False)
class Context:
    """One database with its keys, its ledger and the local engine, for one session."""

    engine: Engine
    backend: Backend
    keyring: KeyRing
    policy: Policy
    store: CatalogStore
    local: LocalEngine
    ledger: Recording
    row_ids: RowIds
    stopped: Stopped
    columns: Columns
    storage: Storage
    planner: Planner
    state: State
    #: runs a statement that another one contains
    runner: Callable[[Context, lexer.Text, list[object]], Answer]
    #: raises where a statement is of no kind that runs
    require_known: Callable[[Sequence[Token]], object]
    opener: Opener
    #: other databases whose tables queries may read, by the schema that they stand under
    attached: dict[str, Context] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        """The catalog as the statement sees it."""
        return self.state.catalog

    @property
    def planning(self) -> PlannerSettings:
        """The settings that plans are made under now; columns may be stopped at any time."""
        state, stopped = self.state, self.stopped()
        if stopped != state.planning.stopped:
            state.planning = replace(state.planning, stopped=stopped)
        if state.in_transaction and state.planning.opens_layers and self._lets_wait():
            return replace(state.planning, opens_layers=False)
        return state.planning

    @property
    def patience_s(self) -> float:
        """How long a change is tried again while other clients write, by what the connection says
        of locks.
        """
        return float(getattr(self.engine, "patience_s", _PATIENCE_S))

    def goes_beside(self) -> bool:
        """Whether the open transaction has changed nothing, and can be left and begun anew."""
        state = self.state
        return state.anew and not self.store.holds and state.catalog is state.saved

    def _lets_wait(self) -> bool:
        """Whether all clients would wait for the end of a transaction that opened a layer."""
        return isinstance(self.engine, Nesting) and not self.goes_beside()

    @property
    def in_transaction(self) -> bool:
        """Whether the user has said BEGIN."""
        return self.state.in_transaction

    @property
    def has_temporary(self) -> bool:
        """Whether there is a temporary table or view, or a data frame with a name."""
        if self.local.temporary.names or self.local.files.frames.known:
            return True
        return any(item.kind == "VIEW" and item.temporary for item in self.catalog.objects)

    def protection(
        self, table: str, column: str, type_: str, declared: Declared | None
    ) -> Protection:
        """How a new column is kept: by the SQL, the policy, the profile and the session."""
        default = self.state.default_encryption
        return self.policy.protection(table, column, type_, declared, default)

    def plan(
        self, text: lexer.Text, parameters: list[object], tokens: Sequence[Token] | None = None
    ) -> tuple[Plan, lexer.Shape]:
        """The plan of a query, and its shape."""
        return self.planner.plan(text, parameters, self.catalog, self.planning, tokens)

    def stated(self, plan: Plan, shape: lexer.Shape) -> list[Fact]:
        """What a plan shows with the numbers of its statement."""
        known = self.ledger.facts(joinable_kinds()) if plan.opens else ()
        condition = ""
        if any(leak.counted for leak in plan.leaks):
            ids = dict.fromkeys(s.table for r in plan.remotes for s in (*r.sources, *r.inner))
            tables = [self.catalog.by_id(table) for table in ids]
            condition = condition_of((shape.key, *shape.literals), tables, self.storage.stamp)
        return facts_of(plan, self.catalog, known, condition)

    def record(self, plan: Plan, shape: lexer.Shape, tokens: Sequence[Token]) -> list[Fact]:
        """Write what a plan reveals into the ledger; if that fails, nothing is sent."""
        facts = self.stated(plan, shape)
        if not facts:
            return []
        return self.ledger.record(facts, f"{keyword(tokens[0].text)} ({plan.kind})")

    def run(self, text: lexer.Text, parameters: list[object]) -> Answer:
        """Run a statement that another one contains."""
        return self.runner(self, text, parameters)

    def fix_time(self, tokens: Sequence[Token], parameters: Sequence[object] = ()) -> None:
        """Within a transaction the time stands still for the statements that ask for it."""
        state, generation = self.state, self.local.generation
        if state.fixed != generation and transaction_time.reads_time(
            self.catalog, tokens, parameters
        ):
            self.local.fix_time(state.began)
            state.fixed = generation

    def release_time(self) -> None:
        """The time goes on at the end of a transaction."""
        if self.state.fixed == self.local.generation:
            self.local.release_time()
        self.state.fixed = None

    def close(self) -> None:
        """Let go of the local engine, of the server, and of what is attached."""
        for other in self.attached.values():
            other.close()
        self.local.close()
        self.engine.close()
