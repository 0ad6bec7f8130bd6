"""Leaks: nothing at rest but the number of values; each comparison shows which rows lie below its
constant, and for each row the first block in which it differs from that.
Answers: < <= > >= BETWEEN.
Stored as: BLOB: the right ciphertexts of Lewi and Wu, NULL like a value.
Spec: spec/ore.md.
Broken by: sorting attacks as order codes are, on what the comparisons have shown.
"""

from __future__ import annotations

from louver.trusted.vault.scheme import Leak, Scheme

SCHEME = Scheme(
    name="ore",
    representation="ore",
    stored_as="a right ciphertext that compares with a token of the client's, by a function",
    spec="spec/ore.md",
    ceiling="order",
    at_rest=Leak(
        "size",
        "ore.rest",
        "the server knows how many order-revealing values of {column} in {table} there are",
    ),
    lengths=None,
    operations={
        "A < u, A BETWEEN u AND w …": Leak(
            "order",
            "ore.compare",
            "the server can tell on which side of a value that a query asked for each {column} of"
            " {table} lies, and how close",
            counted=True,
        ),
    },
    broken_by="sorting attacks on what the comparisons have shown",
)
