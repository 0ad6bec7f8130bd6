"""Can a provider tell two secrets apart by what it sees? Tests that hardly ever fail in vain.

Randomness comes from the operating system, so no seed makes a test repeatable. Each test bounds
the chance of a false alarm instead, and without approximations: the tails of chi-squared tests
are approximations just where they matter here (10^-12 and less), whereas Hoeffding's bound holds
for any distribution. If two samples of n views come from one distribution, then for any yes-no
question the two shares of yes differ by t or more with probability at most 2 exp(-n t^2). The
questions asked of every view:

* each bit;
* each parity of bits within a byte (with all 255 of them, any difference between the distributions
  of a byte shows);
* each parity of two bits, anywhere in a view of up to 256 bytes (this finds, for instance, a
  control bit that was not cleared: it is random, but equals another where the secret's bit is 1);
* a linear classifier trained on one half of the views, asked on the other half: its hits are
  those of coin flips, so their share exceeds 1/2 by t with probability at most exp(-2 n t^2).

Constant bits, as those of headers, have no difference and do no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FALSE_ALARM = 1e-6
"""For all tests of one run of the suite together."""
CASES = 200
"""More than there are tests that share it."""
MOST_PAIRED = 2_048
"""Of longer views, this many bits are drawn whose pairs are looked at."""

Bits = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Finding:
    """A question whose answers tell the two secrets apart."""

    question: str
    difference: float
    bound: float


def findings(first: Sequence[bytes], second: Sequence[bytes]) -> list[Finding]:
    """What tells views of one secret from views of another; empty if nothing does.

    The views of both must be equally many. `FALSE_ALARM / CASES` is shared by four kinds.
    """
    lengths = {len(view) for view in (*first, *second)}
    if len(lengths) != 1:
        return [Finding("length of the views", 1.0, 0.0)]
    if len(first) != len(second):
        raise ValueError("as many views of one secret as of the other")
    alpha = FALSE_ALARM / CASES / 4
    a, b = _bits(first), _bits(second)
    findings = [*_single(a, b, alpha), *_within_bytes(a, b, alpha), *_pairs(a, b, alpha)]
    return findings + _classified(a, b, alpha)


def _bits(views: Sequence[bytes]) -> Bits:
    """One row a view, one column a bit (the lowest of a byte first): 1 or -1."""
    stacked = np.frombuffer(b"".join(views), np.uint8).reshape(len(views), -1)
    return 1 - 2 * np.unpackbits(stacked, axis=1, bitorder="little").astype(np.float32)


def _bound(views: int, questions: int, alpha: float) -> float:
    """How far shares of yes may lie apart, over all questions (Bonferroni)."""
    return math.sqrt(math.log(2 * questions / alpha) / views)


def _single(a: Bits, b: Bits, alpha: float) -> list[Finding]:
    differences = np.abs(a.mean(axis=0) - b.mean(axis=0)) / 2
    bound = _bound(len(a), len(differences), alpha)
    return [
        Finding(f"bit {position % 8} of byte {position // 8}", float(differences[position]), bound)
        for position in np.flatnonzero(differences > bound)
    ]


def _within_bytes(a: Bits, b: Bits, alpha: float) -> list[Finding]:
    """Walsh-Hadamard: the parities of all sets of bits of a byte at once."""
    size = a.shape[1] // 8
    bound = _bound(len(a), 255 * size, alpha)
    differences = np.abs(_spectra(a) - _spectra(b)) / 2
    return [
        Finding(f"parity {mask:#010b} of byte {byte}", float(differences[byte, mask]), bound)
        for byte, mask in np.argwhere(differences > bound).tolist()
    ]


def _spectra(bits: Bits) -> npt.NDArray[np.float64]:
    """For every byte and every set of its eight columns, the mean of their product."""
    views, size = len(bits), bits.shape[1] // 8
    values = np.packbits(bits < 0, axis=1, bitorder="little").astype(np.int64)
    values += 256 * np.arange(size)
    counts = np.bincount(values.ravel(), minlength=256 * size).astype(np.float64)
    for step in (1, 2, 4, 8, 16, 32, 64, 128):
        paired = counts.reshape(-1, 2, step)
        counts = np.stack([paired.sum(axis=1), paired[:, 0] - paired[:, 1]], axis=1).ravel()
    return counts.reshape(size, 256) / views


def _pairs(a: Bits, b: Bits, alpha: float) -> list[Finding]:
    size = a.shape[1]
    positions = np.arange(size)
    if size > MOST_PAIRED:
        positions = np.sort(np.random.default_rng().choice(size, MOST_PAIRED, replace=False))
        a, b = a[:, positions], b[:, positions]
    differences = np.abs(a.T @ a / len(a) - b.T @ b / len(b)) / 2
    bound = _bound(len(a), len(positions) * (len(positions) - 1) // 2, alpha)
    return [
        Finding(
            f"parity of bits {positions[i]} and {positions[j]}", float(differences[i, j]), bound
        )
        for i, j in np.argwhere(np.triu(differences > bound, 1))[:20].tolist()
    ]


def _classified(a: Bits, b: Bits, alpha: float) -> list[Finding]:
    """Ridge regression on the first half, hits on the second."""
    half = len(a) // 2
    labels = np.concatenate([np.ones(half), -np.ones(half)]).astype(np.float32)
    seen = np.concatenate([a[:half], b[:half]])
    middle = seen.mean(axis=0)
    seen = seen - middle
    # In the dual form the system is as large as the number of views, whatever their length.
    kernel = seen @ seen.T + np.eye(2 * half, dtype=np.float32) * seen.shape[1] / 4
    weights = seen.T @ np.linalg.solve(kernel, labels)
    hits = int(((a[half:] - middle) @ weights > 0).sum())
    hits += int(((b[half:] - middle) @ weights <= 0).sum())
    count = len(a) + len(b) - 2 * half
    bound = 0.5 + math.sqrt(math.log(1 / alpha) / (2 * count))
    if hits / count > bound:
        return [Finding("a linear classifier's hits", hits / count, bound)]
    return []
