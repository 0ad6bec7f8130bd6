"""Many clients that write at once, each a thread with its own connection."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any, Protocol

import duckdb

from bench.oltp import sides
from bench.oltp.statements import BATCH, BATCHED, INSERT, READ, UPSERT
from bench.timing import median, percentile

UPDATE = "UPDATE t0 SET v = ? WHERE id = ?"
DELETE = "DELETE FROM t0 WHERE id = ?"
TEN = 10
MIX = "INSERT of a row, 6 reads and 2 UPDATEs of it, DELETE"
#: What UPDATE sets, never what is there.
_numbers = count(1)
#: What each client runs again and again. Every second upsert finds its row.
FORMS = {
    "point read": (READ,),
    "INSERT": (INSERT,),
    "UPDATE by key": (UPDATE,),
    f"BEGIN, {TEN} UPDATEs by key, COMMIT": ("BEGIN", *[UPDATE] * TEN, "COMMIT"),
    "INSERT, UPDATE, DELETE of a row": (INSERT, UPDATE, DELETE),
    "upsert by key": (UPSERT, UPSERT),
    MIX: (INSERT, READ, READ, READ, UPDATE, READ, READ, READ, UPDATE, DELETE),
    f"INSERT of {BATCH:,} rows": (BATCHED,),
}


def measured(profile: str, clients: int, rows: int, seconds: float) -> dict[str, Any]:
    """Statements a second, their median and p99 in milliseconds, and errors by code, of each form
    and side.
    """
    results: dict[str, Any] = {}
    with sides.opened(profile) as pair:
        pair.table("t0", rows, key=True)
        for form in FORMS:
            results[form] = [at_once(pair, s, form, clients, rows, seconds) for s in pair.both()]
    return results


class Pair(Protocol):
    """Both sides, as far as clients need them."""

    def another(self, side: Any) -> Any:
        """One more connection to the database of a side."""
        ...


def at_once(
    pair: Pair, side: Any, form: str, clients: int, rows: int, seconds: float
) -> dict[str, Any]:
    """All clients write different rows of the same table, after as many seconds that do not count:
    a new session plans its statements, and records its first conditions one by one.
    """
    times, errors = list[list[float]](), Counter[str]()
    barrier, lock = threading.Barrier(clients), threading.Lock()
    connections = [pair.another(side) for _ in range(clients)]
    begun = list[float]()

    def client(position: int) -> None:
        con, ids = connections[position], _ids(form, position, rows // clients)
        _during(con, form, ids, seconds)
        barrier.wait()
        start = time.perf_counter()
        spent, failed = _during(con, form, ids, seconds)
        with lock:
            begun.append(start)
            times.append(spent)
            errors.update(failed)

    threads = [threading.Thread(target=client, args=(position,)) for position in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    passed = time.perf_counter() - min(begun)
    for con in connections:
        con.close()
    done = [spent for of_client in times for spent in of_client]
    return {
        "rate": len(done) / passed, "errors": dict(errors),
        "median": median(done or [math.inf]), "p99": percentile(done or [math.inf], 99),
    }  # fmt: skip


def _during(
    con: Any, form: str, ids: Iterator[int], seconds: float
) -> tuple[list[float], Counter[str]]:
    """Run a form until so many seconds have passed."""
    spent, failed = list[float](), Counter[str]()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        times_ms, codes = _once(con, form, ids)
        spent += times_ms
        failed.update(codes)
    return spent, failed


def _ids(form: str, position: int, share: int) -> Iterator[int]:
    """A client's own rows: those of its share of the table, or new ones."""
    # Far more than a client takes, so that no two meet.
    first = (list(FORMS).index(form) + 1) * 10**15 + position * 10**12
    if set(FORMS[form]) <= {READ, UPDATE, "BEGIN", "COMMIT"}:
        return (position * share + number % share for number in count())
    return (first + number * BATCH for number in count())


def _once(con: Any, form: str, ids: Iterator[int]) -> tuple[list[float], list[str]]:
    """The milliseconds of each statement of a form, and the codes of its errors. What fails ends
    its transaction.
    """
    import louver

    spent, failed, id_ = list[float](), list[str](), next(ids)
    within = FORMS[form][0] == "BEGIN"
    for sql in FORMS[form]:
        start = time.perf_counter()
        try:
            answer = con.execute(sql, _values(sql, next(ids) if within else id_))
            if sql == READ:
                answer.fetchall()
            spent.append((time.perf_counter() - start) * 1000)
        except (louver.Error, duckdb.Error) as error:
            failed.append(getattr(error, "code", type(error).__name__))
            if within:
                with suppress(louver.Error, duckdb.Error):
                    con.execute("ROLLBACK")
                return [], failed
    return spent, failed


def _values(sql: str, id_: int) -> list[Any]:
    """The parameters of a statement about a row, or about those that begin with it."""
    if sql is BATCHED:
        return [value for item in range(BATCH) for value in (id_ + item, item, "new")]
    given = {UPDATE: [next(_numbers), id_], DELETE: [id_], READ: [id_], "BEGIN": [], "COMMIT": []}
    return given.get(sql, [id_, 1, "new"])
