"""Two processes at one folder, or at one file."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import Command

pytest.importorskip("torch")

HOLDER = (
    "import sys; from pathlib import Path; from irgym.base.files import lock_for\n"
    "with lock_for(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
)
QUICK = ("--iterations", "1", "--set", "episodes=4", "hidden=8")
PROGRAM = "passes://mlp/40-0-20-0-0-7-0-0"


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process that has the lock of a path; the number of the process."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process.pid
        process.kill()


def test_a_second_training_in_a_folder_is_told_of_the_first(irgym: Command, tmp_path: Path):
    run = tmp_path / "run"
    assert irgym("train", "passes", "--run", run, *QUICK).code == 0
    before = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    with held(run) as process:
        result = irgym("train", "passes", "--run", run, "--resume", *QUICK)
        assert result.code == 2 and f"process {process} is writing to {run}: wait" in result.err
        assert result.err.count("\n") == 1
    after = {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}
    assert {name: content for name, content in after.items() if name != ".lock"} == before
    resumed = irgym("train", "passes", "--run", run, "--resume", *QUICK[2:], "--iterations", "2")
    assert resumed.code == 0, "the lock of a process that was killed is free"
    assert not (run / ".lock").exists()


def test_two_comparisons_into_one_file(irgym: Command, tmp_path: Path):
    file = tmp_path / "comparison.json"
    command = ("compare", "passes", "--programs", PROGRAM, "--methods", "base", "--evaluations", "2")
    for options in (("--json", file), ("--run-folder", tmp_path)):
        with held(file) as process:
            result = irgym(*command, *options)
            assert result.code == 2 and f"process {process} is writing to {file}" in result.err
        assert not file.exists()
    assert irgym(*command, "--json", file, "--run-folder", tmp_path).code == 0, "it does not lock out itself"
    assert len(json.loads(file.read_text())["rows"]) == 1
    assert [path.name for path in tmp_path.glob("*.json*")] == ["comparison.json"]


def test_two_evaluations_of_one_run(irgym: Command, tmp_path: Path):
    run = tmp_path / "run"
    assert irgym("train", "passes", "--run", run, *QUICK).code == 0
    with held(run / "evaluation.json") as process:
        result = irgym("evaluate", run, "--limit", "1")
        assert result.code == 2 and f"process {process} is writing to" in result.err
    with held(run):
        assert irgym("evaluate", run, "--limit", "1").code == 0, "a policy may be judged while it is trained"
