"""`python -m examples.flights [--rows N]`: two local providers, and private questions."""

from __future__ import annotations

import sys

from examples import asking
from examples.flights import data, queries

if __name__ == "__main__":
    sys.exit(asking.run(__doc__, data.TABLE, data.new_york, queries.queries(), 0, "0: all 336,776"))
