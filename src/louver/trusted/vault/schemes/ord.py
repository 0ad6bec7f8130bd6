"""Leaks: nothing at rest but the number of values; once its layer is open, the order of rows, and
roughly how close two values are.
Answers: < <= > >= BETWEEN, MIN, MAX, ORDER BY with LIMIT.
Stored as: BIGINT or UUID: an order-preserving code, under a pad of the row while it is closed.
Spec: spec/ord.md.
Broken by: sorting attacks (Naveed, Kamara, Wright, CCS 2015) once it is open.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme

_OPEN = Leak(
    "order",
    "ord.open",
    "the server can order the rows of {table} by {column}, and tell roughly how close they"
    " are{nulls}",
)
_JOIN = Leak(
    "order",
    "ord.join",
    "the server can order the values of {pair} together, and tell roughly how close they are",
)
SCHEME = Scheme(
    name="ord",
    representation="ord",
    stored_as="an order-preserving code of 8 or 16 bytes, under a pad per row until it is opened",
    spec="spec/ord.md",
    ceiling="order",
    at_rest=Leak(
        "size",
        "ord.rest",
        "the server knows how many order codes of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A < u, A BETWEEN u AND w …": _OPEN,
        "MIN, MAX": _OPEN,
        "ORDER BY … LIMIT": _OPEN,
        "A < B of one join group": _JOIN,
    },
    broken_by="sorting and cumulative frequencies once open: Naveed, Kamara and Wright, CCS 2015",
)
