"""The rooms of the house: what each may import, and that a server process loads no trusted code.

The contracts themselves stand in pyproject.toml and are checked by `make lint`; here is what they
cannot see: processes, the compiled module, and Cargo's graph.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.sources import ROOT, name, nodes, sources

PACKAGE = ROOT / "src/louver"
#: The folders of trusted code that load whatever they import at once.
TRUSTED = ("vault", "backends", "planner", "lake", "executor")
#: What runs where the adversary may read.
SERVER_SIDE = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    for folder in ("untrusted", "wire")
    for path in (PACKAGE / folder).rglob("*.py")
    if path.name != "__init__.py"
)


def module_of(path: Path) -> str:
    """The dotted name of a file."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path) -> set[str]:
    """Every module that a file imports, with the names that it takes from it."""
    modules: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return modules


#: Imports modules one after the other; says after which of them a trusted one was first loaded.
IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    found = sorted(m for m in sys.modules if m.startswith("louver.trusted"))
    if found:
        sys.exit(f"{name} loads {', '.join(found)}")
"""


def test_no_server_process_holds_a_trusted_module() -> None:
    """One process for all modules: what all of them together do not load, none of them loads."""
    assert len(SERVER_SIDE) > 50
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *SERVER_SIDE],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_trusted_module_would_be_seen() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, SERVER_SIDE[0], "louver.trusted.vault.levels"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "loads louver.trusted" in done.stderr


def test_the_compiled_keys_are_taken_by_the_vault_alone() -> None:
    """`louver._rust` holds keys and server code; only what has no key is for others."""
    allowed = PACKAGE / "trusted/vault"
    keyless = {"server", "attack", "postgres", "proxy"}
    wrong = [
        f"{name(path)}: {module}"
        for path in sources(".py", under=("src",))
        if not path.is_relative_to(allowed)
        for module in imports(path)
        if module.startswith("louver._rust.") and module.split(".")[2] not in keyless
    ]
    assert not wrong


def _for_types(tree: ast.Module) -> bool:
    """Whether a file imports something of Louver for its types alone."""
    return any(
        isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        and any(isinstance(part, ast.ImportFrom) and "louver" in str(part.module)
                for part in node.body)
        for node in tree.body
    )  # fmt: skip


def test_no_import_hides_as_one_for_types() -> None:
    """The contracts leave such imports out, so below the clients there are none."""
    rooms = [f"src/louver/trusted/{room}" for room in TRUSTED]
    hidden = [
        name(path)
        for path in sources(".py", under=tuple(rooms))
        if _for_types(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not hidden


def test_no_module_imports_itself_by_others() -> None:
    """Imports within functions, and those for types, count."""
    modules = {module_of(path): path for path in sources(".py", under=("src/louver/trusted",))}
    graph = {module: imports(path) & modules.keys() for module, path in modules.items()}
    left = dict(graph)
    while leaves := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in leaves:
            del left[module]
    assert not left, "these modules stand on a cycle, or import one that does"


def test_every_folder_of_code_is_a_package() -> None:
    folders = {path.parent for path in sources(".py", under=("src",))}
    assert [name(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def cargo_graph(*kinds: str) -> dict[str, set[str]]:
    """What each Rust crate depends on: for building it, and for more if `kinds` says so."""
    graph: dict[str, set[str]] = {}
    for manifest in (ROOT / "rust").glob("*/Cargo.toml"):
        content = tomllib.loads(manifest.read_text(encoding="utf-8"))
        names = set(content.get("dependencies", {}))
        graph[content["package"]["name"]] = names.union(*(content.get(kind, {}) for kind in kinds))
    return graph


def test_rust_that_is_untrusted_does_not_depend_on_trusted() -> None:
    """Cargo's graph says the same as the folders; python/ only binds."""
    graph = cargo_graph()
    assert {"louver-untrusted", "louver-trusted", "louver-primitives"} <= set(graph)
    assert "louver-trusted" not in graph["louver-untrusted"]
    assert not {"louver-trusted", "louver-untrusted"} & graph["louver-primitives"]
    for crate in ("louver-primitives", "louver-trusted", "louver-untrusted"):
        assert not {d for d in graph[crate] if d.startswith("pyo3")}, "the core knows no Python"


def test_the_product_does_not_depend_on_forms_kept_for_comparison() -> None:
    """Nor do its tests and build scripts: `rust/papers` sees the product, never the reverse."""
    graph = cargo_graph("dev-dependencies", "build-dependencies")
    assert "louver-papers" in graph
    assert [crate for crate, names in graph.items() if "louver-papers" in names] == []


def test_the_command_is_where_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, function = project["scripts"]["louver"].split(":")
    path = ROOT / "src" / Path(*module.split(".")).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_run_time_versions_are_those_of_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    extras = project["optional-dependencies"]
    optional = [text for name in extras if name != "bench" for text in extras[name]]
    for requirement in [*project["dependencies"], *optional]:
        assert requirement in wanted or requirement.startswith("louver[")
