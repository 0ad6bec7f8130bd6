"""PostgreSQL's own tree of a statement, as `pg_node_tree` prints it: what it reads and calls.

The tree is that of the analyser: names are numbers of objects there, so that no search path, alias
or shadowed name can be mistaken. A node of a kind that is not known here makes the tree unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: The bytes of a constant are one token: there may be millions, and names have no bare blanks.
TOKEN = re.compile(
    r':constvalue \d+ \[[-\d ]*\]|[(){}]|"(?:[^"\\]|\\.)*"|(?:[^\s(){}\\]|\\.)+', re.DOTALL
)
#: Kinds of nodes that read nothing but what their parts read, or that are looked at below. Those of
#: several releases: CASE is called CASEEXPR since PostgreSQL 16.
_KNOWN = frozenset(
    """
    QUERY RANGETBLENTRY RTEPERMISSIONINFO ALIAS FROMEXPR JOINEXPR RANGETBLREF TARGETENTRY VAR CONST
    PARAM AGGREF GROUPINGFUNC WINDOWFUNC MERGESUPPORTFUNC SUBSCRIPTINGREF FUNCEXPR NAMEDARGEXPR
    OPEXPR DISTINCTEXPR NULLIFEXPR SCALARARRAYOPEXPR BOOLEXPR SUBLINK FIELDSELECT FIELDSTORE
    RELABELTYPE COERCEVIAIO ARRAYCOERCEEXPR CONVERTROWTYPEEXPR COLLATEEXPR CASE CASEEXPR WHEN
    CASEWHEN CASETESTEXPR ARRAY ARRAYEXPR ROW ROWEXPR ROWCOMPARE ROWCOMPAREEXPR COALESCE
    COALESCEEXPR MINMAX MINMAXEXPR SQLVALUEFUNCTION XMLEXPR JSONFORMAT JSONRETURNING JSONVALUEEXPR
    JSONCONSTRUCTOREXPR JSONISPREDICATE JSONBEHAVIOR JSONEXPR JSONTABLEPATH JSONTABLEPATHSCAN
    JSONTABLESIBLINGJOIN NULLTEST BOOLEANTEST COERCETODOMAIN COERCETODOMAINVALUE SETTODEFAULT
    INFERENCEELEM RETURNINGEXPR SORTGROUPCLAUSE GROUPINGSET WINDOWCLAUSE ROWMARKCLAUSE
    COMMONTABLEEXPR CTESEARCHCLAUSE CTECYCLECLAUSE SETOPERATIONSTMT RANGETBLFUNCTION TABLEFUNC
    TABLESAMPLECLAUSE ONCONFLICTEXPR MERGEACTION
    """.split()
)
#: Fields that hold the number of a function, and of an operator.
_FUNCTIONS = frozenset({
    ":funcid", ":opfuncid", ":aggfnoid", ":winfnoid", ":tsmhandler",
})  # fmt: skip
_OPERATORS = frozenset({":opno"})
#: Nodes that name a relation with what it must be permitted, INSERT, UPDATE or DELETE among that.
_RELATION, _CHANGING = frozenset({"RANGETBLENTRY", "RTEPERMISSIONINFO"}), 1 | 4 | 8
_SELECT, _ROW_MARK = "1", "ROWMARKCLAUSE"
#: Nodes that compare; char(n) and arrays of such; a cast that no word of the text asks for.
_COMPARING = frozenset({"OPEXPR", "DISTINCTEXPR", "NULLIFEXPR", "SCALARARRAYOPEXPR"})
_PADDED, _IMPLICIT = ("1042", "1014"), "2"
#: CURRENT_CATALOG's number among the values that SQL has words for.
_CURRENT_CATALOG = "13"


@dataclass(slots=True)
class Read:
    """What a tree reads and calls, by the numbers of relations, functions and operators."""

    relations: set[int] = field(default_factory=set)
    functions: set[int] = field(default_factory=set)
    operators: set[int] = field(default_factory=set)
    #: types of constants, columns and results
    types: set[int] = field(default_factory=set)
    #: whether it is a query, in all of its parts
    only_selects: bool = True
    #: whether every node is of a kind that is known
    is_known: bool = True
    #: whether a part of it, such as one of WITH, changes rows
    modifies_within: bool = False
    #: whether a function or view that it names changes rows
    calls_changes: bool = False
    #: the relations that it changes
    written: set[int] = field(default_factory=set)
    #: whether it locks rows that it reads
    locks: bool = False
    #: whether it reads columns that PostgreSQL has in every table, such as ctid
    reads_system: bool = False
    #: whether it compares char(n) with varchar, as char(n)
    pads_varchar: bool = False
    #: the type that a value is taken as, of the node that is read
    taken_as: str = ""
    #: whether it has the name of the database by a word that is not a function's
    names_database: bool = False
    #: how many queries were met
    queries: int = 0
    #: the relation of the node that is read
    relation: int = 0

    def add(self, other: Read) -> None:
        """What another one reads too."""
        self.relations |= other.relations
        self.functions |= other.functions
        self.operators |= other.operators
        self.types |= other.types
        self.is_known &= other.is_known
        self.calls_changes |= other.modifies_within or not other.only_selects
        self.modifies_within |= self.calls_changes
        self.written |= other.written
        self.locks |= other.locks
        self.reads_system |= other.reads_system
        self.names_database |= other.names_database
        self.pads_varchar |= other.pads_varchar


def read(text: str) -> Read:
    """Read off a tree's text."""
    results = Read()
    labels: list[str] = []
    name, is_first, follows = "", True, False
    for match in TOKEN.finditer(text):
        word = match[0]
        if word == "{":
            follows = True
        elif follows:
            labels.append(word)
            results.is_known &= word in _KNOWN
            results.locks |= word == _ROW_MARK
            name, follows = "", False
        elif word == "}":
            if not labels:
                results.is_known = False
                return results
            labels.pop()
            name = ""
        elif word.startswith(":"):
            # An alias may look like a field: it is followed by one, and so has no value.
            name, is_first = word, True
        elif labels and name and is_first:
            _take(results, labels[-1], name, word)
            if labels[-1] == "RELABELTYPE" and labels[-2:-1] and labels[-2] in _COMPARING:
                _relabelled(results, name, word)
            is_first = False
    results.is_known &= not labels
    return results


def _relabelled(results: Read, name: str, word: str) -> None:
    if name == ":resulttype":
        results.taken_as = word
    elif name == ":relabelformat":
        results.pads_varchar |= word == _IMPLICIT and results.taken_as in _PADDED


def _take(results: Read, label: str, name: str, word: str) -> None:
    if label == "QUERY" and name == ":commandType":
        results.only_selects &= word == _SELECT
        results.modifies_within |= results.queries > 0 and word != _SELECT
        results.queries += 1
    elif label == "VAR" and name == ":varattno":
        results.reads_system |= word.startswith("-")
    elif label == "SQLVALUEFUNCTION" and name == ":op":
        results.names_database |= word == _CURRENT_CATALOG
    if not word.isdecimal() or word == "0":
        return
    if label in _RELATION and name == ":relid":
        results.relation = int(word)
        results.relations.add(int(word))
    elif label in _RELATION and name == ":requiredPerms" and int(word) & _CHANGING:
        results.written.add(results.relation)
    elif name in _FUNCTIONS:
        results.functions.add(int(word))
    elif name in _OPERATORS:
        results.operators.add(int(word))
    elif name.endswith(("type", "typeid")):
        results.types.add(int(word))
