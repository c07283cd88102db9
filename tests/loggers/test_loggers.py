"""Loggers by name, several as one, and the files of CSV."""

import csv
import sys
from pathlib import Path

import pytest
from remembering import Remembering

from irgym.base.errors import BackendError, IrgymError, StorageError
from irgym.loggers import LOGGERS, check_loggers, fetched, logger_names, make_loggers
from irgym.loggers.csv import CsvLogger
from irgym.loggers.logger import Loggers, class_fault, logger_fault
from irgym.loggers.names import NamesLogger, kept_names
from irgym.loggers.tensorboard import TensorBoardLogger


def test_names_are_read_and_wrong_ones_refused():
    assert logger_names("csv,tensorboard,csv") == ("csv", "tensorboard")
    assert logger_names("none") == ()
    for text in ("wrong", "", "csv,,wandb", "csv,none"):
        with pytest.raises(IrgymError, match="there is no logger"):
            logger_names(text)
    assert {"tensorboard", "wandb", "mlflow", "csv"} <= set(LOGGERS.names())


def test_other_packages_loggers_and_objects_are_checked():
    assert class_fault(Remembering) == logger_fault(Remembering()) == ""
    assert class_fault("text") == "cannot be called to make a logger"
    assert class_fault(dict) == "has no method `start`"
    check_loggers(None, [Remembering()])
    with pytest.raises(IrgymError, match="3 is no logger, since it has no method `start`"):
        check_loggers(None, [3])


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_missing_package_is_one_sentence(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, name, None)
    remedy = rf"{name} is not installed: run pip install 'irgym\[{name}\]'"
    for use in (lambda: make_loggers([name]), lambda: fetched(f"{name}:something")):
        with pytest.raises(BackendError, match=remedy):
            use()


def test_tensorboard_is_the_default_where_it_is_installed(monkeypatch: pytest.MonkeyPatch):
    assert logger_names(None) == ("tensorboard",)
    monkeypatch.setattr("irgym.loggers.find_spec", lambda name: None)
    assert logger_names(None) == ()
    monkeypatch.setitem(sys.modules, "tensorboard.summary.writer.event_file_writer", None)
    with pytest.raises(BackendError, match=r"tensorboard is not installed: run pip install 'irgym\[learn\]'"):
        make_loggers(["tensorboard"])


def test_only_names_of_artefacts_are_fetched():
    assert fetched("runs/mine") is None and fetched("other:thing") is None
    with pytest.raises(IrgymError, match="csv keeps no policies"):
        fetched("csv:thing")


def test_all_loggers_that_started_end(tmp_path: Path):
    good, bad, never = Remembering(), Remembering(fails="start"), Remembering()
    with pytest.raises(RuntimeError), Loggers((good, bad, never)).logging(tmp_path, {}, 0):
        pytest.fail("it started")
    assert [call[0] for call in good.calls] == ["start", "end"] and not never.calls
    first, last = Remembering(), Remembering(fails="end")
    with pytest.raises(RuntimeError), Loggers((first, last)).logging(tmp_path, {}, 0):
        pass
    assert first.calls[-1] == ("end",)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_csv_gains_columns_and_forgets_later_iterations(tmp_path: Path):
    logger = CsvLogger()
    logger.start(tmp_path, {}, 0)
    logger.metrics(1, {"a": 0.1})
    logger.metrics(2, {"b": 2.0, "a": 1 / 3})
    logger.metrics(3, {"a": 5.0})
    file = tmp_path / "csv/metrics.csv"
    assert file.read_text().splitlines() == ["iteration,a,b", "1,0.1,", f"2,{1 / 3},2.0", "3,5.0,"]
    logger = CsvLogger()
    logger.start(tmp_path, {}, 2)
    logger.metrics(3, {"c": 6.0})
    assert [row["iteration"] for row in rows_of(file)] == ["1", "2", "3"]
    assert rows_of(file)[-1] == {"iteration": "3", "a": "", "b": "", "c": "6.0"}
    logger.evaluation(3, "comparison", [{"program": "a,b", "cost": None}, {"program": 'c"', "cost": 1.5}])
    logger.evaluation(3, "comparison", [])
    found = rows_of(tmp_path / "csv/comparison.csv")
    assert found == [{"program": "a,b", "cost": ""}, {"program": 'c"', "cost": "1.5"}]


def test_a_damaged_csv_file_is_one_sentence(tmp_path: Path):
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv/metrics.csv").write_text("iteration,a\nseven,1\n")
    with pytest.raises(StorageError, match=r"metrics.csv is damaged: remove it"):
        CsvLogger().start(tmp_path, {}, 3)


def test_names_are_kept_and_damage_is_told(tmp_path: Path):
    assert kept_names(tmp_path) is None
    NamesLogger(("csv", "wandb")).start(tmp_path, {}, 0)
    assert kept_names(tmp_path) == ("csv", "wandb")
    (tmp_path / "loggers.json").write_text("[3]")
    with pytest.raises(StorageError, match="is damaged"):
        kept_names(tmp_path)


def test_tensorboard_shows_texts_and_hides_later_iterations(tmp_path: Path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for done, iterations, rate in ((0, (1, 2, 3), 0.1), (1, (2,), 0.2)):
        logger = TensorBoardLogger()
        logger.start(tmp_path, {"agent": "ppo"}, done)
        for iteration in iterations:
            logger.metrics(iteration, {"train/lr": rate})
        logger.evaluation(iterations[-1], "comparison", [{"program": "a|b", "cost": None}])
        logger.end()
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = {event.step: round(event.value, 6) for event in events.Scalars("train/lr")}
    assert found == {1: 0.1, 2: 0.2}
    [text] = events.Tensors("configuration/text_summary")
    assert b'"agent": "ppo"' in text.tensor_proto.string_val[0]
    table = events.Tensors("comparison/text_summary")[-1].tensor_proto.string_val[0]
    assert table.decode().split("\n") == ["| program | cost |", "| --- | --- |", "| a\\|b |  |"]
