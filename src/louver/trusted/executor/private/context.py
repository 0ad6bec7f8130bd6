"""The context of a connection to providers: no keys, no ledger that lasts, nothing to change."""

from __future__ import annotations

from dataclasses import dataclass

from louver import errors
from louver.trusted.executor.local.local_engine import DuckDBLocalEngine
from louver.trusted.executor.private.fleet import Fleet
from louver.trusted.executor.private.query_log import QueryLog
from louver.trusted.planner.settings import DEFAULT, PlannerSettings
from louver.trusted.vault.catalog import Catalog


class ProviderEngine:
    """The providers, as far as a connection looks at its engine."""

    def __init__(self, fleet: Fleet, address: str) -> None:
        """``address`` is the URL."""
        self._fleet = fleet
        self.address = address

    @property
    def traffic(self) -> object:
        """What has crossed so far."""
        return self._fleet.traffic

    def interrupt(self) -> None:
        """Stop the question that is under way."""
        self._fleet.interrupt()


class Measures:
    """What statements look for in a storage."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._before = (0, 0, 0, 0)

    def measure(self, on: bool) -> list[str]:
        """Rounds and bytes between the two calls, for EXPLAIN ANALYZE."""
        traffic = self._fleet.traffic
        now = (self._fleet.rounds, traffic.bytes_out, traffic.bytes_in, 0)
        if on:
            self._before = now
            return []
        rounds, out, into, _ = (a - b for a, b in zip(now, self._before, strict=True))
        return [f"rounds   {rounds}", f"bytes    {out:,} sent, {into:,} received, all providers"]

    def change_option(self, name: str, _value: str | None) -> None:
        """Options of lakes."""
        raise errors.make("setting.unknown", name=name)

    def option(self, name: str) -> str:
        """Options of lakes."""
        raise errors.make("setting.unknown", name=name)


@dataclass(slots=True, eq=False)
class Agreed:
    """What changes: the tables of the version of the data that was agreed on, and settings."""

    catalog: Catalog
    planning: PlannerSettings = DEFAULT


@dataclass(frozen=True, slots=True, eq=False)
class ProviderContext:
    """What the steps of a private question are given."""

    fleet: Fleet
    #: what answers sums of three or more providers: owf or paillier
    scheme: str
    engine: ProviderEngine
    ledger: QueryLog
    storage: Measures
    local: DuckDBLocalEngine
    state: Agreed

    @property
    def catalog(self) -> Catalog:
        """The providers' tables."""
        return self.state.catalog
