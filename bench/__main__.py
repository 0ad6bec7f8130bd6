"""`python -m bench [NAME …] [--quick]`: measure, print, write results and docs/benchmarks.md."""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from bench import machine, page, report

#: Name of a section and the module whose `run` measures it, in the order of the page.
SECTIONS = {
    "kernel": "bench.kernel",
    "values": "bench.values",
    "tiles": "bench.tiles",
    "codes": "bench.codes",
    "sums": "bench.sums",
    "settled": "bench.settled",
    "commands": "bench.commands",
    "profiles": "bench.profiles",
    "planning": "bench.planning",
    "statements": "bench.statements",
    "forms": "bench.forms",
    "oltp": "bench.oltp.section",
    "oltp-large": "bench.oltp.large",
    "postgres": "bench.postgres.section",
    "postgres-tpch": "bench.postgres.analytical",
    "wire": "bench.wire.section",
    "range": "bench.ranges",
    "load": "bench.load",
    "sdb": "bench.sdb",
    "tpch": "bench.tpc.tpch",
    "tpcds": "bench.tpc.tpcds",
    "lake": "bench.lake.planning",
    "lake-filters": "bench.lake.filters",
    "lake-micro": "bench.lake.micro",
    "lake-strings": "bench.lake.strings",
    "lake-tpch": "bench.lake.tpch",
    "splinter": "bench.splinter.endtoend",
    "splinter-kernel": "bench.splinter.micro",
    "splinter-protocols": "bench.splinter.complexity",
}


def main(words: list[str] | None = None) -> int:
    """Run the sections that are named, or all; targets of a full run that are missed are said."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small tables, for a first look")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    given = parser.parse_args(words)
    unknown = [name for name in given.names if name not in SECTIONS]
    if unknown:
        parser.error(f"no section is called {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    missed = [] if given.page else [
        line
        for name in given.names or SECTIONS
        for line in _one(name, quick=given.quick).lines
        if line.met is False
    ]  # fmt: skip
    if not given.quick:
        print(f"wrote {page.write(list(SECTIONS))}")
    for line in missed:
        print(f"missed: {line.what}: {', '.join(line.cells()[1:6])}", file=sys.stderr)
    return 0


def _one(name: str, *, quick: bool) -> report.Report:
    started, before = time.time(), machine.load_average()
    section: report.Report = importlib.import_module(SECTIONS[name]).run(quick=quick)
    section.run = {
        "command": f"python -m bench {name}" + (" --quick" if quick else ""),
        "quick": quick,
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(started)),
        "seconds": round(time.time() - started),
        "load_before": before,
        "machine": machine.describe(),
    }
    section.save()
    print(section.text(), flush=True)
    print(f"\n({section.run['seconds']} s; {before} processes were running before)\n", flush=True)
    return section


if __name__ == "__main__":
    sys.exit(main())
