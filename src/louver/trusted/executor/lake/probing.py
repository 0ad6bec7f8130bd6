"""Keys of tables that were read become ranges of another table's column (planner/scans/probes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from louver.names import fold, quoted
from louver.trusted.executor.lake import range_predicates
from louver.trusted.executor.local.engine import LocalEngine
from louver.trusted.planner.ir import Probe, RemoteQuery
from louver.trusted.planner.operators.codes import fill
from louver.trusted.vault.catalog import Catalog

MOST_KEYS = 65_536
"""More keys than this choose nearly every file, so their ranges are not worth making."""

Place = tuple[str, str]
Answers = Mapping[Place, tuple[Sequence[tuple[str, str]], pa.Table]]


@dataclass(slots=True)
class Probing:
    """What is known, while one query runs, of the keys that its tables must meet: per table the
    column and the values that reduce it.
    """

    local: LocalEngine
    catalog: Catalog
    literals: Sequence[str]
    known: dict[Place, list[tuple[str, pa.Table]]] = field(default_factory=dict)

    def condition(self, remote: RemoteQuery, answers: Answers) -> range_predicates.Condition:
        """What the probes of a remote say of its files."""
        table = self.catalog.by_id(remote.sources[0].table)
        ranges: list[range_predicates.Condition] = []
        for probe in remote.probes:
            column = next(c for c in table.columns if c.id == probe.column)
            keys = self._keys(probe, column.type, answers)
            if keys is None:
                continue
            self.known.setdefault(remote.home, []).append((column.name, keys))
            ranges.append(range_predicates.of_values(column, keys.column(0), merged=probe.merged))
        return range_predicates.every(ranges)

    def _keys(self, probe: Probe, type_: str, answers: Answers) -> pa.Table | None:
        """The different keys of the rows that matter; None where there are too many."""
        types, rows = answers[probe.home]
        source, alias = "louver_probe", probe.alias
        conditions = [fill(text, self.literals) for text in probe.filters]
        given = {("", source): (types, rows)}
        for position, (name, keys) in enumerate(self.known.get(probe.home, [])):
            held = f"louver_keys_{position}"
            given["", held] = ([("k", _type_of(types, name))], keys)
            conditions.append(f"{alias}.{quoted(name)} IN (SELECT k FROM {held})")
        # A key that the other column's type does not hold meets none of its values.
        key = f"TRY_CAST({alias}.{quoted(probe.key)} AS {type_})"
        conditions.append(f"{key} IS NOT NULL")
        sql = (
            f"SELECT DISTINCT {key} AS k FROM {source} AS {alias}"
            f" WHERE {' AND '.join(conditions)} LIMIT {MOST_KEYS + 1}"
        )
        reply = self.local.finish(given, sql)
        return None if reply.num_rows > MOST_KEYS else reply


def _type_of(types: Sequence[tuple[str, str]], name: str) -> str:
    return next(type_ for column, type_ in types if fold(column) == fold(name))
