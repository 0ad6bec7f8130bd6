"""One client of several providers behind the delaying network, in a process of its own."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

import louver
from bench.splinter import paper
from bench.splinter.plain import Asker
from bench.splinter.proxy import Proxy
from bench.timing import percentile
from examples.asking import same

WARM, LEAST = 3, 20
#: Round trips are also counted from outside, by what a longer way adds.
LONGER_MS = 34
LONGER_REPEATS = 6
Told = dict[str, Any]
Ask = Callable[[str, list[Any]], pa.Table]


def measure(
    *, providers: list[str], pids: list[int], plain: str, jobs: list[Told], repeats: int,
    options: str = "",
) -> list[Told]:  # fmt: skip
    """All jobs, one after the other; see `_job` for what is told of each."""
    with Proxy([*providers, plain], paper.RTT_MS / 2) as network:
        peer = Asker(network.addresses[-1])
        url = "providers://" + ",".join(network.addresses[:-1]) + options
        return [_job(job, url, network, peer, pids, max(LEAST, repeats)) for job in jobs]


def _job(job: Told, url: str, network: Proxy, peer: Asker, pids: list[int], repeats: int) -> Told:
    """Milliseconds, rounds, bytes for each provider and question, CPU seconds of all providers."""
    sql, secrets = job["sql"], job["secrets"]
    started = time.perf_counter()
    with louver.connect(url) as con:
        connect_ms = _since(started)
        first_ms, _ = _timed(Asking(con), sql, secrets[0])
    with louver.connect(url) as con:
        ask = Asking(con)
        known_ms, _ = _timed(ask, sql, secrets[1])
        for at in range(WARM):
            ask(sql, secrets[2 + at])
        found = _repeated(con, ask, job, network, pids, repeats)
        network.delay(LONGER_MS / 2)
        slower = [_timed(ask, sql, secrets[n % len(secrets)])[0] for n in range(LONGER_REPEATS)]
        network.delay(paper.RTT_MS / 2)
    answers = found.pop("answers")
    plain_ms, right = _plain(peer, sql, secrets, answers)
    return found | {
        "name": job["name"],
        "connect_ms": connect_ms,
        "first_ms": first_ms,
        "known_ms": known_ms,
        "trips": (median(slower) - found["p50_ms"]) / (LONGER_MS - paper.RTT_MS),
        "plain_ms": plain_ms,
        "right": right,
    }


def _repeated(
    con: Any, ask: Asking, job: Told, network: Proxy, pids: list[int], repeats: int
) -> Told:
    fleet = con.session.fleet
    before, cpu_s = network.counts()[:-1], cpu_seconds(pids)
    rounds, traffic = fleet.rounds, (fleet.traffic.bytes_out, fleet.traffic.bytes_in)
    times, steps, answers = [], [], []
    for turn in range(repeats):
        spent, answer = _timed(ask, job["sql"], job["secrets"][turn % len(job["secrets"])])
        times.append(spent)
        answers.append(answer)
        steps.append(ask.times_ms)
    after = network.counts()[:-1]
    cpu_s = cpu_seconds(pids) - cpu_s
    parties = len(before)
    each = [(b.up - a.up, b.down - a.down) for a, b in zip(before, after, strict=True)]
    return {
        "p50_ms": median(times),
        "p95_ms": percentile(times, 95),
        "best_ms": min(times),
        "repeats": repeats,
        "rounds": (fleet.rounds - rounds) / repeats,
        "up": (fleet.traffic.bytes_out - traffic[0]) / repeats / parties,
        "down": (fleet.traffic.bytes_in - traffic[1]) / repeats / parties,
        "network_up": max(up for up, _ in each) / repeats,
        "network_down": max(down for _, down in each) / repeats,
        "cpu_s": cpu_s / repeats,
        "steps": {name: median([one.get(name, 0.0) for one in steps]) for name in steps[-1]},
        "answers": answers,
    }


class Asking:
    """Asks a connection, and keeps how long each step took."""

    def __init__(self, con: Any) -> None:
        self._con = con
        self.times_ms: dict[str, float] = {}

    def __call__(self, sql: str, parameters: list[Any]) -> pa.Table:
        cursor = self._con.execute(sql, parameters)
        found = cursor.fetch_arrow_table()
        self.times_ms = cursor.times_ms
        return found


def _plain(
    peer: Asker, sql: str, secrets: list[Any], answers: list[pa.Table]
) -> tuple[float, bool]:
    """The peer's median, and whether it gives the same answers."""
    times, right = [], True
    for turn, answer in enumerate(answers):
        spent, theirs = _timed(peer.ask, sql, secrets[turn % len(secrets)])
        times.append(spent)
        right = right and same(_rows(answer), _rows(theirs))
    return median(times), right


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


def _timed(ask: Ask, sql: str, parameters: list[Any]) -> tuple[float, pa.Table]:
    started = time.perf_counter()
    found = ask(sql, parameters)
    return _since(started), found


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def cpu_seconds(pids: list[int]) -> float:
    """What processes have computed so far, all their threads."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
