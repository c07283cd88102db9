"""MLflow: a run for each run folder, in the store that `MLFLOW_TRACKING_URI` names or else in the folder."""

import hashlib
import json
import os
import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from irgym.base.errors import BackendError, IrgymError, StorageError
from irgym.base.json_files import read_json, write_json
from irgym.base.values import MismatchError, conform
from irgym.loggers.logger import Cell

EXPERIMENT = "irgym"
"""Experiment of the runs, unless `MLFLOW_EXPERIMENT_NAME` names another."""

FOLDER = "mlruns"
"""MLflow's file store in the run folder."""

ID_FILE = "mlflow.json"
"""File in the run folder with the store and the identifier of its run, by which it is continued."""

BATCH = 1000
"""Metrics that MLflow takes in a call."""

PARAMETERS = 100
"""Parameters that MLflow takes in a call."""

LONGEST_VALUE = 500
"""Characters of a parameter's value that every version of MLflow takes."""

LONGEST_NAME = 250
"""Characters of a name that MLflow takes."""

NOT_IN_NAMES = re.compile(r"[^\w/.\- ]", re.ASCII)
"""Characters that MLflow does not take in names."""


class MlflowLogger:
    """Logs to a run of MLflow.

    Raises:
        BackendError: mlflow is not installed.
    """

    def __init__(self) -> None:
        self._mlflow = _imported()

    def start(self, run: Path, configuration: Mapping[str, Any], iteration: int) -> None:
        """Start a run, or continue that of the folder.

        Raises:
            IrgymError: The store cannot be used.
            StorageError: The folder cannot be written.
        """
        uri = _store(run)
        with _used(self._mlflow, uri):
            self._client: Any = self._mlflow.MlflowClient(tracking_uri=uri)
            known = _known(run)
            if known is not None and known.store == uri:
                self._id = known.run
                self._client.update_run(self._id, status="RUNNING")
                return
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
            experiment = self._client.get_experiment_by_name(name)
            place = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
            created = self._client.create_run(place, tags={"mlflow.runName": run.resolve().name})
            self._id = created.info.run_id
            write_json(run / ID_FILE, asdict(_Known(uri, self._id)))
            parameter = self._mlflow.entities.Param
            parameters = [parameter(key, value) for key, value in _parameters(configuration).items()]
            for begin in range(0, len(parameters), PARAMETERS):
                self._client.log_batch(self._id, params=parameters[begin : begin + PARAMETERS])
            self._client.log_dict(self._id, dict(configuration), "config.json")

    def metrics(self, iteration: int, values: Mapping[str, float]) -> None:
        """Log numbers with the iteration as step; see `name_in_mlflow`."""
        now = int(time.time() * 1000)
        kind = self._mlflow.entities.Metric
        rows = [kind(name_in_mlflow(name), float(value), now, iteration) for name, value in values.items()]
        for begin in range(0, len(rows), BATCH):
            self._client.log_batch(self._id, metrics=rows[begin : begin + BATCH])

    def evaluation(self, iteration: int, name: str, rows: Sequence[Mapping[str, Cell]]) -> None:
        """Log a table as an artefact of JSON."""
        data = {"iteration": iteration, "rows": [dict(row) for row in rows]}
        self._client.log_dict(self._id, data, f"{name}.json")

    def artefact(self, iteration: int, path: Path) -> None:
        """Log a file as an artefact."""
        self._client.log_artifact(self._id, str(path))

    def end(self) -> None:
        """Mark the run as finished."""
        self._client.set_terminated(self._id)

    @staticmethod
    def fetch(name: str) -> Path:
        """Download the policy of a run, such as `0a1b...` or `0a1b.../policy-000010.pt`.

        Raises:
            IrgymError: There is no such run, or it logged no policy.
            BackendError: mlflow is not installed.
        """
        mlflow = _imported()
        run, _, file = name.partition("/")
        with _used(mlflow, os.environ.get("MLFLOW_TRACKING_URI", "")):
            return Path(mlflow.MlflowClient().download_artifacts(run, file or "policy.pt"))


@dataclass(frozen=True)
class _Known:
    """The run of a folder in MLflow.

    Attributes:
        store: Address of the store.
        run: Identifier.
    """

    store: str
    run: str


def _known(run: Path) -> _Known | None:
    """Return the run that the folder was logged to before; None if it was not.

    Raises:
        StorageError: The file is damaged.
    """
    data = read_json(run / ID_FILE)
    try:
        return None if data is None else conform(_Known, data)
    except MismatchError as error:
        raise StorageError(f"{run / ID_FILE} is damaged ({error}): remove it to log to a new run") from error


def name_in_mlflow(name: str) -> str:
    """Return the name of a metric or parameter in MLflow, which takes fewer characters and no `//`.

    A name that loses more than `://` gets a digest, so that distinct names stay distinct.
    """
    readable = name.replace("://", "/")
    plain = NOT_IN_NAMES.sub("_", readable)
    plain = re.sub(r"/\.*(?=/|$)", "/_", plain)  # no empty part, `.` or `..`, which a path would drop
    if plain == readable and len(plain) <= LONGEST_NAME:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: LONGEST_NAME - 9]}-{digest}"


def _parameters(configuration: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the leaves of nested mappings as texts, by names such as `config.lr`."""
    found: dict[str, str] = {}
    for key, value in configuration.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= _parameters(value, f"{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            found[name_in_mlflow(name)] = text[:LONGEST_VALUE]
    return found


def _store(run: Path) -> str:
    """Return the address of the store: the one that the user named, or files in the run folder."""
    named = os.environ.get("MLFLOW_TRACKING_URI")
    if named:
        return named
    # MLflow's newer versions want to be asked for files: they prefer data bases, which need more packages.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    return (run.resolve() / FOLDER).as_uri()


def _imported() -> Any:
    try:
        return import_module("mlflow")
    except ImportError as error:
        raise BackendError("mlflow is not installed: run pip install 'irgym[mlflow]'") from error


@contextmanager
def _used(mlflow: Any, store: str) -> Generator[None]:
    """Turn what MLflow refuses into one sentence."""
    try:
        yield
    except (mlflow.exceptions.MlflowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise IrgymError(
            f"MLflow's store {store or 'by default'} cannot be used ({reason}): check MLFLOW_TRACKING_URI"
        ) from error
