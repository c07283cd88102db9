"""Commands as SLURM jobs, and sweeps; a stand-in for `sbatch` really runs the scripts."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Command

from irgym.base.errors import IrgymError
from irgym.cli.commands import SUMMARIES, parsed
from irgym.cli.grid import combinations, name_of, words_of
from irgym.cli.nested import begun_by, split
from irgym.cli.submit import Submit, script_of
from irgym.cli.sweep import Sweep
from irgym.measure.farm.jobs import JobOptions, named
from irgym.reporting.sweeps import Run, mean_interval, page, settings_of

SBATCH = """#!/bin/bash
[ $# = 1 ] || exit 1
grep -q constraint=none "$1" && {{ echo "no such constraint" >&2; exit 1; }}
bash "$1" > {folder}/job.out 2>&1
echo "Submitted batch job 7"
"""
TRAINING = ("--dataset", "mm_random:count=8,low=8,high=24,seed=1", "--set", "episodes=4", "hidden=8")


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, where `sbatch` runs scripts at once; their output is job.out."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text(SBATCH.format(folder=shlex.quote(str(tmp_path))))
    (programs / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_job_runs_its_command_where_it_was_submitted(irgym: Command, sbatch: Path):
    told = irgym(
        "submit", "--folder", "my jobs", "--json", "job.json", "programs", "loops", "--json", "uris.json"
    )
    assert told.code == 0, told.err
    assert json.loads(Path("uris.json").read_text())["programs"], Path("job.out").read_text()
    job = json.loads(Path("job.json").read_text())
    assert job["job"] == "7" and job["output"].endswith("-7.out")
    assert Path(job["script"]).parent == sbatch / "my jobs" and job["script"] in told.out


def test_the_script_of_a_job(irgym: Command, sbatch: Path):
    options = (
        "--time",
        "2-00:00:00",
        "--cores",
        4,
        "--gpus",
        1,
        "--memory",
        "8GB",
        "--queue=big",
        "--name",
        "a",
    )
    run = "it's; reboot $HOME"
    text = irgym("submit", *options, "--dry-run", "train", "loops", "--run", run).out
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    lines = text.splitlines()
    assert lines[0] == "#!/bin/bash" and not (sbatch / "job.out").exists()
    wanted = {
        "job-name=a",
        "time=2-00:00:00",
        "cpus-per-task=4",
        "gpus=1",
        "mem=8G",
        "partition=big",
        "requeue",
    }
    assert {f"#SBATCH --{option}" for option in wanted} <= set(lines)
    assert f"#SBATCH --output={sbatch}/slurm/a-%j.out" in lines
    words = shlex.split(lines[-1])
    assert words == ["exec", sys.executable, "-m", "irgym", "train", "$resume", "loops", "--run", run]
    assert shlex.split(lines[-2])[3] == str(sbatch / run / "checkpoint.pt")


def test_what_tells_that_a_command_has_begun(sbatch: Path):
    marker = Path("marker")

    def begun(*words: str) -> list[Path]:
        return begun_by(parsed(words), marker)

    assert begun("train", "loops", "--run", "a")[0] == sbatch / "a" / "checkpoint.pt"
    assert begun("compare", "loops", "--json", "b") == [sbatch / "b"]
    assert begun("compare", "loops", "--run-folder", "a") == [sbatch / "a" / "comparison.json"]
    assert begun("tune", "loops://mm/8x8x8") == [marker]
    for words in (
        ("tune", "a", "--quick"),
        ("tune", "a", "--resume"),
        ("compare", "loops"),
        ("programs", "loops"),
    ):
        assert not begun(*words), words
    script = script_of(JobOptions(name="n"), ["tune", "loops://mm/8x8x8"])
    assert f"touch {sbatch}/slurm/n.begun\nexec" in script


def test_names_of_jobs():
    first, again = (named(JobOptions(), ["train", "loops", "--seed", "1"]).name for _ in range(2))
    assert first == again and first.startswith("train-loops-")
    assert named(JobOptions(), ["train", "loops", "--seed", "2"]).name != first
    assert named(JobOptions(name="mine"), ["train"]).name == "mine"


def test_options_stay_with_their_command():
    assert split(Submit, ["--gpus", "1", "--dry-run", "--name=a", "tune", "x", "--json", "b"], SUMMARIES) == (
        ["--gpus", "1", "--dry-run", "--name=a"],
        ["tune", "x", "--json", "b"],
    )
    words = ["--sweep", "lr=1,2", "seed=0:2", "--evaluate", "train", "loops", "--set", "a=1"]
    own, inner = split(Sweep, words, SUMMARIES)
    assert own == ["--sweep", "lr=1,2", "seed=0:2", "--evaluate"] and inner[0] == "train"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("submit",), "none is given"),
        (("submit", "farm", "serve", "1"), "'farm' is none of them"),
        (("submit", "--time", "soon", "programs", "loops"), "--time 'soon' is malformed: write 24:00:00"),
        (("submit", "--queue", "a b", "programs", "loops"), "--queue 'a b' is malformed"),
        (("submit", "--cores", "0", "programs", "loops"), "--cores cannot be 0: give a number from 1"),
        (
            ("submit", "--constraint", "none", "programs", "loops"),
            "(no such constraint): correct the options",
        ),
        (("sweep", "train", "loops", "--run", "x"), "there is nothing to sweep"),
        (("sweep", "--sweep", "a=1", "tune", "x"), "'tune' is none of them"),
        (
            ("sweep", "--sweep", "lr=1,1", "train", "loops", "--run", "x"),
            "has no values, or one of them twice",
        ),
        (("sweep", "--sweep", "seed=0:5000", "train", "loops", "--run", "x"), "at most 1000 runs"),
        (
            ("sweep", "--sweep", "lr=1", "train", "loops", "--run", "x", "--set", "lr=2"),
            "lr is swept and given",
        ),
        (
            ("sweep", "--sweep", "seed=1", "train", "loops", "--run", "x", "--seed", "2"),
            "seed is swept and given",
        ),
    ],
    ids=lambda value: None,
)
def test_bad_jobs_and_sweeps_get_one_sentence(
    irgym: Command, sbatch: Path, words: tuple[str, ...], told: str
):
    result = irgym(*words)
    assert result.code == 2 and told in result.err and result.err.count("\n") == 1, result.err


def test_without_slurm(irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no sbatch here" in irgym("submit", "programs", "loops").err


def test_combinations_and_their_commands():
    swept = combinations(["lr=1e-4,3e-4", "seed=0:5:2", "agent=ppo"])
    assert len(swept) == 6 and swept[1] == {"lr": "1e-4", "seed": "2", "agent": "ppo"}
    words = words_of(["train", "loops", "--run", "a", "--set", "gamma=1"], swept[1], Path("a"))
    command = parsed(words)
    assert vars(command)["set"] == ("lr=1e-4", "gamma=1") and vars(command)["seed"] == 2
    assert vars(command)["training"].agent == "ppo"
    assert vars(command)["folder"] == Path("a/lr=1e-4,seed=2,agent=ppo")
    assert name_of({"start": "x/y.pt"}) == "start=x_y.pt"
    with pytest.raises(IrgymError, match="no name=value"):
        combinations(["seed"])


def test_means_over_seeds():
    assert mean_interval([1.0, None, 3.0]) == pytest.approx((2.0, 2.0 - 12.706, 2.0 + 12.706), abs=1e-3)
    rows = [{"iteration": place, "reward_mean": place / 10, "speedup": 2.0} for place in range(1, 21)]
    runs = [Run("lr=1,seed=0", "lr=1", rows), Run("lr=1,seed=1", "lr=1", rows[:10], 1.5), Run("lr=2", "lr=2")]
    first, second = settings_of(runs)
    assert (first.runs, first.iterations) == (2, (10, 20)) and second.reward is None
    assert first.reward is not None and first.reward[0] == pytest.approx((1.95 + 1.0) / 2)
    assert first.test is not None and first.test.mean == 1.5
    text = page("s", runs, "speedup")
    assert text is not None and "<svg" in text and "lr=1" in text
    assert page("s", [Run("a", "a")], "speedup") is None


def test_a_sweep_submits_then_resumes_here(irgym: Command, sbatch: Path):
    pytest.importorskip("torch")
    sweep = ("sweep", "--sweep", "seed=4:5", "--submit")
    told = irgym(*sweep, "train", "loops", "--run", "runs", "--iterations", 1, *TRAINING)
    assert told.out == "job 7: seed=4\n" and "policy: runs/seed=4/policy.pt" in Path("job.out").read_text()
    told = irgym(
        "sweep",
        "--json",
        "s.json",
        "train",
        "loops",
        "--run",
        "runs",
        *TRAINING,
        "--iterations",
        2,
        "--sweep",
        "seed=4:5",
    )
    assert told.code == 0 and "== seed=4, resumed" in told.out and "written: runs/sweep.html" in told.out
    [setting] = json.loads(Path("s.json").read_text())["settings"]
    assert setting["iterations"] == [2, 2] and setting["runs"] == 1
