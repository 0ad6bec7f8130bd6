"""Every command and code block of the documentation is executed, and its output compared."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

from tests.documents import pages
from tests.documents.sessions import Session
from tests.sources import ROOT

PAGES = [
    "README.md",
    "docs/start.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/guides").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/concepts").glob("*.md")),
]
#: tests/package/test_install.py installs, in a bare environment.
_INSTALLATION = re.compile(
    r"(pip install|npm install|go get|make|git clone|cd|python3 -m venv|\.) .*|"
)


@pytest.mark.in_turn
@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_states(page: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    differences = []
    session = Session(folder, page)
    try:
        for step in pages.steps((ROOT / page).read_text("utf-8")):
            actual = session.execute(step)
            if not pages.matches(step.expected, actual):
                lines = difflib.unified_diff(
                    step.expected, actual, f"{page}:{step.line}", "printed", lineterm=""
                )
                differences.append("\n".join(lines))
    finally:
        session.close()
    assert not differences, "\n\n".join(differences)


@pytest.mark.parametrize("page", PAGES)
def test_no_block_escapes(page: str) -> None:
    """A block is executed, or states an output, or is text that is not a command."""
    text = (ROOT / page).read_text("utf-8")
    outputs = pages.outputs(text)
    for block in pages.blocks(text):
        where = f"{page}:{block.start}"
        if block.language == "sh":
            assert all(_INSTALLATION.fullmatch(line.strip()) for line in block.lines), where
        elif block.language == "text":
            assert not re.search(r"^\s*(\$|louver|SELECT|CREATE|con\.)\s", "\n".join(block.lines),
                                 re.MULTILINE), where  # fmt: skip
        elif block.language:
            assert block.name or block.language in pages.EXECUTED, where
        else:
            assert block.start in outputs, where
    fenced = {n for block in pages.blocks(text) for n in range(block.start - 1, block.end + 1)}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if number not in fenced and line.startswith("    ") and not lines[number - 1].strip():
            pytest.fail(f"{page}:{number + 1}: an indented block; write a fenced one")


def test_stated_output_is_compared() -> None:
    assert pages.matches(["a", "…", "z"], ["a", "b", "c", "z"])
    assert pages.matches(["took … ms"], ["took 3.1 ms"])
    assert not pages.matches(["took … ms"], ["took 3.1 s"])
    assert not pages.matches(["a"], ["a", "b"])
    assert not pages.matches(["a", "b"], ["a"])
    assert not pages.matches([], ["a"])
    assert not pages.matches(["a.c"], ["abc"])


def test_a_page_that_differs_is_reported(tmp_path: Path) -> None:
    """Commands, code and files of a page work together; what changes is written."""
    page = tmp_path / "page.md"
    page.write_text(
        "```toml settings.toml\nn = 7\n```\n\n```console\n$ export N=3\n$ echo $N 127.0.0.1:7080\n"
        "3 127.0.0.1:7080\n$ cat settings.toml\nn = 8\n```\n\n<!--\n```python\nx = 5\n```\n-->\n\n"
        "```python\nprint(x)\n```\n\n```\n6\n```\n\n```python\nprint(1 / 4, '0.25 s')\n```\n",
        encoding="utf-8",
    )
    folder = tmp_path / "work"
    folder.mkdir()
    session = Session(folder)
    try:
        changed = {}
        for step in pages.steps(page.read_text("utf-8")):
            actual = session.execute(step)
            if not pages.matches(step.expected, actual):
                changed[step.line] = pages.recorded(step.expected, actual)
    finally:
        session.close()
    assert changed == {9: ["n = 7"], 20: ["5"], 28: ["0.25 … s"]}
    pages.write(page, changed)
    text = page.read_text("utf-8")
    assert "$ cat settings.toml\nn = 7\n```" in text
    assert "print(x)\n```\n\n```\n5\n```" in text
    assert text.endswith("0.25 s')\n```\n\n```\n0.25 … s\n```\n")


def test_a_block_without_execution_is_reported() -> None:
    listed = pages.blocks("```bash\nls\n```\n")
    assert [block.language for block in listed] == ["bash"]
    assert not pages.steps("```bash\nls\n```\n")
