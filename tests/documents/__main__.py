"""`python -m tests.documents [PAGE …]`: execute pages and write into them what was printed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.documents import pages
from tests.documents.sessions import Session
from tests.documents.test_documents import PAGES
from tests.sources import ROOT


def main(words: list[str]) -> int:
    """The pages that are named, or all; prints what has changed."""
    for path in [Path(word).resolve() for word in words] or [ROOT / page for page in PAGES]:
        changed: dict[int, list[str]] = {}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / path.stem
            folder.mkdir()
            session = Session(folder, path.name)
            try:
                for step in pages.steps(path.read_text("utf-8")):
                    actual = session.execute(step)
                    if not pages.matches(step.expected, actual):
                        changed[step.line] = pages.recorded(step.expected, actual)
            finally:
                session.close()
        if changed:
            pages.write(path, changed)
        sys.stdout.write(f"{path.relative_to(ROOT)}: {len(changed)} outputs changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
