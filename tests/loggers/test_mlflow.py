"""The logger of MLflow on a stand-in for its client, which refuses the names that MLflow refuses."""

import posixpath
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from irgym.base.errors import IrgymError, StorageError
from irgym.loggers.mlflow import LONGEST_NAME, MlflowLogger, name_in_mlflow

VALID = re.compile(r"^[/\w.\- ]*$")
"""Characters of names in `mlflow/utils/validation.py`, in all versions since 1.0."""

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


def check_name(name: str) -> None:
    assert VALID.match(name) and posixpath.normpath(name) == name and len(name) <= LONGEST_NAME, name


class Client:
    """The part of `MlflowClient` that is used; its runs last as long as the class."""

    runs: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, tracking_uri: str) -> None:
        if tracking_uri.startswith("http"):
            raise StandIn.exceptions.MlflowException("no route\nto host.")

    def get_experiment_by_name(self, name: str) -> Any:
        return SimpleNamespace(experiment_id="7") if self.runs else None

    def create_experiment(self, name: str) -> str:
        return "7"

    def create_run(self, experiment: str, tags: dict[str, str]) -> Any:
        run = f"run{len(self.runs)}"
        self.runs[run] = [("name", tags["mlflow.runName"])]
        return SimpleNamespace(info=SimpleNamespace(run_id=run))

    def update_run(self, run: str, status: str) -> None:
        self.runs[run].append(status)

    def log_batch(self, run: str, metrics: list[Any] = [], params: list[Any] = []) -> None:  # noqa: B006
        assert (0 < len(metrics) <= 1000 and not params) or 0 < len(params) <= 100
        for key, *_ in [*metrics, *params]:
            check_name(key)
        self.runs[run] += [(key, value, step) for key, value, _, step in metrics] + params

    def log_dict(self, run: str, data: dict[str, Any], file: str) -> None:
        self.runs[run].append((file, data))

    def log_artifact(self, run: str, path: str) -> None:
        self.runs[run].append(("artefact", Path(path).name))

    def set_terminated(self, run: str) -> None:
        self.runs[run].append("end")


class StandIn:
    MlflowClient = Client
    entities = SimpleNamespace(Metric=lambda *values: values, Param=lambda *values: values)
    exceptions = SimpleNamespace(MlflowException=type("MlflowException", (Exception,), {}))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    monkeypatch.setitem(sys.modules, "mlflow", StandIn)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(Client, "runs", {})
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return Client.runs


def test_names_are_valid_and_stay_distinct():
    renamed = [name_in_mlflow(name) for name in NAMES]
    for name in renamed:
        check_name(name)
    assert len(set(renamed)) == len(NAMES)
    assert renamed[:2] == ["train/reward_mean", "eval/speedup/loops/mm/64x64x64"]


def test_a_run_is_logged_and_continued(tmp_path: Path, runs: dict[str, list[Any]]):
    logger = MlflowLogger()
    logger.start(tmp_path, {"agent": "ppo", "config": {"lr": 0.1, "hidden": (8,)}}, 0)
    logger.metrics(1, {name: float(place) for place, name in enumerate(NAMES)})
    logger.metrics(2, {f"m{place}": 0.0 for place in range(1001)})
    logger.end()
    seen = runs["run0"]
    assert seen[:4] == [
        ("name", tmp_path.name),
        ("agent", "ppo"),
        ("config.lr", "0.1"),
        ("config.hidden", "[8]"),
    ]
    assert ("eval/speedup/loops/mm/64x64x64", 1.0, 1) in seen and ("m1000", 0.0, 2) in seen
    again = MlflowLogger()
    again.start(tmp_path, {}, 2)
    (tmp_path / "policy.pt").write_text("")
    again.artefact(2, tmp_path / "policy.pt")
    again.evaluation(2, "comparison", [{"program": "a", "cost": None}])
    again.end()
    table = ("comparison.json", {"iteration": 2, "rows": [{"program": "a", "cost": None}]})
    assert list(runs) == ["run0"]
    assert seen[-5:] == ["end", "RUNNING", ("artefact", "policy.pt"), table, "end"]


def test_another_store_gets_a_run_of_its_own_and_refusals_are_one_sentence(
    tmp_path: Path, runs: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
):
    MlflowLogger().start(tmp_path, {}, 0)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:///elsewhere")
    MlflowLogger().start(tmp_path, {}, 0)
    assert list(runs) == ["run0", "run1"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://nobody")
    with pytest.raises(IrgymError, match=r"http://nobody cannot be used \(no route to host\): check MLFLOW"):
        MlflowLogger().start(tmp_path, {}, 0)
    (tmp_path / "mlflow.json").write_text('{"run": 3}')
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(StorageError, match="is damaged"):
        MlflowLogger().start(tmp_path, {}, 0)
