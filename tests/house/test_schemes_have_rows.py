"""Outside of the vault no stored representation is named: its scheme's row says what it is for.

So a new scheme is one Python and one Rust file. Words of SQL and of the shell that happen to be
names of representations are listed here, each with its reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from louver.trusted.vault import scheme, schemes
from tests.sources import ROOT, nodes, sources

TRUSTED = ROOT / "src/louver/trusted"
FOLDERS = ("planner", "executor", "client", "apps")
SQL_SUM = "SUM of SQL, as a rule, a backend or a provider calls it"
TEXT_CODES = "the domain of VARCHAR (`types.code_domain`)"
TEXT_FORM = "the form in which EXPLAIN is printed"
OPERAND = "an operand of a command, or an entry of its JSON"
#: By word: where it means something else.
OTHER_MEANINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "sum": {
        SQL_SUM: (
            "planner/operators/shares.py", "planner/private/aggregates.py",
            "planner/private/finish.py", "planner/rules/aggregates.py",
        ),
    },
    "text": {
        TEXT_CODES: (
            "executor/lake/range_predicates.py", "executor/schema/representations.py",
            "planner/operators/codes.py", "planner/operators/encoded.py",
        ),
        TEXT_FORM: (
            "apps/commands/explain.py", "client/relation.py", "executor/front.py",
            "executor/private/session.py", "executor/session.py", "executor/show.py",
        ),
        "a kind of advice": ("client/advice.py",),
        "a string in which names are looked for": (
            "executor/local/duckdb_statements.py", "executor/schema_queries.py",
        ),
        "the type of PostgreSQL": (
            "executor/local/postgres/connection.py", "executor/local/postgres/values.py",
            "executor/postgres/locking_queries.py", "planner/sql/postgres_types.py",
        ),
        OPERAND: ("apps/commands/sql.py",),
    },
    "file": {
        OPERAND: (
            "apps/commands/export.py", "apps/commands/key.py", "apps/commands/load.py",
            "apps/share_inspection.py",
        ),
    },
}  # fmt: skip


def representations() -> set[str]:
    return {item.name for row in scheme.rows() for item in row.representations}


def named(path: Path) -> set[str]:
    """The names of representations that stand in a file as strings."""
    texts = {
        node.value
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return texts & representations()


def files() -> list[Path]:
    below = [TRUSTED / folder for folder in FOLDERS]
    return [path for path in sources(".py", under=("src",)) if set(path.parents) & set(below)]


def test_no_representation_is_named_outside_of_the_vault() -> None:
    known = {
        (path, word)
        for word, reasons in OTHER_MEANINGS.items()
        for paths in reasons.values()
        for path in paths
    }
    present = {(str(p.relative_to(TRUSTED)), word) for p in files() for word in named(p)}
    assert present - known == set(), "read the scheme's row instead (vault/scheme.py)"
    assert known - present == set(), "these reasons are no longer needed"


def test_no_module_of_a_stored_scheme_is_imported() -> None:
    modules = {module.__name__ for module in schemes.modules()}
    package = schemes.__name__
    for path in files():
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                imported = {node.module, *(f"{node.module}.{item.name}" for item in node.names)}
            elif isinstance(node, ast.Import):
                imported = {item.name for item in node.names}
            else:
                continue
            assert not imported & modules, f"{path}: call {package} instead"


@pytest.mark.parametrize(
    "text",
    ['column.stored["rnd"]', "match name:\n    case 'eds':\n        pass", "f(onion='ord')"],
)
def test_a_name_is_seen_wherever_it_stands(text: str, tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text(text)
    assert named(path)
