import ast
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irgym.envs.hlo.compiling import toolchain as hlo
from irgym.envs.linalg.compiling import toolchain as linalg
from irgym.envs.loops.compiling import backends as loops
from irgym.measure.code_digest import MEASURING, ROOT, digest_of, files_of, package_digest

CODE = {"loops": loops.CODE, "hlo": hlo.CODE, "linalg": linalg.CODE}
WRITERS = {"linalg": ["envs/linalg/scheduling/script.py"]}
"""Modules that make the runners' argument from a schedule."""

ELSEWHERE = {
    "values that callers and runners exchange": ["core/", "base/"],
    "baselines, which are never recorded": [
        "envs/linalg/baselines.py",
        "envs/loops/baselines.py",
        "envs/loops/tvm_baseline.py",
        "measure/peak.py",
        "measure/baselines.py",
        "measure/pt2/",
    ],
    "the program's content is in the key": [
        "envs/hlo/programs/families.py",
        "envs/hlo/programs/numeric_families.py",
        "envs/hlo/programs/parameters.py",
        "envs/hlo/programs/uris.py",
        "envs/linalg/programs/families.py",
        "envs/linalg/programs/networks.py",
        "envs/linalg/programs/operators.py",
        "envs/linalg/programs/uris.py",
    ],
    "schedules are in the key": ["envs/linalg/actions.py", "envs/linalg/programs/lattice.py"],
    "features of policies": ["envs/hlo/observing/opcodes.py"],
    "estimates name it themselves": ["envs/loops/modelling/"],
    "the place of the engine": ["measure/store.py"],
    "the order of waiting processes": ["measure/locks.py"],
    "the child that builds the engine": ["measure/replies.py"],
}
"""Imports of runners on which costs do not depend, and why."""


@pytest.fixture
def copy(tmp_path):
    places = {place for code in (MEASURING, *CODE.values()) for place in code}
    for file in files_of(sorted(places)):
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return tmp_path


@pytest.mark.parametrize("environment", CODE)
def test_a_changed_byte_anywhere_changes_the_digest(copy, environment):
    files = files_of((*MEASURING, *CODE[environment]), copy)
    assert any(file.is_relative_to(copy / "measure" / "checking") for file in files)
    seen = {_fresh(environment, copy)}
    for file in files:
        before = file.read_bytes()
        file.write_bytes(before[:-1] + b" ")
        seen.add(_fresh(environment, copy))
        file.write_bytes(before)
    assert len(seen) == 1 + len(files)
    assert _fresh(environment, copy) == digest_of(*CODE[environment])


def _fresh(environment, root):
    digest_of.cache_clear()
    return digest_of(*CODE[environment], root=root)


def test_a_new_file_a_moved_one_and_a_missing_one_are_noticed(copy):
    seen = {_fresh("loops", copy)}
    (copy / "measure" / "checking" / "new.py").touch()
    seen.add(_fresh("loops", copy))
    (copy / "measure" / "checking" / "new.py").rename(copy / "measure" / "checking" / "other.py")
    seen.add(_fresh("loops", copy))
    (copy / "measure" / "checking" / "compiled.pyc").touch()
    seen.add(_fresh("loops", copy))
    assert len(seen) == 3
    (copy / "measure" / "timing.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"timing\.py"):
        _fresh("loops", copy)


def test_a_package_of_somebody_elses_has_a_digest(tmp_path):
    (tmp_path / "code.py").write_text("x = 1")
    (tmp_path / "notes.md").write_text("x")
    alone = package_digest(tmp_path)
    assert alone == package_digest(tmp_path, "code.py") and alone.endswith(digest_of())
    assert package_digest(tmp_path, "code.py", "notes.md") != alone, "a file that is named counts"
    package_digest.cache_clear()
    (tmp_path / "notes.md").write_text("y")
    assert package_digest(tmp_path) == alone
    package_digest.cache_clear()
    (tmp_path / "code.py").write_text("x = 2")
    assert package_digest(tmp_path) != alone
    with pytest.raises(FileNotFoundError, match=r"gone\.c"):
        package_digest(tmp_path, "gone.c")


@pytest.mark.parametrize("environment", CODE)
def test_whatever_runs_in_the_child_is_in_the_digest_or_known_not_to_matter(environment):
    hashed = {str(file.relative_to(ROOT)) for file in files_of((*MEASURING, *CODE[environment]))}
    left_out = tuple(path for paths in ELSEWHERE.values() for path in paths)
    start = [f"envs/{environment}/runner.py", *WRITERS.get(environment, [])]
    forgotten = {path for path in _imported(start) - hashed if not path.startswith(left_out)}
    assert not forgotten


def _imported(start):
    """Return irgym's files that some files import, directly or indirectly."""
    seen, waiting = set(), list(start)
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("irgym."):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                files = [f"{name.replace('.', '/').removeprefix('irgym/')}.py" for name in names]
                waiting += [file for file in files if (ROOT / file).exists()]
    return seen


@pytest.mark.timed
def test_it_is_quick_and_imports_nothing():
    begin = time.perf_counter()
    for code in CODE.values():
        digest_of.__wrapped__(*code)
    assert time.perf_counter() - begin < 1.0
    program = (
        "import sys; from irgym.measure.code_digest import digest_of;"
        "digest_of('envs/loops', 'envs/linalg')\n"
        "assert not [name for name in sys.modules if name.startswith('irgym.envs.')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_toolchains_name_it():
    assert digest_of(*hlo.CODE) in hlo.toolchain()
    assert digest_of(*loops.CODE) in loops.LLVM.toolchain()
    assert digest_of(*linalg.CODE) in linalg.toolchain()
    assert digest_of(*linalg.CODE) not in linalg.compiler_version()
    assert Path(ROOT / "measure").is_dir()
