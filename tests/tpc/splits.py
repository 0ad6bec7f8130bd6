"""`python -m tests.tpc.splits`: write splits.toml, which says where the parts of each query run.

The queries are planned as if every layer were closed: a plan may depend on which are open already.
`test_splits.py` compares, so that a change to the planner shows what it does to whom. Each split
ends with the digest of the whole plan. One that is not as recorded is written only after the query
was run and its answer compared; `make test` runs those that have changed, and a part of the others.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from louver import errors
from louver.trusted.vault.catalog import Column
from tests.inside import context_of, session_of
from tests.tpc import harness, sources
from tests.tpc.sources import POLICIES

SPLITS = sources.FOLDER / "splits.toml"
Splits = dict[str, dict[str, dict[str, str]]]


def main() -> int:
    """Load every benchmark under every policy, plan all queries, write the table."""
    warnings.simplefilter("ignore", errors.LeakageWarning)  # layers are opened on purpose
    splits: Splits = {}
    before = recorded()
    for benchmark in sources.BENCHMARKS.values():
        plain = harness.Plain.make(benchmark)
        for policy in POLICIES:
            known = before.get(benchmark.name, {}).get(policy, {})
            with tempfile.TemporaryDirectory() as folder:
                os.environ["LOUVER_STATE_DIR"] = str(Path(folder) / "state")
                with harness.connect(Path(folder), benchmark, policy) as con:
                    harness.load(con, plain)
                    plan = planned(con, plain)
                    for number, split in plan.items():
                        if split != known.get(number):
                            sys.stdout.write(f"{benchmark.name} {number} under {policy}\n")
                            harness.check(con, plain, int(number))
                    splits.setdefault(benchmark.name, {})[policy] = plan
    SPLITS.write_text(written(splits), encoding="utf-8")
    return 0


def planned(
    con: Any, plain: harness.Plain, change: Callable[[Column], None] = lambda _: None
) -> dict[str, str]:
    """The split of every query, by its number, as if no layer were open yet, and the catalog's
    columns were changed.
    """
    session, held = session_of(con), context_of(con).catalog
    session.context.state.catalog = held.copy()
    for table in session.context.catalog.tables.values():
        for column in table.columns:
            column.layers = dict.fromkeys(column.layers, "closed")
            change(column)
    session.context.catalog.touch()
    try:
        return {
            str(number): f"{harness.split(con, sql)}; {harness.digest(con, sql)}"
            for number, sql in plain.queries.items()
        }
    finally:
        session.context.state.catalog = held


@functools.cache
def recorded() -> Splits:
    """The table as it was written: benchmark, policy, number of the query, its split."""
    splits: Splits = tomllib.loads(SPLITS.read_text(encoding="utf-8"))
    return splits


def written(splits: Splits) -> str:
    """The table as TOML; over each part, how many queries have which kind of plan."""
    lines = [
        "# Where the parts of each query run, under each policy: the kind of the plan, and of the",
        "# queries that the server is asked, how many hold conditions, join, aggregate. Last",
        "# the digest of the whole plan, with which the query's answer was seen to be right.",
        "# Written by `python -m tests.tpc.splits`.",
    ]
    for name, policies in splits.items():
        for policy, table in policies.items():
            kinds = Counter(split.partition(",")[0] for split in table.values())
            counts_text = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            # "…, 3 asked; …" and no more: the server only hands out its rows.
            less = sum("asked;" not in split for split in table.values())
            reduced = f"in {less} of {len(table)} the server filters or aggregates"
            lines += ["", f"# {counts_text}; {reduced}", f"[{name}.{policy}]"]
            lines += [f'{number} = "{split}"' for number, split in table.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
