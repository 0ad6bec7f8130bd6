"""One query under three ceilings: the printed page is what Louver says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.trusted.apps import ceilings

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    return ceilings.explained()


def test_a_higher_ceiling_asks_for_less_and_shows_more(told: dict[str, str]) -> None:
    assert "WHERE" not in told["access"].partition("home")[0]
    assert "[equality]" not in told["access"]
    assert "dept_eq =" in told["equality"]
    assert "born_ord" not in told["equality"]
    assert "born_ord" in told["order"]
    assert "the server can order the rows of staff by born [order]" in told["order"]


def test_readme_and_reference_show_it_word_for_word(told: dict[str, str]) -> None:
    for page in ("README.md", "docs/reference/ceilings.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert ceilings.QUERY in text
        for level, output in told.items():
            assert f"-- MAY REVEAL {level}\n{output}" in text, page
