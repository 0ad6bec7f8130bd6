"""The compiled module, loaded on first use."""

from __future__ import annotations

from functools import cache
from typing import Any

from louver import errors


@cache
def module() -> Any:
    """`louver._rust`."""
    try:
        from louver import _rust
    except ImportError as error:
        raise errors.make("native.missing", detail=str(error)) from error
    return _rust
