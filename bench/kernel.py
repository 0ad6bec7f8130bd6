"""The kernel of modular arithmetic, one core, against GMP on one core in the same run."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from typing import Any

import gmpy2

from bench import isolate, report
from bench.machine import ROOT
from bench.timing import best

BITS, EXPONENT_BITS, SECRET_BITS = 2048, 256, 128
EXAMPLE = [
    *("cargo", "run", "--release", "--locked", "--quiet", "-p", "louver-primitives"),
    *("--example", "kernel_bench", "--", str(BITS)),
]
#: The kernel's name of an operation, and what GMP does for it.
PEERS = {
    "product": "GMP: a·b mod n",
    "square": "GMP: a² mod n",
    "add": "GMP: a+b mod n",
    "pow 256": "GMP: mpz_powm, 256 bits",
    "pow_many 2x256": "GMP: mpz_powm, twice",
    "pow_many 6x256": "GMP: mpz_powm, six times",
    "fixed-base pow_mul": "GMP: products from a table of powers",
}
TARGET = {"pow 256": 4.0}


def run(*, quick: bool) -> report.Report:
    """Kernel, GMP before and after it, all on one core."""
    before = isolate.run("bench.kernel:gmp")
    kernel = _kernel(256 if quick else 1024)
    after = isolate.run("bench.kernel:gmp")
    section = report.Report("kernel", f"Modular arithmetic: {BITS}-bit modulus, one core")
    for measured in sorted(kernel, key=lambda item: item["backend"]):
        name = measured["name"]
        if name not in PEERS:
            continue
        target = TARGET.get(name) if measured["backend"] == "Ifma" else None
        section.lines.append(
            report.Line(
                f"{name}, {measured['backend'].lower()}",
                measured["us_per_row"],
                "µs",
                PEERS[name],
                min(before[name], after[name]),
                target_ratio=target,
                peer_peak_mib=after["peak_mib"],
            )
        )
    direct = min(before["powm 128 and product"], after["powm 128 and product"])
    section.notes += [
        f"Rows are independent values; `pow` raises each to one shared {EXPONENT_BITS}-bit "
        "exponent, `pow_many` to several at once with shared squarings. The fixed base is raised "
        f"to a {SECRET_BITS}-bit secret exponent per row and multiplied with a value; GMP takes "
        f"{direct:.1f} µs for that without a table.",
        "The best single run per operation. GMP "
        f"{gmpy2.mp_version().split()[-1]} runs before and after the kernel and the better time "
        "counts. It is called through gmpy2: whole lists in one call for powers, one call per "
        "value (about 0.1 µs of Python) for the rest.",
        "Louver's values stay in the kernel's own format between operations, as they do within one "
        "server function; loading and storing them is "
        + ", ".join(
            f"{item['us_per_row']:.2f} µs ({item['name']}, {item['backend'].lower()})"
            for item in kernel
            if item["name"] in ("load", "store")
        )
        + ".",
    ]
    return section


def _kernel(rows: int) -> list[dict[str, Any]]:
    done = subprocess.run([*EXAMPLE, str(rows)], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in done.stdout.decode().splitlines() if line[:1] == "{"]


def gmp() -> dict[str, float]:
    """Microseconds per value, under the kernel's names."""
    chance = random.Random(5)
    n = gmpy2.mpz(chance.getrandbits(BITS) | 1 << BITS - 1 | 1)
    a, b = ([gmpy2.mpz(chance.randrange(n)) for _ in range(1024)] for _ in range(2))
    few = a[:32]
    exponents = [gmpy2.mpz(chance.getrandbits(EXPONENT_BITS)) for _ in range(6)]
    secrets = [gmpy2.mpz(chance.getrandbits(SECRET_BITS)) for _ in range(32)]
    windows = table(b[0], n)

    def powers(count: int) -> Callable[[], Any]:
        return lambda: [gmpy2.powmod_base_list(few, e, n) for e in exponents[:count]]

    works: dict[str, tuple[int, Callable[[], Any]]] = {
        "product": (len(a), lambda: [x * y % n for x, y in zip(a, b, strict=True)]),
        "square": (len(a), lambda: [x * x % n for x in a]),
        "add": (len(a), lambda: [(x + y) % n for x, y in zip(a, b, strict=True)]),
        "pow 256": (len(few), powers(1)),
        "pow_many 2x256": (len(few), powers(2)),
        "pow_many 6x256": (len(few), powers(6)),
        "fixed-base pow_mul": (len(secrets), lambda: [raised(windows, e, n) for e in secrets]),
        "powm 128 and product": (
            len(secrets),
            lambda: [gmpy2.powmod(b[0], e, n) * a[0] % n for e in secrets],
        ),
    }
    return {name: best(work) / rows * 1e6 for name, (rows, work) in works.items()}


def table(base: gmpy2.mpz, n: gmpy2.mpz) -> list[list[gmpy2.mpz]]:
    """base^(d·256^i) for every digit d and place i of a secret exponent (section 5.2, widened)."""
    places = []
    for _ in range(SECRET_BITS // 8):
        digits = [gmpy2.mpz(1)]
        for _ in range(255):
            digits.append(digits[-1] * base % n)
        places.append(digits)
        base = digits[-1] * base % n
    return places


def raised(windows: list[list[gmpy2.mpz]], exponent: gmpy2.mpz, n: gmpy2.mpz) -> gmpy2.mpz:
    """A power from the table: sixteen products."""
    results = gmpy2.mpz(1)
    for digits, digit in zip(
        windows, int(exponent).to_bytes(SECRET_BITS // 8, "little"), strict=True
    ):
        results = results * digits[digit] % n
    return results
