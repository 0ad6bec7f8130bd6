"""What a statement has to say beside its answer, as Python's warnings."""

from __future__ import annotations

from louver import errors
from louver.trusted.executor.answer import Answer


def warned(answer: Answer) -> Answer:
    """The answer, once its notices have been given as warnings at the user's own line."""
    for notice in answer.notices:
        errors.warn(notice)
    return answer
