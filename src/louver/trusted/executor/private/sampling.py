"""Several rows at once out of a run of rows, without saying which: the sampling of appendix A.

Every provider adds each row of the run that matches, under shares, into one slot of some small
tables, chosen by hashes. A slot that one row fell into is that row; once a row is known it is taken
out of all tables, which lays open slots where it met another one. With six tables of at least 64
slots, rows stay hidden behind each other less than once in 10^8 questions; then it is asked again
with other hashes.
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
    """The rows with an index below `end` that match any clause; they are `count`.

    Sends shares for one prefix of each length and clause, whatever `end` is.
    """
    index_bits, code_bits = run.prepared.index_bits, run.prepared.codes.bits
    level = run.prepared.levels[0]
    prefixes = _prefixes(end, index_bits)
    lengths = [bits for bits, _ in prefixes for _ in keys.points]
    places = [
        None if prefix is None or at is None else prefix << code_bits | at
        for _, prefix in prefixes
        for at in keys.points
    ]
    slots = min(max(LEAST_SLOTS, SLOTS_A_ROW * run.shape.limit), search_params.MAX_SLOTS)
    for attempt in range(_ATTEMPTS):
        seeds = [int.from_bytes(secrets.token_bytes(_SEED_BYTES), "big") for _ in range(TABLES)]
        with run.clock.step("share"):
            sample = fss.Sample([code_bits + bits for bits in lengths], places)
        form = search_params.sample_form(slots, seeds, lengths)
        parts = [reply_sizes.gathered(level, slots, len(seeds))]
        (replies,) = run.ask(step + attempt, sample.functions(), parts, form)
        with run.clock.step("open"):
            kept = [records.widened(reply, level, 2 * reply_sizes.BLOCK) for reply in replies]
            found = sample.open(kept, level.stored, slots, seeds)
        if found is None:
            continue
        if len(found) != count:
            raise errors.make("provider.lied")
        return rows_of(run, [(record[: level.width], 0, None) for record in found])
    raise errors.make("internal", detail="conflicting rows after repeated searches")


def _prefixes(end: int, bits: int) -> list[tuple[int, int | None]]:
    """Of each length from 0 to `bits` at most one prefix; together they cover [0, end)."""
    found: list[tuple[int, int | None]] = []
    for length in range(bits + 1):
        below = bits - length
        used = bool(end >> below & 1)
        # What stands above this bit of `end` was covered by shorter prefixes.
        found.append((length, (end >> below) - 1 if used else None))
    return found
