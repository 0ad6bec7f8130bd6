"""A key that was given in the wrong place is refused and not repeated; no process leaves a core."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import louver
from louver import coredumps, errors
from louver.trusted.apps import cli
from louver.trusted.client import connect

SECRET = "LOUVER-KEY-1qqqqsyzkf9m4xh3jc8w0t2v7p5n6a"
WRITTEN = [
    SECRET,
    SECRET.lower(),
    f"duckdb:///{SECRET}",
    f"duckdb:///{SECRET.replace('-', '%2D')}",
    f"postgresql://me@host/{SECRET}",
    f"lake:///{SECRET}",
    f"providers://{SECRET}:1,b:2",
    f"# a comment\n{SECRET}\n",
]
DOORS: dict[str, Callable[[str, str], Any]] = {
    "url": lambda text, keys: louver.connect(text, keys=keys),
    "url without keys": lambda text, _: louver.connect(text),
    "keys": lambda text, _: louver.connect("duckdb:///x.duckdb", keys=text),
    "keys as a path": lambda text, _: louver.connect("duckdb:///x.duckdb", keys=Path(text)),
    "profile": lambda text, keys: louver.connect("duckdb:///x.duckdb", keys, profile=text),
    "policy": lambda text, keys: louver.connect("duckdb:///x.duckdb", keys, policy=text),
    "accepting": lambda text, keys: connect.accept(text, keys),
    "a comment": lambda text, _: connect.make_keys("new.louverkey", comment=text),
    "attaching": lambda text, keys: louver.connect(keys=keys).attach(text, "other"),
    "attaching with keys": lambda text, keys: louver.connect(keys=keys).attach(
        "duckdb:///x.duckdb", "other", keys=text
    ),
    "ATTACH": lambda text, keys: louver.connect(keys=keys).execute(f"ATTACH '{text}' AS other"),
}


def everything_of(error: BaseException | None) -> str:
    """All that a traceback or a log could show of an error and of what led to it."""
    said = ""
    while error is not None:
        said += f"{error!r}{error}{vars(error)}{error.args}"
        error = error.__cause__ or error.__context__
    return said


@pytest.mark.parametrize("text", WRITTEN)
@pytest.mark.parametrize("door", DOORS)
def test_a_key_in_an_argument_is_refused(
    door: str, text: str, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(errors.KeyFileError) as caught:
        DOORS[door](text, str(key_file))
    assert caught.value.code == "key.text"
    assert SECRET[12:].lower() not in everything_of(caught.value).lower()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--url", f"duckdb:///{SECRET}", "sql", "select 1"],
        ["--keys", SECRET, "status"],
        ["key", "new", SECRET],
        ["key", "new", "a.louverkey", "--comment", SECRET],
        ["serve", "prune", SECRET],
        ["serve", "provider", "--data", SECRET],
        [SECRET],
        ["--nothing", SECRET],
        [f"--nothing={SECRET.lower()}"],
        ["sql", f"select '{SECRET}'"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_command_line_does_not_repeat_a_key(
    words: list[str], form: list[str], tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*form, *words]) == 1
    said = capfd.readouterr()
    assert SECRET[12:].lower() not in (said.out + said.err).lower()
    assert "keys are read from key files only" in said.out + said.err
    assert list(tmp_path.iterdir()) == []


def test_no_error_repeats_a_key_whoever_makes_it() -> None:
    for error in (
        errors.make("database.io", place=f"/tmp/{SECRET}", detail=f"{SECRET.lower()} is no file"),
        errors.from_duckdb(RuntimeError(f"cannot open {SECRET}")),
    ):
        assert SECRET[12:].lower() not in everything_of(error).lower()
        assert "LOUVER-KEY-…" in str(error)


def test_the_command_line_and_services_switch_core_files_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from louver.untrusted.servers import provider, prune

    class SwitchedOffError(Exception):
        pass

    def switch_off() -> None:
        raise SwitchedOffError

    monkeypatch.setattr(coredumps, "switch_off", switch_off)
    for main in (cli.main, provider.main, prune.main):
        with pytest.raises(SwitchedOffError):
            main()
    # Within another program it is that program's to decide.
    assert cli.main(["--json"]) != 0


@pytest.mark.skipif(sys.platform != "linux", reason="cores are looked for as Linux makes them")
def test_a_process_that_dies_leaves_no_core(tmp_path: Path) -> None:
    dying = (
        "import os, resource; from louver import coredumps; os.chdir(os.environ['HERE']);"
        "hard = resource.getrlimit(resource.RLIMIT_CORE)[1];"
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard));"
        "coredumps.switch_off(); os.abort()"
    )
    words = [sys.executable, "-c", dying]
    child = os.posix_spawn(sys.executable, words, os.environ | {"HERE": str(tmp_path)})
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="limits are read as Linux shows them")
def test_a_shell_that_runs_has_no_core_limit_left(key_file: Path, tmp_path: Path) -> None:
    url = f"duckdb:///{tmp_path.name}.duckdb"
    words = ["-m", "louver.trusted.apps.cli", "--url", url, "--keys", str(key_file), "sql"]
    running = subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    )
    try:
        limit = None
        for _ in range(300):
            text = Path(f"/proc/{running.pid}/limits").read_text(encoding="ascii")
            limit = re.search(r"Max core file size +(\S+) +(\S+)", text)
            assert limit is not None
            if limit.groups() == ("0", "0"):
                return
            time.sleep(0.1)
        pytest.fail(f"the limits are {limit and limit.groups()}")
    finally:
        running.kill()
        running.communicate()
