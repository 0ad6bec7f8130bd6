"""Each rule's fixture, and that every rule has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver.trusted.planner.rules import AGGREGATES, RULES
from tests.planner import fixtures


@pytest.fixture(scope="module")
def world():
    catalog, home = fixtures.world()
    yield catalog, home
    home.close()


@pytest.mark.parametrize("path", list(fixtures.files()), ids=lambda path: path.stem)
def test_fixture(path: Path, world) -> None:
    for case in fixtures.read(path):
        found = fixtures.run(case, *world)
        assert found == case, f"{path.name}: {case.input}"


def test_every_rule_has_a_fixture() -> None:
    names = (
        {rule.name for rule in RULES}
        | {rule.name for rule in AGGREGATES}
        | {"cartesian_product", "distinct", "grouping", "limits"}
    )
    assert names == {path.stem for path in fixtures.files()}


def test_the_papers_rules_1_to_14_are_named() -> None:
    import re

    folder = Path(fixtures.__file__).parents[2] / "src/louver/trusted/planner/rules"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    named: set[int] = set()
    for found in re.findall(r"\(paper: Rules? ([\d, and]+)\)", text):
        named |= {int(number) for number in re.findall(r"\d+", found)}
    assert named == set(range(1, 15))
