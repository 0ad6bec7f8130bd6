"""What Louver takes for the three queries of the report, on one size of table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench import asking, data
from louver.trusted.client.inside import context_of

EC = "SELECT A, B FROM T WHERE A < {q}"
EE = "SELECT A, B FROM T WHERE A < B"
COUNT = "SELECT count(A) FROM T WHERE A < {q}"
SHARES = "SELECT A * 3, B * 3 FROM T WHERE A < {q}"
QUERIES = {"EC": EC, "EE": EE, "COUNT": COUNT, "shares": SHARES}


def measure(rows: int, selectivities: list[float]) -> dict[str, Any]:
    """Each query with nothing kept on the server, the first time, and repeated.

    ``by_selectivity`` has `A < q` repeated, as an unkept statement, and planned anew.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.table_t(folder / "T.parquet", rows)
        with data.louver(folder, "sdb") as con, data.plain(folder) as peer:
            # The report's T has two columns, and so has this one.
            con.execute("CREATE TABLE T (A INT ENC, B INT ENC)")
            peer.execute(f"CREATE TABLE T AS SELECT A, B FROM '{folder}/T.parquet'")
            source = folder / "AB.parquet"
            peer.execute(f"COPY T TO '{source}' (FORMAT parquet)")
            # The primes are found once per key file; that belongs to no load.
            context_of(con).columns.modulus()
            start = time.perf_counter()
            con.load("T", source)
            load_s = time.perf_counter() - start
            q = data.below(0.01)
            unkept = {
                name: asking.as_json(asking.unkept(con, peer, text.format(q=q)))
                for name, text in QUERIES.items()
                if name != "shares"
            }
            queries = {name: _query(con, peer, text, q) for name, text in QUERIES.items()}
            for name, item in unkept.items():
                queries[name]["unkept"] = item
            return {
                "rows": rows,
                "load_s": load_s,
                "queries": queries,
                "by_selectivity": [_at(con, peer, share) for share in selectivities],
            }


def _query(con: Any, peer: Any, text: str, q: int) -> dict[str, Any]:
    others = [text.format(q=q + step) for step in (-2, 2, 4)]
    return {
        "first": asking.as_json(asking.checked(con, peer, text.format(q=q))),
        "again": asking.as_json(asking.repeated(con, peer, others)),
        "plain_s": asking.plain_ms(peer, others) / 1000,
    }


def _at(con: Any, peer: Any, share: float) -> dict[str, Any]:
    q = data.below(share)
    again = asking.repeated(con, peer, [EC.format(q=q + step) for step in range(3)])
    opened = asking.repeated(con, peer, [SHARES.format(q=q + step) for step in range(3)])
    context_of(con).catalog.touch()
    anew = asking.checked(con, peer, EC.format(q=q))
    return {
        "selectivity": share,
        "again": asking.as_json(again),
        "shares": asking.as_json(opened),
        "anew": asking.as_json(anew),
    }
