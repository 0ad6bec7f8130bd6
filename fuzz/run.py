"""Runs fuzz targets: `python -m fuzz.run [--runs N] [--seconds S] [--keep] [TARGET ...]`.

Targets of Rust run under libFuzzer, those of Python under Atheris; both mutate what reaches new
code. All targets by default; one process at a time, at the lowest priority. `--seconds` ends a
target after so long, whatever the number of its runs. `--keep` replaces a corpus by the smallest
set of inputs that reaches all that was reached.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from fuzz.decoders import CORPUS, all_targets

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "fuzz"
RUNS = 10_000_000
#: How libFuzzer writes the number of its inputs, and of the edges that they reached.
_RUNS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
_EDGES = re.compile(r"\bcov: (\d+) ft: ")
_HOST = re.compile(r"^host: (\S+)$", re.MULTILINE)
_LIMITS = ("-timeout=20", "-rss_limit_mb=4096", "-print_final_stats=1")
#: Longest input: longer ones reach nothing that shorter ones do not.
_LONGEST = 8_192
#: What stays in a corpus: inputs of at most so many bytes, and so many bytes together.
_KEPT_INPUT, _KEPT_CORPUS = 4_096, 12 << 10


def build() -> tuple[Path, list[str]]:
    """The libFuzzer program, and the targets that it has, with their seeds written."""
    output = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    results = _HOST.search(output)
    host = results[1] if results else ""
    folder = ROOT / "fuzz" / "libfuzzer"
    command = ["cargo", "build", "--quiet", "--locked", "--release", "--target", host]
    own = {"RUSTC_WRAPPER": str(ROOT / "fuzz" / "rustc"), "CARGO_TARGET_DIR": str(WORK)}
    subprocess.run(command, cwd=folder, check=True, env=os.environ | own)
    program = WORK / host / "release" / "louver-fuzz"
    seeds = WORK / "seeds"
    subprocess.run([program], check=True, env=_environment("", SEEDS=str(seeds)))
    return program, sorted(path.name for path in seeds.iterdir())


def _environment(target: str, **more: str) -> dict[str, str]:
    named = {f"LOUVER_FUZZ_{key}": value for key, value in more.items()}
    # One thread, so that what an input reaches is the same each time.
    fixed = {"LOUVER_FUZZ_TARGET": target, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return os.environ | fixed | named


def fuzz(target: str, command: list[str], given: argparse.Namespace) -> dict[str, object]:
    """One target: how many inputs were run, how long it took, and what was found."""
    folder, artifacts, log = (WORK / kind / target for kind in ("corpus", "artifacts", "logs"))
    for path in (folder, artifacts, log.parent):
        path.mkdir(parents=True, exist_ok=True)
    for at, line in enumerate(_lines(target)):
        (folder / f"kept-{at}").write_bytes(bytes.fromhex(line))
    limits = [*_LIMITS, f"-max_len={_LONGEST}", f"-artifact_prefix={artifacts}/"]
    ends = [f"-runs={given.runs}", f"-max_total_time={given.seconds}"]
    places = [str(folder), *(str(p) for p in [WORK / "seeds" / target] if p.is_dir())]
    before, began, spent = set(artifacts.iterdir()), time.monotonic(), _processor_seconds()
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            ["nice", "-n", "19", *command, *ends, *limits, *places],
            env=_environment(target), stdout=file, stderr=file, check=False,
        )  # fmt: skip
    seconds, spent = time.monotonic() - began, _processor_seconds() - spent
    text = log.read_text(encoding="utf-8", errors="replace")
    if given.keep and done.returncode == 0:
        _keep(target, command, places)
    if done.returncode:
        sys.stderr.write(text[-4_000:])
    runs, edges = _last(_RUNS, text), _last(_EDGES, text)
    return {
        "target": target,
        "runs": runs,
        "seconds": round(seconds),
        "processor_seconds": round(spent),
        "runs_per_processor_second": round(runs / max(spent, 0.01)),
        "edges": edges,
        "found": sorted(path.name for path in set(artifacts.iterdir()) - before),
        "ended": done.returncode,
    }


def _processor_seconds() -> float:
    """What ended children have used: on a busy machine a rate by the clock says nothing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last(form: re.Pattern[str], text: str) -> int:
    """The last number of this form in what libFuzzer wrote; 0 if there is none."""
    return int((form.findall(text) or ["0"])[-1])


def _keep(target: str, command: list[str], places: list[str]) -> None:
    """Replace the corpus by the least of what was found, small inputs first."""
    merged = WORK / "merged" / target
    merged.mkdir(parents=True, exist_ok=True)
    for path in merged.iterdir():
        path.unlink()
    subprocess.run(
        ["nice", "-n", "19", *command, "-merge=1", f"-max_len={_KEPT_INPUT}", str(merged), *places],
        env=_environment(target), stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    room, lines = _KEPT_CORPUS, []
    for data in sorted((path.read_bytes() for path in merged.iterdir()), key=len):
        room -= len(data)
        if room >= 0 and len(data) <= _KEPT_INPUT:
            lines.append(data.hex())
    (CORPUS / f"{target}.hex").write_text("".join(f"{line}\n" for line in lines), "ascii")


def _lines(target: str) -> list[str]:
    path = CORPUS / f"{target}.hex"
    return path.read_text(encoding="ascii").splitlines() if path.exists() else []


def main() -> int:
    """Run what was asked for; 1 if anything was found."""
    parser = argparse.ArgumentParser(description="runs fuzz targets")
    parser.add_argument("--runs", type=int, default=int(os.environ.get("LOUVER_FUZZ_RUNS", RUNS)))
    parser.add_argument("--seconds", type=int, default=0, help="most for each target; 0: no end")
    parser.add_argument("--keep", action="store_true", help="replace corpora by what was found")
    parser.add_argument("targets", nargs="*", help="names of targets; all by default")
    given = parser.parse_args()
    python = sorted(all_targets())
    only_python = bool(given.targets) and set(given.targets) <= set(python)
    program, rust = (Path(), []) if only_python else build()
    failed = False
    for name in given.targets or [*rust, *python]:
        if name not in rust and name not in python:
            parser.error(f"no target {name}; there are {', '.join([*rust, *python])}")
        own = [str(program)] if name in rust else [sys.executable, "-m", "fuzz.atheris_main"]
        figures = fuzz(name, own, given)
        failed |= bool(figures["found"]) or bool(figures["ended"]) or not figures["runs"]
        print(json.dumps(figures), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
