"""Our lake with very many files that do not exist: what planning reads is all there.

The warehouse is made by Louver's own modules: a catalog, a table, side files with file lists,
sealed bounds and index segments, a signed root. Iceberg's manifests name only the first file, for
planning does not read them; data files are missing, for planning reads none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.lake import index
from bench.lake.index import Spec
from bench.lake.ranges import SIGN, Bounds, Range
from louver.trusted.lake import bounds as sealed
from louver.trusted.lake.parts import Parts, gathered, index_ids
from louver.trusted.lake.snapshots import name_of, signed
from louver.trusted.lake.store import LakeStore
from louver.trusted.vault.catalog import Column, Table
from louver.untrusted.lake import commit, plan, root
from louver.untrusted.lake.files import File
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import All, FilePlan, Hit, Where

KEY_METADATA_BYTES = 92
"""About what the wrapped data key of a file takes."""
ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a column's mapped values."""

    column: int
    low: int
    high: int


def table_of(columns: list[int], spec: Spec) -> Table:
    """The catalog's entry: BIGINT columns with an index."""
    result = Table("main", "bench", index.TABLE)
    for column in columns:
        result.columns.append(
            Column(f"c{column}", "BIGINT", column, encrypted=True, ceiling="access")
        )
    result.lake = {"kind": spec.kind, "bits": spec.bits}
    return result


def build(
    folder: Path, columns: dict[int, Bounds], spec: Spec, per: int = index.SEGMENT_FILES
) -> dict[str, float]:
    """A warehouse with an index of every column; seconds that it took, and its bytes on disk."""
    start = time.perf_counter()
    ring, table = index.ring(folder), table_of(list(columns), spec)
    warehouse = Warehouse.open(str(folder / "warehouse"))
    store = LakeStore(warehouse, ring)
    store.create(table)
    keys = ring.lake_table(table.id)
    parts = Parts(table, keys, ring, warehouse.objects)
    count = len(next(iter(columns.values())))
    rng = np.random.default_rng(count)
    placed, first = [], []
    for at in range(0, count, per):
        part = slice(at, min(at + per, count))
        listed = _files(rng, part.stop - part.start)
        first = first or listed[:1]
        extents = {column: _extent(given, part) for column, given in columns.items()}
        placed += parts.write(listed, sealed.Bounds(len(listed), extents))
    sides, results = gathered(placed)

    def rooted(base: commit.Base) -> root.Root:
        unsigned = root.Root(
            table.id, 1, base.snapshot_id, 1, count, count * ROWS, count * ROWS * 8,
            tuple(index_ids(table, keys)), sides, results, (),
        )  # fmt: skip
        return signed(table, keys, unsigned)

    commit.commit(warehouse, name_of(table), first, [], rooted)
    size = sum(p.stat().st_size for p in (folder / "warehouse").rglob("*") if p.is_file())
    return {"build_s": time.perf_counter() - start, "bytes": size}


class Client:
    """A connection: opens key file and catalog, then plans."""

    def __init__(self, folder: Path, columns: list[int], spec: Spec) -> None:
        """Without a pruner elsewhere: this process sweeps."""
        ring = index.ring(folder)
        self._store = LakeStore(Warehouse.open(str(folder / "warehouse")), ring)
        self._table = table_of(columns, spec)

    def plan(self, conditions: dict[int, Range], *, verify: bool) -> FilePlan:
        """From the catalog's pointer to the list of files; index rows verified or not."""
        index.forget_tokens()
        snapshot = self._store.snapshot(self._table)
        hits = tuple(
            Hit(self._store.token(self._table, Span(column, low + SIGN, high + SIGN)))
            for column, (low, high) in conditions.items()
        )
        where: Where = hits[0] if len(hits) == 1 else All(hits)
        if verify:
            return self._store.plan(self._table, snapshot, where)
        return plan.plan(self._store.warehouse.objects, snapshot.root, where)


def measure(
    *, folder: str, spec: dict[str, Any], queries: list[dict[str, Range]], repeats: int,
    threads: int, unverified: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Seconds of the first plan of a process, with opening all; then of every query, the median,
    and on demand the same without verification of index rows.
    """
    if threads == 1:
        index.one_core()
    questions = [{int(c): (item[0], item[1]) for c, item in query.items()} for query in queries]
    start = time.perf_counter()
    client = Client(Path(folder), list(questions[0]), Spec(**spec))
    client.plan(questions[0], verify=True)
    first_s = time.perf_counter() - start
    results = {"first_s": first_s}
    plan_s, mask = _timed(client, questions, repeats, verify=True)
    unverified_s = _timed(client, questions, repeats, verify=False)[0] if unverified else []
    return results | {"plan_s": plan_s, "kept": mask, "unverified_s": unverified_s}


def _timed(
    client: Client, questions: list[dict[int, Range]], repeats: int, *, verify: bool
) -> tuple[list[float], list[int]]:
    times, mask = np.zeros((repeats, len(questions))), []
    for turn in range(repeats):
        for at, query in enumerate(questions):
            start = time.perf_counter()
            results = client.plan(query, verify=verify)
            times[turn, at] = time.perf_counter() - start
            mask += [len(results.files)] if turn == 0 else []
    return np.median(times, axis=0).tolist(), mask


def _extent(given: Bounds, part: slice) -> sealed.Extent:
    lows, highs = given.mapped()
    flags = np.full(part.stop - part.start, sealed.VALUES, np.uint8)
    return sealed.Extent(flags, lows[part], highs[part])


def _files(rng: np.random.Generator, count: int) -> list[File]:
    """Files with ids of their own; as many bytes as real ones have."""
    ids, keys = rng.bytes(16 * count), rng.bytes(KEY_METADATA_BYTES * count)
    sizes = rng.integers(1 << 20, 1 << 27, count).tolist()
    wide = KEY_METADATA_BYTES
    return [
        File(ids[16 * i : 16 * i + 16], sizes[i], ROWS, keys[wide * i : wide * (i + 1)])
        for i in range(count)
    ]
