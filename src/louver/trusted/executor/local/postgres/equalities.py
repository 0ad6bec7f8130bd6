"""Queries of the rows of one table whose columns have certain values, in some order, and maybe a
part of them: read off PostgreSQL's own tree, and by default none.

What is known here of a type holds under all settings: when two values are equal, and which of them
is less. Texts are put in order by their bytes, where the collation of the column does so.
"""

from __future__ import annotations

from dataclasses import dataclass

from louver.trusted.executor.local.postgres.connection import PostgresConnection
from louver.trusted.executor.local.postgres.query_tree import Node, constant, parsed


@dataclass(frozen=True, slots=True)
class Given:
    """A value of a query: of a parameter, by its position, or a constant."""

    parameter: int = -1
    value: int | str = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column is compared as: a name, the digits of a decimal behind its point, or the length
    of a text and whether blanks fill it up; then it is compared without them (``trims``).
    """

    name: str | int | tuple[int, bool]
    trims: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """A column has one of these values."""

    column: str
    kind: Kind
    values: tuple[Given, ...]
    #: whether its values are whole numbers, or texts
    is_whole: bool
    is_text: bool


@dataclass(frozen=True, slots=True)
class Order:
    """A column that rows are put in order by."""

    column: str
    trims: bool
    descends: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Query:
    """Such a query, of a table by schema and name."""

    table: tuple[str, str]
    shown: tuple[str, ...]
    conditions: tuple[Condition, ...]
    order: tuple[Order, ...]
    limit: Given | None
    offset: Given | None


_EMPTY = "<>"
#: Fields of a query, with the only value that they may have.
_FIELDS = {
    ":commandType": "1", ":hasAggs": "false", ":hasWindowFuncs": "false",
    ":hasTargetSRFs": "false", ":hasSubLinks": "false", ":hasDistinctOn": "false",
    ":hasRecursive": "false", ":hasModifyingCTE": "false", ":hasForUpdate": "false",
    ":hasRowSecurity": "false", ":limitOption": "0",
    **dict.fromkeys(
        (":utilityStmt", ":cteList", ":groupClause", ":groupingSets", ":havingQual",
         ":windowClause", ":distinctClause", ":rowMarks", ":setOperations", ":returningList",
         ":onConflict", ":withCheckOptions", ":mergeActionList"), _EMPTY,
    ),
}  # fmt: skip
#: Fields that not every release has.
_LATER = {":hasGroupRTE": "false", ":isReturn": "false"}
_SMALLINT, _INTEGER, _BIGINT = 21, 23, 20
_WHOLE = (_BIGINT, _SMALLINT, _INTEGER)
_VARCHAR, _TEXT, _CHAR, _NUMERIC = 1043, 25, 1042, 1700
_TEXTS, _TEXTS_LISTED = (_TEXT, _VARCHAR), 1009
_KINDS = {
    16: "bool", 17: "bytes", 1082: "date", 1114: "datetime", 1184: "moment", 2950: "UUID",
    **dict.fromkeys(_WHOLE, "int"), **dict.fromkeys(_TEXTS, "str"),
}  # fmt: skip
#: Operators that tell equal values of these types, of whole numbers also of different ones.
EQUAL = {
    **dict.fromkeys((94, 96, 410, 15, 416, 532, 533, 1862, 1868), _WHOLE),
    98: _TEXTS, 1054: (_CHAR,), 1752: (_NUMERIC,), 91: (16,), 1955: (17,), 1093: (1082,),
    2060: (1114,), 1320: (1184,), 2972: (2950,),
}  # fmt: skip
#: Operators that rows are put in order by, "<" and ">" of each type.
_SORTED = {
    (95, 520): (21,), (97, 521): (23,), (412, 413): (20,), (664, 666): _TEXTS,
    (1058, 1060): (_CHAR,), (1754, 1756): (_NUMERIC,), (58, 59): (16,), (1957, 1959): (17,),
    (1095, 1097): (1082,), (2062, 2064): (1114,), (1322, 1324): (1184,), (2974, 2975): (2950,),
}  # fmt: skip
_DEFAULT, _BY_BYTES = 100, (950, 951)
_TO_BIGINT, _TO_NUMERIC, _MODIFIER = 481, (1740, 1781, 1782), 4
_SCALE, _MOST_DIGITS = 0xFFFF, 37
#: Locales of a database whose default collation compares bytes, of these providers.
_LOCALES, _PROVIDERS = frozenset(("C", "POSIX", "C.UTF-8", "C.utf8")), ("b", "c")
#: The session's own database, whose name clients know by another one.
_LOCALE = """
SELECT d.datlocprovider::text, d.datcollate::text FROM pg_catalog.pg_database AS d
JOIN pg_catalog.pg_stat_activity AS a ON a.datid = d.oid
WHERE a.pid = pg_catalog.pg_backend_pid()
"""
_TABLE = """
SELECT n.nspname::text, c.relname::text, a.attnum::bigint, a.attname::text
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.oid = $1::bigint::oid AND c.relkind = 'r'
"""


class _OtherError(Exception):
    """A query is of another kind."""


def query_of(binder: PostgresConnection, tree: str) -> Query | None:
    """What a tree is, of a text that the binder has read; None of any other query."""
    node = parsed(tree)
    if node is None:
        return None
    try:
        return _Reading(binder, node).query()
    except _OtherError:
        return None


def _require(fits: object) -> None:
    if not fits:
        raise _OtherError


def _known(node: Node | None) -> Node:
    if node is None:
        raise _OtherError
    return node


def _listed(nodes: list[Node] | None) -> list[Node]:
    if nodes is None:
        raise _OtherError
    return nodes


def _only(nodes: list[Node] | None) -> Node:
    known = _listed(nodes)
    _require(len(known) == 1)
    return known[0]


class _Reading:
    """Reads one query."""

    def __init__(self, binder: PostgresConnection, node: Node) -> None:
        self._binder, self._node = binder, node
        self._names: dict[int, str] = {}

    def query(self) -> Query:
        """All of it."""
        node = self._node
        _require(all(node.word(name) == value for name, value in _FIELDS.items()))
        _require(all(node.word(name) in ("", value) for name, value in _LATER.items()))
        table = self._table()
        entries = _listed(node.nodes(":targetList"))
        _require(all(entry.label == "TARGETENTRY" for entry in entries))
        shown = tuple(
            self._column(_known(entry.node(":expr")))
            for entry in entries
            if entry.word(":resjunk") == "false"
        )
        _require(shown)
        return Query(
            table, shown, self._conditions(), self._order(entries),
            self._count(":limitCount"), self._count(":limitOffset"),
        )  # fmt: skip

    def _table(self) -> tuple[str, str]:
        """The only table."""
        entry = _only(self._node.nodes(":rtable"))
        _require(entry.label == "RANGETBLENTRY")
        wanted = {
            ":rtekind": "0",
            ":relkind": "r",
            ":tablesample": _EMPTY,
            ":securityQuals": _EMPTY,
        }
        _require(all(entry.word(name) == value for name, value in wanted.items()))
        source = _known(self._node.node(":jointree"))
        _require(source.label == "FROMEXPR")
        _require(_only(source.nodes(":fromlist")).label == "RANGETBLREF")
        rows = self._binder.fetchall(_TABLE, [entry.number(":relid")])
        _require(rows)
        self._names = {number: name for _, _, number, name in rows}
        return rows[0][0], rows[0][1]

    def _conditions(self) -> tuple[Condition, ...]:
        """What AND joins; there is one at least."""
        whole = _known(_known(self._node.node(":jointree")).node(":quals"))
        parts = [whole]
        if whole.label == "BOOLEXPR":
            _require(whole.word(":boolop") == "and")
            parts = _listed(whole.nodes(":args"))
        return tuple(map(self._condition, parts))

    def _condition(self, part: Node) -> Condition:
        is_list = part.label == "SCALARARRAYOPEXPR"
        _require(part.label == "OPEXPR" or (is_list and part.word(":useOr") == "true"))
        types = EQUAL.get(part.number(":opno"))
        _require(types is not None)
        _require(part.number(":inputcollid") in (0, _DEFAULT, *_BY_BYTES))
        sides = _listed(part.nodes(":args"))
        _require(len(sides) == 2)
        if not is_list and _bare(sides[0]).label != "VAR":
            sides.reverse()
        column, other = _bare(sides[0]), sides[1]
        _require(column.number(":vartype") in (types or ()))
        listed = [other]
        if is_list:
            if other.label == "ARRAYCOERCEEXPR" and other.number(":resulttype") == _TEXTS_LISTED:
                # Of varchar.
                other = _known(other.node(":arg"))
                _require(other.number(":element_typeid") == _VARCHAR)
            _require(other.label == "ARRAYEXPR" and other.word(":multidims") == "false")
            listed = _listed(other.nodes(":elements"))
        values = tuple(_given(item, types or ()) for item in listed)
        _require(values)
        type_ = column.number(":vartype")
        return Condition(
            self._column(column), _kind(column), values, type_ in _WHOLE, type_ in _TEXTS
        )

    def _order(self, entries: list[Node]) -> tuple[Order, ...]:
        by_number = {entry.number(":ressortgroupref"): entry for entry in entries}
        return tuple(
            self._ordered(item, by_number.get(item.number(":tleSortGroupRef")))
            for item in _listed(self._node.nodes(":sortClause"))
        )

    def _ordered(self, item: Node, entry: Node | None) -> Order:
        operator, column = item.number(":sortop"), _known(_known(entry).node(":expr"))
        name, type_ = self._column(column), column.number(":vartype")
        match = [pair for pair, types in _SORTED.items() if operator in pair and type_ in types]
        _require(len(match) == 1)
        collation = column.number(":varcollid")
        _require(collation == 0 or collation in _BY_BYTES or self._is_default(collation))
        kind = _kind(column)
        first = item.word(":nulls_first") == "true"
        return Order(name, kind.trims, operator == match[0][1], first)

    def _is_default(self, collation: int) -> bool:
        """Whether a collation is the database's own, which compares bytes."""
        if collation != _DEFAULT:
            return False
        rows = self._binder.fetchall(_LOCALE)
        return any(provider in _PROVIDERS and name in _LOCALES for provider, name in rows)

    def _column(self, node: Node) -> str:
        """A column of the table, as it is."""
        _require(node.label == "VAR" and node.word(":varlevelsup") == "0")
        name = self._names.get(node.number(":varattno"))
        if name is None:
            raise _OtherError
        return name

    def _count(self, field: str) -> Given | None:
        """What LIMIT or OFFSET say."""
        if self._node.word(field) == _EMPTY:
            return None
        given = _given(_known(self._node.node(field)), _WHOLE)
        _require(given.parameter >= 0 or (isinstance(given.value, int) and given.value >= 0))
        return given


