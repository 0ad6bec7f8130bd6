"""Clients at once: pgbench's scripts, copies of many rows, TPC-C, and clients that only wait."""

from __future__ import annotations

import time
from typing import Any

from bench.timing import median
from bench.wire import sides, statements, tpcc, tpcc_tables

_NEW = "\\set id random(1000000000, 9000000000000000000)\n"
_OLD = "\\set id random(0, {last})\n"
_MORE = "\\set v random(1, 1000000)\n"
FORMS = {
    "no ENC column: point read": _OLD + "SELECT v, s FROM p0 WHERE id = :id;\n",
    "point read by key": _OLD + "SELECT v, s FROM t0 WHERE id = :id;\n",
    "INSERT of one row": _NEW + "INSERT INTO t0 VALUES (:id, 1, 'new');\n",
    "UPDATE by key": _OLD + _MORE + "UPDATE t0 SET v = :v WHERE id = :id;\n",
}
COPIES = ("COPY in, text", "COPY out, text", "COPY out, binary")


def throughput(clients: int, rows: int, seconds: float) -> dict[str, dict[str, float]]:
    """Transactions a second by form and side."""
    results: dict[str, dict[str, float]] = {}
    with sides.opened() as pair:
        statements.table(pair, "t0", rows, enc=True)
        statements.table(pair, "p0", rows, enc=False)
        for form, script in FORMS.items():
            text = script.replace("{last}", str(rows - 1))
            results[form] = {side.name: side.pgbench(text, clients, seconds) for side in pair.all()}
    return results


def copies(rows: int) -> dict[str, list[float]]:
    """Rows a second of the door and of a direct connection."""
    results: dict[str, list[float]] = {name: [] for name in COPIES}
    with sides.opened() as pair:
        for side in pair.both():
            own = f" {side.enc}" if side.enc else ""
            with side.connect() as con:
                con.execute(statements.TABLE.format(name="c", enc=own))
                chunks = [
                    "".join(f"{n}\t{n * 3}\tvalue {n}\n" for n in range(at, min(at + 5_000, rows)))
                    for at in range(0, rows, 5_000)
                ]
                start = time.perf_counter()
                with con.cursor().copy("COPY c FROM STDIN") as copy:
                    for chunk in chunks:
                        copy.write(chunk)
                results[COPIES[0]].append(rows / (time.perf_counter() - start))
                for name, options in zip(COPIES[1:], ("", " (FORMAT binary)"), strict=True):
                    start = time.perf_counter()
                    with con.cursor().copy(f"COPY c TO STDOUT{options}") as copy:
                        for _ in copy:
                            pass
                    results[name].append(rows / (time.perf_counter() - start))
        statements.equal(pair.both(), "SELECT count(*), sum(id), sum(v), min(s) FROM c")
    return results


def transactions(
    scale: dict[str, int], terminals: int, warm_s: float, seconds: float
) -> dict[str, Any]:
    """TPC-C by side: transactions a second, those by name with their median in milliseconds, and
    those that lost against another and ran again. The conditions hold at the end, or it fails.
    """
    results: dict[str, Any] = {}
    size = tpcc_tables.Scale(**scale)
    with sides.opened() as pair:
        for side in pair.both():
            tpcc_tables.fill(side, size)
            counts, passed, spent = tpcc.terminals(side, size, terminals, seconds, warm_s)
            with side.connect() as con:
                tpcc_tables.check(con)
            lost = counts.pop("lost", 0)
            results[side.name] = {
                "rate": counts.total() / passed, "lost": lost, "counts": dict(counts),
                "median_ms": {name: median(times) for name, times in spent.items()},
            }  # fmt: skip
    return results


def memory(rows: int, total: int) -> dict[str, Any]:
    """The door's resident memory in MiB after a part of so many statements, of other keys and of
    other texts, and at the end.
    """
    results = []
    with sides.opened() as pair:
        statements.table(pair, "t0", rows, enc=True)
        with pair.door.connect() as con:
            for number in range(total):
                key = number * 7919 % rows
                kind = number % 100
                if kind < 80:
                    con.execute("SELECT v, s FROM t0 WHERE id = %s", (key,)).fetchall()
                elif kind < 99:
                    con.execute("UPDATE t0 SET v = %s WHERE id = %s", (number, key))
                else:
                    con.execute(f"SELECT v AS v{number} FROM t0 WHERE id = {key}").fetchall()
                if (number + 1) % (total // 10) == 0:
                    results.append(pair.door_mib())
    return {"statements": total, "mib": results}


def crowd(clients: int) -> dict[str, Any]:
    """So many clients that are connected at once, each of which runs a statement: the seconds until
    all are connected and until all have run, the door's memory, and its connections to the server.
    """
    with sides.opened() as pair:
        statements.table(pair, "t0", 2_000, enc=True)
        before, start = pair.door_mib(), time.perf_counter()
        connections = [pair.door.connect() for _ in range(clients)]
        connected = time.perf_counter() - start
        rows = [
            con.execute("SELECT v FROM t0 WHERE id = %s", (number % 2_000,)).fetchall()[0][0]
            for number, con in enumerate(connections)
        ]
        if rows != [number % 2_000 * 3 for number in range(clients)]:
            raise RuntimeError("another answer than PostgreSQL's")
        passed = time.perf_counter() - start
        with pair.server.connect() as con:
            ((count,),) = con.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'louver'"
                " AND pid <> pg_backend_pid()"
            ).fetchall()
        results = {
            "clients": clients, "connected_s": connected, "passed_s": passed,
            "mib": pair.door_mib() - before, "connections": count,
        }  # fmt: skip
        for con in connections:
            con.close()
    return results
