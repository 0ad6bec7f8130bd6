"""`python -m examples.restaurants [--rows N]`: two local providers, and private questions."""

from __future__ import annotations

import sys

from examples import asking
from examples.restaurants import data, queries

if __name__ == "__main__":
    sys.exit(
        asking.run(
            __doc__, data.TABLE, data.restaurants, queries.queries(), 50_000, "rows of the table"
        )
    )
