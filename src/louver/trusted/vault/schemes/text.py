"""Leaks: at rest the number of values; a search shows which rows have one of its words or pieces.
Answers: LIKE, whole words, prefixes, as filters whose result is tested again at home.
Stored as: BLOB: a salted filter of the keyed tokens of each text.
Spec: spec/text.md.
Broken by: attacks on searches by count (Cash, Grubbs, Perry, Ristenpart, CCS 2015).
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme

SCHEME = Scheme(
    name="text",
    representation="text",
    stored_as="a filter of keyed words, prefixes and pieces per row, salted by the row",
    spec="spec/text.md",
    ceiling="equality",
    at_rest=Leak(
        "size",
        "text.rest",
        "the server knows how many searchable texts of {column} in {table} there are",
    ),
    lengths=Leak(
        "size",
        "text.lengths",
        "the server knows roughly how many words each value of {column} in {table} has",
    ),
    operations={
        "A LIKE u": Leak(
            "equality",
            "text.match",
            "the server can tell which rows of {table} have a word or piece in {column} that was"
            " asked for",
            counted=True,
        ),
    },
    broken_by="counting matches against known texts: Cash et al., CCS 2015",
)
