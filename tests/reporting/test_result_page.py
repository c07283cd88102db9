"""The page of one result, of a program that is drawn and of one that is not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from passes import URIS
from staged import Staged, Stages

import irgym
from irgym.core.catalogue import ENVIRONMENTS
from irgym.core.schedule import Schedule, replay
from irgym.judging.gains import gains_of
from irgym.judging.result import Tuned
from irgym.reporting.facts import facts_of
from irgym.reporting.result_page import write_result_page


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Tuned:
    monkeypatch.setitem(ENVIRONMENTS.builtin, "passes", "passes:PASSES")  # pyright: ignore
    return irgym.replay(URIS[0], "fold0 fold1")


@pytest.fixture
def drawn(plain: Tuned) -> Tuned:
    task = Staged("sstts")
    schedule = Schedule.parse("merge@x0 merge@x2 fuse@x0 stop", task.space)
    changes: dict[str, Any] = {
        "task": task,
        "state": replay(task, schedule),
        "actions": schedule,
        "schedule": schedule.text(task.space),
        "objective": task.objective,
        "steps": gains_of(Stages(), task, schedule),
        "program": "<b>&",
    }
    return replace(plain, **changes)


def page(result: Tuned, folder: Path) -> str:
    write_result_page(result, folder / "page.html")
    return (folder / "page.html").read_text()


def test_a_program_that_is_drawn(drawn: Tuned, tmp_path: Path):
    text = page(drawn, tmp_path)
    assert text.count("<svg") == 2 and "merge x 2" in text and "timed in turn" in text
    assert "&lt;b&gt;&amp;" in text and "<b>" not in text and "<script" not in text
    assert "fuse@x0" in text and "4 actions" in text and drawn.machine in text
    assert ("operators", "scale 3 -> 1, shift 2 -> 0, both 0 -> 1") in facts_of(drawn)


def test_a_program_that_is_not(plain: Tuned, tmp_path: Path):
    text = page(plain, tmp_path)
    assert "<svg" not in text and "timed in turn" not in text
    assert "fold0" in text and "share" in text and plain.machine in text
