"""`python -m tools.sbom FILE`: write the bill of materials of the wheel, as CycloneDX JSON.

It lists the crates that are linked into the compiled module, with the checksums of Cargo.lock, and
the Python packages that an installation brings along, in the versions of requirements.lock; those
that only an extra of pyproject.toml brings are optional. The same sources give the same bytes:
there is no timestamp, no random number and no local path.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
Component = dict[str, Any]
#: A line of `cargo tree`: name, version, perhaps a path or a kind, then the licence.
_CRATE = re.compile(r"^(\S+) v(\S+)[^|]*\|(.*)$")
#: The extras that the code of the wheel uses. Others bring data, or what examples need.
USED = ("lake", "providers", "web")
_OSI = "License :: OSI Approved :: "


def main(words: list[str]) -> int:
    """Write the file that is named."""
    if len(words) != 1:
        sys.stderr.write("usage: python -m tools.sbom FILE\n")
        return 2
    path = Path(words[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill(), indent=1) + "\n", encoding="utf-8")
    return 0


def bill() -> dict[str, Any]:
    """The document; its main component is the wheel."""
    project = _toml("pyproject.toml")["project"]
    wheel = {
        "type": "library",
        "bom-ref": f"pkg:pypi/{project['name']}@{project['version']}",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
        "purl": f"pkg:pypi/{project['name']}@{project['version']}",
    }
    components = [*crates(), *packages(project)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": wheel},
        "components": components,
        "dependencies": [
            {
                "ref": wheel["bom-ref"],
                "dependsOn": [
                    part["bom-ref"] for part in components if part["scope"] == "required"
                ],
            }
        ],
    }


def crates() -> list[Component]:
    """What is linked into `louver._rust` on this platform; no build scripts, no macros."""
    command = ["cargo", "tree", "--quiet", "--locked", "--package", "louver-python", "--no-dedupe"]
    form = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}|{l}"]
    done = subprocess.run([*command, *form], cwd=ROOT, check=True, capture_output=True, text=True)
    sums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in _toml("Cargo.lock")["package"]
    }
    linked = {match.groups() for line in done.stdout.splitlines() if (match := _CRATE.match(line))}
    return [
        _crate(name, version, sums[name, version], licence)
        for name, version, licence in sorted(linked)
    ]


def packages(project: dict[str, Any]) -> list[Component]:
    """The core dependencies of the wheel and theirs, and as optional what the extras add."""
    core = distributions(project["dependencies"])
    required = {part["name"] for part in core}
    extras = project["optional-dependencies"]
    own = f"{project['name']}["
    wanted = [text for name in USED for text in extras[name] if not text.startswith(own)]
    return core + [
        part | {"scope": "optional"}
        for part in distributions(wanted)
        if part["name"] not in required
    ]


def distributions(wanted: list[str]) -> list[Component]:
    """The dependencies of the wheel, and theirs, on this platform."""
    locked = _locked()
    packages: dict[str, Component] = {}
    seen: set[str] = set()
    waiting = [Requirement(text) for text in wanted]
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        name = canonicalize_name(requirement.name)
        results = metadata.distribution(name)
        if locked.get(name) != results.version:
            raise SystemExit(
                f"sbom: {name} {results.version} is installed, requirements.lock has "
                f"{locked.get(name)}. Run `make setup`."
            )
        packages[name] = _package(name, results)
        extras = requirement.extras or {""}
        waiting += [
            needed
            for text in results.requires or []
            if (needed := Requirement(text)).marker is None
            or any(needed.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return [packages[name] for name in sorted(packages)]


def _crate(name: str, version: str, checksum: str | None, licence: str) -> Component:
    purl = f"pkg:cargo/{name}@{version}"
    hashes = {"hashes": [{"alg": "SHA-256", "content": checksum}]} if checksum else {}
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": version, "scope": "required",
        **hashes, "licenses": [{"expression": licence.replace("/", " OR ")}], "purl": purl,
    }  # fmt: skip


def _package(name: str, results: metadata.Distribution) -> Component:
    purl = f"pkg:pypi/{name}@{results.version}"
    return {
        "type": "library", "bom-ref": purl, "name": name, "version": results.version,
        "scope": "required", "licenses": _licences(name, results.metadata), "purl": purl,
    }  # fmt: skip


def _licences(name: str, figures: metadata.PackageMetadata) -> list[dict[str, Any]]:
    """As SPDX where the package says so, else by the name that it gives."""
    if expressions := figures.get_all("License-Expression", []):
        return [{"expression": expressions[0]}]
    names = [line.removeprefix(_OSI) for line in figures.get_all("Classifier", [])
             if line.startswith(_OSI)]  # fmt: skip
    if not names:
        names = [line for line in figures.get_all("License", []) if "\n" not in line]
    if not names:
        raise SystemExit(f"sbom: the metadata of {name} names no licence. Add it to tools/sbom.py.")
    return [{"license": {"name": licence}} for licence in names]


def _locked() -> dict[str, str]:
    """Name and version of everything that requirements.lock installs on this platform."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line.rstrip("\\ ")) for line in lines if re.match(r"[\w.-]+.*==", line)]
    return {
        canonicalize_name(pin.name): str(pin.specifier).removeprefix("==")
        for pin in pins
        if pin.marker is None or pin.marker.evaluate()
    }


def _toml(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
