"""`python -m tests.tpc.splits`: write splits.toml, which says where the parts of each query run.

The queries are planned, and not run, as if every layer were closed: a plan may depend on which are
open already. `test_splits.py` compares, so that a change to the planner shows what it does to
whom. Under `sealed` the server filters nothing, so that policy is left out.
"""

from __future__ import annotations

import os
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from tests.tpc import harness, sources

SPLITS = sources.FOLDER / "splits.toml"
POLICIES = ("cryptdb", "mixed")
Splits = dict[str, dict[str, dict[str, str]]]


def main() -> int:
    """Load every benchmark under every policy, plan all queries, write the table."""
    made: Splits = {}
    for benchmark in sources.BENCHMARKS.values():
        plain = harness.Plain.make(benchmark)
        for policy in POLICIES:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["LOUVER_STATE_DIR"] = str(Path(folder) / "state")
                with harness.connect(Path(folder), benchmark, policy) as con:
                    harness.load(con, plain)
                    made.setdefault(benchmark.name, {})[policy] = planned(con, plain)
    SPLITS.write_text(written(made), encoding="utf-8")
    return 0


def planned(con: Any, plain: harness.Plain) -> dict[str, str]:
    """The split of every query, by its number, as if no layer were open yet."""
    session, held = con.session, con.session.catalog
    session.catalog = held.copy()
    for table in session.catalog.tables.values():
        for column in table.columns:
            column.layers = dict.fromkeys(column.layers, "closed")
    session.planner.forget()
    try:
        return {str(number): harness.split(con, sql) for number, sql in plain.queries.items()}
    finally:
        session.catalog = held
        session.planner.forget()


def recorded() -> Splits:
    """The table as it was written: benchmark, policy, number of the query, its split."""
    found: Splits = tomllib.loads(SPLITS.read_text(encoding="utf-8"))
    return found


def written(made: Splits) -> str:
    """The table as TOML; over each part, how many queries have which kind of plan."""
    lines = [
        "# Where the parts of each query run, under each policy: the kind of the plan, and of the",
        "# queries that the server is asked, how many hold conditions, join tables, aggregate.",
        "# Written by `python -m tests.tpc.splits`.",
    ]
    for name, policies in made.items():
        for policy, table in policies.items():
            kinds = Counter(split.partition(",")[0] for split in table.values())
            told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            # "…, 3 asked" and no more: the server only hands out its rows.
            less = sum(not split.endswith("asked") for split in table.values())
            reduced = f"in {less} of {len(table)} the server filters or aggregates"
            lines += ["", f"# {told}; {reduced}", f"[{name}.{policy}]"]
            lines += [f'{number} = "{split}"' for number, split in table.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
