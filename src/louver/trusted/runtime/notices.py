"""What a statement has to say beside its answer, as Python's warnings."""

from __future__ import annotations

import os
import sys
import warnings

from louver import errors
from louver.trusted.runtime.answer import Answer


def warned(answer: Answer) -> Answer:
    """The answer, once its notices have been given as warnings at the user's own line."""
    for notice in answer.notices:
        warnings.warn(notice, errors.LeakageWarning, stacklevel=_depth())
    return answer


def _depth() -> int:
    """How many frames above `warned` the first lies that is not Louver's."""
    ours = os.path.dirname(errors.__file__)
    depth = 1
    while True:
        try:
            frame = sys._getframe(depth)
        except ValueError:
            return depth
        if not frame.f_code.co_filename.startswith(ours):
            return depth
        depth += 1
