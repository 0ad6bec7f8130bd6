"""The lineage of a session's local objects: variables and TEMP tables."""

from __future__ import annotations

from louver.names import fold
from louver.trusted.planner.write.permit import SCHEMA_CEILING
from louver.trusted.planner.write.reads import LOST, NOTHING, SCHEMA, Held, Secret, Secrets
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.levels import LEVELS


class Local:
    """The encrypted columns that local values come from.

    A column may be dropped while values from it still exist; then its ceiling represents it.
    """

    def __init__(self, unset: Secrets = frozenset()) -> None:
        """Empty. A variable that is not set depends on ``unset``."""
        self.unset = unset
        self._variables: dict[str, Secrets] = {}
        self._tables: dict[str, Held] = {}
        #: the tables of attached files, by folded schema and name, by the file's folded name
        self.files: dict[str, frozenset[tuple[str, str]]] = {}
        #: temporary tables with values that a server may know, by folded name
        self.plain_tables: set[str] = set()
        self._ceilings: dict[Secret, str] = {SCHEMA: SCHEMA_CEILING}

    def keep_table(
        self, catalog: Catalog, name: str, held: Held, *, fresh: bool, plain: bool
    ) -> None:
        """Record what a temporary table depends on, in addition to earlier dependencies."""
        self._note(catalog)
        if fresh:
            self.plain_tables.discard(name)
        if plain:
            self.plain_tables.add(name)
        before = NOTHING if fresh else self._tables.get(name, NOTHING)
        a, b, c, d, e = (known | more for known, more in zip(before, held, strict=True))
        self._tables[name] = a, b, c, d, e

    @property
    def is_secret(self) -> bool:
        """Whether any local value depends on an encrypted column."""
        return any(self._variables.values()) or any(map(any, self._tables.values()))

    @property
    def has_secret_variables(self) -> bool:
        """Whether a variable depends on an encrypted column."""
        return any(self._variables.values())

    def keep(self, catalog: Catalog, name: str, secrets: Secrets) -> bool:
        """Record what a variable depends on; returns whether this has changed."""
        self._note(catalog)
        before = self._variables.get(fold(name), frozenset())
        self._variables[fold(name)] = secrets
        return secrets != before

    def variables(self, catalog: Catalog) -> dict[str, Secrets]:
        """What each variable depends on, by folded name."""
        known = {(t.id, c.id) for t in catalog.tables.values() for c in t.columns}
        return {name: self._now(secrets, known) for name, secrets in self._variables.items()}

    def tables(self, catalog: Catalog) -> dict[str, Held]:
        """What each temporary table depends on, by folded name."""
        known = {(t.id, c.id) for t in catalog.tables.values() for c in t.columns}
        lineage: dict[str, Held] = {}
        for name, held in self._tables.items():
            a, b, c, d, e = (self._now(secrets, known) for secrets in held)
            lineage[name] = a, b, c, d, e
        return lineage

    def _note(self, catalog: Catalog) -> None:
        for table in catalog.tables.values():
            for column in table.columns:
                self._ceilings[table.id, column.id] = column.ceiling

    def _now(self, secrets: Secrets, known: set[Secret]) -> Secrets:
        """The secrets, with dropped columns replaced by their ceilings."""
        here = {s for s in secrets if s in known or s == SCHEMA or s[0] == LOST}
        return frozenset(here | {(LOST, LEVELS.index(self._ceilings[s])) for s in secrets - here})


def of_any_time() -> Local:
    """For an expression evaluated repeatedly in the future: its variables may hold anything."""
    return Local(frozenset(((LOST, 0),)))
