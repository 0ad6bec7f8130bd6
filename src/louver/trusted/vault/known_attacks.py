"""Published attacks that use what a server is shown. What `louver attack` runs is marked so."""

from __future__ import annotations

_RUN = " (`louver attack`)"
CAO = f"Cao, Liu, Lu and Ren, PVLDB 2021, by ciphertext alone{_RUN}"
FREQUENCY = f"frequency analysis: Naveed, Kamara and Wright, CCS 2015{_RUN}"
ORDER = (
    "sorting and cumulative frequencies: Naveed, Kamara and Wright, CCS 2015; "
    f"Grubbs et al., S&P 2017{_RUN}"
)
VOLUMES = "reconstruction from many queries: Kellaris, Kollios, Nissim and O'Neill, CCS 2016"
FILES = f"{VOLUMES}, at the grain of files"
ZEROS = f"reading off zeros and NULLs; signs tell values apart{_RUN}"
TOGETHER = "on both columns together"
