import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import dials
import pytest
from trainings import contents

from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.agents.checkpoint import restore
from irgym.agents.evaluation import greedy_score
from irgym.agents.training import Setup, train
from irgym.base.errors import IrgymError, StorageError
from irgym.core.reward import Shaped
from irgym.measure.evaluators import Inline
from irgym.networks import storage
from irgym.networks.policy import TorchPolicy
from irgym.networks.storage import difference
from irgym.policies.run_folder import RunFolder

PPO = PPOConfig(
    iterations=8, episodes=16, hidden=(16,), epsilon=0.2, reuse="random", value_epochs=1, checkpoint_every=0.0
)
DQN = DQNConfig(
    iterations=8,
    episodes=16,
    hidden=(16,),
    updates=4,
    minibatch=32,
    warmup=64,
    replay=256,
    checkpoint_every=0.0,
)
A2C = A2CConfig(iterations=8, episodes=16, hidden=(16,), normalise_observations=True, checkpoint_every=0.0)
CONFIGS = {"ppo": PPO, "dqn": DQN, "a2c": A2C}
CODES = dials.CODES[7::30]

WHERE = ("evaluating", "recording")

KILLED = """
import os, shutil, signal, sys
sys.path.append({toys!r})
import dials, torch
from irgym.agents import training
from irgym.agents.algorithms.a2c import A2CConfig
from irgym.agents.algorithms.dqn import DQNConfig
from irgym.agents.algorithms.ppo import PPOConfig
from irgym.loggers.events import without_tensorflow
from pathlib import Path
without_tensorflow()
import torch.utils.tensorboard  # once, before the forks
torch.set_num_threads(1)

class Fatal(dials.Inline):
    def __init__(self, where):
        self.where, self.calls = where, 0
    def evaluate(self, jobs):
        self.calls += 1
        if self.where == "evaluating" and self.calls == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(jobs)

def train(config, where, run):
    def progress(metrics):
        # The line of metrics is written by now, the checkpoint is not.
        if where == "recording" and metrics.iteration == 5:
            os.kill(os.getpid(), signal.SIGKILL)
    problem = dials.problem({codes!r})
    problem = type(problem)(problem.tasks, Fatal(where), problem.reward)
    training.train(config, problem, Path(run), progress=progress)

for config in {configs!r}.values():  # so that the forks need not import what a training needs
    training.train(config, dials.problem({codes!r}), Path("warm"), iterations=1)
    shutil.rmtree("warm")

for name, config in {configs!r}.items():
    for where in {where!r}:
        if (child := os.fork()) == 0:
            train(config, where, name + "-" + where)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (name, where)
"""


@pytest.fixture(scope="module")
def killed_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of each learner killed in each way, all by forks of a single process."""
    folder = tmp_path_factory.mktemp("killed")
    toys = str(Path(dials.__file__).parent)
    script = KILLED.format(toys=toys, where=WHERE, codes=CODES, configs=CONFIGS)
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=folder)
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the uninterrupted run of each learner."""
    folder = tmp_path_factory.mktemp("whole")
    for name, config in CONFIGS.items():
        train(config, dials.problem(CODES), folder / name)
    return folder


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_killed_and_resumed_run_equals_the_uninterrupted_one(name, where, killed_runs, whole_runs):
    config, whole, killed = CONFIGS[name], whole_runs / name, killed_runs / f"{name}-{where}"
    assert len(contents(killed)) == (4 if where == "evaluating" else 5)
    assert restore(RunFolder(killed))["progress"]["iteration"] == 4
    train(config, dials.problem(CODES), killed, resume=True)
    assert contents(killed) == contents(whole)
    states = [restore(RunFolder(run))["learner"] for run in (whole, killed)]
    assert not difference(*states)
    assert not difference(*[storage.read(run / "policy.pt", "policy")["weights"] for run in (whole, killed)])


def test_metrics_policy_and_events_are_written(tmp_path):
    seen = []
    problem = dials.problem(CODES)
    policy = train(
        PPO,
        problem,
        tmp_path / "run",
        Setup(environment="dials", details={"dataset": "toy"}),
        progress=seen.append,
    )
    assert policy.environment == "dials"
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == list(range(1, 9)) == [metrics.iteration for metrics in seen]
    assert rows[-1]["episodes"] == 8 * 16
    assert rows[-1]["speedup"] >= 1.0
    assert rows[-1]["best_speedup"] >= rows[-1]["speedup"]
    description = json.loads((tmp_path / "run/config.json").read_text())
    assert description["dataset"] == "toy"
    assert description["config"]["episodes"] == 16
    assert list((tmp_path / "run/tensorboard").iterdir())
    assert (tmp_path / "run/policy.pt").stat().st_size < 20_000


def test_training_without_time_for_an_iteration_says_so(tmp_path):
    run = RunFolder(tmp_path / "run")
    with pytest.raises(IrgymError, match="no iteration was finished within 1e-09 s"):
        train(PPO, dials.problem(CODES), run.path, seconds=1e-9)
    assert contents(run.path) == [] and run.untrained
    train(PPO, dials.problem(CODES), run.path, resume=True, iterations=3)
    assert len(contents(run.path)) == 3 and not run.untrained


class TimeRunsOut:
    """Evaluates in line; after some calls, the training's time is over."""

    def __init__(self, problem, calls: int) -> None:
        self.problem, self.left = problem, calls

    def evaluate(self, jobs):
        self.left -= 1
        if self.left <= 0:
            self.problem.deadline.moment = 0.0
        return Inline().evaluate(jobs)


