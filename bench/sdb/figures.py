"""The figures as tables and plots: ours and, beside it, the report's number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench.report import Grid, Plot, number
from bench.sdb import paper

if TYPE_CHECKING:
    from bench.sdb.experiment import Measured

WHEN = ("unkept", "first", "again")
#: The report's client costs, and the steps of ours that do the same.
CLIENT_STEPS = {"parse": "parse", "analyse": "analyse", "rewrite": "rewrite", "decrypt": "open"}


def figure_17(results: Measured) -> Grid:
    """DBQ against SDB."""
    rows = [
        _sized(
            results,
            f"SDB {side}, {when}",
            [results.query(n, "EC")[when][f"{side}_ms"] / 1000 for n in results.sizes],
            paper.FIGURE_17[f"SDB {side}"] if when == "unkept" else None,
        )
        for when in WHEN
        for side in ("server", "client")
    ]
    rows += [
        _sized(
            results,
            f"DBQ {side}, RSA-2048",
            [results.rsa[n][f"{side}_s"] for n in results.sizes],
            paper.FIGURE_17[f"DBQ {side}"],
        )
        for side in ("server", "client")
    ]
    for side in ("server", "client"):
        costs = [results.sealed[n][f"{side}_ms"] / 1000 for n in results.sizes]
        rows.append(_sized(results, f"DBQ {side}, AES-GCM", costs, None))
    title = "Figure 17: SDB and DBQ, SELECT A, B FROM T WHERE A < q, 1 %"
    return Grid(title, _size_header(results), rows)


def shipped(results: Measured) -> Grid:
    """What crosses the network, which no time here contains."""

    def row(what: str, sizes: list[float]) -> list[str]:
        return [what, *(number(size / 2**20) for size in sizes)]

    ec = [results.query(n, "EC")["again"]["received_bytes"] for n in results.sizes]
    shares = [results.query(n, "shares")["again"]["received_bytes"] for n in results.sizes]
    rows = [
        row("SDB, sealed copies", ec),
        row("SDB, shares", shares),
        row("DBQ, RSA-2048", [results.rsa[n]["received_bytes"] for n in results.sizes]),
        row("DBQ, AES-GCM", [results.sealed[n]["received_bytes"] for n in results.sizes]),
    ]
    title = "Shipped to the client by A < q, 1 %"
    return Grid(title, ["MiB", *(f"{size:,} rows" for size in results.sizes)], rows)


def figure_18(results: Measured) -> Grid:
    """Cost by selectivity, on the middle size."""
    measured = results.louver[results.middle]["by_selectivity"]
    title = f"Figure 18: SELECT A, B FROM T WHERE A < q on {results.middle:,} rows, by selectivity"
    rows = [
        ["server, again", *_cells(measured, "again", "server_ms", 1000)],
        ["server, report", *map(number, paper.FIGURE_18["server"])],
        ["client, again", *_cells(measured, "again", "client_ms", 1000)],
        ["client, opening shares", *_cells(measured, "shares", "client_ms", 1000)],
        ["client, report", *map(number, paper.FIGURE_18["client"])],
    ]
    return Grid(title, ["seconds", *_percents()], rows)


def figure_19(results: Measured) -> Grid:
    """The client's costs by selectivity, on the smallest size."""
    size = results.sizes[0]
    measured = results.louver[size]["by_selectivity"]
    rows = []
    for name, step in CLIENT_STEPS.items():
        if name == "decrypt":
            rows.append(["decrypt, sealed copies", *_steps(measured, "anew", step)])
            rows.append(["decrypt, opening shares", *_steps(measured, "shares", step)])
        else:
            rows.append([f"{name}, new shape", *_steps(measured, "anew", step)])
        rows.append([f"{name}, report", *map(number, paper.FIGURE_19[name])])
    rows.append(["plan in all, known shape", *_steps(measured, "again", "plan")])
    rows.append(["bind, known shape", *_steps(measured, "again", "bind")])
    rows.append(["finish at home", *_steps(measured, "again", "finish")])
    title = f"Figure 19: the client's costs on {size:,} rows, by selectivity"
    return Grid(title, ["milliseconds", *_percents()], rows)


def figure_20(results: Measured) -> Grid:
    """Three queries against plaintext."""
    names = ("EC", "EE", "COUNT")
    size = results.middle
    rows = []
    for when in WHEN:
        for side in ("server", "client"):
            costs = [results.query(size, name)[when][f"{side}_ms"] / 1000 for name in names]
            rows.append([f"{side}, {when}", *map(number, costs)])
    plain = [results.query(size, name)["plain_s"] for name in names]
    rows.append(["plaintext DuckDB", *map(number, plain)])
    for when in WHEN:
        ours = [results.query(size, name)[when]["total_ms"] / 1000 for name in names]
        slower = [f"{number(o / p)}×" for o, p in zip(ours, plain, strict=True)]
        rows.append([f"slower than plaintext, {when}", *slower])
    figures = paper.FIGURE_20
    rows += [[f"{name}, report", *map(number, figures[name])] for name in figures]
    slowdown = [
        f"{number((s + c) / p)}×"
        for s, c, p in zip(figures["server"], figures["client"], figures["plaintext"], strict=True)
    ]
    rows.append(["slower than SparkSQL, report", *slowdown])
    title = f"Figure 20: slowdown against plaintext on {size:,} rows, 1 %"
    return Grid(title, ["seconds", "A < q", "A < B", "count(A)"], rows)


