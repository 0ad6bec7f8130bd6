"""Map routing in the bench: two private look-ups for each route, Figure 9."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np

from bench import report
from bench.report import number
from bench.splinter import paper
from bench.splinter.jobs import SECRETS, SEED
from examples.maps.atlas import Atlas

Told = dict[str, Any]
STEPS = ("grid_ms", "transit_ms", "p50_ms")
MODULE = "bench.splinter.maps_data"


def measured(
    parties: int, quick: bool, measure: Callable[[list[Path], int, list[Told], bool], list[Told]]
) -> list[Told]:
    """The route query, if its data can be had."""
    if util.find_spec(MODULE) is None:
        return []
    folder = importlib.import_module(MODULE).tables(quick)
    atlas = Atlas.load(folder / "atlas.json")
    chance = np.random.default_rng(SEED)
    job = {
        "name": "maps",
        "atlas": str(folder / "atlas.json"),
        "secrets": chance.integers(0, atlas.starts[-1], (SECRETS, 2)).tolist(),
    }
    return measure([folder / "cells.parquet", folder / "transit.parquet"], parties, [job], quick)


def figure_9(told: dict[int, list[Told]]) -> report.Grid:
    """Milliseconds of the grid's look-up and of the transit nodes'."""
    rows = []
    for parties, known in ((2, paper.MAPS_S["two"]), (3, paper.MAPS_S["three"])):
        rows.append([f"paper, {parties} providers", *(number(s * 1000) for s in known)])
        rows += [
            [
                f"Louver, {parties} providers",
                *(number(one[k]) for k in ("grid", "transit", "p50_ms")),
            ]
            for one in told.get(parties, [])
            if one["name"] == "maps"
        ]
    header = ["", "grid ms", "transit nodes ms", "together ms"]
    return report.Grid("Figure 9: a route on New York's roads", header, rows)


def note(quick: bool) -> str:
    """What the map is."""
    if util.find_spec(MODULE) is None:
        return "the map was not measured."
    told: str = importlib.import_module(MODULE).note(quick)
    return told
