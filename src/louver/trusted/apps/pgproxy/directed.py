"""What the compiled module asks of a client for statements that it runs itself (`ways`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from louver import errors
from louver._rust.proxy import Reserve
from louver.trusted.apps.pgproxy import ways
from louver.trusted.apps.pgproxy.described import Describing, Prepared, row_type
from louver.trusted.apps.pgproxy.failures import reporting
from louver.trusted.apps.pgproxy.timing import Timing
from louver.trusted.executor import direct, seen_state
from louver.trusted.executor.change import direct_changes
from louver.trusted.executor.containment import contained


class Directed(Timing):
    """The part of a client that has statements run without Python."""

    _describing: Describing
    _generation: int
    _basis: tuple[object, ...]

    def _renewed(self) -> int:
        """The generation: what a statement means is the same as long as that is."""
        basis = direct.basis(self._context)
        if basis != self._basis:
            self._generation, self._basis = self._generation + 1, basis
            self._describing.forget()
        return self._generation

    @reporting
    def shaped(self, prepared: Prepared, shape: str, types: Sequence[int]) -> Prepared | None:
        """A statement with parameters in the place of its literals, some of which are cast to these
        types; None where that does not give the same columns.
        """
        with contained(self._session):
            try:
                item = self._describing.prepared(shape, types)
            except errors.Error:
                return None
            shown = [None if c is None else row_type(c) for c in (prepared.columns, item.columns)]
            if item.kind != prepared.kind or shown[0] != shown[1]:
                return None
            item = replace(item, does=prepared.does, shape=prepared.shape)
            return replace(item, generation=self._renewed())

    @reporting
    def holds(self, prepared: Prepared) -> bool:
        """Whether a statement takes and gives the same still."""
        with contained(self._session):
            try:
                return self._describing.again(prepared, self._renewed()) is not None
            except errors.Error:
                return False

    @reporting
    def way(self, prepared: Prepared) -> Any | None:
        """What runs a statement without Python from now on, while the generation stays."""
        with contained(self._session):
            current = self._describing.again(prepared, self._renewed())
            return None if current is None else ways.of(self._context, self._wire, current)

    @reporting
    def refresh(self) -> None:
        """Other clients have changed the catalog, and no transaction is open here."""
        with contained(self._session):
            if not self._context.in_transaction:
                seen_state.refresh(self._context)

    @reporting
    def provide(
        self, reserves: Sequence[Reserve], numbers: bool, drawn: Sequence[int], within: bool
    ) -> bool:
        """Have ways without Python go on: more conditions of these in the ledger, ``numbers`` of
        new rows, and some of the sequences that are ``drawn`` from, also ``within`` a transaction
        that this does not know of. Whether all of it could be had.
        """
        with contained(self._session):
            return ways.provide(self._context, reserves, numbers, drawn, within=within)

    @reporting
    def count(self) -> None:
        """Rows were changed without Python."""
        direct_changes.count(self._context)

    @reporting
    def unsure(self) -> None:
        """Raises what is said where the server was lost while it committed."""
        raise errors.make("server.unsure", place=self._context.engine.address, detail="at COMMIT")
