"""The logger of MLflow on its client and its file store."""

from pathlib import Path
from typing import Any

import pytest

from irgym.base.errors import IrgymError, StorageError
from irgym.loggers.mlflow import FOLDER, LONGEST_NAME, MlflowLogger, name_in_mlflow

pytest.importorskip("mlflow", reason="needs mlflow: pip install 'irgym[mlflow]'")

NAMES = (
    "train/reward_mean",
    "eval/speedup/loops://mm/64x64x64",
    "eval/speedup/graph://bert?layers=2",
    "eval/speedup/graph://bert?layers_2",
    "eval/cost/cse:/home/a b/x.c#f",
    "eval/cost/loops://./a//b/../c",
    "eval/cost/" + "x" * 300,
    "eval/cost/" + "x" * 301,
    "eval/cost/ü",
)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


def runs_in(folder: Path) -> list[Any]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=folder.as_uri())
    experiment = client.get_experiment_by_name("irgym")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


def test_names_are_valid_and_stay_distinct():
    renamed = [name_in_mlflow(name) for name in NAMES]
    assert len(set(renamed)) == len(NAMES) and max(map(len, renamed)) <= LONGEST_NAME
    assert renamed[:2] == ["train/reward_mean", "eval/speedup/loops/mm/64x64x64"]


def test_a_run_is_logged_and_continued(tmp_path: Path):
    logger = MlflowLogger()
    hidden = {f"option{place}": 0 for place in range(101)}
    logger.start(tmp_path, {"agent": "ppo", "config": {"lr": 0.1, "hidden": (8,), **hidden}}, 0)
    logger.metrics(1, {name: float(place) for place, name in enumerate(NAMES)})
    logger.metrics(2, {f"m{place}": 0.0 for place in range(1001)})
    logger.end()
    [run] = runs_in(tmp_path / FOLDER)
    assert run.info.run_name == tmp_path.name and run.info.status == "FINISHED"
    assert run.data.params["agent"] == "ppo" and run.data.params["config.option100"] == "0"
    assert run.data.params["config.lr"] == "0.1" and run.data.params["config.hidden"] == "[8]"
    assert run.data.metrics["eval/speedup/loops/mm/64x64x64"] == 1.0
    assert len(run.data.metrics) == len(NAMES) + 1001

    again = MlflowLogger()
    again.start(tmp_path, {}, 2)
    assert [run.info.status for run in runs_in(tmp_path / FOLDER)] == ["RUNNING"]
    (tmp_path / "policy.pt").write_text("a policy")
    again.artefact(2, tmp_path / "policy.pt")
    again.evaluation(2, "comparison", [{"program": "a", "cost": None}])
    again.end()
    assert [run.info.status for run in runs_in(tmp_path / FOLDER)] == ["FINISHED"]
    kept = {path.name for path in (tmp_path / FOLDER).rglob("artifacts/*")}
    assert kept == {"config.json", "policy.pt", "comparison.json"}


def test_another_store_gets_a_run_of_its_own_and_its_policy_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    MlflowLogger().start(tmp_path, {}, 0)
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", elsewhere.as_uri())
    other = MlflowLogger()
    other.start(tmp_path, {}, 0)
    (tmp_path / "policy.pt").write_text("a policy")
    other.artefact(1, tmp_path / "policy.pt")
    other.end()
    [first], [second] = runs_in(tmp_path / FOLDER), runs_in(elsewhere)
    assert first.info.run_id != second.info.run_id
    assert MlflowLogger.fetch(second.info.run_id).read_text() == "a policy"
    with pytest.raises(IrgymError, match="cannot be used"):
        MlflowLogger.fetch(first.info.run_id)


def test_refusals_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nonsense://nobody")
    with pytest.raises(IrgymError, match=r"nonsense://nobody cannot be used \(.*\): check MLFLOW") as refused:
        MlflowLogger().start(tmp_path, {}, 0)
    assert "\n" not in str(refused.value)
    (tmp_path / "mlflow.json").write_text('{"run": 3}')
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(StorageError, match="is damaged"):
        MlflowLogger().start(tmp_path, {}, 0)
