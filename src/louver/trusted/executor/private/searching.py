"""The first rows of a disjunction, by binary search over a private index.

Source: Splinter, sections 5.2.2 and 5.2.3 (disjoint conditions) and appendix A. The providers hold
the rows in order, the first row first. The number of matching rows under a prefix of their index,
requested with point functions over prefix and code together, shows at each step where the last
requested row is; one round determines several bits of the index. One row is then fetched by its
index; several rows are sampled with hashes into small tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver import errors
from louver.trusted.executor.private.constants import Keys
from louver.trusted.executor.private.rounds import Run, rows_of
from louver.trusted.executor.private.sampling import gather
from louver.trusted.vault.schemes import fss
from louver.wire import records, reply_sizes, search_params

#: Bits of the index per round: more bits mean fewer rounds and more work.
STEP_BITS = 3


def search(run: Run, keys: Keys) -> pa.Table:
    """The first `limit` rows that match any clause."""
    limit, bits = run.shape.limit, run.prepared.index_bits
    if not run.prepared.points or not limit:
        return records.no_rows(run.prepared.fields)
    last, total, step = _last(run, keys, limit)
    if limit > 1:
        return gather(run, keys, last + 1 if total else 0, min(total, limit), step)
    level = run.prepared.levels[0]
    point = run.point(level, last if total else None)
    replies = run.ask(step, [point], [reply_sizes.record(level)])
    (record,) = run.opened([point], [total > 0], replies, 0)
    if total and record is None:
        raise errors.make("provider.lied")
    if bits and last >= run.prepared.points:
        raise errors.make("provider.lied")
    return rows_of(run, [(record, 0, None)])


def _last(run: Run, keys: Keys, limit: int) -> tuple[int, int, int]:
    """The index of the last requested row, the number of rows (at most `limit`), and the next step.

    Without any row, the search continues with meaningless positions, as long as with some.
    """
    bits = run.prepared.index_bits
    known, prefix, step = 0, 0, 0
    wanted, total = limit, -1
    while known < bits or step == 0:
        deeper = min(STEP_BITS, bits - known)
        counts = _counted(run, keys, prefix << deeper, deeper, known + deeper, step)
        if total < 0:
            total = min(sum(counts), limit)
            wanted = total
        part, wanted = _descend(counts, wanted)
        known, prefix, step = known + deeper, (prefix << deeper) + part, step + 1
    return prefix, total, step


def _descend(counts: Sequence[int], wanted: int) -> tuple[int, int]:
    """The part that contains the wanted-th row, and the row's number in that part."""
    for part, count in enumerate(counts):
        if wanted <= count:
            return part, wanted
        wanted -= count
    raise errors.make("provider.lied")


def _counted(
    run: Run, keys: Keys, first: int, deeper: int, prefix_bits: int, step: int
) -> list[int]:
    """The number of rows that match any clause, under each of 2^deeper prefixes from `first` on."""
    code_bits = run.prepared.codes.bits
    functions = [
        fss.PointSum(prefix_bits + code_bits, None if at is None else prefix << code_bits | at)
        for prefix in range(first, first + (1 << deeper))
        for at in keys.points
    ]
    form = search_params.count_form([prefix_bits] * len(functions))
    replies = run.ask(step, functions, [reply_sizes.BLOCK] * len(functions), form)
    with run.clock.step("open"):
        sums = [f.open(r)[0] for f, r in zip(functions, replies, strict=True)]
    each = len(keys.points)
    counts = [sum(sums[at : at + each]) for at in range(0, len(sums), each)]
    if any(not 0 <= count <= run.prepared.points for count in sums):
        raise errors.make("provider.lied")
    return counts
