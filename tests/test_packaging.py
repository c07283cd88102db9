"""The package: one version, a wheel that holds everything, and project files that agree."""

import os
import re
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

import irgym

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "irgym"

PROGRAM = """
import sys
from importlib.metadata import version
from pathlib import Path

import irgym
from irgym.core.catalogue import ENVIRONMENTS

target = Path(sys.argv[1])
assert Path(irgym.__file__).is_relative_to(target), irgym.__file__
assert version("irgym") == irgym.__version__
for name in ("loops", "hlo", "linalg", "graph", "cse", "llvm"):
    policies = ENVIRONMENTS.load(name).policies()
    assert policies and all(path.is_relative_to(target) and path.stat().st_size for path in policies.values())
    print(name, *sorted(policies))
"""

WITHOUT_EXTRAS = """
import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, packages_distributions, requires


def needed(name, found):
    for text in requires(name) or ():
        other = re.match(r"[\\w.-]+", text)[0].lower().replace("_", "-")
        if "extra ==" not in text and other not in found:
            found.add(other)
            with suppress(PackageNotFoundError):  # such as one for another system
                needed(other, found)
    return found


kept = needed("irgym", {"irgym"})
hidden = {
    package
    for package, owners in packages_distributions().items()
    if not {owner.lower().replace("_", "-") for owner in owners} & kept
}


class Hiding:
    def __init__(self, finder):
        self._finder = finder

    def find_spec(self, name, *arguments):
        return None if name.partition(".")[0] in hidden else self._finder.find_spec(name, *arguments)

    def __getattr__(self, name):
        return getattr(self._finder, name)


sys.meta_path[:] = map(Hiding, sys.meta_path)
assert {"onnx", "torch", "jax", "ziglang"} <= hidden and not {"numpy", "gymnasium", "tyro"} & hidden
from irgym.cli.main import main

main(["envs"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network."""
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling to build a wheel: pip install -e '.[dev]'")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    [path] = folder.glob("irgym-*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("irgym/")}
    files = {path.relative_to(SOURCE.parent).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    assert held == {name for name in files if "__pycache__" not in name}
    assert {
        "irgym/py.typed",
        "irgym/reporting/report.css",
        "irgym/envs/hlo/compiling/native/engine.cc",
    } <= held
    assert sum(name.endswith(".pt") for name in held) >= 3


def test_the_wheel_says_what_it_is(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
        scripts = archive.read(name.replace("METADATA", "entry_points.txt")).decode()
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    assert metadata["Version"] == irgym.__version__
    assert metadata["License-Expression"] == "Apache-2.0" and licences
    assert "irgym = irgym.cli.main:main" in scripts


def test_an_installed_wheel_works(wheel: Path, tmp_path: Path):
    """In an empty folder, with the libraries that irgym needs from this installation."""
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, capture_output=True)
    environment = os.environ | {"PYTHONPATH": str(target), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in ([sys.executable, "-c", PROGRAM, str(target)], [str(target / "bin" / "irgym"), "envs"]):
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "loops" in done.stdout and "linalg" in done.stdout


def test_every_environment_says_what_it_lacks_where_no_extra_is_installed():
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("loops", "hlo", "linalg", "graph", "cse", "llvm"):
        assert name in done.stdout


def test_the_citation_names_the_version():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == irgym.__version__
    assert citation["license"] == "Apache-2.0" and citation["authors"]


def test_the_changelog_has_what_is_not_released_first():
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])


def test_hooks_run_what_make_lint_runs():
    yaml = pytest.importorskip("yaml")
    makefile = (ROOT / "Makefile").read_text().replace("$(BIN)", ".venv/bin")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"], "nothing is downloaded"
    hooks = repositories[0]["hooks"]
    assert [hook["entry"] for hook in hooks] == [line.strip() for line in recipe.group(1).splitlines()]
    assert all(hook["language"] == "system" for hook in hooks)
