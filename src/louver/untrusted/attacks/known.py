"""Which published attacks use what a server is shown, by the kind of a fact.

The page docs/reference/schemes.md is made from this. What `louver attack` runs is marked so.
"""

from __future__ import annotations

NOTHING = "nothing known"
_RUN = " (`louver attack`)"
_CAO = f"Cao, Liu, Lu and Ren, PVLDB 2021, by ciphertext alone{_RUN}"
_FREQUENCY = f"frequency analysis: Naveed, Kamara and Wright, CCS 2015{_RUN}"
_ORDER = (
    "sorting and cumulative frequencies: Naveed, Kamara and Wright, CCS 2015; "
    f"Grubbs et al., S&P 2017{_RUN}"
)
_VOLUMES = "reconstruction from many queries: Kellaris, Kollios, Nissim and O'Neill, CCS 2016"

_FILES = f"{_VOLUMES}, at the grain of files"

BREAKS: dict[str, str] = {
    "sealed.rest": NOTHING,
    "sealed.lengths": "guessing by length, where lengths differ much",
    "scan": NOTHING,
    "rows": _VOLUMES,
    "rows.write": _VOLUMES,
    "rows.chosen": _VOLUMES,
    "rows.copied": _VOLUMES,
    "rows.counted": _VOLUMES,
    "write.plain": "reading them",
    "eq.rest": NOTHING,
    "eq.open": _FREQUENCY,
    "eq.join": f"{_FREQUENCY}, on both columns together",
    "join.rest": _FREQUENCY,
    "join.adjusted": f"{_FREQUENCY}, on both columns together",
    "ord.rest": NOTHING,
    "ord.open": _ORDER,
    "ord.join": f"{_ORDER}, on both columns together",
    "ore.rest": NOTHING,
    "ore.compare": "the attacks on order, on as much of it as comparisons have shown",
    "sum.rest": NOTHING,
    "hom.rest": NOTHING,
    "text.rest": NOTHING,
    "text.lengths": "guessing by the number of words, where it differs much",
    "text.match": "counting matches: Cash, Grubbs, Perry and Ristenpart, CCS 2015",
    "file.rest": NOTHING,
    "file.lengths": "guessing by size, where columns compress very differently",
    "files": _FILES,
    "eds.rest": NOTHING,
    "eds.range": _FILES,
    "eds.probe": _FILES,
    "eds.token": _FILES,
    "sdb.rest": f"reading off zeros and NULLs; signs tell values apart{_RUN}",
    "sdb.add": _CAO,
    "sdb.compare": _CAO,
    "sdb.sum": _CAO,
    "sdb.group": _CAO,
    "sdb.join": _CAO,
    "sdb.order": _CAO,
}
"""Every kind of leak that a scheme's row has."""
