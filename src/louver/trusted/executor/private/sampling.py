"""Several rows of a range at once, without revealing which: the sampling of appendix A.

Every provider adds each matching row of the range, under shares, into one slot of several small
tables, chosen by hashes. A slot with a single row shows that row; a known row is removed from all
tables, which opens the slots where it collided with another one. With six tables of at least 64
slots, rows remain hidden behind each other less than once in 10^8 questions; then the request is
repeated with other hashes.
"""

from __future__ import annotations

import secrets

import pyarrow as pa

from louver import errors
from louver.trusted.executor.private.constants import Keys
from louver.trusted.executor.private.rounds import Run, rows_of
from louver.trusted.vault.schemes import fss
from louver.wire import records, reply_sizes, search_params

TABLES = 6
LEAST_SLOTS = 64
SLOTS_A_ROW = 3
_ATTEMPTS = 4
_SEED_BYTES = 8


def gather(run: Run, keys: Keys, end: int, count: int, step: int) -> pa.Table:
    """The `count` rows with an index below `end` that match any clause.

    Sends shares for one prefix of each length and clause, whatever `end` is.
    """
    index_bits, code_bits = run.prepared.index_bits, run.prepared.codes.bits
    level = run.prepared.levels[0]
    prefixes = _prefixes(end, index_bits)
    lengths = [bits for bits, _ in prefixes for _ in keys.points]
    points = [
        None if prefix is None or at is None else prefix << code_bits | at
        for _, prefix in prefixes
        for at in keys.points
    ]
    slots = min(max(LEAST_SLOTS, SLOTS_A_ROW * run.shape.limit), search_params.MAX_SLOTS)
    for attempt in range(_ATTEMPTS):
        seeds = [int.from_bytes(secrets.token_bytes(_SEED_BYTES), "big") for _ in range(TABLES)]
        with run.clock.step("share"):
            sample = fss.Sample([code_bits + bits for bits in lengths], points)
        form = search_params.sample_form(slots, seeds, lengths)
        parts = [reply_sizes.gathered(level, slots, len(seeds))]
        (replies,) = run.ask(step + attempt, sample.functions(), parts, form)
        with run.clock.step("open"):
            widened = [records.widened(reply, level, 2 * reply_sizes.BLOCK) for reply in replies]
            sampled = sample.open(widened, level.stored, slots, seeds)
        if sampled is None:
            continue
        if len(sampled) != count:
            raise errors.make("provider.lied")
        return rows_of(run, [(record[: level.width], 0, None) for record in sampled])
    raise errors.make("internal", detail="conflicting rows after repeated searches")


def _prefixes(end: int, bits: int) -> list[tuple[int, int | None]]:
    """At most one prefix of each length from 0 to `bits`; together they cover [0, end)."""
    prefixes: list[tuple[int, int | None]] = []
    for length in range(bits + 1):
        below = bits - length
        used = bool(end >> below & 1)
        # The bits of `end` above this one were covered by shorter prefixes.
        prefixes.append((length, (end >> below) - 1 if used else None))
    return prefixes
