"""`python -m examples.flights [--rows N]`: two local providers, and private questions."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

from examples import asking, providers
from examples.flights import data, queries


def main() -> int:
    """Make the table, start the providers, ask; 0 if every answer is right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=0, help="0: all 336,776")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{data.TABLE}.parquet"
        pq.write_table(data.new_york(given.rows), file)
        with providers.running(file) as two:
            print("providers: " + " and ".join(one.address for one in two))
            return 0 if asking.ask(two, file, data.TABLE, queries.queries()) else 1


if __name__ == "__main__":
    sys.exit(main())
