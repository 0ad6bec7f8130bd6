"""INSERT … VALUES of constants: the new rows without the local engine, where it would only cast
literals and bound values that are known to be taken as they are (`known_values`).

What a row must obey beyond that is decided elsewhere: a table with a CHECK or computed columns, a
default that is an expression, NULL where there must be none, and whatever DuckDB may refuse, all
take the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from sqlglot.tokens import Token, TokenType

from louver.names import fold, keyword
from louver.trusted.executor import constraint_check
from louver.trusted.executor.change import conflicts, known_values, statement_parts
from louver.trusted.planner.sql import lexer
from louver.trusted.vault.catalog import Table

Item = int | tuple[object]
"""What gives a value: the place of a parameter, or a literal's value, by itself in a tuple."""
_NULL: Item = (None,)


class _Default:
    """What stands in VALUES for a column's default."""


_DEFAULT: Item = (_Default(),)


@dataclass(frozen=True, slots=True)
class _Cast:
    """A parameter that is cast, by its place, and the type as it is written."""

    position: int
    type: str


DefaultOf = Callable[[str, str | None], Item | None]
"""What a column of a name gets by the text of its default, if it has one."""
_WORDS: dict[str, Item] = {"NULL": _NULL, "TRUE": (True,), "FALSE": (False,)}


