"""What a statement would show that changes data or schema, collected for EXPLAIN (LEAKAGE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from louver.trusted.executor import server_scans
from louver.trusted.executor.context import Context
from louver.trusted.executor.ledger import Fact
from louver.trusted.planner.ir import Opening, Plan
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table


@dataclass(slots=True)
class Stated:
    """What would be shown, and the layers that would be opened."""

    facts: list[Fact] = field(default_factory=list)
    opens: list[Opening] = field(default_factory=list)

    def add_query(self, context: Context, text: lexer.Text, parameters: Sequence[object]) -> None:
        """Add what a query shows that is run as a part of the statement."""
        plan, shape = context.planner.plan(text, list(parameters), context.catalog)
        self.add_plan(context, plan, shape)

    def add_plan(self, context: Context, plan: Plan, shape: lexer.Shape) -> None:
        """Add what a plan shows that is run as a part of the statement."""
        self.facts += context.stated(plan, shape)
        self.opens += plan.opens

    def add_scan(self, context: Context, table: Table) -> None:
        """Add what it shows that a table is read."""
        self.facts += server_scans.scan_facts(context.backend, table)
