"""Private questions on public data: their language, their plan, their cost."""

from __future__ import annotations

from louver.trusted.planner.private.question import (
    Alternative,
    Clause,
    Condition,
    End,
    Question,
    Secret,
)

__all__ = ["Alternative", "Clause", "Condition", "End", "Question", "Secret"]
