"""`python -m examples.maps`: two local providers of a town's streets, and a private route."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from scipy.sparse import csgraph

import louver
from examples import providers
from examples.maps import streets
from examples.maps.build import build
from examples.maps.draw import picture
from examples.maps.route import SQL, Router


def main() -> int:
    """Build the tables, start the providers, ask, draw; 0 if the answer is Dijkstra's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--osm", type=Path, help="an OpenStreetMap extract, .osm.pbf")
    parser.add_argument("--transit", type=int, default=150, help="the most transit nodes")
    parser.add_argument("--picture", type=Path, default=Path("route.svg"))
    given = parser.parse_args()
    extract = given.osm or streets.helsinki()
    town = streets.read_town(extract) if extract else streets.made_town()
    print(f"streets: {extract or 'a made-up town'}, {town.graph.shape[0]:,} nodes")
    built = build(town.graph, given.transit)
    town = town.renumbered(built.names)
    wide = built.widths()
    print(
        f"tables: cells {built.cells.num_rows:,} rows up to {wide[0]:,} bytes, "
        f"transit {built.transit.num_rows:,} rows up to {wide[1]:,} bytes"
    )
    source = town.nearest(float(town.x.min()), float(town.y.min()))
    target = town.nearest(float(town.x.max()), float(town.y.max()))
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder))
        files = [Path(folder) / "cells.parquet", Path(folder) / "transit.parquet"]
        with (
            providers.running(files) as two,
            louver.connect(providers.url(two)) as connection,
        ):
            router = Router(connection, built.atlas)
            # The first question of its form waits until the providers have prepared for it.
            for questions in ((target, source), (source, target)):
                started = time.perf_counter()
                route = router.route(*questions)
                spent_ms = (time.perf_counter() - started) * 1000
                print(f"from {questions[0]} to {questions[1]}: {spent_ms:.0f} ms")
            for text in SQL:
                print(f"   {text}")
    right = route.length == csgraph.dijkstra(town.graph, indices=source)[target]
    word = "equal to" if right else "NOT EQUAL TO"
    metres = (route.length or 0) / 10
    print(f"{metres:,.0f} m over {len(route.nodes)} nodes: {word} Dijkstra's on the whole map")
    given.picture.write_text(picture(town, route.nodes, "A private route"), encoding="utf-8")
    print(f"picture: {given.picture}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
