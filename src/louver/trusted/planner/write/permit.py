"""The verdict on a change: what it reveals, or an error that names column, target and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from louver import errors
from louver.names import fold
from louver.trusted.planner.write.information_flow import Flow
from louver.trusted.planner.write.reads import LOST, SCHEMA, Secret, Secrets
from louver.trusted.planner.write.values import Rows
from louver.trusted.vault.catalog import Catalog, Column, Table
from louver.trusted.vault.facts import Fact, fact, table_name
from louver.trusted.vault.levels import LEVELS, allows
from louver.trusted.vault.scheme import tells_rows

#: Names of encrypted columns, and texts of views and checks, are encrypted like such a column.
SCHEMA_CEILING = "access"


class Judge:
    """Decides what one target may depend on."""

    def __init__(self, catalog: Catalog, target: Table) -> None:
        self.target = target
        self.leaks: list[Fact] = []
        self._tables = tuple(catalog.tables.values())
        self._named: dict[Secret, tuple[Table, Column]] = {
            (table.id, column.id): (table, column)
            for table in (target, *catalog.tables.values())
            for column in table.columns
        }

    def judge(self, flow: Flow) -> list[Fact]:
        """What the change reveals beyond sizes; raises if that is above a ceiling."""
        for column in self.target.columns:
            self.require(column, flow.values.get(_key(column), frozenset()))
        catalog = (self.target, *self._tables)
        require_counts(catalog, flow.written.counted | flow.touched.counted, self.target.label)
        self._written(flow.written)
        self._touched(flow)
        return self._once()

    def shows_unchanged(self, flow: Flow) -> bool:
        """Whether to leave the rows as they are that a change meets and gives the values that they
        have would tell more of these than it may.
        """
        return any(
            not self._may(column, secret)
            for column in self.target.columns
            for secret in flow.unchanged.shown
        )

    def judge_rows(self, rows: Rows) -> list[Fact]:
        """The same for the rows of a new table, which is protected like everything in it."""
        parts = (rows.chosen, rows.joined, rows.shown)
        self._written(Rows(*(part.intersection(self._named) for part in parts)))
        return self._once()

    def _once(self) -> list[Fact]:
        return [k for i, k in enumerate(self.leaks) if k not in self.leaks[:i]]

    def require(self, column: Column, secrets: Secrets) -> None:
        """Refuse if a column of the target may not depend on these secrets."""
        for secret in sorted(secrets):
            if not self._may(column, secret):
                raise self._refusal(secret, column)
            if not column.encrypted:
                self._note(secret, "write.plain")

    def _written(self, written: Rows) -> None:
        for column in self.target.columns:
            self.require(column, written.joined | written.shown)
        visible = any(map(tells_rows, self.target.columns))  # by plain values, or by lengths
        for secret in sorted(written.all):
            alike = not visible and all(self._may(column, secret) for column in self.target.columns)
            if secret in written.chosen and not alike:
                self._note(secret, "rows.copied")
            else:
                self._count(secret)

    def _touched(self, flow: Flow) -> None:
        if not self._visible(flow):
            for secret in sorted(flow.touched.all if flow.assigned is None else ()):
                self._count(secret)
            return
        for column in self.target.columns:
            self.require(column, flow.touched.shown)
        for secret in sorted(flow.touched.all):
            self._note(secret, "rows.chosen")

    def _visible(self, flow: Flow) -> bool:
        """Whether the server can tell which rows were changed: by their numbers or, if all rows are
        rewritten, by plain columns, by lengths, and by codes and shares.
        """
        columns = self.target.columns
        if not any(c.encrypted and not allows(c.ceiling, "access") for c in columns):
            return True
        telling = {_key(column) for column in columns if _tells(column)}
        return bool(telling if flow.assigned is None else telling & flow.assigned)

    def _ceiling(self, secret: Secret) -> str:
        known = self._named.get(secret)
        return _unnamed(secret) if known is None else known[1].ceiling

    def _may(self, column: Column, secret: Secret) -> bool:
        ceiling = self._ceiling(secret)
        if secret == (self.target.id, column.id) or ceiling == "plaintext":
            return True
        return column.encrypted and allows(ceiling, column.ceiling)

    def _note(self, secret: Secret, name: str) -> None:
        if secret == SCHEMA:
            return
        if secret not in self._named:
            raise self._refusal(secret, self.target.columns[0])
        table, column = self._named[secret]
        shown = fact(name, table, [column], target=table_name(self.target))
        if not allows(column.ceiling, shown.level):
            raise errors.make(
                "leak.refused",
                table=table.label,
                column=column.name,
                level=shown.level,
                ceiling=column.ceiling,
            )
        self.leaks.append(shown)

    def _count(self, secret: Secret) -> None:
        """Record that a secret decides how many rows a table has. Other connections' tables and
        dropped columns have no ledger here.
        """
        if secret in self._named:
            self._note(secret, "rows.counted")

    def _refusal(self, secret: Secret, column: Column) -> errors.Error:
        ceiling = self._ceiling(secret)
        known = self._named.get(secret)
        source = source_of(secret)
        if known is not None:
            source = f"{known[0].label}.{known[1].name}"
        target = f"{self.target.label}.{column.name}"
        return errors.make(
            "leak.flow",
            source=source,
            ceiling=ceiling,
            target=target,
            fix=_fix(column, target, ceiling, exists=bool(self.target.id)),
        )


def _tells(column: Column) -> bool:
    """Whether a row is known again by what is stored of a column, or may be."""
    return tells_rows(column) or allows(column.ceiling, "equality")


def require_counts(tables: Iterable[Table], secrets: Secrets, label: str) -> None:
    """Refuse if the number of written or removed rows would reveal values: it is plain, whatever
    the rows contain.
    """
    lost = [secret for secret in secrets if secret[0] == LOST]
    if lost:
        raise errors.make(
            "leak.flow",
            source=source_of(lost[0]),
            ceiling=_unnamed(lost[0]),
            target=f"The number of rows of {label}",
            fix="Compare it only with constants or encrypted columns",
        )
    for table in tables:
        for column in table.columns:
            if (table.id, column.id) in secrets and column.ceiling != "plaintext":
                raise errors.make(
                    "leak.flow",
                    source=f"{table.label}.{column.name}",
                    ceiling=column.ceiling,
                    target=f"The number of rows of {label}",
                    fix="Compare it only with constants or encrypted columns",
                )


def _fix(column: Column, target: str, ceiling: str, *, exists: bool) -> str:
    """What to declare; a table without an id is not created yet."""
    if column.encrypted and exists:
        table = target.rpartition(".")[0]
        return f"ALTER TABLE {table} ALTER COLUMN {column.name} MAY REVEAL {ceiling}"
    return f"Declare {target} as ENC MAY REVEAL {ceiling}"


def lowest(catalog: Catalog, secrets: Iterable[Secret]) -> str:
    """The lowest ceiling of some encrypted columns; "" if there are none."""
    ceilings: Sequence[str] = [
        next(
            (
                column.ceiling
                for table in catalog.tables.values()
                for column in table.columns
                if (table.id, column.id) == secret
            ),
            _unnamed(secret),
        )
        for secret in secrets
    ]
    return min(ceilings, key=LEVELS.index, default="")


def source_of(secret: Secret) -> str:
    """A description of a secret that is not a column's."""
    return "a column that was dropped" if secret[0] == LOST else "the declared schema"


def _unnamed(secret: Secret) -> str:
    """The ceiling of a secret that is not a column's."""
    return LEVELS[secret[1]] if secret[0] == LOST else SCHEMA_CEILING


def _key(column: Column) -> str:
    return fold(column.name)
