"""Names and prose hold to the glossary: docs/glossary.md says which word is used for what."""

from __future__ import annotations

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

from tests.sources import ROOT, name, nodes, sources

#: Participles and pronouns that say nothing of the value; a local is a noun of the thing.
NAMES = frozenset(("asked", "found", "kept", "made", "one", "place", "told"))
#: Names that the glossary replaces, as words within identifiers.
TERMS = re.compile(
    r"(?:^|_)(?:hall|peel|peeled|peeling|suppose|upkeep|finish_at_home|is_lake)(?:_|$)"
)
#: A field of the sealed catalog keeps the name that it is stored under.
STORED = {
    (file, "kept")
    for file in ("catalog.py", "tables.py", "materialized_terms.py", "test_catalog.py")
}
#: Words in prose, each with what is written instead.
PROSE = {
    r"\bat home\b": "locally, in the local engine, on the client",
    r"(?<!there )\b(?:is|are|was) no\b(?! (?:longer|more|less|greater|larger|later))": "is not",
    r"\bupkeep\b": "maintenance",
    r"\bwhoever\b": "a noun",
    r"\bnobody\b": "no client, no one else",
    r"\bis told\b|\bare told\b": "learns, receives",
    r"\bpeel(?:s|ed|ing)?\b": "adjust, onion adjustment",
    r"\bthe hall\b": "the workspace",
}
_PROSE = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in PROSE.items()}
_RUST_TEXTS = re.compile(r'//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\])*"')
_RUST_BINDINGS = re.compile(
    r"\blet\s+(?P<let>[^=;{]*)|\bfor\s+(?P<loop>[^;{]*?)\s+in\b|\|(?P<closure>[^|\n;{}]*)\|"
    r"|\bfn\s+\w+[^(;{]*\((?P<function>[^{;]*?)\)\s*(?:->|\{|where)"
    r"|^\s*(?:pub(?:\([a-z]+\))?\s+)?(?P<field>\w+):\s",
    re.MULTILINE,
)
#: Neither a method, a type nor a function that is called.
_RUST_NAME = re.compile(r"(?<![.:\w])[a-z_]\w*(?!\s*(?:\(|::|\w))")
_PYTHON = [path for path in sources(".py") if path != Path(__file__)]
_PAGES = [*ROOT.glob("*.md"), *sources(".md"), *sources(".toml", under=("src",))]


def bound(path: Path) -> list[tuple[int, str]]:
    """The line and the text of each name that a file binds: locals, parameters, attributes."""
    names = []
    for node in nodes(path):
        match node:
            case ast.Name(id=word, ctx=ast.Store()) | ast.arg(arg=word):
                names.append((node.lineno, word))
            case ast.Attribute(attr=word, ctx=ast.Store()) | ast.MatchAs(name=str(word)):
                names.append((node.lineno, word))
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word):
                names.append((node.lineno, word))
    return names


def bound_in_rust(text: str) -> list[tuple[int, str]]:
    """The line and the text of each name that a Rust file binds: locals, parameters, fields."""
    code = _RUST_TEXTS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    names = []
    for binding in _RUST_BINDINGS.finditer(code):
        group = str(binding.lastgroup)
        for match in _RUST_NAME.finditer(binding[group]):
            position = binding.start(group) + match.start()
            names.append((code.count("\n", 0, position) + 1, match[0]))
    return names


@functools.cache
def prose(path: Path) -> list[tuple[int, str]]:
    """The line and the text of each comment and string of a Python file, or of each line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(enumerate(text.split("\n"), 1))
    kinds = (tokenize.COMMENT, tokenize.STRING)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type in kinds]


@pytest.mark.parametrize("folder", ["src", "bench", "docs", "examples", "fuzz", "tests", "tools"])
def test_names_are_nouns_of_the_glossary(folder: str) -> None:
    files = [path for path in _PYTHON if path.relative_to(ROOT).parts[0] == folder]
    assert files
    wrong = [
        f"{name(path)}:{line}: {word}"
        for path in files
        for line, word in bound(path)
        if (word in NAMES or TERMS.search(word)) and (path.name, word) not in STORED
    ]
    assert not wrong, f"{len(wrong)} names"


def test_names_in_rust_are_nouns() -> None:
    files = sources(".rs", under=("rust",))
    assert len(files) > 100
    wrong = [
        f"{name(path)}:{line}: {word}"
        for path in files
        for line, word in bound_in_rust(path.read_text(encoding="utf-8"))
        if word in NAMES
    ]
    assert not wrong


def test_bindings_in_rust_are_seen() -> None:
    for text in (
        "let one = 1;", "let (mut made, rest) = pair();", "for (found, _) in rows {}",
        "rows.map(|one| one + 1)", "fn f(kept: u8) -> u8 {}", "if let Some(told) = x {}",
        "let Some(place) = x else {};", "struct S {\n    pub(crate) asked: u8,\n}",
    ):  # fmt: skip
        assert NAMES & {word for _, word in bound_in_rust(text)}, text
    for text in (
        "let unit = BigUint::one();", "// let one = 1;", 'let x = "let one = 1";',
        "let x = layout.place(3);", "fn one(rows: usize) -> Column {",
    ):  # fmt: skip
        assert not NAMES & {word for _, word in bound_in_rust(text)}, text


def test_files_are_named_by_the_glossary() -> None:
    files = [path for path in _PYTHON if path.relative_to(ROOT).parts[0] != "tests"]
    wrong = [name(path) for path in files if path.stem in NAMES or TERMS.search(path.stem)]
    assert not wrong


@pytest.mark.parametrize("pattern", _PROSE, ids=list(PROSE.values()))
def test_prose_is_plain_english(pattern: re.Pattern[str]) -> None:
    wrong = [
        f"{name(path)}:{line}: {match[0]}"
        for path in [*(p for p in _PYTHON if p.relative_to(ROOT).parts[0] == "src"), *_PAGES]
        for line, text in prose(path)
        if (match := pattern.search(text))
    ]
    assert not wrong, f"{len(wrong)} lines; write: {_PROSE[pattern]}"


def test_the_words_are_seen() -> None:
    pattern = next(pattern for pattern, instead in _PROSE.items() if instead == "is not")
    assert pattern.search("That is no column of it")
    assert not pattern.search("It is no longer there")
    assert TERMS.search("in_hall")
    assert not TERMS.search("hallmark")