@pytest.mark.parametrize("name", CONFIGS)
def test_an_iteration_that_the_deadline_ends_leaves_no_trace(name, whole_runs, tmp_path):
    config, whole, late = CONFIGS[name], whole_runs / name, tmp_path / "late"
    ending = replace(dials.problem(CODES))
    ending = replace(ending, evaluator=TimeRunsOut(ending, 3))
    train(config, ending, late, seconds=1e6, iterations=config.iterations)
    assert 1 <= len(contents(late)) < len(contents(whole))
    train(config, dials.problem(CODES), late, resume=True)
    assert contents(late) == contents(whole)
    assert not difference(*[restore(RunFolder(run))["learner"] for run in (whole, late)])


def test_the_checkpoint_of_another_run_is_refused(tmp_path):
    train(PPO, dials.problem(CODES), tmp_path / "run", iterations=1)
    for config in (DQN, replace(PPO, hidden=(7,))):
        train(config, dials.problem(CODES), tmp_path / "other", iterations=1)
        (tmp_path / "other/checkpoint.pt").rename(tmp_path / "run/checkpoint.pt")
        with pytest.raises(StorageError, match="does not belong to the run"):
            train(PPO, dials.problem(CODES), tmp_path / "run", resume=True)
        shutil.rmtree(tmp_path / "other")


def test_the_best_policy_on_the_validation_programs_is_kept(tmp_path):
    problem = dials.problem(CODES)
    config = replace(PPO, validate_every=2, iterations=12, lr=1e-2, lr_end=1e-2)
    policy = train(config, problem, tmp_path / "run", Setup(validation=problem.tasks))
    scores = [row["validation"] for row in contents(tmp_path / "run")]
    assert [score is not None for score in scores] == [False, True] * 6
    assert greedy_score(policy, problem.tasks, problem) == max(score for score in scores if score is not None)


def test_validation_and_scores_leave_shaping_out():
    problem = dials.problem(CODES)
    shaped = replace(problem, reward=Shaped(problem.reward, gamma=0.5))
    policy = PPO.build(problem).policy()
    score = greedy_score(policy, problem.tasks, problem)
    assert greedy_score(policy, problem.tasks, shaped) == score
    assert problem.unshaped() is problem


def test_a_run_is_not_overwritten(tmp_path):
    train(PPO, dials.problem(CODES), tmp_path / "run", iterations=1)
    with pytest.raises(IrgymError, match=r"already holds a run: continue it \(--resume"):
        train(PPO, dials.problem(CODES), tmp_path / "run")


def test_nothing_to_resume(tmp_path):
    with pytest.raises(StorageError, match="there is no run"):
        train(PPO, dials.problem(CODES), tmp_path / "run", resume=True)


def test_resuming_with_other_options_is_refused(tmp_path):
    train(PPO, dials.problem(CODES), tmp_path / "run", iterations=1)
    with pytest.raises(IrgymError, match=r"has lr = 0.001, not 0.5"):
        train(replace(PPO, lr=0.5), dials.problem(CODES), tmp_path / "run", resume=True)
    with pytest.raises(IrgymError, match="has agent = PPOConfig, not DQNConfig"):
        train(DQN, dials.problem(CODES), tmp_path / "run", resume=True)


def test_a_truncated_checkpoint_is_named_and_the_one_before_it_still_works(tmp_path):
    run = tmp_path / "run"
    problem = dials.problem(CODES)
    train(PPO, problem, run, iterations=5)
    checkpoint, previous = run / "checkpoint.pt", run / "checkpoint.previous.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    with pytest.raises(StorageError, match="to continue from the one before it, run: mv") as caught:
        train(PPO, problem, run, resume=True)
    assert "\n" not in str(caught.value)
    previous.rename(checkpoint)
    train(PPO, problem, run, resume=True, iterations=5)
    assert [row["iteration"] for row in contents(run)] == [1, 2, 3, 4, 5]


def test_a_truncated_only_checkpoint_is_refused(tmp_path):
    run = tmp_path / "run"
    train(PPO, dials.problem(CODES), run, iterations=0)
    (run / "checkpoint.pt").write_bytes(b"half")
    with pytest.raises(StorageError, match="truncated"):
        train(PPO, dials.problem(CODES), run, resume=True)


def test_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    run, problem = tmp_path / "run", dials.problem(CODES)
    train(PPO, problem, run, iterations=2)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        train(PPO, problem, run, resume=True, iterations=4)
    monkeypatch.undo()
    assert restore(RunFolder(run))["progress"]["iteration"] == 2
    assert isinstance(TorchPolicy.load(run / "policy.pt"), TorchPolicy)


def test_a_torn_line_of_metrics_is_left_out(tmp_path):
    run = RunFolder(tmp_path)
    run.metrics.write_text('{"iteration": 1}\n{"iteration": 2}\n{"iterat')
    assert [row["iteration"] for row in run.read_metrics()] == [1, 2]
    assert "was cut off and is left out" in run.cut_off
    run.truncate_metrics(1)
    assert not run.cut_off and run.metrics.read_text() == '{"iteration": 1}\n'
    run.metrics.write_text('{"iter\n{"iteration": 2}\n')
    with pytest.raises(StorageError, match="damaged"):
        run.read_metrics()
