"""Which queries and changes a server may run as they are, and their texts for it.

Decided on PostgreSQL's own tree of the query (`node_tree`), and by default not: all nodes are of a
few kinds, all types are PostgreSQL's own of which no setting changes a value, all functions are
immutable, and nothing depends on a collation. So the answer is the same on any server of
PostgreSQL's, whatever its settings. The text is the one that PostgreSQL prints of the tree: names
have their schemas, and `*` is written out.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from louver.trusted.executor.local.postgres.node_tree import TOKEN

_NODES = frozenset(
    """
    QUERY RANGETBLENTRY RTEPERMISSIONINFO ALIAS FROMEXPR JOINEXPR RANGETBLREF TARGETENTRY VAR CONST
    PARAM AGGREF FUNCEXPR OPEXPR DISTINCTEXPR NULLIFEXPR SCALARARRAYOPEXPR BOOLEXPR SUBLINK
    RELABELTYPE CASE CASEEXPR WHEN CASEWHEN ARRAY ARRAYEXPR COALESCE COALESCEEXPR NULLTEST
    BOOLEANTEST SORTGROUPCLAUSE ROWMARKCLAUSE
    """.split()
)
#: Fields, by their nodes, with the only values that they may have.
_FIELDS = {
    ("QUERY", ":hasModifyingCTE"): ("false",), ("QUERY", ":hasTargetSRFs"): ("false",),
    ("QUERY", ":hasRowSecurity"): ("false",),
    # Parameters of the statement, and what a subquery gives.
    ("PARAM", ":paramkind"): ("0", "2"),
    # Not as a row was, or will be.
    ("VAR", ":varreturningtype"): ("0",),
    # Of subqueries rows are locked without a word of it in the text.
    ("ROWMARKCLAUSE", ":pushedDown"): ("false",),
    # Relations, subqueries, joins, and in later releases groups and nothing.
    ("RANGETBLENTRY", ":rtekind"): ("0", "1", "2", "8", "9"),
    # Tables; a subquery has none, and a view's is another one.
    ("RANGETBLENTRY", ":relkind"): ("r", "<>"),
}  # fmt: skip
#: bool, int8, int2, int4, text, float4, float8, char(n), varchar, date, timestamp, timestamptz,
#: numeric, uuid, and arrays of these, which IN makes.
_TYPES = frozenset(
    (16, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1114, 1184, 1700, 2950,
     1000, 1016, 1005, 1007, 1009, 1021, 1022, 1014, 1015, 1182, 1115, 1185, 1231, 2951)
)  # fmt: skip
#: Of these a server's columns are as they are declared, but that varchar has no length there.
_STORED = frozenset((16, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1114, 1184, 1700, 2950))
_COLLATED = frozenset((25, 1042, 1043))
#: By the numbers of `CmdType`.
_VERBS = {"1": "SELECT", "2": "UPDATE", "4": "DELETE"}
#: char(n), and arrays of such.
_PADDED = ("1042", "1014")
#: Functions of texts that any collation that compares byte by byte, as ours, gives the same of.
_OF_TEXTS = frozenset(
    "texteq textne textlike textnlike bpchareq bpcharne length textlen bpcharlen count varchar"
    " bpchar".split()
)
#: Aliases that a text has, unlike those that the analyser adds.
_ALIASES = (":alias", ":join_using_alias")
#: Where clauses put rows in order, and do not only tell equal ones.
_ORDERED = (":sortClause", ":aggorder")
_FUNCTION_FIELDS = (":funcid", ":aggfnoid", ":opno")


#: What a text is printed under: names with their schemas, constants as all sessions read them.
SETTINGS = (
    "search_path = ''", "datestyle = 'ISO, YMD'", "intervalstyle = 'postgres'",
    "extra_float_digits = 1", "bytea_output = 'hex'", "quote_all_identifiers = off",
    "standard_conforming_strings = on", "timezone = 'UTC'",
)  # fmt: skip
LEFT = "SELECT oprleft FROM pg_operator WHERE oid = ANY($1::oid[])"
#: The name of the function whose body a text is.
NAME = "louver_body"
BODY = (
    "SELECT pg_get_function_sqlbody(oid) FROM pg_proc WHERE proname = $1"
    " AND pronamespace = 'pg_catalog'::regnamespace"
)
_BEGIN, _END = "BEGIN ATOMIC", "END"


def query_of(body: str) -> str:
    """The only statement of a function's body."""
    text = body.strip().removeprefix(_BEGIN).removesuffix(_END).strip()
    return text.removesuffix(";").strip()