@dataclass(frozen=True, slots=True)
class Given:
    """A column of the new rows: what gives its values in each row of VALUES, its type in Arrow, and
    whether it takes no NULL.
    """

    name: str
    type: str
    field_type: pa.DataType
    items: tuple[Item, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class Form:
    """An INSERT … VALUES of constants without the values of its parameters; ``keys`` are the
    columns of each key.
    """

    columns: tuple[Given, ...]
    keys: tuple[tuple[str, ...], ...]

    def rows(self, parameter_rows: Sequence[Sequence[object]]) -> pa.Table | None:
        """The new rows, of each set of values all; None where only DuckDB tells."""
        arrays = dict[str, pa.Array]()
        for column in self.columns:
            values = values_of(column.items, parameter_rows)
            if column.required and None in values:
                return None
            array = known_values.array(column.type, column.field_type, values)
            if array is None:
                return None
            arrays[column.name] = array
        rows = pa.table(arrays)
        apart = rows.num_rows < 2 or all(_is_unique(rows, names) for names in self.keys)
        return rows if apart else None


def form_of(
    words: statement_parts.Words,
    parts: statement_parts.Insert,
    table: Table,
    rules: constraint_check.Rules,
    field_of: Callable[[str], pa.Field],
    default_of: DefaultOf | None = None,
    is_own: Callable[[str, str], bool] = lambda _name, _type: False,
) -> Form | None:
    """The form of an INSERT; None of any other than this module's. ``field_of`` gives the Arrow
    field of a type, ``default_of`` what the text of a column's default gives, and ``is_own`` tells
    whether a cast to a type leaves the values of a column as they are.
    """
    given = listed(words, parts, table)
    plain = parts.verb == 0 and parts.source_end == parts.returning == parts.end
    if given is None or not plain or words.keyword(parts.source) != "VALUES":
        return None
    if rules.generated or rules.deciding or any(c.expression for c in table.columns):
        return None
    rows = items_of(words, parts, len(given))
    if not rows:
        return None
    items = dict(zip(given, zip(*rows, strict=True), strict=True))
    columns = list[Given]()
    for column in table.columns:
        own = items.get(column.name)
        if own is None or set(own) == {_DEFAULT}:
            own = _default(rules, column.name, len(rows), default_of)
        elif _DEFAULT in own:
            return None
        own = None if own is None else _uncast(own, column.name, is_own)
        if own is None:
            return None
        required = fold(column.name) in rules.required
        field_type = field_of(column.type).type
        columns.append(Given(column.name, column.type, field_type, own, required))
    if any(known_values.array(c.type, c.field_type, [None]) is None for c in columns):
        return None
    return Form(tuple(columns), tuple(key.columns for key in rules.keys))


def _uncast(
    items: tuple[Item, ...], name: str, is_own: Callable[[str, str], bool]
) -> tuple[Item, ...] | None:
    results = list[Item]()
    for item in items:
        cast = None if isinstance(item, int) else item[0]
        if isinstance(cast, _Cast):
            if not is_own(name, cast.type):
                return None
            item = cast.position
        results.append(item)
    return tuple(results)


def listed(
    words: statement_parts.Words, parts: statement_parts.Insert, table: Table
) -> tuple[str, ...] | None:
    """The columns that the source gives; None where that is not plain to see."""
    between = words.tokens[parts.after_name : parts.source]
    if not between:
        return tuple(column.name for column in table.columns)
    texts = [token.text for token in between]
    if texts[0] != "(" or texts[-1] != ")" or any(text != "," for text in texts[2:-1:2]):
        return None
    columns = [table.column(text) for text in texts[1:-1:2]]
    names = tuple(column.name for column in columns if column is not None)
    return names if len(names) == len(columns) == len(set(names)) else None


def items_of(
    words: statement_parts.Words, parts: statement_parts.Insert, width: int
) -> list[list[Item]] | None:
    """What gives the values of each row of VALUES; None where one is neither a literal nor a
    parameter, or a row is of another width.
    """
    rows = list[list[Item]]()
    for start, end in conflicts.rows_of(words.tokens, parts.source + 1, parts.source_end):
        row = _items(words.tokens[start:end])
        if row is None or len(row) != width:
            return None
        rows.append(row)
    return rows


def values_of(
    items: Sequence[Item], parameter_rows: Sequence[Sequence[object]]
) -> Sequence[object]:
    """The values of one column, of each set of parameters those of all rows."""
    if len(items) == 1 and isinstance(items[0], int):
        position = items[0]
        return [given[position] for given in parameter_rows]
    return [
        given[item] if isinstance(item, int) else item[0]
        for given in parameter_rows
        for item in items
    ]


def _items(tokens: Sequence[Token]) -> list[Item] | None:
    """What stands between the commas of one row, in parentheses."""
    if len(tokens) < 3 or tokens[0].token_type != TokenType.L_PAREN:
        return None
    if tokens[-1].token_type != TokenType.R_PAREN:
        return None
    results, start = list[Item](), 1
    for position in range(1, len(tokens)):
        if position < len(tokens) - 1 and tokens[position].token_type != TokenType.COMMA:
            continue
        item = item_of(tokens[start:position])
        if [token.token_type for token in tokens[start:position]] == [TokenType.DEFAULT]:
            item = _DEFAULT
        item = item if item is not None else _cast(tokens[start:position])
        if item is None:
            return None
        results.append(item)
        start = position + 1
    return results


def _cast(tokens: Sequence[Token]) -> Item | None:
    if len(tokens) < 3 or tokens[1].token_type != TokenType.DCOLON:
        return None
    position = statement_parts.parameter_of(tokens[0])
    words = " ".join(token.text for token in tokens[2:])
    return None if position is None else (_Cast(position, fold(words)),)


def item_of(tokens: Sequence[Token]) -> Item | None:
    """A literal or a parameter; None of anything else."""
    if not tokens or len(tokens) > 2:
        return None
    token, negative = tokens[-1], tokens[0].token_type == TokenType.DASH
    if len(tokens) == 1 + negative and token.token_type == TokenType.NUMBER:
        return _number("-" * negative, token.text)
    if len(tokens) > 1:
        return None
    if token.token_type == TokenType.STRING:
        return (token.text,)
    if token.token_type in (TokenType.NULL, TokenType.TRUE, TokenType.FALSE):
        return _WORDS.get(keyword(token.text))
    return statement_parts.parameter_of(token)


def _number(sign: str, text: str) -> Item | None:
    whole, point, fraction = text.partition(".")
    if not text.isascii() or not whole.isdigit() or len(text) > 38:
        return None
    if not point:
        return (int(sign + whole),)
    return (Decimal(sign + text),) if fraction.isdigit() else None


def _default(
    rules: constraint_check.Rules, name: str, count: int,
    default_of: DefaultOf | None,
) -> tuple[Item, ...] | None:  # fmt: skip
    """What a column gets that is not given: NULL, or a literal; None of an expression."""
    text = rules.defaults.get(fold(name))
    if default_of is not None:
        item = default_of(name, text)
    else:
        item = _NULL if text is None else item_of(lexer.tokens(text))
    return None if item is None or isinstance(item, int) else (item,) * count


def _is_unique(rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether no two of the rows are alike in these columns, as far as Python tells; NULL is like
    nothing.
    """
    if any(pa.types.is_floating(rows.schema.field(name).type) for name in names):
        return False
    columns = [rows.column(name).to_pylist() for name in names]
    keys = [key for key in zip(*columns, strict=True) if None not in key]
    return len(set(keys)) == len(keys)
