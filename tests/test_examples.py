"""The examples run as they are, and the plug-in works through its entry points."""

import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from commands import without_progress

EXAMPLES = Path(__file__).parent.parent / "examples"
PLUGIN = EXAMPLES / "irgym_chain"
WATCHED = Path(__file__).parent / "toys" / "watched_example.py"
Irgym = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRGYM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def irgym(tmp_path: Path) -> Irgym:
    """Command lines, run in turn in a process that finds the plug-in as if it were installed."""
    metadata = tmp_path / "irgym_chain-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: irgym-chain\nVersion: 0.1.0\n")
    groups = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]["entry-points"]
    lines: list[str] = []
    for group, parts in groups.items():
        lines += [f"[{group}]", *(f"{name} = {part}" for name, part in parts.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    paths = [str(PLUGIN / "src"), str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}

    def run(*lines: str) -> subprocess.CompletedProcess[str]:
        calls = "; ".join(f"main({shlex.split(line)!r})" for line in lines)
        command = [sys.executable, "-c", f"from irgym.cli.main import main; {calls}"]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and not without_progress(done.stderr), done.stderr
        return done

    return run


def example(name: str) -> ModuleType:
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tune_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    example("tune_in_python").main("loops://mm/32x32x32", 0.5, tmp_path / "kernel.c")
    printed = capsys.readouterr().out
    assert "over the original program" in printed and "checked: Validation(ok=True" in printed
    assert "irgym_kernel" in (tmp_path / "kernel.c").read_text()


def test_train_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("torch")
    example("train_in_python").main(tmp_path / "run", "mm_random:count=8,low=8,high=24,seed=1", 3.0)
    printed = capsys.readouterr().out
    assert printed.count("loops://mm/") >= 1 and "x by: " in printed and "geometric mean" in printed
    assert (tmp_path / "run" / "policy.pt").is_file() and (tmp_path / "run" / "evaluation.json").is_file()


@pytest.mark.parametrize("name", ["tune_in_python", "train_in_python"])
def test_ten_lines_are_enough(name: str):
    body = (EXAMPLES / f"{name}.py").read_text().partition("def main(")[2].partition("\n\n\n")[0]
    assert len([line for line in body.splitlines() if line.strip()]) <= 10


def test_train_sb3(capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("sb3_contrib")
    example("train_sb3").main(steps=1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["loops://mm/48x48x48", "loops://mm/64x80x64"]
    assert all("x over the original program" in line for line in lines)


def test_plugin_search_finds_the_optimum_and_the_environment_is_checked(irgym: Irgym):
    # Cormen et al., Introduction to Algorithms, section 15.2: the optimum of this chain is 15,125.
    chain = "chain://30x35x15x5x10x20x25"
    found = f"tune {chain} --search hill-climbing --evaluations 200 --export chain.txt"
    done = irgym(found, "check chain --walks 1 --steps 4", "programs chain --dataset long-chains --limit 2")
    assert "15125" in done.stdout and "original: 40500" in done.stdout
    assert "chain keeps 4" in done.stdout
    assert "random chains of eleven matrices; 1 train, 1 test" in done.stdout
    assert "# data sets: random, long-chains" in done.stdout


def test_plugin_agent_trains_and_resumes(irgym: Irgym, tmp_path: Path):
    pytest.importorskip("torch")
    train = "train chain --agent reinforce --run run --set episodes=16"
    done = irgym(f"{train} --iterations 3", f"{train} --iterations 4 --resume", "evaluate run --limit 2")
    assert done.stdout.count("iteration    3") == done.stdout.count("iteration    4") == 1
    assert "improvement" in done.stdout


def test_plugin_keeps_the_rules(tmp_path: Path):
    paths = [str(PLUGIN / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(PLUGIN / "tests")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


@pytest.mark.parametrize(
    ("name", "package", "algorithms", "words"),
    [
        ("train_torchrl", "torchrl", ("ppo", "dqn"), "policy:torchrl-dqn"),
        ("train_rllib", "ray", ("ppo", "dqn", "impala"), "mean return of episodes"),
    ],
)
def test_learners_of_other_libraries_train_with_masks(
    name: str, package: str, algorithms: tuple[str, ...], words: str, tmp_path: Path
):
    pytest.importorskip(package)
    script = [str(WATCHED), str(EXAMPLES / f"{name}.py"), "--algorithm", *algorithms]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *script],
        env=os.environ | {"HOME": str(tmp_path)},  # ray keeps a token there
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0 and words in done.stdout, done.stderr
    assert all(f"{algorithm}: mean" in done.stdout for algorithm in algorithms)
    assert done.stdout.endswith("refused 0, some applied: True\n"), done.stdout
