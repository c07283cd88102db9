"""A policy that stops at once: `train` and `evaluate` say so, with a remedy, and of no other policy."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from passes import PASSES, SPACE, TIME, URIS, PassTask

import irgym
from irgym.api.stopping import changes_nothing, is_unchanged, note_of_no_change
from irgym.cli.main import main
from irgym.comparing.comparison import ComparisonObserver, run_comparison
from irgym.envs.loops.environment import LOOPS
from irgym.networks.policy import TorchPolicy
from irgym.policies.run_folder import RunFolder

TIMED = irgym.Measuring(objective="time")  # with known costs, episodes go on where they could stop
KINDS = [kind.name for kind in SPACE.kinds]
SMALL = {"episodes": 4, "hidden": (8,), "lr": 1e-9, "lr_end": 1e-9}
SAID = (
    "the policy leaves {} tried unchanged: start from a policy that imitates searches (irgym imitate passes "
    "--out FILE, then irgym train --set start=FILE)"
)


class Noting(ComparisonObserver):
    """Keeps notes."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def note(self, text: str) -> None:
        self._notes.append(text)


def prefer(policy: TorchPolicy, name: str, path: Path) -> TorchPolicy:
    """Save a policy that takes an action wherever it applies."""
    with torch.no_grad():
        policy.network.scores.bias[KINDS.index(name)] += 1000.0
    policy.save(path)
    return TorchPolicy.load(path)


@pytest.fixture
def stopping(tmp_path: Path) -> Path:
    """A run whose policy stops at once."""
    run = tmp_path / "run"
    policy = irgym.train(
        "passes", run, training=irgym.Training(iterations=1, hyperparameters=SMALL), measuring=TIMED
    )
    prefer(policy, "stop", RunFolder(run).policy)
    return run


def test_train_says_so_at_the_end(stopping: Path, tmp_path: Path):
    for name, start in (("stops", {"start": str(RunFolder(stopping).policy)}), ("works", {})):
        said: list[str] = []
        training = irgym.Training(iterations=1, limit=3, hyperparameters=SMALL | start)
        irgym.train("passes", tmp_path / name, training=training, measuring=TIMED, note=said.append)
        assert said[1:] == ([SAID.format("all 3 programs")] if start else [])


def test_only_the_validation_programs_count(stopping: Path, tmp_path: Path):
    said: list[str] = []
    values = SMALL | {"start": str(RunFolder(stopping).policy), "validate_every": 1}
    training = irgym.Training(iterations=1, validate=1, hyperparameters=values)
    irgym.train("passes", tmp_path / "validated", training=training, measuring=TIMED, note=said.append)
    assert said[1:] == [SAID.format("the program")]


def test_evaluate_says_so(stopping: Path, capsys: pytest.CaptureFixture[str]):
    main(["evaluate", str(stopping), "--limit", "2"])
    assert SAID.format("all 2 programs") in " ".join(capsys.readouterr().out.split())
    prefer(TorchPolicy.load(RunFolder(stopping).policy), "fold0", RunFolder(stopping).policy)
    with torch.no_grad():
        policy = TorchPolicy.load(RunFolder(stopping).policy)
        policy.network.scores.bias[KINDS.index("stop")] -= 1000.0
    policy.save(RunFolder(stopping).policy)
    main(["evaluate", str(stopping), "--limit", "2"])
    assert "unchanged" not in capsys.readouterr().out


def test_a_program_that_fails_or_changes_is_enough(stopping: Path, monkeypatch: pytest.MonkeyPatch):
    def changed(**values: object) -> list[str]:
        def run(*arguments: object, **keywords: object) -> object:
            comparison = run_comparison(*arguments, **keywords)  # type: ignore[arg-type]
            return replace(comparison, rows=[*comparison.rows[:-1], replace(comparison.rows[-1], **values)])

        monkeypatch.setattr("irgym.api.evaluation.run_comparison", run)
        said: list[str] = []
        irgym.evaluate(stopping, evaluating=irgym.Evaluating(limit=2), observer=Noting(said))
        return said

    assert len(changed()) == 1
    assert changed(cost=None) == changed(schedule="fold0") == []


def test_the_first_program_that_changes_ends_the_trial(stopping: Path, tmp_path: Path):
    tasks = [PassTask(uri, TIME) for uri in URIS[:3]]
    policy = TorchPolicy.load(RunFolder(stopping).policy)
    assert changes_nothing(policy, tasks)
    assert [task.steps for task in tasks] == [1, 1, 1]
    folds = prefer(prefer(policy, "fold0", tmp_path / "folds.pt"), "fold0", tmp_path / "folds.pt")
    assert not changes_nothing(folds, tasks)
    assert [task.steps for task in tasks][1:] == [1, 1]


def test_schedules_that_change_nothing():
    task = PassTask(URIS[0])
    assert is_unchanged(task, "") and is_unchanged(task, "stop") and not is_unchanged(task, "fold0")


def test_a_recipe_is_a_remedy_where_there_is_any():
    assert "unchanged: train by a recipe (--recipe scratch), or start from" in note_of_no_change(LOOPS, 2)
    assert SAID.format("all 2 programs") == note_of_no_change(PASSES, 2)
