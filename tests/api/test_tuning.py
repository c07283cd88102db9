"""Tuning and replaying from Python: the value that comes back, and the same JSON as from the command line."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from passes import URIS

import irgym
from irgym.base.errors import IrgymError, ScheduleError
from irgym.cli.main import main
from irgym.core.schedule import Schedule
from irgym.judging.plan import Plan
from irgym.judging.result import Tuned
from irgym.reporting.facts import facts_of

PROGRAM = URIS[0]
LOOPS = "loops://mm/16x16x16"


def written(path: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON that a command writes."""
    main([*arguments, "--json", str(path)])
    return json.loads(path.read_text())


def undated(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "date"}


def test_tune_finds_the_optimum_and_says_how():
    said: list[str] = []
    result = irgym.tune(
        PROGRAM, note=said.append, searching=irgym.Searching(search="greedy", evaluations=150)
    )
    assert (result.cost, result.cost_as_written, result.speedup) == (100.0, 167.0, pytest.approx(1.67))
    assert sum(step.gain for step in result.steps) == 67.0 and result.validated
    assert result.reference is not None and result.reference.name == "core"
    assert result.reference_ratio == pytest.approx(1.14) and result.gain_ratio == pytest.approx(67 / 53)
    assert result.search is not None and (result.search.name, result.search.policy) == ("greedy", None)
    assert result.search.evaluations <= 150 and result.baseline_ratio is None and result.peak_share is None
    assert said[:2] == [
        f"{PROGRAM}: {what}" for what in ("reading the program", "evaluating the original program")
    ]
    assert said[2].startswith(f"{PROGRAM}: greedy search, 1 candidates, best 167")
    assert said[-1].startswith(f"{PROGRAM}: checking and evaluating the best of ")
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.cost = 0.0  # pyright: ignore


@pytest.mark.parametrize(("takes_s", "told"), [(0.4, False), (0.6, True)])
def test_a_search_says_where_time_is_short_for_its_candidates(
    takes_s: float, told: bool, monkeypatch: pytest.MonkeyPatch
):
    said: list[str] = []
    monkeypatch.setattr(Plan, "candidate_s", takes_s)
    monkeypatch.setattr(Plan, "search_s", 5.0)
    irgym.tune(
        PROGRAM, seconds=9.0, note=said.append, searching=irgym.Searching(search="greedy", evaluations=5)
    )
    assert any("may try few candidates" in line for line in said) == told


def test_a_schedule_found_is_replayed():
    found = irgym.tune(PROGRAM, searching=irgym.Searching(search="greedy", evaluations=150))
    said: list[str] = []
    again = irgym.replay(PROGRAM, found.schedule, note=said.append)
    assert said == [
        f"{PROGRAM}: {what}" for what in ("reading the program", "checking and evaluating the schedule")
    ]
    differing = {"search", "evaluations", "seconds", "proven", "date", "checks_seconds", "checks_bound"}
    ours, theirs = found.to_json(), again.to_json()
    assert {name for name in ours if ours[name] != theirs[name]} <= differing
    assert again.search is None and theirs["search"] is None and ours["search"] == "greedy"


def test_replay_and_the_command_give_the_same_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ours = irgym.replay(PROGRAM, "fold0 fold1").to_json()
    assert undated(ours) == undated(written(tmp_path / "a.json", "replay", PROGRAM, "fold0 fold1"))
    assert json.loads(json.dumps(ours, allow_nan=False)) == ours


def test_tune_and_the_command_give_the_same_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ours = irgym.tune(PROGRAM, seed=3, searching=irgym.Searching(search="random", evaluations=20)).to_json()
    options = ("--search", "random", "--evaluations", "20", "--seed", "3")
    theirs = written(tmp_path / "a.json", "tune", PROGRAM, *options)
    for name in ("seconds", "checks_seconds", "checks_bound"):
        assert ours.pop(name) > 0 and theirs.pop(name) > 0
    assert undated(ours) == undated(theirs)


def test_keys_are_the_same_for_every_environment_and_for_both_functions():
    keys = [
        list(irgym.replay(LOOPS, "split_8").to_json()),
        list(irgym.tune(LOOPS, searching=irgym.Searching(search="random", evaluations=4)).to_json()),
        list(irgym.replay(PROGRAM, "").to_json()),
    ]
    assert keys[0] == keys[1] == keys[2]
    assert {"cost", "cost_as_written", "baseline", "baseline_ratio", "search", "policy", "machine"} < set(
        keys[0]
    )


