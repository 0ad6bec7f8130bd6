"""What SET gives to a column, where no engine is needed to tell: a constant, another column of its
type, a column of the row that an INSERT came with (``excluded``), and a sum or difference of two of
these in a whole or decimal type, which is exact wherever it is a value of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot.tokens import Token, TokenType

from louver.names import fold
from louver.trusted.executor.change import constant_rows, known_values, statement_parts
from louver.trusted.executor.raw_rows import raw
from louver.trusted.executor.storage import ROW_ID
from louver.trusted.planner.ir import Stretch
from louver.trusted.vault.catalog import Column, Table
from louver.trusted.vault.types import decimal_width, is_integer

EXCLUDED = "excluded"
#: Words that are functions, also where a column has such a name.
FUNCTIONS = frozenset(
    "current_date current_time current_timestamp localtime localtimestamp current_role current_user"
    " session_user user system_user current_catalog current_schema".split()
)
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_SIGNS = {TokenType.PLUS: 1, TokenType.DASH: -1}
#: Digits of decimals that Python adds exactly, and far more.
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class _Part:
    """A column of the row, or of the row that came with an INSERT, or a constant."""

    column: str = ""
    given: bool = False
    item: constant_rows.Item = (None,)


@dataclass(frozen=True, slots=True)
class Term:
    """What a column is set to: one part, or with a sign two."""

    name: str
    type: str
    field_type: pa.DataType
    required: bool
    left: _Part
    sign: int = 0
    right: _Part = _Part()

    def values(
        self, old: pa.Table, given: pa.Table | None, parameters: Sequence[object]
    ) -> pa.Array | None:
        """The new values of some rows, with what each of them came with; None where only DuckDB
        tells.
        """
        if not self.sign:
            results = self._array(self.left, old, given, parameters)
        else:
            sides = [_numbers(p, old, given, parameters) for p in (self.left, self.right)]
            results = self._sums(*sides)
        return None if results is None or (self.required and results.null_count) else results

    def raw_value(
        self, old: Mapping[str, object], parameters: Sequence[object]
    ) -> tuple[object] | None:
        """The same of the raw values of one row, in a tuple, for a term of columns of its type and
        constants that are of it; None where it reads what came, or is NULL and may not be.
        """
        values = [self._raw_part(part, old, parameters) for part in self._parts()]
        if self.reads_given:
            return None
        value = values[0]
        if self.sign:
            left, right = values
            is_null = left is None or right is None
            value = None if is_null else cast(int, left) + self.sign * cast(int, right)
        return None if value is None and self.required else (value,)

    def _raw_part(
        self, part: _Part, old: Mapping[str, object], parameters: Sequence[object]
    ) -> object:
        if part.column:
            return old[part.column]
        value = parameters[part.item] if isinstance(part.item, int) else part.item[0]
        return raw(value, self.type)

    def columns(self) -> list[str]:
        """The columns that it reads."""
        return [part.column for part in self._parts() if part.column]

    def constants(self) -> list[constant_rows.Item]:
        """Its constants, and the places of its parameters."""
        return [part.item for part in self._parts() if not part.column]

    def parts(self) -> list[str | constant_rows.Item]:
        """Names of columns that it reads, its constants, and the places of its parameters."""
        return [part.column or part.item for part in self._parts()]

    @property
    def reads_given(self) -> bool:
        """Whether it reads what an INSERT came with."""
        return any(part.given for part in self._parts())

    def _parts(self) -> tuple[_Part, ...]:
        return (self.left, self.right) if self.sign else (self.left,)

    def _array(
        self, part: _Part, old: pa.Table, given: pa.Table | None, parameters: Sequence[object]
    ) -> pa.Array | None:
        if not part.column:
            (value,) = constant_rows.values_of([part.item], [parameters])
            # DuckDB refuses a constant also where no row gets it.
            results = known_values.array(self.type, self.field_type, [value] * (old.num_rows + 1))
            return None if results is None else results.slice(1)
        rows = given if part.given else old
        if rows is None or rows.schema.field(part.column).type != self.field_type:
            return None
        return joined(rows.column(part.column))

    def _sums(self, left: Sequence[Any] | None, right: Sequence[Any] | None) -> pa.Array | None:
        if left is None or right is None:
            return None
        if not all(_adds(self.type, value) for value in (*left, *right)):
            return None
        sums = [
            None if first is None or second is None else first + self.sign * second
            for first, second in zip(left, right, strict=True)
        ]
        results = known_values.array(self.type, self.field_type, sums)
        return None if results is None else results.slice(1)


def terms_of(
    words: statement_parts.Words,
    stretch: Stretch,
    table: Table,
    known_as: Collection[str],
    required: Collection[str],
    field_of: Callable[[str], pa.Field],
) -> tuple[Term, ...] | None:
    """The terms of ``name = expression`` between commas; None of any others. ``known_as`` are the
    folded names that the table goes by, with `EXCLUDED` where there is such a row.
    """
    names = {EXCLUDED, *known_as}
    if any(fold(column.name) in names for column in table.columns):
        return None
    results = dict[str, Term]()
    for first, last in _items(words.tokens, *stretch):
        tokens = words.tokens[first:last]
        column = table.column(tokens[0].text) if len(tokens) > 2 else None
        if column is None or not is_name(tokens[0]) or column.name in results:
            return None
        if column.expression or tokens[1].token_type != TokenType.EQ:
            return None
        parts = _parts(tokens[2:], table, known_as, column)
        if parts is None:
            return None
        field_type = field_of(column.type).type
        if known_values.array(column.type, field_type, [None]) is None:
            return None
        needed = fold(column.name) in required
        results[column.name] = Term(column.name, column.type, field_type, needed, *parts)
    return tuple(results.values())


def is_name(token: Token) -> bool:
    """Whether a token before ``=`` is a name; so are words that types are called by, as NAME."""
    if token.token_type in _NAMES:
        return True
    return token.token_type != TokenType.STRING and token.text.isidentifier()


def of_given(column: Column, required: bool, field_of: Callable[[str], pa.Field]) -> Term:
    """A column set to that of the row that came."""
    field_type = field_of(column.type).type
    return Term(column.name, column.type, field_type, required, _Part(column.name, given=True))


def changed(
    terms: Sequence[Term],
    before: pa.Table,
    given: pa.Table | None,
    parameters: Sequence[object],
) -> pa.Table | None:
    """Rows with the columns that are set as they are then; None where only DuckDB tells."""
    arrays = {name: before.column(name) for name in before.column_names if name != ROW_ID}
    for term in terms:
        values = term.values(before, given, parameters)
        if values is None:
            return None
        arrays[term.name] = values
    return pa.table(arrays)


def difference(terms: Sequence[Term], before: pa.Table, after: pa.Table) -> pa.Array:
    """Which rows are others after a change."""
    other = pa.array([False] * before.num_rows, pa.bool_())
    for term in terms:
        old, new = (joined(rows.column(term.name)) for rows in (before, after))
        other = pc.or_(other, differs(old, new))
    return other


def differs(before: pa.Array, after: pa.Array) -> pa.Array:
    """Where two columns of one type do not have the very same values; -0.0 and 0.0 are two."""
    before, after = _bits(before), _bits(after)
    if len(before) == 1:
        return pa.array([not before.equals(after)], pa.bool_())
    other = pc.fill_null(pc.not_equal(before, after), False)
    return pc.or_(other, pc.xor(before.is_null(), after.is_null()))


def _bits(values: pa.Array) -> pa.Array:
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    whole = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}.get(values.type)
    return values if whole is None else values.view(whole)


def joined(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    values = column.combine_chunks()
    return pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values


def _items(tokens: Sequence[Token], first: int, last: int) -> Iterator[tuple[int, int]]:
    start = first
    for position in range(first, last):
        if tokens[position].token_type == TokenType.COMMA:
            yield start, position
            start = position + 1
    yield start, last


def _parts(
    tokens: Sequence[Token], table: Table, known_as: Collection[str], column: Column
) -> tuple[_Part] | tuple[_Part, int, _Part] | None:
    """The one part of an expression, or the two with their sign."""
    signs = [n for n, token in enumerate(tokens) if n and token.token_type in _SIGNS]
    if not signs:
        alone = _part(tokens, table, known_as, column)
        return None if alone is None else (alone,)
    if not _adds(column.type, None):
        return None
    left = _part(tokens[: signs[0]], table, known_as, column)
    right = _part(tokens[signs[0] + 1 :], table, known_as, column)
    if left is None or right is None:
        return None
    return left, _SIGNS[tokens[signs[0]].token_type], right


def _part(
    tokens: Sequence[Token], table: Table, known_as: Collection[str], column: Column
) -> _Part | None:
    """A constant, or a column of the type of the one that is set."""
    item = constant_rows.item_of(tokens)
    if item is not None:
        return _Part(item=item)
    if len(tokens) not in (1, 3) or any(t.token_type not in _NAMES for t in tokens[::2]):
        return None
    qualifier = fold(tokens[0].text) if len(tokens) == 3 else ""
    if qualifier and (tokens[1].token_type != TokenType.DOT or qualifier not in known_as):
        return None
    if not qualifier and fold(tokens[0].text) in FUNCTIONS:
        return None
    read = table.column(tokens[-1].text)
    if read is None or read.type != column.type:
        return None
    return _Part(read.name, qualifier == EXCLUDED)


def _numbers(
    part: _Part, old: pa.Table, given: pa.Table | None, parameters: Sequence[object]
) -> list[Any] | None:
    """The values of a part in Python, after one that stands for rows that there are not."""
    if not part.column:
        (value,) = constant_rows.values_of([part.item], [parameters])
        return [value for _ in range(old.num_rows + 1)]
    rows = given if part.given else old
    return None if rows is None else [None, *rows.column(part.column).to_pylist()]


def _adds(type_: str, value: Any) -> bool:
    """Whether a value is added exactly in a column's type: whole numbers in signed types, in
    decimal ones also decimals of no more digits behind the point; NULL in both.
    """
    decimal = decimal_width(type_)
    if decimal is None:
        known = is_integer(type_) and not type_.startswith("U") and type_ != "HUGEINT"
        return known and (value is None or (type(value) is int and abs(value) < 1 << 63))
    width, scale = decimal
    if width > _MOST_DIGITS or not (value is None or type(value) in (int, Decimal)):
        return False
    if isinstance(value, Decimal):
        _, _, exponent = value.as_tuple()
        if not isinstance(exponent, int) or not -scale <= exponent <= 0:
            return False
    return value is None or bool(abs(value) < 10 ** (width - scale))
