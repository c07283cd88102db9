"""Trainings that evaluate, keep snapshots, compare at the end, and log it all; the commands for them."""

import csv
import json
from pathlib import Path

import pytest
from passes import URIS
from remembering import Remembering

import irgym
from irgym.base.errors import IrgymError
from irgym.cli.main import main
from irgym.comparing.results import read_comparison
from irgym.policies.run_folder import RunFolder

pytest.importorskip("torch")

SMALL = {"episodes": 4, "hidden": (8,)}
WORDS = ["--iterations", "2", "--set", "episodes=4", "hidden=8"]


def table(run: Path, name: str) -> list[dict[str, str]]:
    with (run / f"csv/{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_whole_way_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = tmp_path / "run"
    options = ["--log", "csv", "--evaluate-every", "1", "--evaluate-limit", "2", "--snapshot-every", "1"]
    main(["train", "passes", "--run", str(run), *WORDS, *options, "--compare-at-end", "0.05"])
    said = " ".join(capsys.readouterr().out.split())
    assert "test improvement" in said and f"next: irgym evaluate {run}" in said
    assert "comparing the policy with base, " in said
    comparison = read_comparison(RunFolder(run).comparison)
    assert comparison is not None and comparison.methods[-2:] == [f"policy:{run}", f"raw:{run}"]
    assert comparison.programs == [row["program"] for row in RunFolder(run).read_metrics()[0]["programs"]]
    assert not (run / "tensorboard").exists()
    rows = table(run, "comparison")
    assert [(row["program"], row["method"]) for row in rows] == [
        (row.program, row.method) for row in comparison.rows
    ]
    main(["evaluate", str(run), "--snapshots", "--limit", "2", "--json", str(tmp_path / "all.json")])
    data = json.loads((tmp_path / "all.json").read_text())
    assert list(data) == ["1", "2"]
    [summary] = data["2"]["summary"].values()
    *_, first, second = table(run, "metrics")
    assert float(second["snapshots/speedup_mean"]) == summary["speedup"]["mean"]
    assert (first["iteration"], second["iteration"]) == ("1", "2")
    irgym.evaluate(run, evaluating=irgym.Evaluating(limit=1))
    assert [row["method"] for row in table(run, "evaluation")] == [f"policy:{run}", f"raw:{run}"]
    # The newest policy is the last snapshot.
    assert [row.cost for row in irgym.evaluate_snapshots(run)[2].rows] == [
        row.cost for row in irgym.evaluate(run).rows if row.method.startswith("raw:")
    ]


def test_a_resumed_training_keeps_its_loggers_unless_told_otherwise(tmp_path: Path):
    run, own = tmp_path / "run", Remembering()
    training = irgym.Training(iterations=1, hyperparameters=SMALL, log="csv", loggers=(own,))
    irgym.train("passes", run, training=training)
    again = irgym.Training(iterations=2, hyperparameters=SMALL, resume=True)
    irgym.train("passes", run, training=again)
    assert [row["iteration"] for row in table(run, "metrics")] == ["1", "2"]
    assert [call[0] for call in own.calls] == ["start", "metrics", "artefact", "end"]
    assert own.calls[0][2]["environment"] == "passes"
    last = irgym.Training(iterations=3, hyperparameters=SMALL, resume=True, log="none")
    irgym.train("passes", run, training=last)
    assert len(table(run, "metrics")) == 2 and len(RunFolder(run).read_metrics()) == 3


def test_later_results_of_snapshots_leave_what_was_logged_before(tmp_path: Path):
    run = tmp_path / "run"
    training = irgym.Training(iterations=3, hyperparameters=SMALL, log="csv", snapshot_every=2)
    irgym.train("passes", run, training=training)
    assert list(irgym.evaluate_snapshots(run, evaluating=irgym.Evaluating(limit=1))) == [2]
    assert [row["iteration"] for row in table(run, "metrics")] == ["1", "2", "3", "2"]


def test_wrong_options_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for words, refusal in (
        (
            ["--log", "csv,wrong"],
            "there is no logger 'wrong': choose among tensorboard, wandb, mlflow, csv",
        ),
        (["--evaluate-every", "0"], "0 iterations are too few between evaluations"),
        (["--snapshot-every", "-1"], "-1 iterations are too few between snapshots"),
        (["--evaluate-limit", "2"], "--evaluate-limit needs --evaluate-every or --compare-at-end"),
        (["--compare-at-end", "0"], "0 seconds are not enough to search"),
        (["--set", f"start={tmp_path}"], "there is no policy at"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["train", "passes", "--run", str(tmp_path / "run"), "--iterations", "1", *words])
        assert left.value.code == 2
        assert refusal in " ".join(capsys.readouterr().err.split())
    with pytest.raises(IrgymError, match="is no logger"):
        irgym.Training(loggers=(3,))
    with pytest.raises(IrgymError, match="log must be a text"):
        irgym.Training(log=3)  # pyright: ignore[reportArgumentType]
    irgym.train("passes", tmp_path / "run", training=irgym.Training(iterations=1, hyperparameters=SMALL))
    with pytest.raises(IrgymError, match="has no snapshots: train with --snapshot-every N"):
        irgym.evaluate_snapshots(tmp_path / "run")
    with pytest.raises(IrgymError, match="is not a training run"):
        irgym.evaluate_snapshots(tmp_path / "nothing")


def test_a_data_set_without_test_programs_is_told_before_the_training(tmp_path: Path, monkeypatch):
    from irgym.core.dataset import Dataset

    empty = Dataset("odd", "", tuple(URIS), ())
    monkeypatch.setattr("irgym.api.training.dataset_named", lambda *_: empty)
    for options in ({"evaluate_every": 1}, {"compare_at_end": 1.0}):
        with pytest.raises(IrgymError, match="odd has no test programs"):
            irgym.train("passes", tmp_path / "run", training=irgym.Training(**options))
    assert not (tmp_path / "run").exists()
