"""The rules of STYLE.md that a machine can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.sources import ROOT, name, nodes, repository_files, sources

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_LINE_CHARACTERS = 100

# Spelt in pieces, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
#: Registries and mirrors: installers know their own; the repository names none.
HOSTS = re.compile(
    "|".join(["py" + r"pi\.(org|python)", "python" + "hosted", "crates" + r"\.io"]),
    re.IGNORECASE,
)
#: Paths of somebody's machine.
ABSOLUTE = re.compile(r"(?<![\w.])/(" + "|".join(["work", "home/\\w+", "ro" + "ot"]) + r")/")
#: Cargo writes the name of its registry into its lock; the licence has its own address.
NOT_OURS = {"Cargo.lock", "LICENSE"}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def text_files() -> list[tuple[Path, str]]:
    files = []
    for path in repository_files():
        data = path.read_bytes()
        if path.name in NOT_OURS or b"\0" in data[:8192]:
            continue
        files.append((path, data.decode("utf-8", errors="replace")))
    return files


def python_functions(path: Path) -> list[tuple[str, int, int]]:
    """Name, first line and length of every function; a docstring does not count."""
    functions = []
    for node in nodes(path):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if ast.get_docstring(node) is not None:
            doc = node.body[0]
            length -= (doc.end_lineno or doc.lineno) - doc.lineno + 1
        functions.append((node.name, node.lineno, length))
    return functions


RUST_NOISE = re.compile(r'//.*|"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'')
RUST_FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|unsafe|async)\s+)*fn\s+(\w+)")


def rust_functions(path: Path) -> list[tuple[str, int, int]]:
    """The same for Rust, by counting braces outside of strings and comments."""
    lines = [RUST_NOISE.sub("", line) for line in lines_of(path)]
    functions = []
    for first, line in enumerate(lines):
        head = RUST_FUNCTION.match(line)
        if head is None:
            continue
        depth, opened = 0, False
        for last in range(first, len(lines)):
            depth += lines[last].count("{") - lines[last].count("}")
            opened = opened or "{" in lines[last]
            if (opened and depth <= 0) or (not opened and lines[last].rstrip().endswith(";")):
                functions.append((head[1], first + 1, last - first + 1))
                break
    return functions


def test_no_file_is_long() -> None:
    long = {name(p): n for p in sources(".py", ".rs") if (n := len(lines_of(p))) > MAX_FILE_LINES}
    assert not long, "a file that grows past the limit asks for a room of its own"


@pytest.mark.parametrize("suffix", [".py", ".rs"])
def test_no_function_is_long(suffix: str) -> None:
    functions = python_functions if suffix == ".py" else rust_functions
    long = [
        f"{name(path)}:{line}: {function} has {length} lines"
        for path in sources(suffix)
        for function, line, length in functions(path)
        if length > MAX_FUNCTION_LINES
    ]
    assert not long


def test_no_line_is_long() -> None:
    long = [
        f"{name(path)}:{number}"
        for path in [*sources(".py", ".rs", ".md", ".toml"), *ROOT.glob("*.md")]
        for number, line in enumerate(lines_of(path), 1)
        if len(line) > MAX_LINE_CHARACTERS and not line.lstrip().startswith("|")
    ]
    assert not long, "tables in Markdown may be wide, nothing else"


def test_only_apps_print() -> None:
    printing = [
        f"{name(path)}:{node.lineno}"
        for path in sources(".py", under=("src",))
        if "apps" not in path.parts
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"print", "breakpoint", "input"}
    ]
    assert not printing, "a library talks by returning and raising"


def test_trees_come_from_one_place() -> None:
    """A tree that another parser made would carry the user's comments into what is printed."""
    parsers = re.compile(r"import sqlglot\b|maybe_parse|sqlglot import .*parse|\.parser\(\)\.parse")
    calls = [
        f"{name(path)}:{number}"
        for path in sources(".py", under=("src",))
        if "trusted" in path.parts and path.name != "trees.py"
        for number, line in enumerate(lines_of(path), 1)
        if parsers.search(line)
    ]
    assert not calls, "texts become trees in planner/sql/trees.py alone"


def test_names_are_folded_in_one_place() -> None:
    """Python folds all letters, DuckDB A to Z: what folds otherwise takes one name for another."""
    folding = [
        f"{name(path)}:{node.lineno}"
        for path in sources(".py", under=("src",))
        if path != ROOT / "src" / "louver" / "names.py"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in {"lower", "upper", "casefold"}
    ]
    in_sql = [
        f"{name(path)}:{number}"
        for path in sources(".py", under=("src",))
        for number, line in enumerate(lines_of(path), 1)
        if re.search(r"\b(lower|upper)\((\w+_name|referenced_\w+|\$\d)\)", line)
    ]
    assert not folding + in_sql, "use fold() and keyword() of louver.names, TABLE_IS in SQL"


def test_nothing_is_left_unfinished() -> None:
    left = [
        f"{name(path)}:{text.count(chr(10), 0, mark.start()) + 1}"
        for path, text in text_files()
        for mark in UNFINISHED.finditer(text)
    ]
    assert not left


@pytest.mark.parametrize("pattern", [HOSTS, ABSOLUTE], ids=["registry hosts", "local paths"])
def test_no_place_of_somebody_is_named(pattern: re.Pattern[str]) -> None:
    named = [
        f"{name(path)}: {match[0]}"
        for path, text in text_files()
        if (match := pattern.search(text))
    ]
    assert not named


def test_locks_hold_hashes_and_no_addresses() -> None:
    for lock in sorted(ROOT.glob("requirements*.lock")):
        text = lock.read_text(encoding="utf-8")
        pinned = re.findall(r"^[\w.-]+(?:\[\w+\])?==\S+", text, re.MULTILINE)
        assert pinned, lock.name
        assert "://" not in text, lock.name
        for block in re.split(r"\n(?=\w)", text):
            assert block.startswith("#") or "--hash=sha256:" in block, block.splitlines()[0]


def test_schemes_say_what_they_leak() -> None:
    """A scheme's docstring opens with the five lines that a reader looks for first."""
    wanted = ["Leaks:", "Answers:", "Stored as:", "Spec:", "Broken by:"]
    folder = ROOT / "src/louver/trusted/vault/schemes"
    for path in folder.glob("[!_]*.py"):
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        places = [doc.find(word) for word in wanted]
        assert -1 not in places, f"{name(path)}: the docstring lacks {wanted}"
        assert places == sorted(places), f"{name(path)}: in another order"


def test_the_rules_bite(tmp_path: Path) -> None:
    """The counters above count what they say."""
    rust = tmp_path / "a.rs"
    rust.write_text('pub(crate) const fn f() {\n  let a = "{";\n  // {\n  if a {\n }\n}\nfn g();\n')
    assert rust_functions(rust) == [("f", 1, 6), ("g", 7, 1)]
    python = tmp_path / "a.py"
    python.write_text('def f():\n    """Doc\n    more."""\n    return 1\n')
    assert python_functions(python) == [("f", 1, 2)]
    assert UNFINISHED.search("# " + "TO" + "DO: later")
    assert HOSTS.search("https://" + "py" + "pi.org/simple")
    assert ABSOLUTE.search("cd /wo" + "rk/x")
