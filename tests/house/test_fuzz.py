"""What fuzzing found stays found: every corpus once more, and some mutations of it."""

from __future__ import annotations

import random
import time

import pytest

from fuzz.decoders import CORPUS, Target, all_targets
from tests.generated import SOAK, cases
from tests.sources import ROOT

#: Seconds of mutation for each target; `make soak` takes a multiple.
SECONDS = 0.4 * SOAK
MUTATIONS = cases(3_000)
#: The longest that one input may take, on a busy machine.
PATIENCE_SECONDS = 5.0
_LONGEST = 1 << 14
_STRIKING = (0, 1, 0x7F, 0x80, 0xFF)


def mutated(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A few changes, as libFuzzer makes them."""
    out = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out)) if out else 0
        match rng.randrange(7):
            case 0 if out:
                out[at] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at] = rng.choice(_STRIKING)
            case 2:
                del out[at:]
            case 3:
                out.insert(at, rng.randrange(256))
            case 4:
                del out[at : at + rng.randint(1, 8)]
            case 5:
                out[at : at + 8] = rng.choice((bytes(8), b"\xff" * 8, b"\x20" + bytes(7)))
            case _:
                out[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(out[:_LONGEST])


def judge(target: Target, data: bytes) -> None:
    """Run one input; what goes wrong names the target and the input."""
    began = time.monotonic()
    try:
        target.check(data)
    except BaseException as error:
        raise AssertionError(f"{target.name}: {data.hex()}") from error
    assert time.monotonic() - began < PATIENCE_SECONDS, f"{target.name}: {data.hex()}"


@pytest.mark.parametrize("name", sorted(all_targets()))
def test_corpora_and_mutations_are_judged(name: str) -> None:
    target = all_targets()[name]
    seeds = target.seeds()
    assert len(seeds) > 0
    for seed in seeds:
        target.run(seed)
    inputs = [*seeds, *target.corpus()]
    for data in inputs:
        judge(target, data)
    rng, ends = random.Random(1), time.monotonic() + SECONDS
    for _ in range(MUTATIONS):
        judge(target, mutated(rng, rng.choice(inputs), rng.choice(inputs)))
        if time.monotonic() > ends:
            break


def test_the_page_says_of_every_target_what_it_is_and_how_far_it_was_run() -> None:
    text = (ROOT / "docs" / "fuzzing.md").read_text(encoding="utf-8")
    what, _, how_far = text.partition("## How far")
    names = {path.stem for path in CORPUS.glob("*.hex")}
    assert names > set(all_targets())
    for name in sorted(names):
        assert f"`{name}`" in what, name
        assert f"| `{name}` |" in how_far, name
