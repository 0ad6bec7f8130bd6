"""`python -m tests.tpc.search`: find constants with which no query is empty, write constants.toml.

Of each query that finds nothing with TPC's own constants, the ones of `candidates.py` are tried,
in an order that is random but always the same, until the answer holds `ENOUGH` rows or the tries
are used up; the most rows win. A single row counts only if none of its cells is NULL or 0.
"""

from __future__ import annotations

import itertools
import random
import sys
import time

import duckdb

from tests.tpc import candidates, sources

ENOUGH = 5
TRIES_S = 25.0


def main() -> int:
    """Search for all queries that need it; the numbers of those for which nothing was found."""
    wanted = [int(word) for word in sys.argv[1:]]
    constants = sources.constants() if sources.CONSTANTS.exists() else {}
    lost = []
    for benchmark, known in ((sources.TPCH, candidates.TPCH), (sources.TPCDS, candidates.TPCDS)):
        con = sources.generate(benchmark, 0.01)
        texts = sources.originals(con, benchmark)
        table = constants.setdefault(benchmark.name, {})
        for number in wanted or benchmark.numbers:
            if number not in texts or score(con, texts[number]):
                continue
            answers, rows = search(con, texts[number], known.get(number, []))
            sys.stdout.write(f"{benchmark.name} {number}: {rows} rows with {answers}\n")
            sys.stdout.flush()
            if rows:
                table[str(number)] = answers
            else:
                lost.append((benchmark.name, number))
    sources.CONSTANTS.write_text(written(constants), encoding="utf-8")
    sys.stdout.write(f"nothing found for: {lost}\n" if lost else "every query has an answer\n")
    return 1 if lost else 0


def search(
    con: duckdb.DuckDBPyConnection, text: str, known: list[candidates.Choice]
) -> tuple[dict[str, str], int]:
    """The substitutions that give the most rows, and how many."""
    for old, _, _ in known:
        if old not in text:
            raise LookupError(f"{old!r} is not in {text}")
    lists = [[old for old, _, _ in known], *_products(con, known)]
    best: dict[str, str] = {}
    most, end = 0, time.monotonic() + TRIES_S
    for news in lists[1:]:
        constants = dict(zip(lists[0], news, strict=True))
        tried = text
        for old, new in constants.items():
            tried = tried.replace(old, new)
        rows = score(con, tried)
        if rows > most:
            best, most = {old: new for old, new in constants.items() if old != new}, rows
        if most >= ENOUGH or time.monotonic() > end:
            break
    return best, most


def score(con: duckdb.DuckDBPyConnection, text: str) -> int:
    """How many rows a text finds; one row with nothing in it is none."""
    rows = con.execute(text).fetchall()
    empty = len(rows) == 1 and any(cell is None or cell == 0 for cell in rows[0])
    return 0 if empty else len(rows)


def written(constants: dict[str, dict[str, dict[str, str]]]) -> str:
    """The table as TOML."""
    lines = [
        "# What the queries say instead of TPC's own constants, so that none is empty at scale",
        "# 0.01. Per query: a piece of its text (every run of blanks made one) = what takes its",
        "# place, everywhere in the text, line by line. Written by `python -m tests.tpc.search`.",
    ]
    for name, table in constants.items():
        for number in sorted(table, key=int):
            lines += ["", f"[{name}.{number}]"]
            lines += [f"{_quoted(old)} = {_quoted(new)}" for old, new in table[number].items()]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _products(
    con: duckdb.DuckDBPyConnection, known: list[candidates.Choice]
) -> list[tuple[str, ...]]:
    """All combinations, or twenty thousand of them, in an order of chance."""
    lists = []
    for _, template, given in known:
        values = con.execute(given).fetchall() if isinstance(given, str) else [(v,) for v in given]
        lists.append([template.format(value) for (value,) in values if value is not None])
    chance = random.Random(1)
    size = 1
    for options in lists:
        size *= len(options)
    if size > 20_000:
        return [tuple(chance.choice(options) for options in lists) for _ in range(20_000)]
    every = list(itertools.product(*lists))
    chance.shuffle(every)
    return every


if __name__ == "__main__":
    sys.exit(main())
