"""The messages: statements out, Arrow data back.

A `Statement` carries its constants outside of the SQL text, so that the text of a query shape is
the same for every literal and a server can prepare it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

#: A value bound to a placeholder `$n`. Encrypted values are bytes; the others are public.
Constant = bytes | int | float | str | bool | None
Kind = Literal["query", "write", "ddl"]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement for a server: text with `$1..$n`, the values bound to them, Arrow inputs."""

    sql: str
    constants: tuple[Constant, ...] = ()
    kind: Kind = "query"
    tables: Mapping[str, pa.Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Append:
    """Rows for a server table, matched to its columns by name."""

    table: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Control:
    """Transaction control: `begin`, `commit` or `rollback`."""

    verb: Literal["begin", "commit", "rollback"]


@dataclass(frozen=True, slots=True)
class Rows:
    """A server's answer to a query."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class Count:
    """A server's answer to a write: the number of affected rows; 0 for DDL and control."""

    rows: int


@dataclass(frozen=True, slots=True)
class Failure:
    """A server's refusal: a code of `louver.errors` and a message."""

    code: str
    message: str


Request = Statement | Append | Control
Reply = Rows | Count | Failure
Message = Request | Reply
