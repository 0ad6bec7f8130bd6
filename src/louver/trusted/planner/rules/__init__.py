"""The rewriter: this ordered tuple of rules is the design.

Each rule looks at one node whose operands are rewritten already and either says what the server
computes for it or passes. What no rule takes is done locally.
"""

from __future__ import annotations

from louver.trusted.planner.operators.rule import AggregateRule, Rule
from louver.trusted.planner.rules import (
    addition,
    average,
    between,
    bucket,
    code_between,
    code_comparison,
    code_membership,
    code_nullness,
    comparison,
    count,
    equi_join,
    extremes,
    membership,
    multiplication,
    negation,
    nullness,
    pattern,
    range_between,
    range_comparison,
    range_membership,
    range_prefix,
    subtraction,
)
from louver.trusted.planner.rules import (
    sum as sum_,
)

RULES: tuple[Rule, ...] = (
    multiplication.RULE,
    addition.RULE,
    subtraction.RULE,
    negation.RULE,
    equi_join.RULE,
    bucket.RULE,
    comparison.RULE,
    between.RULE,
    membership.RULE,
    nullness.RULE,
    code_comparison.RULE,
    code_between.RULE,
    code_membership.RULE,
    code_nullness.RULE,
    pattern.RULE,
    range_comparison.RULE,
    range_between.RULE,
    range_membership.RULE,
    range_prefix.RULE,
)
"""Rules for values and conditions of one row."""

AGGREGATES: tuple[AggregateRule, ...] = (
    count.RULE,
    sum_.RULE,
    average.RULE,
    extremes.RULE,
)
"""Rules for aggregates."""

__all__ = ["AGGREGATES", "RULES"]