@dataclass(slots=True)
class Judged:
    """What was read of a tree: whether it is of the grammar, and what else it depends on."""

    is_known: bool = True
    #: numbers of functions, and of operators, that are given a collation
    collated: set[tuple[str, int]] = field(default_factory=set)
    #: numbers of the operators that rows are put in order by
    orders: set[int] = field(default_factory=set)
    #: types of constants, columns and results
    types: set[int] = field(default_factory=set)
    #: what it does, the numbers of the columns that it sets, and of how many relations it is
    verb: str = ""
    sets: list[int] = field(default_factory=list)
    relations: int = 0
    _labels: list[str] = field(default_factory=list)
    _fields: list[str] = field(default_factory=list)
    _functions: list[tuple[str, int]] = field(default_factory=list)

    def enter(self, label: str, within: str) -> None:
        """A node begins, in a field of another one."""
        self._labels.append(label)
        self._fields.append(within)
        self._functions.append(("", 0))
        self.is_known &= label in _NODES
        self.relations += len(self._labels) == 2 and label == "RANGETBLENTRY"

    def leave(self) -> None:
        """It ends."""
        self._labels.pop()
        self._fields.pop()
        self._functions.pop()

    @property
    def is_open(self) -> bool:
        """Whether a node has not ended."""
        return bool(self._labels)

    def _does(self, word: str) -> None:
        """Only the statement as a whole may change rows."""
        if len(self._labels) == 1:
            self.verb = _VERBS.get(word, "")
        self.is_known &= word == "1" or (len(self._labels) == 1 and word in _VERBS)

    def _sets(self, name: str, word: str) -> None:
        if self.verb == "SELECT":
            return
        if name == ":resno":
            self.is_known &= word.isdecimal()
            self.sets.append(int(word) if word.isdecimal() else 0)
        elif name == ":resjunk":
            self.is_known &= word == "false"

    def take(self, name: str, word: str) -> None:
        """A field's first word."""
        label = self._labels[-1]
        if label == "QUERY" and name == ":commandType":
            self._does(word)
        if self._labels[1:] == ["TARGETENTRY"] and self._fields[-1] == ":targetList":
            self._sets(name, word)
        if label == "ALIAS" and name == ":colnames" and self._fields[-1] in _ALIASES:
            # Names by position: the server has more columns.
            self.is_known &= word == "<>"
        allowed = _FIELDS.get((label, name))
        if allowed is not None:
            self.is_known &= word in allowed
        if (label, name) == ("RELABELTYPE", ":resulttype"):
            # Such a cast is not printed; of what the server has as text it is not made.
            self.is_known &= word not in _PADDED
        if label == "VAR" and name == ":varattno":
            # Neither a whole row nor what each table has beside its columns.
            self.is_known &= word.isdecimal() and word != "0"
        if not word.isdecimal() or word == "0":
            return
        number = int(word)
        # A join lists all columns of its sides; what a query reads of them is there again.
        is_listed = label == "VAR" and self._fields[-1] == ":joinaliasvars"
        if name.endswith(("type", "typeid")) and not is_listed:
            self.types.add(number)
        if name in _FUNCTION_FIELDS:
            self._functions[-1] = name, number
        elif name == ":inputcollid":
            self.collated.add(self._functions[-1])
        elif (label, name) == ("SORTGROUPCLAUSE", ":sortop") and self._fields[-1] in _ORDERED:
            self.orders.add(number)


def judged(tree: str) -> Judged:
    """Read a tree's text."""
    result = Judged()
    name, is_first, follows, depth = "", True, False, list[str]()
    for match in TOKEN.finditer(tree):
        word = match[0]
        if word == "{":
            follows = True
        elif follows:
            result.enter(word, name)
            depth.append(name)
            name, follows = "", False
        elif word == "}":
            if not result.is_open:
                result.is_known = False
                return result
            result.leave()
            name, is_first = depth.pop(), False
        elif word.startswith(":"):
            name, is_first = word, True
        elif result.is_open and name and is_first and word not in "()":
            result.take(name, word)
            is_first = False
    result.is_known &= not result.is_open
    return result


def are_fixed(types: Collection[int]) -> bool:
    """Whether no setting changes what values of these types are."""
    return _TYPES.issuperset(types)


def are_stored(types: Collection[int]) -> bool:
    """Whether a server's columns of these types take what is assigned as the declared ones do."""
    return _STORED.issuperset(types)


def compares_bytes(functions: Collection[str]) -> bool:
    """Whether functions that are given a collation need none."""
    return _OF_TEXTS.issuperset(functions)


def is_collated(type_: int) -> bool:
    """Whether values of a type are put in order by a collation."""
    return type_ in _COLLATED
