"""Interrupts while a program is tuned: the result is the best that is validated so far."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from passes import URIS

import irgym
from irgym.cli.main import main
from irgym.judging.history import History
from irgym.judging.trials import Trials
from irgym.judging.validator import Validator

PROGRAM = URIS[0]
FEW = irgym.Searching(search="greedy", evaluations=150)


def interrupt(*arguments: Any, **keywords: Any) -> Any:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupted_search_is_checked_and_a_second_interrupt_raised(monkeypatch: pytest.MonkeyPatch):
    seen: list[Any] = []

    def evaluated(nodes: Any, costs: Any) -> None:
        seen.extend(nodes)
        if len(seen) > 20:
            signal.raise_signal(signal.SIGINT)

    stopped = irgym.Searching(search="random", evaluations=150, evaluated=evaluated)
    result = irgym.tune(PROGRAM, searching=stopped)
    assert result.cut_short and result.validated and not result.interrupted
    assert result.search is not None and result.search.interrupted and result.search.evaluations < 150
    monkeypatch.setattr(Validator, "__call__", interrupt)
    with pytest.raises(KeyboardInterrupt):
        irgym.tune(PROGRAM, searching=stopped)


def test_an_interrupted_validation_leaves_the_original_which_is_exported_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(Validator, "__call__", interrupt)
    data, file, page = (tmp_path / name for name in ("a.json", "a.txt", "a.html"))
    files = ("--json", str(data), "--export", str(file), "--report", str(page))
    main(["tune", PROGRAM, "--search", "greedy", "--evaluations", "150", *files])
    out, err = capsys.readouterr()
    found = json.loads(data.read_text())
    assert found["schedule"] == "" and found["speedup"] == 1.0 and not found["validated"]
    assert "comparing its results" in found["interrupted"] and "before anything better" in found["no_gain"]
    assert file.read_text() == str(irgym.task(PROGRAM).initial().ops), "the original is exported"
    assert "interrupted" in out and "original program is kept" in out and "interrupt again to stop" in err
    assert "before anything better was validated" in page.read_text()
    assert not History().path.exists(), "nothing was validated that could be used again"


def test_an_interrupt_after_the_validation_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("irgym.judging.result.reference_of", interrupt)
    result = irgym.tune(PROGRAM, searching=FEW)
    assert result.cost == 100.0 and result.validated and result.interrupted and result.cut_short
    assert result.reference is None and result.search is not None and not result.search.complete
    assert len(irgym.history(PROGRAM)) == 1


def test_a_second_interrupt_is_raised(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Validator, "__call__", interrupt)
    monkeypatch.setattr("irgym.judging.result.best_so_far", interrupt)
    with pytest.raises(KeyboardInterrupt):
        irgym.tune(PROGRAM, searching=FEW)


def test_a_known_schedule_is_checked_with_interrupts_too(monkeypatch: pytest.MonkeyPatch):
    irgym.tune(PROGRAM, searching=FEW)
    monkeypatch.setattr(Validator, "__call__", interrupt)
    result = irgym.tune(PROGRAM, searching=irgym.Searching(quick=True))
    assert result.schedule == "" and result.interrupted and result.speedup == 1.0


def test_an_interrupt_of_measured_checks_keeps_what_runs(monkeypatch: pytest.MonkeyPatch):
    """Costs are times here; the baseline was not timed in turn, and the result says so."""
    monkeypatch.setattr(Trials, "versus", interrupt)
    result = irgym.tune(
        "loops://mm/16x16x16", searching=irgym.Searching(search="random", evaluations=4), policy=None
    )
    assert result.interrupted and result.versus is None
    assert result.speedup >= 1.0 and (result.validated or result.no_gain)


def test_ctrl_c_during_the_checks_of_the_command(tmp_path: Path):
    file = tmp_path / "a.json"
    words = ["tune", "loops://mm/512x512x512", "--search", "random", "--evaluations", "9"]
    with subprocess.Popen(
        [sys.executable, "-m", "irgym", *words, "--json", str(file)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "checking and evaluating the best" in line:
                break
        # The checks begin now, and take longer than this.
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    assert process.returncode == 0 and "interrupted" in out
    assert json.loads(file.read_text())["interrupted"]


def test_an_interrupt_while_the_best_schedule_is_shortened_loses_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("irgym.search.run.minimise", interrupt)
    result = irgym.tune(PROGRAM, searching=FEW)
    assert result.cost == 100.0 and result.validated and result.cut_short
