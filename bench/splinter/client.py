"""One client of several providers behind the delaying network, in a process of its own."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import louver
from bench.splinter import paper
from bench.splinter.plain import Asker
from bench.splinter.proxy import Proxy
from bench.timing import percentile
from examples.maps.atlas import Atlas
from examples.maps.route import Router
from louver.trusted.apps.demo_console import same
from louver.trusted.client.inside import session_of

WARM, LEAST = 3, 20
#: Round trips are also counted from outside, by what a longer way adds.
LONGER_MS = 34
LONGER_REPEATS = 15
Told = dict[str, Any]
Rows = list[tuple[Any, ...]]


def measure(
    *, providers: list[str], pids: list[int], plain: str, jobs: list[Told], repeats: int,
    options: str = "",
) -> list[Told]:  # fmt: skip
    """All jobs, one after the other; see `_job` for what is told of each."""
    warnings.simplefilter("ignore")
    with Proxy([*providers, plain], paper.RTT_MS / 2) as network:
        peer = Asker(network.addresses[-1])
        url = "providers://" + ",".join(network.addresses[:-1]) + options
        return [_job(job, url, network, peer, pids, max(LEAST, repeats)) for job in jobs]


class Asking:
    """Asks one job's question with other secrets each time, and keeps how long steps took."""

    def __init__(self, job: Told, con: Any) -> None:
        """Over Louver's connection, or over the peer's."""
        self._job, self._con = job, con
        self._router = Router(self, Atlas.load(Path(job["atlas"]))) if "atlas" in job else None
        self.times_ms: dict[str, float] = {}

    def __call__(self, secret: list[Any]) -> Rows:
        """The answer: rows, or the length of a route and its nodes."""
        self.times_ms = {}
        if self._router is None:
            return self.execute(self._job["sql"], secret).fetchall()
        route = self._router.route(*secret)
        return [(route.length, *route.nodes)]

    def execute(self, sql: str, parameters: list[Any]) -> Any:
        """One statement; a router asks two."""
        started = time.perf_counter()
        cursor = self._con.execute(sql, parameters)
        for name, spent in getattr(cursor, "times_ms", {}).items():
            self.times_ms[name] = self.times_ms.get(name, 0.0) + spent
        if self._router is not None:
            name = "transit_ms" if "grid_ms" in self.times_ms else "grid_ms"
            self.times_ms[name] = _since(started)
        return cursor


def _job(job: Told, url: str, network: Proxy, peer: Asker, pids: list[int], repeats: int) -> Told:
    """Milliseconds, rounds, bytes for each provider and question, CPU seconds of all providers."""
    secrets = job["secrets"]
    others = iter(secrets[repeats:])
    started = time.perf_counter()
    with louver.connect(url) as con:
        connect_ms = _since(started)
        first_ms, _ = _timed(Asking(job, con), next(others))
    with louver.connect(url) as con:
        ask = Asking(job, con)
        known_ms, _ = _timed(ask, next(others))
        for _ in range(WARM):
            ask(next(others))
        results = _repeated(con, ask, secrets[:repeats], network, pids)
        network.delay(LONGER_MS / 2)
        slower = [_timed(ask, next(others))[0] for _ in range(LONGER_REPEATS)]
        network.delay(paper.RTT_MS / 2)
    answers = results.pop("answers")
    plain_ms, right = _plain(
        Asking(job | {"sql": job.get("plain") or job.get("sql")}, peer),
        secrets,
        answers,
        job.get("lengths", []),
    )
    return results | {
        "name": job["name"],
        "connect_ms": connect_ms,
        "first_ms": first_ms,
        "known_ms": known_ms,
        "trips": (median(slower) - results["p50_ms"]) / (LONGER_MS - paper.RTT_MS),
        "plain_ms": plain_ms,
        "right": right,
    }


def _repeated(con: Any, ask: Asking, secrets: list[Any], network: Proxy, pids: list[int]) -> Told:
    repeats = len(secrets)
    fleet = session_of(con).context.fleet
    before, cpu_s, mine_s = network.counts()[:-1], cpu_seconds(pids), time.process_time()
    rounds, traffic = fleet.rounds, (fleet.traffic.bytes_out, fleet.traffic.bytes_in)
    times, steps, answers = [], [], []
    for secret in secrets:
        spent, answer = _timed(ask, secret)
        times.append(spent)
        answers.append(answer)
        steps.append(ask.times_ms)
    mine_s = time.process_time() - mine_s
    after = network.counts()[:-1]
    cpu_s = cpu_seconds(pids) - cpu_s
    parties = len(before)
    each = [(b.up - a.up, b.down - a.down) for a, b in zip(before, after, strict=True)]
    middle = {name: median([item.get(name, 0.0) for item in steps]) for name in steps[-1]}
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
        "client_cpu_s": mine_s / repeats,
        "grid_ms": middle.pop("grid_ms", 0.0),
        "transit_ms": middle.pop("transit_ms", 0.0),
        "steps": middle,
        "answers": answers,
    }


def _plain(
    ask: Asking, secrets: list[Any], answers: list[Rows], lengths: list[int]
) -> tuple[float, bool]:
    """The peer's median, and whether it gives the same answers; of routes, the known lengths."""
    times, right = [], True
    for turn, answer in enumerate(answers):
        spent, theirs = _timed(ask, secrets[turn])
        times.append(spent)
        right = right and same(answer, theirs)
        if lengths:
            right = right and answer[0][0] == lengths[turn]
    return median(times), right


def _timed(ask: Callable[[list[Any]], Rows], secret: list[Any]) -> tuple[float, Rows]:
    started = time.perf_counter()
    results = ask(secret)
    return _since(started), results


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def cpu_seconds(pids: list[int]) -> float:
    """What processes have computed so far, all their threads."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
