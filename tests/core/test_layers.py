"""The layering: what may import what, and how fast the top-level import is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import irgym

ROOT = Path(irgym.__file__).parent
ALLOWED = {
    "core": {"core"},
    "measure": {"core", "measure"},
    "prediction": {"core", "prediction"},
    "search": {"core", "measure", "prediction", "search"},
    "nets": {"core", "measure", "nets"},
    "envs": {"core", "measure", "envs"},
    "agents": {"core", "measure", "prediction", "search", "nets", "agents"},
    "evaluate": {"core", "measure", "prediction", "search", "nets", "agents", "evaluate"},
    "cli": {"core", "measure", "prediction", "search", "nets", "agents", "evaluate", "cli"},
}
TORCH_LAYERS = {"nets", "agents"}
TORCH_PROGRAMS = {
    Path("envs/linalg/networks.py"),
    Path("envs/linalg/torch_import.py"),
}  # imported on use only


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
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
        tree = ast.parse(path.read_text())
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
