"""The rooms: imports point along the flow or into the shared words, heavy modules load late, files are neither long nor crumbs."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "ncuroof"
FLOW = [
    "ncu", "sidecars", "ingest", "metrics", "phases", "roofline", "demand", "model", "diagnosis", "expected", "whatif",
    "comparison", "fleet", "present",
]  # fmt: skip
"""In the order in which data flows: a room may import those before it."""

FOLDERS = {
    "sidecars": ["traces"],
    "collect": ["runner"],
    "ingest": ["native", "code", "printed", "redaction"],
    "present": ["schemas", "sentences", "explanations", "documents", "texts", "brief", "charts", "page"],
}
"""Folders of a room, in the same way: a folder may import those before it, and what lies beside them."""

WORDS = {
    "errors", "enums", "formatting", "tables", "resources", "json_files", "regular_files", "temporary_files", "interrupts",
    "_version",
}  # fmt: skip
EDGE = {"cli", "agent", "batch", "torch", "testing", "collect"}
"""Outside the flow: the command line, the server for agents, tasks on many files, what runs with PyTorch, in tests, recordings."""

WITH_ALL_ROOMS = {"analysis", "reading", "cli", "agent", "batch", "torch", "testing", "profiling"}
BEFORE_EDGE = {"collect": {"collect", "ncu", "sidecars"}}
"""What a room at the edge may import, if that is not everything."""

HEAVY = {
    "torch", "pandas", "plotly", "ncu_report", "pyarrow", "zstandard", "google", "dask", "distributed", "fsspec", "mcp",
    "mcp_types", "anyio", "pydantic",
}  # fmt: skip
OF_ROOM = {"torch": {"torch"}, "agent": {"mcp", "mcp_types", "anyio", "pydantic"}}
"""What the modules of a room import at their top: a room that is loaded for it alone."""

MAX_LINES = 500
MIN_LINES = 80
"""A module with fewer lines and a single user is part of that user."""


@dataclass(frozen=True)
class Import:
    """One import of a module: what is imported, which names, and how."""

    module: str
    names: tuple[str, ...]
    is_at_module_level: bool
    is_for_types: bool

    @property
    def room(self) -> str:
        """The room, or word, of ncuroof that is imported; "" for the package itself and for other packages."""
        top, *rest = self.module.split(".")
        if top != "ncuroof":
            return ""
        return rest[0] if rest else next((name for name in self.names if name in {*FLOW, *EDGE, *WORDS}), "")


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_data" not in path.parts)


def _named(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def _all_imports() -> Iterator[tuple[Path, Import]]:
    return ((path, found) for path in MODULES for found in _imports(path))


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def _imports(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    level = {id(inner) for statement in tree.body for inner in _without_functions(statement)}
    types = {
        id(inner)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(statement)
    }
    return [
        found
        for node in ast.walk(tree)
        for found in _of(node, is_at_module_level=id(node) in level, is_for_types=id(node) in types)
    ]


def _of(node: ast.AST, *, is_at_module_level: bool, is_for_types: bool) -> Iterator[Import]:
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {
        "import_module",
        "importlib.import_module",
        "__import__",
        "written_by",
    }:
        if isinstance(name := getattr(node.args[0], "value", None), str):
            yield Import(name, (), is_at_module_level, is_for_types)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports are not used"
        yield Import(node.module or "", tuple(alias.name for alias in node.names), is_at_module_level, is_for_types)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, (), is_at_module_level, is_for_types)


def _without_functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and what runs with it when the module is imported."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _without_functions(child)


def test_the_rooms_are_those_of_the_flow() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert rooms <= {*FLOW, *EDGE}
    assert {"ingest", "metrics", "roofline", "diagnosis", "present", "cli"} <= rooms
    files = {path.stem for path in PACKAGE.glob("*.py")}
    assert files <= {*WORDS, "analysis", "reading", "profiling", "__init__", "__main__"}


def test_imports_point_along_the_flow() -> None:
    for path in MODULES:
        room = _room(path)
        if room in WITH_ALL_ROOMS or room in {"__init__", "__main__"}:
            continue
        upstream = set(FLOW[: FLOW.index(room) + 1]) if room in FLOW else BEFORE_EDGE.get(room, set())
        for found in _imports(path):
            assert not found.room or found.room in upstream | WORDS, f"{_named(path)}: {found.module} is not before it"


def test_imports_among_the_folders_of_a_room_go_one_way() -> None:
    folders = {path.parent.relative_to(PACKAGE).parts for path in MODULES if len(path.relative_to(PACKAGE).parts) > 2}
    assert folders == {(room, folder) for room, inside in FOLDERS.items() for folder in inside}
    for path in MODULES:
        room, *inside = path.relative_to(PACKAGE).parts
        if len(inside) < 2:
            continue
        order = FOLDERS[room]
        for found in _imports(path):
            _, into, *rest = [*found.module.split("."), "", ""]
            if into == room and rest[0] in order:
                assert order.index(rest[0]) <= order.index(inside[0]), f"{path.name}: {found.module} is not before it"


def test_only_the_chain_and_the_command_line_know_the_chain() -> None:
    for path in MODULES:
        room = _room(path)
        if room in {"cli", "__init__", "__main__"}:
            continue
        with_chain = dict.fromkeys(("agent", "batch", "testing"), WITH_ALL_ROOMS - {"cli"})
        known = {**with_chain, "reading": {"reading", "analysis"}, "profiling": {"reading", "analysis"}}.get(
            room, {room}
        )
        for found in _imports(path):
            assert found.room not in (WITH_ALL_ROOMS | EDGE) - known, f"{_named(path)} imports {found.module}"


def test_another_modules_underscore_names_stay_there() -> None:
    for path, found in _all_imports():
        if not found.module.startswith("ncuroof"):
            continue
        private = [name for name in found.names if name.startswith("_") and not name.endswith("__")]
        private += [part for part in found.module.split(".") if part.startswith("_") and part != "_version"]
        assert not private, f"{_named(path)} imports {private} of {found.module}"


def test_heavy_modules_are_imported_where_they_are_used() -> None:
    for path, found in _all_imports():
        heavy = HEAVY - OF_ROOM.get(_room(path), set()) if path.name != "__init__.py" else HEAVY
        is_heavy = found.module.split(".")[0] in heavy
        is_at_once = is_heavy and found.is_at_module_level and not found.is_for_types
        assert not is_at_once, f"{_named(path)} imports {found.module} at its top"


def test_the_runner_needs_the_standard_library_alone() -> None:
    for path in (PACKAGE / "collect/runner").glob("*.py"):
        for found in _imports(path):
            top = found.module.split(".")[0]
            assert top in sys.stdlib_module_names or top == "torch" or found.is_for_types, (
                f"{path.name}: {found.module}"
            )


def test_a_public_class_name_means_one_thing() -> None:
    modules = defaultdict(set)
    for path in MODULES:
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                modules[statement.name].add(_named(path))
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}


def test_files_stay_small() -> None:
    assert [_named(path) for path in MODULES if _n_lines(path) > MAX_LINES] == []


def test_a_small_module_has_several_users() -> None:
    for path in MODULES:
        if path.name in {"__init__.py", "__main__.py"}:
            continue
        if _room(path) == "cli" or path.parent == PACKAGE / "collect/runner":
            continue  # commands, and files that the runner loads by name
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        assert _n_lines(path) >= MIN_LINES or len(_users()[module]) > 1, f"{module} belongs to {_users()[module]}"


def _n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@cache
def _users() -> dict[str, set[str]]:
    """Return by which files of the package each module is imported."""
    users = defaultdict(set)
    for path in MODULES:
        for found in _imports(path):
            for module in (found.module, *(f"{found.module}.{name}" for name in found.names)):
                users[module].add(str(path.relative_to(PACKAGE)))
    return users


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch", ("torch", True, False)),
        ("def f():\n    import torch", ("torch", False, False)),
        ("class C:\n    import torch", ("torch", True, False)),
        ("try:\n    import torch\nexcept ImportError:\n    pass", ("torch", True, False)),
        ("if TYPE_CHECKING:\n    import torch", ("torch", True, True)),
        ("from ncuroof.cli import main", ("ncuroof.cli", True, False)),
        ("import_module('ncuroof.present')", ("ncuroof.present", True, False)),
        ("def f(name):\n    importlib.import_module('torch')\n    import_module(name)", ("torch", False, False)),
    ],
)
def test_the_reading_of_imports_is_right(tmp_path: Path, source: str, expected: tuple[str, bool, bool]) -> None:
    path = tmp_path / "module.py"
    path.write_text(source, encoding="utf-8")
    (found,) = _imports(path)
    assert (found.module, found.is_at_module_level, found.is_for_types) == expected
