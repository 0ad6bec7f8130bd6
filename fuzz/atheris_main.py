"""One fuzz target of Python under Atheris; `LOUVER_FUZZ_TARGET` names it."""

from __future__ import annotations

import os
import sys

import atheris

with atheris.instrument_imports(include=["louver", "fuzz"]):
    from fuzz.decoders import all_targets

    # Importing the targets imports what they test, which is what is instrumented.
    TARGETS = all_targets()


def main() -> None:
    """Hand the target to libFuzzer, with its seeds where no corpus has them."""
    target = TARGETS[os.environ["LOUVER_FUZZ_TARGET"]]
    folders = [word for word in sys.argv[1:] if not word.startswith("-")]
    for at, seed in enumerate(target.seeds() if folders else []):
        with open(os.path.join(folders[0], f"seed-{at}"), "wb") as file:
            file.write(seed)
    atheris.Setup(sys.argv, target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
