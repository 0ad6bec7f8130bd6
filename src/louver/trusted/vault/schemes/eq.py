"""Leaks: nothing at rest but the number of values; once its layer is open, which rows have the same
value, and which are NULL; once it is open for joins, also which values of two columns are equal.
Answers: = <> IN, IS NULL, DISTINCT, GROUP BY, COUNT(DISTINCT), equi-joins within a join group.
Stored as: BIGINT or UUID: a permutation of the value, under a pad of the row while it is closed.
Spec: spec/eq.md.
Broken by: frequency analysis (Naveed, Kamara, Wright, CCS 2015) once it is open.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme

_OPEN = Leak(
    "equality",
    "eq.open",
    "the server can tell which rows of {table} have the same {column}{nulls}",
)
# No two rows are alike, but a value that is asked for or stored again is known again.
_UNIQUE = Leak(
    "equality",
    "eq.open/unique",
    "the server can tell that all values of {column} in {table} differ, and knows each of them"
    " again{nulls}",
)
_JOIN = Leak(
    "equality",
    "eq.join",
    "the server can tell which values of {pair} are equal",
)
SCHEME = Scheme(
    name="eq",
    representation="eq",
    stored_as="an equality code of 8 or 16 bytes, under a pad per row until a query opens it",
    spec="spec/eq.md",
    ceiling="equality",
    at_rest=Leak(
        "size",
        "eq.rest",
        "the server knows how many equality codes of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A = u, A <> u, A IN (…)": _OPEN,
        "IS NULL": _OPEN,
        "DISTINCT, GROUP BY, COUNT(DISTINCT)": _OPEN,
        "A = B of one join group": _JOIN,
        "all of these, of a UNIQUE column": _UNIQUE,
    },
    broken_by="frequency analysis once open: Naveed, Kamara and Wright, CCS 2015",
)
