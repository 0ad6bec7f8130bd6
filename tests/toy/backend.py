"""SQLite as a server, described: it compares integers and texts, and knows the layers of codes.

It keeps integers and texts as plain columns and refuses every other plain type. Shares, masked
and packed sums, order-revealing codes and text search are not stored: the local engine computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.backends import comparisons
from louver.trusted.backends.backend import Backend, Leaf, TypeOf
from louver.trusted.vault import stored_types

_INTEGERS = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER".split()
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SQLite(Backend):
    """SQLite in a file."""

    def render(self, node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> str | None:
        """Comparisons of two integers or two texts, and what joins them: default deny."""
        return comparisons.rendered(node, lambda part: _operand(part, leaf, type_of))

    def cast(self, placeholder: str, stored: str) -> str:
        """Wide codes are bound as the text of a UUID."""
        return f"wide_code({placeholder})" if stored == stored_types.WIDE_CODE else placeholder

    def plain_type(self, declared: str) -> str:
        """Integers of 64 bits, and texts; SQLite keeps the names of their types."""
        if declared in _INTEGERS or declared == "VARCHAR":
            return declared
        return Backend.plain_type(self, declared)

    def adjusted(self, code: str, layer: str, keys: str, *, wide: bool) -> str:
        """A code without its outermost layer, or under its group's key."""
        name = f"onion_{layer}" + ("_wide" if wide else "")
        rows = "row_id, " if layer == "open" else ""
        return f"{name}({code}, {rows}{keys})"


def _operand(node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> tuple[str, str] | None:
    """A column or constant as SQLite's text, and whether it is a text or an integer."""
    if isinstance(node, exp.Paren):
        return _operand(node.this, leaf, type_of)
    if isinstance(node, exp.Neg):
        inner = _operand(node.this, leaf, type_of)
        numeric = isinstance(node.this, exp.Literal) and inner and inner[1] == "integer"
        return (f"(-{inner[0]})", "integer") if numeric and inner else None
    if not isinstance(node, exp.Column | exp.Literal):
        return None
    kind = {"VARCHAR": "text"}.get(type_of(node), "integer" if type_of(node) in _INTEGERS else "")
    text = leaf(node)
    if text is None and isinstance(node, exp.Literal) and node.is_string:
        value = node.name.replace("'", "''")
        text = f"'{value}'" if "\0" not in value else None
    return (text, kind) if text is not None and kind else None


BACKEND = SQLite(
    "sqlite",
    {
        "of_least": "arg_min(⟦0⟧, ⟦1⟧)",
        "least_row": "min(⟦0⟧)",
        "adjust": "onion_open(⟦0⟧, ⟦1⟧, ⟦2⟧)",
        "rejoin": "onion_join(⟦0⟧, ⟦1⟧)",
    },
    {
        stored_types.ROW_ID: "BIGINT",
        stored_types.BYTES: "BLOB",
        stored_types.CODE: "BIGINT",
        stored_types.WIDE_CODE: "BLOB",
    },
    words=frozenset(("int", "bigint")),
    functions=frozenset(("arg_min", "min", "wide_code")),
    schemas=False,
    unaffected=frozenset(
        (
            "timezone", "calendar", "default_null_order", "null_order", "default_order",
            "integer_division", "ieee_floating_point_ops",
        )
    ),
)  # fmt: skip
