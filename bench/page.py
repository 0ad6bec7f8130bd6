"""docs/benchmarks.md, from the JSON of the last runs."""

from __future__ import annotations

from typing import Any

from bench import machine, report

PAGE = machine.ROOT / "docs" / "benchmarks.md"
INTRODUCTION = """\
<!-- Written by `python -m bench`; run `make bench`, do not edit. -->
# Benchmarks

Every measurement is compared with that of a named peer in the same run on the same machine; numbers
of a paper are from its text and its own machines, and are marked as such. `ratio` is how many times
better (or worse) Louver is than the peer, `peak MiB` the maximum memory of its process (and, after
a slash, of the peer's). `make bench` repeats all measurements; the command under each title repeats
one section. The tables as data and the plots are in `bench/results/`.
"""


def write(names: list[str]) -> str:
    """Write the page from what has been measured so far; its path in the repository."""
    reports = [report.read(path) for name in names if (path := _path(name)).exists()]
    parts = [INTRODUCTION]
    for item in reports:
        run = item.run
        parts.append(f"\n## {item.title}\n")
        parts.append(report.wrapped(_origin(run)) + "\n")
        parts.append(item.markdown(2).split("\n", 2)[2])
        parts += [
            f"![{plot.file}](../bench/results/{plot.file}.png)\n" for plot in item.plots
        ]  # fmt: skip
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    return str(PAGE.relative_to(machine.ROOT))


def _path(name: str) -> Any:
    return report.FOLDER / f"{name}.json"


def _origin(run: dict[str, Any]) -> str:
    on = run["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in on["packages"].items())
    busy = f" Other processes were running: {run['load_before']:g} on average in the minute before."
    return (
        f"`{run['command']}` on {run['date']}, {run['seconds']:,} s, revision {on['revision']}: "
        f"{on['processor']}, {on['cores']} cores{', AVX-512 IFMA' if on['ifma'] else ''}, "
        f"{on['memory_gib']} GiB, {on['system']}, Python {on['python']}, {packages}."
        + (busy if run["load_before"] >= 0.5 else "")
    )
