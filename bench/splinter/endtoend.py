"""The six queries of Figure 7 between processes that are 14 ms apart; Figures 9, 10 and 11."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench import isolate, report
from bench.report import number
from bench.splinter import jobs, maps, paper, sources
from bench.splinter.plain import Plain
from examples import providers

TABLES = ("restaurants", "flights")
REPEATS, QUICK_REPEATS = 40, 20
Told = dict[str, Any]
PEER = "plaintext DuckDB, same network"


def run(*, quick: bool) -> report.Report:
    """The section `splinter`."""
    section = report.Report("splinter", "Private questions to public data: the queries of Splinter")
    figures = {parties: _asked(parties, quick) for parties in (2, 3)}
    for parties, known in ((2, paper.TWO), (3, paper.THREE)):
        for item in figures[parties]:
            _lines(section, item, known.get(item["name"]), "" if parties == 2 else ", 3 providers")
    section.grids = [
        _figure_7(figures, quick),
        _uses(figures),
        _costs(figures),
        maps.figure_9(figures),
        _figure_10(),
        _figure_11(figures),
    ]
    section.plots = [_plot(figures)]
    section.notes = _notes(figures, quick)
    return section


def _asked(parties: int, quick: bool) -> list[Told]:
    """All queries with two or three providers."""
    results = []
    for name in TABLES:
        file = sources.table(name, quick)
        # What has no row in the paper's figure needs more than the 24 bits of three providers.
        wanted = [job for job in jobs.jobs(name, file) if parties == 2 or job.name in paper.THREE]
        questions = [job.as_json() for job in wanted]
        results += _measured([file], parties, questions, quick)
    return results + maps.measured(parties, quick, _measured)


def _measured(data: list[Path], parties: int, questions: list[Told], quick: bool) -> list[Told]:
    """Providers of one core each, a plaintext peer of one core, a client; all on this machine."""
    cores = sorted(os.sched_getaffinity(0))
    before = [("taskset", "-c", str(cores[n % len(cores)])) for n in range(parties)]
    with (
        providers.running(data, parties, options=("--threads", "1"), before=before) as running,
        Plain(data) as peer,
    ):
        results: list[Told] = isolate.run(
            "bench.splinter.client:measure",
            providers=[item.address for item in running],
            pids=[item.pid for item in running],
            plain=peer.address,
            jobs=questions,
            repeats=QUICK_REPEATS if quick else REPEATS,
        )
    if wrong := [item["name"] for item in results if not item["right"]]:
        raise AssertionError(f"other answers than DuckDB's: {', '.join(wrong)}")
    return results


def _lines(section: report.Report, item: Told, known: paper.Result | None, of: str) -> None:
    """Time against plaintext DuckDB with a limit; rounds and bytes against the paper."""
    name = item["name"] + of
    limit = known.limit_ms if known else None
    section.lines.append(
        report.Line(f"{name}, repeated", item["p50_ms"], "ms", PEER, item["plain_ms"], target=limit)
    )
    if known is None:
        return
    for what, ours, theirs, unit in (
        ("rounds", item["rounds"], known.rounds, "rounds"),
        ("bytes up", item["up"] / 1000, known.up_kb, "KB"),
        ("bytes down", item["down"] / 1000, known.down_kb, "KB"),
    ):
        section.lines.append(
            report.Line(f"{name}, {what}", ours, unit, "Splinter, Figure 7", theirs, target=theirs)
        )


def _figure_7(figures: dict[int, list[Told]], quick: bool) -> report.Grid:
    rows = []
    for parties, known in ((2, paper.TWO), (3, paper.THREE)):
        for item in figures[parties]:
            theirs = known.get(item["name"])
            limit = f"{theirs.limit_ms:.0f}" if theirs else ""
            met = "" if not theirs else ("yes" if item["p50_ms"] <= theirs.limit_ms else "NO")
            rows.append(
                [
                    item["name"],
                    str(parties),
                    _pair(item["rounds"], theirs and theirs.rounds),
                    f"{item['trips']:.1f}",
                    _pair(item["up"] / 1000, theirs and theirs.up_kb),
                    _pair(item["down"] / 1000, theirs and theirs.down_kb),
                    _pair(item["p50_ms"], theirs and theirs.ms),
                    number(item["p95_ms"]),
                    limit,
                    met,
                    number(item["plain_ms"]),
                ]
            )
    header = [
        *("query", "providers", "rounds (paper)", "round trips by delay", "KB up (paper)"),
        *("KB down (paper)", "p50 ms (paper, 64 cores)", "p95 ms", "limit ms", "within"),
        "plaintext DuckDB ms",
    ]
    title = "Figure 7: queries, one core a provider" + (", small tables" if quick else "")
    return report.Grid(title, header, rows)


def _pair(ours: float, theirs: float | None) -> str:
    return number(ours) if theirs is None else f"{number(ours)} ({number(theirs)})"


def _uses(figures: dict[int, list[Told]]) -> report.Grid:
    rows = []
    for parties, results in figures.items():
        for item in results:
            steps = ", ".join(f"{k} {v:.1f}" for k, v in item["steps"].items() if v >= 0.05)
            waiting = item["rounds"] * paper.RTT_MS
            rows.append(
                [
                    item["name"],
                    str(parties),
                    number(item["first_ms"]),
                    number(item["known_ms"]),
                    number(item["p50_ms"]),
                    number(item["best_ms"]),
                    number(item["p50_ms"] - waiting),
                    steps,
                ]
            )
    header = [
        *("query", "providers", "first of its shape ms", "first of a connection ms"),
        *("repeated, p50 ms", "best ms", "beyond round trips ms", "median of steps ms"),
    ]
    return report.Grid("First and repeated use of a shape", header, rows)


def _costs(figures: dict[int, list[Told]]) -> report.Grid:
    rows = []
    for parties, results in figures.items():
        for item in results:
            cents = item["cpu_s"] / 3600 * paper.CENTS_PER_CPU_HOUR
            bound = paper.CENTS["maps" if item["name"] == "maps" else "most"]
            rows.append(
                [
                    item["name"],
                    str(parties),
                    number(item["cpu_s"] * 1000),
                    number(item["client_cpu_s"] * 1000),
                    f"{cents:.7f}",
                    f"{bound}",
                    number(item["network_up"] / 1000),
                    number(item["network_down"] / 1000),
                ]
            )
    header = [
        *("query", "providers", "CPU ms of all providers", "CPU ms of the client", "cents"),
        "paper, below",
        *("KB up with HTTP/2", "KB down with HTTP/2"),
    ]
    title = f"Section 8.4: costs of a repeated query at {paper.CENTS_PER_CPU_HOUR:g} cents an hour"
    return report.Grid(title, header, rows)


def _figure_10() -> report.Grid:
    rows = [[item.site, item.fields, item.paper, item.ours] for item in paper.SITES]
    title = "Figure 10: search forms and our language (a statement, not a measurement)"
    return report.Grid(title, ["site", "fields", "Splinter", "Louver"], rows)


def _figure_11(figures: dict[int, list[Told]]) -> report.Grid:
    rows = []
    for item in figures[2]:
        known = paper.ROUND_TRIPS.get(item["name"])
        if known is None:
            continue
        kb = (item["up"] + item["down"]) / 1000
        theirs = paper.BANDWIDTH_KB[item["name"]]
        rows.append(
            [
                item["name"],
                str(known[0]),
                str(known[1]),
                number(item["rounds"]),
                f"{item['trips']:.1f}",
                str(theirs[1]),
                str(theirs[0]),
                number(kb),
            ]
        )
    header = [
        *("query", "Olumofin et al. (paper)", "Splinter (paper)", "Louver, counted"),
        *("Louver, by delay", "Olumofin et al. KB", "Splinter KB", "Louver KB"),
    ]
    return report.Grid("Figure 11: round trips, and bytes of the thesis", header, rows)


def _plot(figures: dict[int, list[Told]]) -> report.Plot:
    names = [item["name"] for item in figures[2] if item["name"] in paper.TWO]
    at = {name: float(position) for position, name in enumerate(names, 1)}
    series: dict[str, list[tuple[float, float]]] = {
        "paper, 64 cores each": [(at[n], paper.TWO[n].ms) for n in names],
        "paper's rounds and a quarter of the rest": [(at[n], paper.TWO[n].limit_ms) for n in names],
    }
    for parties, results in figures.items():
        series[f"Louver, {parties} providers"] = [
            (at[item["name"]], item["p50_ms"]) for item in results if item["name"] in at
        ]
    series["plaintext DuckDB"] = [
        (at[o["name"]], o["plain_ms"]) for o in figures[2] if o["name"] in at
    ]
    x = ", ".join(f"{int(position)} {name}" for name, position in at.items())
    return report.Plot("splinter", "Figure 7: milliseconds of a query", x, "ms", series)


def _notes(figures: dict[int, list[Told]], quick: bool) -> list[str]:
    rows = sources.QUICK_ROWS if quick else sources.ROWS
    return [
        f"Tables: {rows['restaurants']:,} restaurants generated by a documented recipe (Yelp's "
        f"data may not be redistributed), {rows['flights']:,} flights (npm's 3,000,000 repeated "
        "half a year later, with "
        f"derived prices); {maps.note(quick)}",
        "Two or three providers, plaintext DuckDB, client and network are processes of one "
        f"machine of {len(os.sched_getaffinity(0))} cores; each provider is bound to one core and "
        "has one thread. The network delays TCP by 7 ms each way. Every repetition uses other "
        f"secrets; {figures[2][0]['repeats']} repetitions. Everything is on this machine, where "
        "Louver uses plain HTTP/2: between machines TLS adds two round trips to the first use "
        "of a connection and 22 bytes to a record.",
        "`plaintext DuckDB` is one thread behind the same network and receives the question in "
        "plaintext. It scans its tables, without an index; Louver's providers answer a repeated "
        "question from the tables that they prepared for all questions of its shape; the first "
        "question waits for the preparation.",
        "Bytes are those of messages for one provider; with HTTP/2 they are counted by the "
        "network. Rounds are counted by the client; `by delay` is the increase of the median by 20 "
        "ms more of round trip, in units of 20 ms, measured from outside.",
        "The limit is the paper's rounds at 14 ms and a quarter of the rest of its time. At three "
        "providers a record contains every key of its bucket, which makes some answers longer than "
        "the paper's. The paper's Q3 takes 11 rounds, Louver sends its clauses in parallel; the "
        "limit is still that of 11 rounds.",
        "The paper's numbers: Figures 7 to 11 and 13 from its text, confirmed by the source of the "
        "first author's doctoral thesis. The paper states its cost as an upper bound only.",
    ]
