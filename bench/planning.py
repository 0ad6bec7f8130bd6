"""Planning: a statement whose shape is known, and one of a new shape."""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from bench import data, isolate, report
from bench.timing import median, percentile
from louver.trusted.client.inside import session_of

PAPER_MS = 10 + 14 + 1
"""Figure 19 at 1 %: parse 1, analyse 10, rewrite 14."""
CREATE = "CREATE TABLE T (A INT {0}, B INT {0}, G INT {0}, N TEXT {0}, P INT)"


def run(*, quick: bool) -> report.Report:
    """Both profiles, each in a process of its own."""
    count = 50 if quick else 1000
    section = report.Report("planning", "Planning a statement")
    notes = []
    for profile in ("sdb", "sealed"):
        item = isolate.run("bench.planning:measure", profile=profile, count=count)
        peer = "plaintext DuckDB, bind and plan"
        for what, ours, theirs, target in (
            ("known shape, plan", item["known"], item["duckdb"], 0.2),
            ("known shape, plan and bind", item["bound"], item["duckdb"], None),
            ("new shape, plan", item["new"], item["duckdb"], 10.0),
            ("new shape, plan and bind", item["new_bound"], item["duckdb"], None),
        ):
            section.lines.append(
                report.Line(f"{profile}: {what}", ours["median"], "ms", peer, theirs["median"],
                            target=target, peak_mib=item["peak_mib"])
            )  # fmt: skip
        notes.append(
            f"{profile}: 95 % of the statements of a known shape take at most "
            f"{item['known']['p95']:.3f} ms to plan, of a new shape {item['new']['p95']:.1f} ms."
        )
        new = item["new"]["median"]
        section.lines.append(
            report.Line(f"{profile}: new shape, plan", new, "ms", "the SDB paper", PAPER_MS)
        )
    section.notes += [
        f"Medians of {count:,} statements of four known shapes with different numbers, and of "
        "statements of new shapes. `plan` splits the text into tokens, and finds the plan by its "
        "shape or creates it; `bind` inserts keys and constants, prints and checks the text that "
        "is sent. The first key updates of a new shape are part of `bind`.",
        "DuckDB's time is its own `EXPLAIN` of the same statement on the plaintext table.",
        *notes,
    ]
    return section


def measure(profile: str, count: int) -> dict[str, Any]:
    """Median and 95th percentile per kind, in milliseconds."""
    with tempfile.TemporaryDirectory() as name, data.louver(Path(name), profile) as con:
        con.execute(CREATE.format("ENC"))
        con.execute("INSERT INTO T VALUES (1, 2, 3, 'a', 4), (500000, 4, 3, 'b', 5)")
        with duckdb.connect() as peer:
            peer.execute(CREATE.format(""))
            return _measure(session_of(con), peer, count)


def _measure(session: Any, peer: duckdb.DuckDBPyConnection, count: int) -> dict[str, Any]:
    fresh = [_timed(session, text) for text in shapes(min(count, 200))]
    texts = list(known(count))
    for text in texts[:8]:
        _timed(session, text)
    met = [_timed(session, text) for text in texts]
    theirs = []
    for text in texts:
        start = time.perf_counter()
        peer.execute("EXPLAIN " + text).fetchall()
        theirs.append((time.perf_counter() - start) * 1000)
    return {
        "known": _told([plan for plan, _ in met]),
        "bound": _told([sum(pair) for pair in met]),
        "new": _told([plan for plan, _ in fresh]),
        "new_bound": _told([sum(pair) for pair in fresh]),
        "duckdb": _told(theirs),
    }


def _timed(session: Any, sql: str) -> tuple[float, float]:
    """Milliseconds to plan and to bind, as `queries.select` does it; nothing is sent."""
    from louver.trusted.executor import binding
    from louver.trusted.planner.sql import lexer

    start = time.perf_counter()
    (text,) = lexer.split(sql)
    plan, shape = session.context.plan(text, [])
    planned = time.perf_counter()
    binding.bind(session.context, plan, shape, text, [])
    done = time.perf_counter()
    return (planned - start) * 1000, (done - planned) * 1000


def known(count: int) -> list[str]:
    """Statements of four shapes, no two with the same numbers."""
    forms = (
        "SELECT A, B FROM T WHERE A < {0}",
        "SELECT A * B, B - {0}, G + {1}, N FROM T WHERE A < {1}",
        "SELECT count(*), sum(A) FROM T WHERE A BETWEEN {0} AND {1} AND P > 3",
        "SELECT x.A, y.B FROM T AS x JOIN T AS y ON x.G = y.G WHERE x.A + {0} > y.B * {1}",
    )
    return [forms[i % len(forms)].format(1000 + i, 5000 + 3 * i) for i in range(count)]


def shapes(count: int) -> list[str]:
    """Statements of which no two have the same shape."""
    items = ("A", "B + 7", "A * B", "G - 3", "N", "A + B", "P", "-A", "A * 3 - B")
    tests = ("A < 100", "B >= A", "A * 2 > B", "G = 3", "P < 5", "A + B < 900", "G <> 4")
    result = (
        f"SELECT {', '.join(chosen)} FROM T WHERE {' AND '.join(where)}"
        for size in (2, 3)
        for where in itertools.combinations(tests, size - 1)
        for chosen in itertools.combinations(items, size)
    )
    return list(itertools.islice(result, 0, None, 3))[:count]


def _told(values: list[float]) -> dict[str, float]:
    return {"median": median(values), "p95": percentile(values, 95)}
