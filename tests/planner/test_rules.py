"""Each rule's fixture, and that every rule has one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from louver.trusted.backends.backend import Backend
from louver.trusted.planner.rules import AGGREGATES, RULES
from louver.trusted.vault.catalog import Table
from tests.planner import fixtures
from tests.toy import backend as toy


@pytest.fixture(scope="module")
def world():
    catalog, home = fixtures.world()
    yield catalog, home
    home.close()


@pytest.mark.parametrize("path", list(fixtures.files()), ids=lambda path: path.stem)
def test_fixture(path: Path, world) -> None:
    for case in fixtures.read(path):
        result = fixtures.run(case, *world)
        assert result == case, f"{path.name}: {case.input}"


@pytest.mark.parametrize("path", list(fixtures.files()), ids=lambda path: path.stem)
def test_an_engine_is_sent_only_what_its_backend_writes(path: Path, world) -> None:
    """The same inputs for an engine that computes little: what it cannot do is done locally, and
    the last check, which knows its few words, lets every text pass.
    """
    few = toy.BACKEND
    catalog, home = world

    def backend_of(table: Table) -> Backend:
        return fixtures.backend_of(table) if table.lake else few

    for case in fixtures.read(path):
        sent = fixtures.run(case, catalog, home, backend_of).remote
        assert not re.search(r"sdb_|::|\b(list|row_set|TRY|UUID|BLOB|struct_\w+)\b", sent), sent


def test_every_rule_has_a_fixture() -> None:
    names = (
        {rule.name for rule in RULES}
        | {rule.name for rule in AGGREGATES}
        | {"cartesian_product", "distinct", "grouping", "limits", "normal_form"}
    )
    assert names == {path.stem for path in fixtures.files()}


def test_the_papers_rules_1_to_14_are_named() -> None:
    folder = Path(fixtures.__file__).parents[2] / "src/louver/trusted/planner/rules"
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    named: set[int] = set()
    for mention in re.findall(r"\(paper: Rules? ([\d, and]+)\)", text):
        named |= {int(number) for number in re.findall(r"\d+", mention)}
    assert named == set(range(1, 15))
