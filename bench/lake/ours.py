"""Our lake with very many files that do not exist: what planning reads is all there.

The warehouse is made by Louver's own modules: a catalog, a table, side files with file lists and
index segments, a signed root. Iceberg's manifests name only the first file, for planning does not
read them; data files are missing, for planning reads none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.lake import index
from bench.lake.index import Spec
from bench.lake.ranges import Bounds, Range
from louver.untrusted.lake import commit, files, plan, root, side
from louver.untrusted.lake.warehouse import Warehouse
from louver.wire.prune import All, Hit, Kept, Where

NAME = f"t{index.TABLE}"
KEY_METADATA_BYTES = 92
"""About what the wrapped data key of a file takes."""
PURPOSE = "lake.root"


def build(
    folder: Path, columns: dict[int, Bounds], spec: Spec, per: int = index.SEGMENT_FILES
) -> dict[str, float]:
    """A warehouse with an index of every column; seconds that the indexes took, bytes on disk."""
    keys = index.keys(folder)
    warehouse = Warehouse.open(str(folder / "warehouse"))
    warehouse.create_table(NAME, list(columns))
    count = len(next(iter(columns.values())))
    rng = np.random.default_rng(count)
    parts, sides, index_s, first = [], [], 0.0, []
    for start in range(0, count, per):
        stop = min(start + per, count)
        listed = _files(rng, stop - start)
        first = first or listed[:1]
        container = side.Builder()
        blob = files.encode(listed)
        where = container.add(side.FILES, blob)
        segments = []
        for column, given in columns.items():
            begin = time.perf_counter()
            data = _segment(keys, spec, column, given, slice(start, stop))
            index_s += time.perf_counter() - begin
            ids = _ids(data)
            at = container.add(side.INDEX, data)
            segments.append(root.Segment(*ids, root.Blob(len(sides), at, len(data))))
        path = commit.new_name("puffin")
        warehouse.objects.create(f"louver/{NAME}/{path}", container.finish())
        place = root.Blob(len(sides), where, len(blob))
        digest = files.digest(blob, len(listed))
        parts.append(root.Part(len(listed), place, digest, None, b"", tuple(segments)))
        sides.append(path)
    made = _Root(keys, spec, list(columns), parts, sides, count)
    commit.commit(warehouse, NAME, first, [], made.build)
    size = sum(p.stat().st_size for p in (folder / "warehouse").rglob("*") if p.is_file())
    return {"index_s": index_s, "bytes": size}


class Client:
    """A connection: opens the catalog, then plans; verifies the root and every row it sweeps."""

    def __init__(self, folder: Path, spec: Spec, *, verify: bool, threads: int) -> None:
        self._keys = index.keys(folder)
        self._warehouse = Warehouse.open(str(folder / "warehouse"))
        self._spec, self._verify, self._threads = spec, verify, threads

    def plan(self, conditions: dict[int, Range]) -> Kept:
        """From the catalog's pointer to the list of files."""
        found = self._warehouse.root(NAME)
        assert found is not None
        self._keys.verify(PURPOSE, _context(found), root.body(found), found.mac)
        tokens = {column: self.token(column, one) for column, one in conditions.items()}
        hits = tuple(Hit(token) for token in tokens.values())
        where: Where = hits[0] if len(hits) == 1 else All(hits)
        columns = {token: column for column, token in tokens.items()}

        def check(_: Any, data: Any, token: bytes) -> None:
            self._keys.check(columns[token], index.GENERATION, data, token)

        return plan.plan(
            self._warehouse.objects, found, where, check if self._verify else None, self._threads
        )

    def token(self, column: int, one: Range) -> bytes:
        """What is shown for a range of a column."""
        return index.token(self._keys, self._spec, one, column=column)


def measure(
    *,
    folder: str,
    spec: dict[str, Any],
    queries: list[dict[str, Range]],
    repeats: int,
    verify: bool,
    threads: int,
) -> dict[str, Any]:
    """Seconds of the first plan of a process, with opening all; then of every query, the median."""
    if threads == 1:
        index.one_core()
    asked = [{int(c): (one[0], one[1]) for c, one in query.items()} for query in queries]
    start = time.perf_counter()
    client = Client(Path(folder), Spec(**spec), verify=verify, threads=threads)
    client.plan(asked[0])
    first_s = time.perf_counter() - start
    plan_s, kept = np.zeros((repeats, len(asked))), []
    for turn in range(repeats):
        for at, query in enumerate(asked):
            start = time.perf_counter()
            found = client.plan(query)
            plan_s[turn, at] = time.perf_counter() - start
            kept += [len(found.files)] if turn == 0 else []
    return {"first_s": first_s, "plan_s": np.median(plan_s, axis=0).tolist(), "kept": kept}


@dataclass(slots=True)
class _Root:
    """Makes the signed root of the one snapshot."""

    keys: Any
    spec: Spec
    columns: list[int]
    parts: list[root.Part]
    sides: list[str]
    count: int

    def build(self, base: commit.Base) -> root.Root:
        """The root of this try."""
        ids = [
            bytes(self.keys.index_id(column, index.GENERATION, self.spec.encode()))
            for column in self.columns
        ]
        rows = self.count * 1_000
        unsigned = root.Root(
            index.TABLE, 1, base.snapshot_id, 0, self.count, rows, rows * 8,
            tuple(ids), tuple(self.sides), tuple(self.parts), (),
        )  # fmt: skip
        mac = self.keys.sign(PURPOSE, _context(unsigned), root.body(unsigned))
        return replace(unsigned, mac=bytes(mac))


def _context(found: root.Root) -> bytes:
    return found.table_id.to_bytes(8, "big")


def _files(rng: np.random.Generator, count: int) -> list[files.File]:
    """Files with ids of their own, as many bytes as real ones have."""
    ids, keys = rng.bytes(16 * count), rng.bytes(KEY_METADATA_BYTES * count)
    sizes = rng.integers(1 << 20, 1 << 27, count).tolist()
    wide = KEY_METADATA_BYTES
    return [
        files.File(ids[16 * i : 16 * i + 16], sizes[i], 1_000, keys[wide * i : wide * (i + 1)])
        for i in range(count)
    ]


def _segment(keys: Any, spec: Spec, column: int, given: Bounds, part: slice) -> bytes:
    lows, highs = given.mapped()
    return index.segment(keys, spec, lows[part], highs[part], column=column)


def _ids(segment: bytes) -> tuple[bytes, bytes]:
    from louver import _rust

    header = _rust.segment_header(segment)
    return bytes(header["index_id"]), bytes(header["segment_id"])
