"""What runs in turn runs at one commit of six, all of it where tests are named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests import generated


@dataclass(frozen=True)
class Item:
    """A case of a test as pytest collects it."""

    name: str
    mark: str
    path: Path = Path("test_x.py")

    def get_closest_marker(self, name: str) -> str | None:
        return name if name == self.mark else None


MARKS = {"a": "in_turn", "b": ""}
ITEMS = [Item(f"test_{test}[{case}]", MARKS[test]) for case in range(7) for test in MARKS]
FOUR = [Item(f"test_f[{case}]", "") for case in range(4)]
BLIND = [Item(f"test_e[{case}]", "", Path("tests/blindness/test_x.py")) for case in range(7)]
FEW = [Item("test_c[0]", "soak"), Item("test_d[0]", ""), Item("test_d[1]", "")]
ALL = cast(Any, [*ITEMS, *FOUR, *BLIND, *FEW])


def test_each_case_runs_at_one_commit_of_six(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "SOAK", 1)
    monkeypatch.setenv(generated.WHOLE, "1")
    run: list[Any] = []
    for commit in range(6):
        monkeypatch.setattr(generated, "_commit", lambda commit=commit: commit)
        left: list[Any] = [*generated.not_due(ALL)]
        due = [item for item in ITEMS if item not in left]
        assert {item.name[5] for item in due} == {"a", "b"}
        assert [item for item in FOUR if item not in left] == [FOUR[commit % 4]]
        assert not set(left) - {*ITEMS, *FOUR}
        run += due
    assert sorted(run, key=str) == sorted(ITEMS, key=str)


def test_all_cases_run_where_tests_are_named_and_in_a_soak(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(generated.WHOLE, raising=False)
    assert generated.not_due(ALL) == []
    monkeypatch.setenv(generated.WHOLE, "1")
    monkeypatch.setattr(generated, "SOAK", 10)
    assert generated.not_due(ALL) == []