def test_a_baseline_and_a_peak_are_told_where_there_are_some():
    data = irgym.replay(LOOPS, "split_8 down swap_down").to_json()
    assert data["baseline"] == "numpy" and data["baseline_ratio"] > 0 and "numpy" in data["baseline_detail"]
    assert data["gflops"] == pytest.approx(2 * 16**3 / data["cost"])
    assert data["peak_gflops"] > 0 and 0 < data["peak_share"] < 1.5


def test_numbers_that_are_not_finite_are_null():
    result = irgym.replay(PROGRAM, "fold0")
    free = dataclasses.replace(result, cost=0.0)
    assert free.speedup == math.inf and free.to_json()["speedup"] is None
    assert dataclasses.replace(result, cost=math.nan).to_json()["cost"] is None


def test_export(tmp_path: Path):
    result = irgym.tune(LOOPS, searching=irgym.Searching(search="random", evaluations=4))
    assert set(result.forms) >= {".c", ".o"}
    assert result.export(str(tmp_path / "mm.c")) == [tmp_path / "mm.c"]
    assert "irgym_kernel" in (tmp_path / "mm.c").read_text()
    with pytest.raises(IrgymError, match="end the name in one of"):
        result.export(tmp_path / "mm.txt")


class Folding:
    """Runs the passes that fold, in order."""

    observation = ""

    def act(self, observations: Any, masks: Any, rng: Any, temperature: float = 1.0) -> list[Any]:
        space = irgym.task(PROGRAM).space
        names = [f"fold{k}" for k in range(8)] + ["stop"]
        actions = [[space.parse(name) for name in names]] * len(masks)
        return [
            next(a for a in row if space.allows(mask, a)) for row, mask in zip(actions, masks, strict=True)
        ]


def test_a_policy_may_be_an_object():
    result = irgym.tune(
        PROGRAM, policy=Folding(), searching=irgym.Searching(search="rollout", evaluations=30)
    )
    assert result.search is not None and result.search.policy == "Folding" and result.cost < 167.0


def test_without_a_choice_the_policy_that_ships_leads():
    pytest.importorskip("torch")
    result = irgym.tune(LOOPS, searching=irgym.Searching(evaluations=4))
    assert result.search is not None and (result.search.name, result.search.policy) == ("guided", "default")
    alone = irgym.tune(PROGRAM, searching=irgym.Searching(evaluations=4))
    assert alone.search is not None and (alone.search.name, alone.search.policy) == ("evolutionary", None)


def test_quick_takes_the_compilers_schedule_or_the_better_one_of_an_earlier_search():
    quick = irgym.Searching(quick=True)
    first = irgym.tune(PROGRAM, searching=quick)
    assert first.search is not None and (first.search.name, first.search.policy) == ("quick", None)
    assert (first.cost, first.search.evaluations, first.validated) == (114.0, 2, True)
    assert irgym.tune(URIS[3], searching=quick).no_gain, "the compiler's schedule reduces nothing there"
    irgym.tune(PROGRAM, searching=irgym.Searching(search="greedy", evaluations=150))
    again = irgym.tune(PROGRAM, searching=quick)
    assert again.cost == 100.0 and again.search is None


def test_an_objective_may_be_chosen_and_bad_requests_are_refused():
    assert (
        irgym.replay(PROGRAM, "fold0 fold1", measuring=irgym.Measuring(objective="time")).objective.name
        == "time"
    )
    with pytest.raises(ScheduleError, match="no action 'fly'"):
        irgym.replay(PROGRAM, "fly")
    with pytest.raises(IrgymError, match="takes no policy"):
        irgym.tune(PROGRAM, policy="default", searching=irgym.Searching(search="random"))
    with pytest.raises(IrgymError, match="wrong results"):
        irgym.replay("passes://wrong/1-0-0-0-0-0-0-0", "fold0")


def test_wrong_programs_are_rejected_and_the_result_says_so():
    found = irgym.tune("passes://wrong/1-0-0-0-0-0-0-0", searching=irgym.Searching(evaluations=20))
    assert found.schedule == "" and found.validated and found.no_gain
    assert found.rejected and all("wrong results" in reason for reason in found.rejected)
    assert found.to_json()["rejected"] == list(found.rejected)
    assert found.search is not None and not found.search.complete
    assert any(name == "rejected" and "wrong results" in said for name, said in facts_of(found))


def test_the_task_and_the_state_are_in_the_result():
    result: Tuned = irgym.replay(PROGRAM, "fold0")
    state = result.task.step(result.task.initial(), Schedule.parse("fold0", result.task.space).actions[0])
    assert result.state == state and result.program_after == result.task.describe(state)
    assert np.isfinite(result.cost)
