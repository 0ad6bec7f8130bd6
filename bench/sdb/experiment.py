"""All figures of the report from one set of measurements, beside the report's numbers."""

from __future__ import annotations

from typing import Any

from bench import data, isolate, report
from bench.sdb import figures, paper

QUICK_SIZES = (5_000, 20_000)


def run(*, quick: bool) -> report.Report:
    """Measure every size in processes of its own, then lay out the figures."""
    sizes = QUICK_SIZES if quick else paper.SIZES
    results = Measured(sizes, quick)
    section = report.Report("sdb", "The SDB report's experiments on DuckDB")
    section.grids = [
        figures.figure_17(results),
        figures.shipped(results),
        figures.figure_18(results),
        figures.figure_19(results),
        figures.figure_20(results),
        figures.by_size(results, "20A", "EE", "SELECT A, B FROM T WHERE A < B", paper.FIGURE_20A),
        figures.by_size(results, "20B", "EC", "SELECT A, B FROM T WHERE A < q", paper.FIGURE_20B),
        figures.by_size(
            results, "21", "COUNT", "SELECT count(A) FROM T WHERE A < q", paper.FIGURE_21
        ),
    ]
    section.plots = figures.plots(results)
    section.lines = lines(results)
    section.notes = notes(results)
    return section


class Measured:
    """What each size took."""

    def __init__(self, sizes: tuple[int, ...], quick: bool) -> None:
        """Run everything; one process for every size and system."""
        self.sizes = sizes
        self.quick = quick
        self.middle = sizes[1]
        """The size of Figures 18 and 20: 200,000 unless quick."""
        q = data.below(0.01)
        shares = list(paper.SELECTIVITIES)
        self.louver: dict[int, Any] = {}
        self.rsa: dict[int, Any] = {}
        self.sealed: dict[int, Any] = {}
        for size in sizes:
            wanted = shares if size in sizes[:2] else []
            self.louver[size] = isolate.run(
                "bench.sdb.louver:measure", rows=size, selectivities=wanted
            )
            self.rsa[size] = isolate.run("bench.sdb.dbq:with_rsa", rows=size, q=q)
            self.sealed[size] = isolate.run("bench.sdb.dbq:with_sealed", rows=size, q=q)

    def query(self, size: int, name: str) -> Any:
        """One of EC, EE, COUNT, shares."""
        return self.louver[size]["queries"][name]


def lines(results: Measured) -> list[report.Line]:
    """In short: totals at the middle size, against every peer."""
    size = results.middle
    result = []
    peak = results.louver[size]["peak_mib"]
    rsa, sealed = results.rsa[size], results.sealed[size]
    for when in ("unkept", "first", "again"):
        ours = results.query(size, "EC")[when]["total_ms"] / 1000
        peers = [
            ("DBQ with RSA-2048", rsa["server_s"] + rsa["client_s"], None),
            ("DBQ with AES-GCM (`sealed`)", sealed["total_ms"] / 1000, sealed["peak_mib"]),
            ("plaintext DuckDB", results.query(size, "EC")["plain_s"], None),
        ]
        for peer, theirs, their_peak in peers:
            result.append(
                report.Line(f"A < q on {size:,} rows, {when}", ours, "s", peer, theirs,
                            peak_mib=peak, peer_peak_mib=their_peak)
            )  # fmt: skip
    return result


def notes(results: Measured) -> list[str]:
    """What one must know to read the figures."""
    values = max(item["decrypted_values"] for item in results.rsa.values())
    again = results.query(results.middle, "EC")["again"]["total_ms"]
    modern = report.times(again / results.sealed[results.middle]["total_ms"])
    loads = ", ".join(
        f"{size:,} rows in {item['load_s']:.1f} s (peak {item['peak_mib']:,.0f} MiB)"
        for size, item in results.louver.items()
    )
    return [
        "`unkept`: within a transaction the server keeps nothing, so every query pays for its "
        "exponentiations, as in the report. `first`: outside of one the server computes "
        "products with powers of its helper column and keeps them (decision 0003). `again`: the "
        "median of three other values of q after that. `first` of EE comes after EC, and finds "
        "what EC left.",
        "Server cost is what DuckDB with the `sdb_*` functions works and ships, in this process: "
        "no network is in any number, for us or for DBQ. Client cost is all the rest.",
        "`SELECT A, B` does not open shares: it reads the sealed copies that every sdb column "
        "keeps (decision 0002), which the report's system does not have. The rows `opening shares` "
        "are `SELECT A * 3, B * 3`, for which no copy exists, so that each value is opened as the "
        "report does it.",
        f"DBQ with RSA-2048 uses OpenSSL (CRT, OAEP) on all cores; at most {values:,} values are "
        "decrypted and the rest counted in proportion. DBQ with AES-GCM is Louver's profile "
        "`sealed`, the default: it ships both columns whole, opens all and filters at home. It "
        f"is the baseline that counts today: on {results.middle:,} rows it is {modern} than sdb "
        "`again`, without a network; see how much it ships instead.",
        "Both DBQs show the server nothing but sizes and that the table was read; sdb's "
        "comparison with a constant lets it compute the whole column (docs/attacks.md).",
        "The report's machines: 10 of 8 cores (i7-3770) as server, one Core i5 of 2.4 GHz as "
        "client, Spark 1.1 in Java 6, 2015. Its SparkSQL is what our plaintext DuckDB is. Its "
        "section 4.1 swaps the names of the range queries; here EC is `A < q`, EE is `A < B`. "
        "A is uniform below 1,000,000 and B below 20,000, so that `A < B` selects 1 %.",
        f"Loading: {loads}.",
    ]