def by_size(results: Measured, label: str, name: str, text: str, figures: paper.Rows) -> Grid:
    """Figures 20A, 20B and 21: server and client by size."""
    rows = []
    for side in ("server", "client"):
        for when in WHEN:
            costs = [results.query(n, name)[when][f"{side}_ms"] / 1000 for n in results.sizes]
            reported = figures[side] if when == "unkept" else None
            rows.append(_sized(results, f"{side}, {when}", costs, reported))
    plain = [results.query(n, name)["plain_s"] for n in results.sizes]
    rows.append(_sized(results, "plaintext DuckDB", plain, None))
    return Grid(f"Figure {label}: {text}", _size_header(results), rows)


def plots(results: Measured) -> list[Plot]:
    """One plot per figure of the report, logarithmic: the numbers lie far apart."""
    result = [_plot_17(results)]
    figure = "sdb-figure-18"
    shares = [100 * share for share in paper.SELECTIVITIES]
    measured = results.louver[results.middle]["by_selectivity"]
    result.append(
        Plot(figure, f"Cost by selectivity, {results.middle:,} rows", "selected rows, %",
             "seconds", {
            "server, again": _points(shares, measured, "again", "server_ms"),
            "client, again": _points(shares, measured, "again", "client_ms"),
            "client, opening shares": _points(shares, measured, "shares", "client_ms"),
            "server, paper": list(zip(shares, paper.FIGURE_18["server"], strict=True)),
            "client, paper": list(zip(shares, paper.FIGURE_18["client"], strict=True)),
        })
    )  # fmt: skip
    result.append(_plot_19(results, shares))
    for label, name, figures in (
        ("20a", "EE", paper.FIGURE_20A),
        ("20b", "EC", paper.FIGURE_20B),
        ("21", "COUNT", paper.FIGURE_21),
    ):
        series = _by_size_series(results, name, figures)
        title = f"Figure {label.upper()}: cost by size, {name}"
        result.append(Plot(f"sdb-figure-{label}", title, "rows", "seconds", series))
    return result


def _plot_17(results: Measured) -> Plot:
    series: dict[str, list[tuple[float, float]]] = {
        f"SDB, {when}": [
            (n, results.query(n, "EC")[when]["total_ms"] / 1000) for n in results.sizes
        ]
        for when in WHEN
    }
    series["DBQ, RSA-2048"] = [
        (n, results.rsa[n]["server_s"] + results.rsa[n]["client_s"]) for n in results.sizes
    ]
    series["DBQ, AES-GCM"] = [(n, results.sealed[n]["total_ms"] / 1000) for n in results.sizes]
    series["plaintext DuckDB"] = [(n, results.query(n, "EC")["plain_s"]) for n in results.sizes]
    figures = paper.FIGURE_17
    for name in ("SDB", "DBQ"):
        both = zip(paper.SIZES, figures[f"{name} server"], figures[f"{name} client"], strict=True)
        series[f"{name}, paper"] = [(n, s + c) for n, s, c in both]
    return Plot("sdb-figure-17", "Figure 17: SDB and DBQ, A < q, 1 %", "rows", "seconds", series)


def _plot_19(results: Measured, shares: list[float]) -> Plot:
    measured = results.louver[results.sizes[0]]["by_selectivity"]
    series = {}
    for name, step in CLIENT_STEPS.items():
        how = "shares" if name == "decrypt" else "anew"
        costs = [max(item[how]["steps_ms"].get(step, 0.0), 1e-3) for item in measured]
        series[name] = list(zip(shares, costs, strict=True))
        series[f"{name}, paper"] = list(zip(shares, paper.FIGURE_19[name], strict=True))
    title = f"Figure 19: the client's costs, {results.sizes[0]:,} rows (decrypt: opening shares)"
    return Plot("sdb-figure-19", title, "selected rows, %", "milliseconds", series)


def _by_size_series(
    results: Measured, name: str, figures: paper.Rows
) -> dict[str, list[tuple[float, float]]]:
    series: dict[str, list[tuple[float, float]]] = {}
    for when in ("unkept", "again"):
        for side in ("server", "client"):
            series[f"{side}, {when}"] = [
                (n, results.query(n, name)[when][f"{side}_ms"] / 1000) for n in results.sizes
            ]
    for side in ("server", "client"):
        series[f"{side}, paper"] = list(zip(paper.SIZES, figures[side], strict=True))
    return series


def _sized(
    results: Measured, what: str, ours: list[float], figures: tuple[float, ...] | None
) -> list[str]:
    """One row: our cost per size, with the report's behind a stroke where it has one."""
    cells = []
    for size, cost in zip(results.sizes, ours, strict=True):
        has = figures is not None and size in paper.SIZES
        beside = (
            f" / {number(figures[paper.SIZES.index(size)])}" if figures is not None and has else ""
        )
        cells.append(number(cost) + beside)
    return [what, *cells]


def _size_header(results: Measured) -> list[str]:
    return ["seconds (ours / report's)", *(f"{size:,} rows" for size in results.sizes)]


def _percents() -> list[str]:
    return [f"{100 * share:g} %" for share in paper.SELECTIVITIES]


def _cells(measured: list[Any], how: str, key: str, divisor: float) -> list[str]:
    return [number(item[how][key] / divisor) for item in measured]


def _steps(measured: list[Any], how: str, step: str) -> list[str]:
    return [number(item[how]["steps_ms"].get(step, 0.0)) for item in measured]


def _points(
    shares: list[float], measured: list[Any], how: str, key: str
) -> list[tuple[float, float]]:
    costs = [item[how][key] / 1000 for item in measured]
    return list(zip(shares, costs, strict=True))
