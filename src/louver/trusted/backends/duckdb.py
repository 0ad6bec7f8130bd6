"""DuckDB as the server. The local engine is a DuckDB too, so plain expressions go as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from louver.trusted.backends.backend import Backend, Leaf, TypeOf
from louver.trusted.vault import stored_types
from louver.trusted.vault.catalog import Table

# What the server may compute natively on plain columns: the same engine gives the same answer.
_NATIVE = (
    exp.Column, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Paren, exp.Null, exp.Boolean,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Between,
    exp.In, exp.Is, exp.Like, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Identifier,
)  # fmt: skip
_LISTED = "list(⟦0⟧) FILTER (WHERE ⟦0⟧ IS NOT NULL)"
# With names: DuckDB 1.5 mistakes the numbers of an unnamed struct for keys where the same SELECT
# has a sum of a column and a constant.
_LEAST = "arg_min({'value': ⟦0⟧, 'row': ⟦1⟧}, ⟦2⟧)"
_GREATEST = "arg_max({'value': ⟦0⟧, 'row': ⟦1⟧}, ⟦2⟧)"
_OPERATIONS = {
    # Aggregates of plain columns.
    "sum": "sum(⟦0⟧)",
    "min": "min(⟦0⟧)",
    "max": "max(⟦0⟧)",
    # Of codes and sealed values: a column of the row with the least or greatest key, and of that
    # row (sealed value, row id) for an order code.
    "of_least": "arg_min(⟦0⟧, ⟦1⟧)",
    "of_greatest": "arg_max(⟦0⟧, ⟦1⟧)",
    "random": "random()",
    "min_value": f"struct_extract({_LEAST}, 'value')",
    "min_row": f"struct_extract({_LEAST}, 'row')",
    "max_value": f"struct_extract({_GREATEST}, 'value')",
    "max_row": f"struct_extract({_GREATEST}, 'row')",
    "least_row": "min(⟦0⟧)",
    # Of limbs and packed values. An outer join makes rows without a number, which add nothing.
    "limb_sum": "sum(⟦0⟧)",
    "wide_limb_sum": "sum(⟦0⟧)",
    "row_set": f"row_set({_LISTED})",
    "hom_sum": f"hom_sum({_LISTED}, ⟦1⟧)",
    "ore_compare": "ore_compare(⟦0⟧, ⟦1⟧)",
    # A pattern that has no token, which only the key ring can tell, filters nothing.
    "text_match": "coalesce(text_match(⟦0⟧, ⟦1⟧, ⟦2⟧), true)",
    # A condition that passes the rows that it fails for.
    "tried": "coalesce(TRY(⟦0⟧), true)",
    # What shares are computed from: the text of a plain number, all values of a group.
    "number_text": "encode(CAST(⟦0⟧ AS VARCHAR))",
    "gathered": "list(⟦0⟧)",
    # Layers of codes; `Backend.adjusted` writes these.
    "adjust": "onion_open(⟦0⟧, ⟦1⟧, ⟦2⟧)",
    "rejoin": "onion_join(⟦0⟧, ⟦1⟧)",
}
_FUNCTIONS = frozenset(
    (
        "sdb_mul sdb_linear sdb_add sdb_add_kept sdb_key_update sdb_compare sdb_compare_kept "
        "sdb_compare_sum sdb_sum sdb_cartprod sdb_residue sdb_order sdb_powers "
        "list encode sum min max arg_min arg_max row struct_extract row_set text_match "
        "ore_compare hom_sum coalesce try random"
    ).split()
)
_TYPES = {
    stored_types.ROW_ID: "BIGINT",
    stored_types.BYTES: "BLOB",
    stored_types.CODE: "BIGINT",
    stored_types.WIDE_CODE: "UUID",
    stored_types.LIMB: "BIGINT",
    stored_types.WIDE_LIMB: "UBIGINT",
}
_REPEATED = re.compile(r'uplicate key "(?P<column>\w+: )?(?P<value>[0-9a-f-]{36})"')
#: What changes the meaning of a query must change on both sides of the wire.
_SETTINGS = frozenset(
    (
        "timezone", "calendar", "default_null_order", "null_order", "default_order",
        "integer_division", "ieee_floating_point_ops", "default_collation",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DuckDB(Backend):
    """An embedded DuckDB with Louver's functions."""

    def render(self, node: exp.Expr, leaf: Leaf, type_of: TypeOf) -> str | None:
        """Its text, of a vocabulary that depends on nothing but its operands."""
        for part in node.walk():
            if not isinstance(part, _NATIVE) or part.args.get("query"):
                return None
            if isinstance(part, exp.TryCast):
                return None
            # The server has none of the user's types.
            if isinstance(part, exp.DataType) and part.this == exp.DataType.Type.USERDEFINED:
                return None
            if isinstance(part, exp.Cast) and not isinstance(part.this, exp.Literal):
                return None
        copy = exp.Paren(this=node.copy())
        for part in list(copy.find_all(exp.Column, exp.Literal)):
            text = leaf(part)
            if text is not None:
                part.replace(exp.Var(this=text))
        return copy.sql("duckdb")

    def cast(self, placeholder: str, stored: str) -> str:
        """A placeholder whose value has a stored type."""
        return f"{placeholder}::{self.stored_type(stored)}"

    def plain_type(self, declared: str) -> str:
        """Every type of the local engine is the server's."""
        return declared

    def some_rows(self, table: Table, columns: Sequence[str], count: int) -> str:
        """Stored columns of so many rows that the server picks by chance."""
        names = ", ".join(("row_id", *columns))
        return f"SELECT {names} FROM {self.table(table)} USING SAMPLE {count} ROWS"

    def adjusted(self, code: str, layer: str, keys: str, *, wide: bool) -> str:
        """A code without its outermost layer, or under its group's key."""
        name = f"onion_{layer}" + ("_wide" if wide else "")
        rows = "row_id, " if layer == "open" else ""
        return f"{name}({code}, {rows}{keys})"

    def materialize(
        self,
        table: Table,
        terms: Mapping[str, tuple[int, Sequence[str]]],
        columns: Mapping[str, str],
        powers: int,
    ) -> str:
        """Products with powers of S where they are missing; the powers share their squarings."""
        modulus = f"${powers + 1}"
        items, sets, factors = [], [], set()
        for name, (index, parts) in terms.items():
            product = f"louver_p[{index + 1}]"
            for part in parts:
                product = f"sdb_mul({part}, {product}, {modulus})"
            items.append(f"{product} AS {columns[name]}")
            sets.append(f"{columns[name]} = u.{columns[name]}")
            factors |= set(parts)
        listed = ", ".join(f"${number}::BLOB" for number in range(1, powers + 1))
        inner = (
            f"SELECT {', '.join(['row_id', *sorted(factors)])},"
            f" sdb_powers({table.helper_one}, [{listed}], {modulus}) AS louver_p"
            f" FROM {self.table(table)} WHERE {next(iter(columns.values()))} IS NULL"
        )
        return (
            f"UPDATE {self.table(table)} AS t SET {', '.join(sets)}"
            f" FROM (SELECT row_id AS louver_r, {', '.join(items)} FROM ({inner})) AS u"
            " WHERE t.row_id = u.louver_r"
        )

    def repeated(self, message: str) -> tuple[str, bool] | None:
        """The value of a unique column that a refusal names."""
        match = _REPEATED.search(message)
        return (match["value"], match["column"] is not None) if match else None

    def checkpoint(self) -> str:
        """What writes memory to where it stays."""
        return "CHECKPOINT"


BACKEND = DuckDB(
    "duckdb",
    _OPERATIONS,
    _TYPES,
    words=frozenset("blob bigint date timestamp decimal int text varchar uuid filter".split()),
    functions=_FUNCTIONS,
    unique="UNIQUE",
    replaces=True,
    concurrent=True,
    embedded=True,
    sieves=True,
    has_tiles=True,
    settings=_SETTINGS,
)
