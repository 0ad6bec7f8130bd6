"""What a statement has to say beside its answer, as Python's warnings."""

from __future__ import annotations

import warnings

from louver import errors
from louver.trusted.runtime.answer import Answer

_CALLER = 4
"""Frames from here to the user's own call, as near as it can be told."""


def warned(answer: Answer) -> Answer:
    """The answer, once its notices have been given as warnings."""
    for notice in answer.notices:
        warnings.warn(notice, errors.LeakageWarning, stacklevel=_CALLER)
    return answer