def _bare(node: Node) -> Node:
    """What is taken as text without any change."""
    inner = node.node(":arg")
    if node.label == "RELABELTYPE" and inner is not None and node.number(":resulttype") in _TEXTS:
        type_ = inner.number(":vartype" if inner.label == "VAR" else ":paramtype")
        return inner if type_ in _TEXTS else node
    return node


def _kind(column: Node) -> Kind:
    type_, modifier = column.number(":vartype"), column.number(":vartypmod") - _MODIFIER
    if type_ in (_NUMERIC, _CHAR):
        _require(modifier >= 0)
        scale = modifier & _SCALE
        # A scale below zero is written as one that is beyond all digits.
        _require(type_ == _CHAR or scale <= _MOST_DIGITS)
        return Kind((modifier, True), trims=True) if type_ == _CHAR else Kind(scale)
    name = _KINDS.get(type_)
    if name is None:
        raise _OtherError
    return Kind(name)


def _given(node: Node, types: tuple[int, ...]) -> Given:
    """A parameter or a constant of one of these types."""
    bare = _bare(node)
    if bare.label == "FUNCEXPR":
        casts = (_TO_BIGINT,) if _BIGINT in types else _TO_NUMERIC if _NUMERIC in types else ()
        _require(bare.number(":funcid") in casts)
        given = _given(_only(bare.nodes(":args")), _WHOLE)
        _require(given.parameter < 0 or _BIGINT in types)
        return given
    if bare.label == "PARAM":
        _require(bare.word(":paramkind") == "0" and bare.number(":paramtype") in types)
        return Given(bare.number(":paramid") - 1)
    value = constant(bare)
    if value is None or isinstance(value, str) != (types == _TEXTS):
        raise _OtherError
    return Given(value=value)
