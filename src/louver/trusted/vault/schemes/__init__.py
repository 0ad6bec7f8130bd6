"""The schemes, each with one row that says all about it.

The planner, the ledger, EXPLAIN, the page docs/reference/schemes.md and the tests read these rows;
no sentence of leakage stands anywhere else.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme, publish
from louver.trusted.vault.schemes import (
    eds,
    eq,
    file,
    hom,
    join,
    ore,
    rnd,
    sdb,
    sum,  # noqa: A004
    text,
)
from louver.trusted.vault.schemes import ord as order

SCHEMES: dict[str, Scheme] = {
    module.SCHEME.representation: module.SCHEME
    for module in (rnd, eq, join, order, ore, sum, hom, text, sdb, file, eds)
}
"""Every scheme by the representation that it stores."""
for _scheme in SCHEMES.values():
    publish(_scheme)


def scheme_of(representation: str) -> Scheme:
    """The scheme of a stored column; some store several, as `sum_high` beside `sum`."""
    return SCHEMES[representation.partition("_")[0]]


__all__ = ["SCHEMES", "Leak", "Scheme", "scheme_of"]
