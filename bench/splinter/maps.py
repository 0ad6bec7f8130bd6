"""Map routing in the bench: two private look-ups for each route, Figure 9."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import report
from bench.report import number
from bench.splinter import maps_data, paper
from bench.splinter.jobs import SECRETS

Told = dict[str, Any]
STEPS = ("grid_ms", "transit_ms", "p50_ms")


def measured(
    parties: int, quick: bool, measure: Callable[[list[Path], int, list[Told], bool], list[Told]]
) -> list[Told]:
    """The route query, if its data can be had."""
    try:
        folder = maps_data.tables(quick)
    except maps_data.NoData:
        return []
    known = maps_data.routes(folder)[:SECRETS]
    job = {
        "name": "maps",
        "atlas": str(folder / "atlas.json"),
        "secrets": [[source, target] for source, target, _ in known],
        "lengths": [length for *_, length in known],
    }
    return measure([folder / "cells.parquet", folder / "transit.parquet"], parties, [job], quick)


def figure_9(figures: dict[int, list[Told]]) -> report.Grid:
    """Milliseconds of the grid's look-up and of the transit nodes'."""
    rows = []
    for parties, known in ((2, paper.MAPS_S["two"]), (3, paper.MAPS_S["three"])):
        rows.append([f"paper, {parties} providers", *(number(s * 1000) for s in known)])
        rows += [
            [
                f"Louver, {parties} providers",
                *(number(item[k]) for k in STEPS),
            ]
            for item in figures.get(parties, [])
            if item["name"] == "maps"
        ]
    header = ["", "grid ms", "transit nodes ms", "together ms"]
    return report.Grid("Figure 9: a route on New York's roads", header, rows)


def note(quick: bool) -> str:
    """What the map is."""
    try:
        facts = maps_data.facts(maps_data.tables(quick))
    except maps_data.NoData as missing:
        return f"the map was not measured: {missing}."
    figures = ", ".join(f"{number(value)} {name}" for name, value in facts.items())
    return f"New York's roads ({figures}); lengths of routes equal Dijkstra's on the whole graph."
