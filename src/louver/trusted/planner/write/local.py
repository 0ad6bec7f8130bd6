"""What the things that a session keeps on its own machine depend on: its variables."""

from __future__ import annotations

from louver.names import fold
from louver.trusted.planner.write.permit import SCHEMA_CEILING
from louver.trusted.planner.write.reads import LOST, SCHEMA, Secret, Secrets
from louver.trusted.vault.catalog import Catalog
from louver.trusted.vault.levels import LEVELS


class Local:
    """The encrypted columns that values of variables come from.

    A column may be dropped while its values are still kept. Then its ceiling stands for it.
    """

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self._variables: dict[str, Secrets] = {}
        self._ceilings: dict[Secret, str] = {SCHEMA: SCHEMA_CEILING}

    @property
    def is_secret(self) -> bool:
        """Whether anything that is kept depends on an encrypted column."""
        return any(self._variables.values())

    def keep(self, catalog: Catalog, name: str, secrets: Secrets) -> bool:
        """Note what a variable depends on; whether that is other than before."""
        for table in catalog.tables.values():
            for column in table.columns:
                self._ceilings[table.id, column.id] = column.ceiling
        before = self._variables.get(fold(name), frozenset())
        self._variables[fold(name)] = secrets
        return secrets != before

    def variables(self, catalog: Catalog) -> dict[str, Secrets]:
        """What each variable depends on, by folded name."""
        known = {(t.id, c.id) for t in catalog.tables.values() for c in t.columns}
        return {
            name: frozenset(self._now(secret, known) for secret in secrets)
            for name, secrets in self._variables.items()
        }

    def _now(self, secret: Secret, known: set[Secret]) -> Secret:
        if secret in known or secret == SCHEMA or secret[0] == LOST:
            return secret
        return LOST, LEVELS.index(self._ceilings[secret])
