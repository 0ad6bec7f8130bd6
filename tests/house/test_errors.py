"""Every error code has texts, a place where it is raised, and a row on the reference page."""

from __future__ import annotations

import argparse
import ast
import functools
import pickle
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

import louver
from louver import errors
from louver.trusted.apps import cli
from louver.trusted.executor.settings import SETTINGS
from tests.sources import ROOT, name, nodes, sources


class Use(NamedTuple):
    """One call of `errors.make` in the sources."""

    position: str
    code: str
    fields: frozenset[str]
    complete: bool


def calls(path: Path) -> list[ast.Call]:
    calls = []
    for node in nodes(path):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        first = node.args[0]
        if called == "make" and isinstance(first, ast.Constant) and isinstance(first.value, str):
            calls.append(node)
    return calls


@functools.cache
def uses() -> list[Use]:
    uses = []
    for path in sources(".py", under=("src",)):
        for call in calls(path):
            code = call.args[0]
            assert isinstance(code, ast.Constant)
            fields = frozenset(word.arg for word in call.keywords if word.arg)
            spread = any(word.arg is None for word in call.keywords)
            uses.append(Use(f"{name(path)}:{call.lineno}", str(code.value), fields, not spread))
    return uses


@functools.cache
def literals() -> set[str]:
    """Every string in the sources: some codes are chosen first and raised later."""
    return {
        node.value
        for path in sources(".py", under=("src",))
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def template_fields(row: errors.ErrorRow) -> set[str]:
    texts = (row.message, row.cause, row.fix)
    return {field for text in texts for _, field, _, _ in string.Formatter().parse(text) if field}


def test_every_code_that_is_raised_is_in_the_table() -> None:
    unknown = [f"{use.position}: {use.code}" for use in uses() if use.code not in errors.ERRORS]
    assert not unknown


def test_every_code_in_the_table_is_raised_somewhere() -> None:
    used = {use.code for use in uses()} | literals()
    unused = [c for c in errors.ERRORS if c not in used and not c.startswith("duckdb.")]
    assert not unused, "codes that nothing raises: raise them or take them out"


def test_callers_fill_in_what_the_texts_ask_for() -> None:
    wrong = []
    for use in uses():
        if use.code not in errors.ERRORS:
            continue
        wanted = template_fields(errors.ERRORS[use.code])
        missing = wanted - use.fields if use.complete else set()
        surplus = use.fields - wanted - {"detail"}
        if missing or surplus:
            wrong.append(f"{use.position}: {use.code}: missing {missing}, not used {surplus}")
    assert not wrong


@pytest.mark.parametrize("code", list(errors.ERRORS))
def test_texts_are_sentences(code: str) -> None:
    row = errors.ERRORS[code]
    assert row.cause.endswith((".", "!"))
    assert row.fix.endswith((".", "!"))
    assert row.cls is not errors.Error
    error = errors.make(code, detail="why")
    assert isinstance(error, errors.Error)
    assert error.code == code
    assert str(error).startswith(error.message)


def texts() -> list[tuple[str, str]]:
    """Every text of the table with the code that it belongs to."""
    rows = errors.ERRORS.items()
    return [
        (code, text)
        for code, row in rows
        for text in (row.message, row.cause, row.fix, *(fix for _, fix in row.fixes))
    ]


def named(pattern: str) -> set[tuple[str, str]]:
    """What a pattern finds in the texts, with the code; it must find something."""
    matches = {(code, match) for code, text in texts() for match in re.findall(pattern, text)}
    assert matches, pattern
    return matches


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """All options of a parser and of its commands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options(command)


def test_commands_in_the_texts_can_be_run(capsys: pytest.CaptureFixture[str]) -> None:
    for code, command in named(r"`louver ([^`]+)`"):
        try:
            cli.parser().parse_args(command.split())
        except errors.Error as error:
            pytest.fail(f"{code}: louver {command}: {error.message}")
        except SystemExit:  # of --help
            assert "usage: louver" in capsys.readouterr().out, code


def test_options_in_the_texts_exist() -> None:
    known = set(options(cli.parser()))
    assert {(c, option) for c, option in named(r"(?<!\S)--[a-z-]+") if option not in known} == set()


def test_words_with_underscores_in_the_texts_exist() -> None:
    """They are settings, environment variables or DuckDB's functions."""
    python = "\n".join(path.read_text("utf-8") for path in sources(".py", under=("src",)))
    connection = duckdb.connect()
    known = {setting.name for setting in SETTINGS}
    for sql in (
        "SELECT name FROM duckdb_settings()",
        "SELECT function_name FROM duckdb_functions()",
        "SELECT upper(keyword_name) FROM duckdb_keywords()",
    ):
        known |= {str(row[0]) for row in connection.execute(sql).fetchall()}
    words = named(r"(?<![\w{])[A-Za-z]+(?:_[A-Za-z]+)+(?!\w*})")
    unknown = {
        (code, word)
        for code, word in words
        if word not in known and not (word.startswith("LOUVER_") and f'"{word}"' in python)
    }
    assert unknown == set()


def test_settings_in_the_texts_exist() -> None:
    local = {"schema", "search_path"}
    known = {setting.name for setting in SETTINGS} | local
    words = named(r"\b(?:RE)?SET ([a-z]\w*)")
    assert {(code, word) for code, word in words if word not in known} == set()


def test_files_targets_and_methods_in_the_texts_exist() -> None:
    missing = {(c, path) for c, path in named(r"\b\w+/[\w/-]+\.md") if not (ROOT / path).is_file()}
    assert missing == set()
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{target}:" in makefile for _, target in named(r"`make (\w+)`"))
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    assert all(f"\n{extra} = [" in pyproject for _, extra in named(r"louver\[(\w+)\]"))
    methods = {*dir(louver), *dir(louver.Connection), *dir(louver.Cursor)}
    assert {(c, name) for c, name in named(r"\b(\w+)\(\)") if name not in methods} == set()


#: Words that docs, messages and names of this project avoid.
AVOIDED = re.compile(
    r"\b(home|(?<!there )is no(?! longer)|is none|stands?|lies|told|tells|asks?|asked|mend|anew)\b",
    re.IGNORECASE,
)


def test_texts_are_plain_english() -> None:
    assert [(code, text) for code, text in texts() if AVOIDED.search(text)] == []


def test_the_table_is_parsed_with_the_first_error() -> None:
    script = (
        "import sys, louver; from louver import errors; assert 'tomllib' not in sys.modules; "
        "assert '_rows' not in vars(errors.ERRORS); errors.make('key.unset'); "
        "assert '_rows' in vars(errors.ERRORS)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_tree_is_pep_249() -> None:
    below_database = (
        errors.DataError,
        errors.OperationalError,
        errors.IntegrityError,
        errors.InternalError,
        errors.ProgrammingError,
        errors.NotSupportedError,
    )
    assert all(issubclass(cls, errors.DatabaseError) for cls in below_database)
    assert issubclass(errors.DatabaseError, errors.Error)
    assert issubclass(errors.InterfaceError, errors.Error)
    assert issubclass(errors.Warning, Exception)
    assert not issubclass(errors.Warning, errors.Error)


def test_an_error_shows_its_fix_and_survives_pickling() -> None:
    error = errors.make("key.mode", path="a.louverkey", mode="0644")
    assert str(error).endswith("\n  fix: " + error.fix)
    assert "chmod 600 a.louverkey" in error.fix
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.KeyFileError
    assert (again.code, str(again)) == (error.code, str(error))


def test_json_shape_and_exit_codes() -> None:
    refused = errors.make("enc.ceiling", table="t", column="c", scheme="sdb", level="plaintext")
    assert set(refused.as_dict()) == {"ok", "code", "error", "fix"}
    assert refused.exit_code == 3
    assert errors.make("key.unset").exit_code == 1


def test_a_code_that_does_not_exist_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        errors.make("no.such.code")


@pytest.mark.parametrize(
    ("sql", "cls", "code"),
    [
        ("SELECT 1 +", errors.ProgrammingError, "duckdb.parser"),
        ("SELECT x", errors.ProgrammingError, "duckdb.binder"),
        ("SELECT * FROM nowhere", errors.ProgrammingError, "duckdb.catalog"),
        ("SELECT CAST('a' AS INT)", errors.DataError, "duckdb.conversion"),
        ("SELECT 127::TINYINT + 1::TINYINT", errors.DataError, "duckdb.out_of_range"),
    ],
)
def test_duckdbs_errors_keep_class_and_message(
    sql: str, cls: type[errors.Error], code: str
) -> None:
    with pytest.raises(duckdb.Error) as raised:
        duckdb.connect().execute(sql).fetchall()
    error = errors.from_duckdb(raised.value)
    assert type(error) is cls
    assert error.code == code
    assert error.message == str(raised.value)
    assert str(error).startswith(str(raised.value))


#: A statement for each fix of an error of DuckDB's, in the order of the table.
FAILING = (
    "SELECT 1 WHERE a", "SELECT x FROM t", "SELECT u.a FROM t", "SELECT sum(n) FROM t",
    "SELECT 1 FROM t WHERE count(*) > 1", "INSERT INTO t VALUES (1)",
    "SELECT a FROM t WHERE a IN (SELECT a, b FROM t)", "SELECT 1 UNION SELECT 1, 2",
    "CREATE TABLE t (a INT)", "SELECT * FROM nowhere", "CREATE TABLE u (a itn)", "DROP VIEW t",
    "USE nowhere", "SELECT (1", "SELECT 'x", "INSERT INTO t (a) VALUES (NULL)",
    "INSERT INTO t (a) VALUES (1), (1)", "INSERT INTO child VALUES (7)",
    "INSERT INTO t VALUES (1, -1, '')", "SELECT 'x'::INT", "SELECT '2020-13-45'::DATE",
    "SELECT 300::TINYINT", "SELECT 127::TINYINT + 1::TINYINT",
    "SELECT (SELECT range FROM range(2))", "FROM 'nofile.csv'",
)  # fmt: skip


def test_every_fix_of_duckdbs_errors_is_given() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT CHECK (b > 0), n TEXT)")
    connection.execute("CREATE TABLE child (a INT REFERENCES t)")
    given = []
    for sql in FAILING:
        with pytest.raises(duckdb.Error) as raised:
            connection.execute(sql).fetchall()
        given.append(errors.from_duckdb(raised.value).fix)
    connection.execute("CREATE TABLE counter AS SELECT 1 AS n")
    other = connection.cursor()
    other.execute("BEGIN")
    other.execute("UPDATE counter SET n = 2")
    with pytest.raises(duckdb.Error) as raised:
        connection.execute("UPDATE counter SET n = 3")
    given.append(errors.from_duckdb(raised.value).fix)
    rows = [row for code, row in errors.ERRORS.items() if code.startswith("duckdb.")]
    assert set(given) == {fix for row in rows for _, fix in row.fixes}
    assert len(set(given)) == len(given)


def test_what_matches_no_pattern_has_no_fix() -> None:
    error = errors.from_duckdb(duckdb.BinderException("Binder Error: something else"))
    assert error.fix == ""
    assert str(error) == "Binder Error: something else"


def test_every_exception_of_duckdb_has_a_row() -> None:
    classes = [
        cls
        for cls in vars(duckdb).values()
        if isinstance(cls, type) and issubclass(cls, duckdb.Error)
    ]
    for cls in classes:
        error = errors.from_duckdb(cls("text"))
        assert error.code in errors.ERRORS
        assert error.code != "duckdb.error" or not cls.__name__.endswith("Exception"), cls


def test_the_reference_page_lists_every_code() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in errors.ERRORS if f"### {code}\n" not in page] == []
