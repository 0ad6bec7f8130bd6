"""New York's roads as the tables of the map routing bench, made once and kept in a folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csgraph

from examples.maps import streets
from examples.maps.build import build
from examples.maps.graph import cut, read_dimacs

#: As many transit nodes as the paper's.
TRANSIT = 1_333
QUICK_NODES, QUICK_TRANSIT = 20_000, 150
#: Raised when the tables change their form or the partition its rule.
RECIPE = 4
SEED = 7


class NoData(RuntimeError):
    """New York's road graph is not here."""


def tables(quick: bool, folder: Path | None = None) -> Path:
    """The folder of New York's tables, or of those of a part; made if they are not there yet.

    It has cells.parquet, transit.parquet, atlas.json and facts.json (see `facts`, `routes`).
    """
    folder_path = (folder or _cache()) / f"maps-{RECIPE}-{QUICK_NODES if quick else 'all'}"
    if not (folder_path / "facts.json").exists():
        graph = streets.new_york()
        if graph is None:
            raise NoData(f"set {streets.NEW_YORK} to NY.gr.xz, the graph of New York's roads")
        _make(graph, folder_path, quick)
    return folder_path


def facts(folder_path: Path) -> dict[str, float]:
    """Sizes of a folder's tables, and how long they took to make."""
    figures: dict[str, float] = json.loads((folder_path / "facts.json").read_text("ascii"))["facts"]
    return figures


def routes(folder_path: Path) -> list[tuple[int, int, int]]:
    """Source, target and the length that plain Dijkstra found on the whole graph."""
    content = json.loads((folder_path / "facts.json").read_text("ascii"))["routes"]
    return [(item, other, length) for item, other, length in content]


def _make(source: Path, folder_path: Path, quick: bool) -> None:
    graph = read_dimacs(source)
    if quick:
        graph = cut(graph, QUICK_NODES)
    started, used = time.perf_counter(), time.process_time()
    built = build(graph, QUICK_TRANSIT if quick else TRANSIT)
    spent, worked = time.perf_counter() - started, time.process_time() - used
    built.save(folder_path)
    wide = built.widths()
    atlas = built.atlas
    facts = {
        "nodes": graph.shape[0],
        "streets": graph.nnz // 2,
        "transit nodes": atlas.transit,
        "regions": atlas.regions,
        "cells": atlas.cells,
        "rows of cells": built.cells.num_rows,
        "bytes of the widest row of cells": wide[0],
        "rows of transit": built.transit.num_rows,
        "bytes of the widest row of transit": wide[1],
        "seconds to build": round(spent, 1),
        "processor seconds to build": round(worked, 1),
    }
    chance = np.random.default_rng(SEED)
    routes = []
    for start in chance.integers(graph.shape[0], size=6).tolist():
        known = csgraph.dijkstra(built.graph, indices=start)
        near = np.argsort(known, kind="stable")[: graph.shape[0] // 100].tolist()
        ends = chance.integers(graph.shape[0], size=16).tolist()
        # One in five stays near: questions within a region look like all others.
        ends += [near[at] for at in chance.integers(len(near), size=4).tolist()]
        routes += [(start, end, int(known[end])) for end in ends if np.isfinite(known[end])]
    content = json.dumps({"facts": facts, "routes": routes})
    (folder_path / "facts.json").write_text(content, encoding="ascii")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "louver-bench"
