"""The real packages: Weights & Biases offline, MLflow's file store and CSV have TensorBoard's numbers."""

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec

import logged_numbers
import pytest

from irgym.loggers.mlflow import name_in_mlflow
from irgym.policies.run_folder import RunFolder

pytest.importorskip("torch")

Numbers = dict[str, dict[str, float]]
PACKAGES = [name for name in ("wandb", "mlflow") if find_spec(name) is not None]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, dict[str, Numbers]]:
    """The folder of a training that was resumed once, and the numbers of each logger."""
    home = tmp_path_factory.mktemp("logged")
    folders = {f"WANDB_{name}_DIR": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
    script = [sys.executable, logged_numbers.__file__, "run", "tensorboard", "csv", *PACKAGES]
    done = subprocess.run(
        script,
        cwd=home,
        capture_output=True,
        text=True,
        env=os.environ | folders | {"WANDB_SILENT": "true", "MLFLOW_TRACKING_URI": ""},
    )
    assert done.returncode == 0, done.stderr
    return RunFolder(home / "run"), json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["csv", "wandb", "mlflow"])
def test_all_loggers_have_the_same_numbers(name: str, run: tuple[RunFolder, dict[str, Numbers]]):
    _, numbers = run
    if name not in numbers:
        pytest.skip(f"needs {name}: pip install 'irgym[{name}]'")
    renamed = name_in_mlflow if name == "mlflow" else str
    expected = {renamed(tag): curve for tag, curve in numbers["tensorboard"].items()}
    found = numbers[name]
    assert found.keys() == expected.keys()
    for tag, curve in expected.items():
        assert curve.keys() == found[tag].keys(), tag
        for step, value in curve.items():
            assert math.isclose(found[tag][step], value, rel_tol=1e-6, abs_tol=1e-30), (tag, step)


def test_the_numbers_are_those_of_the_record(run: tuple[RunFolder, dict[str, Numbers]]):
    folder, numbers = run
    rows = folder.read_metrics()
    assert [row["iteration"] for row in rows] == [1, 2, 3]
    curves = numbers["csv"]
    assert curves["train/reward_mean"] == {str(row["iteration"]): row["reward_mean"] for row in rows}
    [first, second] = rows[1]["programs"]
    assert curves["eval/cost/" + second["program"]] == {"2": second["cost"]}
    mean = math.sqrt(first["speedup"] * second["speedup"])
    assert math.isclose(curves["eval/speedup_mean"]["2"], mean)
    assert {name.partition("/")[0] for name in curves} == {"train", "eval"}
    assert curves["train/grad_norm"].keys() == {"1", "2", "3"}
