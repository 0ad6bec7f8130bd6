"""`louver demo wire`: psql's session beside the server's rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from louver import errors
from louver.trusted.apps.demo import wire
from tests.client.harness import answers, run


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("demo")
    return run("demo", "wire", folder=folder, process=True).stdout


def test_it_shows_psql_beside_the_server(output: str) -> None:
    for wanted in (
        "clinic=> CREATE TABLE patients", "the server's columns", "row 2", "bytes 02",
        "45 years 10 mons 1 day", "NOTICE:  A layer was opened", "160.00",
        'Table "public.patients"', "duplicate key value", "nothing new at the server",
    ):  # fmt: skip
        assert wanted in output, wanted
    assert max(len(line) for line in output.splitlines()) <= 101


def test_what_it_gives_as_data(tmp_path: Path) -> None:
    (body,) = answers(run("demo", "wire", "--json", folder=tmp_path))
    steps = body["steps"]
    assert [step["statement"] for step in steps] == [text for _, text in wire.STEPS]
    assert " Ann  | 1980-02-29 | 45 years 10 mons 1 day" in steps[2]["client"]
    before, after = (set(steps[at]["server"]) for at in (2, 3))
    # A layer of one column was taken off in both rows, and nothing else has changed.
    assert len(after - before) == 2
    assert not list(tmp_path.glob("*.louverkey"))


@pytest.mark.parametrize("words", [("--keep", "kept"), ("--rows", "9")])
def test_what_has_no_use_is_refused(words: tuple[str, str], tmp_path: Path) -> None:
    done = run("demo", "wire", *words, folder=tmp_path, code=2)
    assert words[0] in done.stderr


def test_plaintext_at_the_server_is_noticed() -> None:
    wire._require_secret(["row 1  e_00 34 bytes 02"])
    with pytest.raises(errors.Error, match="plaintext"):
        wire._require_secret(["row 1  e_00 Ann"])
