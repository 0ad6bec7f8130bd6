"""Many clients that write at once, each a thread with its own connection."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import duckdb

from bench.oltp import sides

INSERT = "INSERT INTO t0 VALUES (?, ?, ?)"
UPDATE = "UPDATE t0 SET v = ? WHERE id = ?"
DELETE = "DELETE FROM t0 WHERE id = ?"
FORMS = ("INSERT", "INSERT, UPDATE, DELETE of a row")


def measured(profile: str, clients: int, rows: int, seconds: float) -> dict[str, Any]:
    """Statements a second and errors by code, of each form and side."""
    results: dict[str, Any] = {}
    with sides.opened(profile) as pair:
        pair.table("t0", rows, key=True)
        for form in FORMS:
            results[form] = [_together(pair, s, form, clients, seconds) for s in pair.both()]
    return results


def _together(
    pair: sides.Sides, side: Any, form: str, clients: int, seconds: float
) -> dict[str, Any]:
    """All clients write different rows of the same table."""
    import louver

    counts, errors = [0] * clients, Counter[str]()
    barrier, lock = threading.Barrier(clients), threading.Lock()
    connections = [pair.another(side) for _ in range(clients)]

    def client(position: int) -> None:
        con = connections[position]
        id_ = (FORMS.index(form) + 1) * 1_000_000_000 + position * 10_000_000
        barrier.wait()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            id_ += 1
            steps = [(INSERT, [id_, 1, "new"]), (UPDATE, [2, id_]), (DELETE, [id_])]
            for sql, values in steps[: 1 if form == "INSERT" else 3]:
                try:
                    con.execute(sql, values)
                    counts[position] += 1
                except (louver.Error, duckdb.Error) as error:
                    with lock:
                        errors[getattr(error, "code", type(error).__name__)] += 1

    threads = [threading.Thread(target=client, args=(position,)) for position in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = time.perf_counter() - begun
    for con in connections:
        con.close()
    return {"rate": sum(counts) / spent, "errors": dict(errors)}
