"""Long runs: ``python -m tests.postgres_grammar --statements 10000 --profile cryptdb --seed 7``."""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests import shared
from tests.local_postgres.twin import PostgresTwin
from tests.postgres_grammar.statements import Statements

LENGTH = 80
"""Statements of one session."""
#: Louver's own refusals: no answer is wrong where one of these is given.
_REFUSED = ("leak.", "sql.unsupported", "value.form", "engine.", "postgres.nan", "join.", "local.")
#: Clients take turns: who waits for another one waits in vain.
_PATIENCE_MS = 300
_RACES = ("catalog.conflict", "server.conflict", "server.locked")


def interleaved(
    profile: str, seed: int, length: int, counts: collections.Counter[str], clients: int = 3
) -> list[str]:
    """Several clients on one database: what differed, with all statements before it.

    While one is in a transaction, others change tables that it has not met. At READ COMMITTED they
    change none while one's transaction has changed something: until then it sees what they do.
    """
    random = Random(seed)
    drawn, lines, history = Statements(random), [], []
    first = PostgresTwin(profile, patience_ms=_PATIENCE_MS)
    twins = [first]
    twins += [
        PostgresTwin(profile, beside=first, patience_ms=_PATIENCE_MS) for _ in range(clients - 1)
    ]
    met: list[set[str]] = [set() for _ in twins]
    level = random.choice(("repeatable read", "read committed"))
    changed = [False for _ in twins]
    try:
        for twin in twins:
            twin.both(f"SET default_transaction_isolation = '{level}'")
        for number in range(4):
            sql = drawn.create(f"t{number}")
            history.append(sql)
            differs, refusal = twins[0].refused_or_differs(sql, _REFUSED)
            if differs or refusal:
                drawn.tables.pop()
                twins[0].on_plain(f"DROP TABLE IF EXISTS t{number}")
        while len(history) < length and drawn.tables:
            chosen = random.randrange(clients)
            twin = twins[chosen]
            drawn.within = twin.within
            step = drawn.next()
            names = {table.name for table in drawn.tables if table.name in step.sql}
            names |= _related(drawn, names)
            others = set().union(*(met[n] for n in range(clients) if n != chosen))
            # What locks rows is a change for this: from then on a transaction sees one state.
            reads = step.sql.startswith(("SELECT", "WITH")) and " FOR " not in step.sql
            if names & others and not reads:
                continue
            follows = level == "read committed"
            if follows and not reads and any(changed[:chosen] + changed[chosen + 1 :]):
                continue
            # Beside an open transaction a race for the catalog, or for what is kept of a table, may
            # be lost.
            within = any(other.within for other in twins)
            refusals = (*_REFUSED, *_RACES) if within else _REFUSED
            differs, refusal = twin.refused_or_differs(step.sql, refusals, step.parameters)
            changed[chosen] = twin.within and (
                changed[chosen] or not (reads or step.sql == "BEGIN")
            )
            met[chosen] = (met[chosen] | names) if twin.within else set()
            history.append(f"[{chosen}] {step.sql} {list(step.parameters) or ''}")
            counts["refused: " + refusal if refusal else step.sql.partition(" ")[0]] += 1
            if differs:
                lines.append(f"[{profile}:{seed}:{len(history)}] {history[-1]}\n    {differs}")
                lines += [f"        {text};" for text in history if text.startswith("CREATE")]
                lines += [f"        … {text}" for text in history[-30:]]
                break
    finally:
        for twin in twins:
            twin.close()
    return lines


def _related(drawn: Statements, names: set[str]) -> set[str]:
    """The tables that refer to these, or that these refer to: a change locks rows there."""
    related = {t.parent for t in drawn.tables if t.name in names and t.parent}
    related |= {t.name for t in drawn.tables if t.parent in names}
    return related if related <= names else related | _related(drawn, names | related)


def play(profile: str, seed: int, length: int, counts: collections.Counter[str]) -> list[str]:
    """One session: what differed, with all statements before it."""
    random = Random(seed)
    drawn, lines = Statements(random), []
    twin = PostgresTwin(profile)
    history: list[str] = []
    try:
        for number in range(3):
            sql = drawn.create(f"t{number}")
            history.append(sql)
            differs = twin.differs(sql)
            if differs:
                # No table of a refused definition, on either side.
                drawn.tables.pop()
                twin.on_plain(f"DROP TABLE IF EXISTS t{number}")
                counts[f"table: {differs[-90:]}"] += 1
        while len(history) < length and drawn.tables:
            step = drawn.next()
            if random.random() < 0.02 and not twin.within:
                twin.reopen()
                history.append("-- reopened")
            sql = f"{step.sql} {list(step.parameters) or ''}"
            differs, refusal = twin.refused_or_differs(step.sql, _REFUSED, step.parameters)
            drawn.within = twin.within
            history.append(sql)
            counts["refused: " + refusal if refusal else sql.partition(" ")[0]] += 1
            if differs:
                lines.append(f"[{profile}:{seed}:{len(history)}] {sql}\n    {differs}")
                lines += [f"        {text};" for text in history if text.startswith("CREATE")]
                lines += [f"        … {text}" for text in history[-12:]]
                break
    finally:
        twin.close()
    return lines


def main() -> int:
    """Play sessions until so many statements have run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--statements", type=int, default=1_000)
    parser.add_argument("--profile", default="cryptdb")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clients", type=int, default=1, help="that take turns on a database")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        shared.make(Path(folder))
        os.environ[shared.FOLDER] = folder
        return run(options, counts)


def run(options: argparse.Namespace, counts: collections.Counter[str]) -> int:
    """Play, and print what differed and how often each form was met."""
    start, differences, seed = time.monotonic(), 0, options.seed
    while sum(counts.values()) < options.statements:
        if options.clients > 1:
            lines = interleaved(options.profile, seed, 2 * LENGTH, counts, options.clients)
        else:
            lines = play(options.profile, seed, LENGTH, counts)
        differences += bool(lines)
        for line in lines:
            sys.stdout.write(f"{line[:600]}\n")
        seed += 1
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"  {name:60} {count}\n")
    sys.stdout.write(f"{differences} differences in {time.monotonic() - start:.1f} s\n")
    return bool(differences)


if __name__ == "__main__":
    raise SystemExit(main())
