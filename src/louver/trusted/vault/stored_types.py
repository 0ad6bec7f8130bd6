"""What stored columns are made of, by names of no engine; each backend says its own SQL type."""

from __future__ import annotations

ROW_ID = "row id"
"""A number of 63 bits."""
BYTES = "bytes"
CODE = "code"
"""A signed number of 64 bits that is compared as one."""
WIDE_CODE = "wide code"
"""Sixteen bytes, compared as bytes."""
LIMB = "limb"
"""A signed number of 64 bits that is added up."""
WIDE_LIMB = "wide limb"
"""An unsigned number of 64 bits that is added up."""
ALL = (ROW_ID, BYTES, CODE, WIDE_CODE, LIMB, WIDE_LIMB)
