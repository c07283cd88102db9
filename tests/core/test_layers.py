"""The layering: what may import what, and how fast the top-level import is."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import irgym

ROOT = Path(irgym.__file__).parent
BELOW = {"base", "core", "measure"}
LEARNING = {*BELOW, "policies", "networks", "cost_model", "search", "gym"}
ALLOWED = {
    "base": {"base"},
    "core": {"base", "core"},
    "measure": BELOW,
    "llvmir": {*BELOW, "llvmir"},
    "loggers": {"base", "loggers"},
    "policies": {"base", "core", "policies"},
    "networks": {*BELOW, "policies", "networks"},
    "cost_model": {"base", "core", "cost_model"},
    "search": {*BELOW, "policies", "networks", "cost_model", "search"},
    "gym": {"base", "core", "gym"},
    "conformance": {
        *BELOW,
        "policies",
        "networks",
        "search",
        "agents",
        "judging",
        "comparing",
        "conformance",
    },
    "envs": {*BELOW, "llvmir", "envs"},
    "agents": {*LEARNING, "loggers", "agents"},
    "judging": {*BELOW, "policies", "search", "judging"},
    "comparing": {*BELOW, "policies", "search", "judging", "comparing"},
    "reporting": {*BELOW, "policies", "search", "judging", "comparing", "reporting"},
    "api": {*LEARNING, "loggers", "agents", "judging", "comparing", "api"},
    "cli": {*LEARNING, "loggers", "agents", "judging", "comparing", "conformance", "reporting", "api", "cli"},
}
TORCH_LAYERS = {"networks", "agents"}
TORCH_PROGRAMS = {
    Path("measure/callables/nesting.py"),
    Path("measure/callables/torch_calls.py"),
    Path("measure/callables/torch_comparison.py"),
    Path("measure/callables/torch_fused.py"),
    Path("measure/callables/torch_graphs.py"),
    Path("measure/callables/torch_modules.py"),
    Path("envs/linalg/programs/networks.py"),
    Path("envs/linalg/importing/torch_import.py"),
    Path("envs/graph/programs/exporting.py"),
    Path("envs/graph/programs/standing.py"),
    *(path.relative_to(ROOT) for path in (ROOT / "envs/graph/programs/models").glob("*.py")),
}  # imported on use only


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("layer", ALLOWED)
def test_dependencies_point_one_way(layer: str):
    for path in (ROOT / layer).rglob("*.py"):
        for name in imports(path):
            if name.startswith("irgym."):
                assert name.split(".")[1] in ALLOWED[layer], f"{path} imports {name}"


def modules() -> dict[str, Path]:
    """Return all modules of irgym by name."""
    found: dict[str, Path] = {}
    for path in ROOT.rglob("*.py"):
        parts = ["irgym", *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, known: dict[str, Path]) -> set[str]:
    """Return the modules of irgym that a module imports: at once, for its types, or within a function."""
    found: set[str] = set()
    for node in ast.walk(parsed(known[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {part if part in known else node.module for part in inner}
    return (found & known.keys()) - {name}


def test_no_imports_go_in_circles():
    known = modules()
    graph = {name: imported(name, known) for name in known}
    while free := [name for name, needed in graph.items() if not needed & graph.keys()]:
        for name in free:
            del graph[name]
    # What is left is in circles, or imports what is.
    assert not graph, {name: sorted(needed & graph.keys()) for name, needed in graph.items()}


def test_environments_do_not_import_each_other():
    for path in (ROOT / "envs").rglob("*.py"):
        own = path.relative_to(ROOT / "envs").parts[0]
        for name in imports(path):
            if name.startswith("irgym.envs."):
                assert name.split(".")[2] == own, f"{path} imports {name}"


@pytest.mark.parametrize("layer", sorted(set(ALLOWED) - TORCH_LAYERS))
def test_torch_stays_in_its_layers(layer: str):
    for path in (ROOT / layer).rglob("*.py"):
        if path.relative_to(ROOT) in TORCH_PROGRAMS:
            continue
        tree = parsed(path)
        top = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
        top |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not any(name.split(".")[0] == "torch" for name in top), path


@pytest.mark.timed
def test_import_is_quick_and_pulls_in_no_compiler():
    program = (
        "import sys, time; start = time.process_time(); import irgym; seconds = time.process_time() - start;"
        "import irgym.core.environment, irgym.core.task, irgym.core.schedule;"
        "heavy = {'torch', 'torch_mlir', 'llvmlite', 'jax', 'tvm', 'matplotlib'} & set(sys.modules);"
        "assert not heavy, heavy; assert seconds < 0.5, seconds"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
