"""Commands on an environment with known costs, a default schedule and several objectives."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import Command

PROGRAM = "passes://mlp/40-0-20-0-0-7-0-0"
LATE = "passes://late/0-0-0-0-0-0-30-30"
QUICK = ("--evaluations", "150")


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_tune_shows_what_each_action_gains(irgym: Command, tmp_path: Path):
    code, out, _ = irgym("tune", PROGRAM, "--search", "greedy", *QUICK, "--json", tmp_path / "a.json")
    data = read(tmp_path / "a.json")
    assert code == 0 and data["objective"] == "ops" and data["cost"] == 100.0 and data["validated"]
    assert sum(step["gain"] for step in data["steps"]) == data["cost_as_written"] - data["cost"] == 67.0
    assert [text for step in data["steps"] for text in step["actions"]] == data["schedule"].split()
    assert data["reference"] == "core" and data["reference_ratio"] == pytest.approx(1.14)
    assert data["gain_ratio"] == pytest.approx(67 / 53)
    for words in ("share", "1.264", "improvement", "fold0"):
        assert words in out


def test_a_page_on_the_result(irgym: Command, tmp_path: Path):
    out = tmp_path / "page.html"
    code, said, _ = irgym("replay", PROGRAM, "fold0 fold1", "--report", out)
    assert code == 0 and f"written: {out}" in said
    assert "fold1" in out.read_text() and "improvement" in out.read_text()
    searched = ("tune", PROGRAM, "--search", "greedy", *QUICK, "--report")
    code, said, _ = irgym(*searched, out)
    assert code == 0 and "greedy search" in out.read_text()
    code, said, error = irgym(*searched, tmp_path / "no" / "page.html")
    assert code == 2 and "greedy" not in said and str(tmp_path / "no") in error


def test_tune_where_the_default_reduces_nothing(irgym: Command):
    code, out, _ = irgym("tune", LATE, "--search", "greedy", *QUICK)
    assert code == 0 and "the default reduces nothing" in out


def test_tune_for_another_objective(irgym: Command, tmp_path: Path):
    arguments = ("--search", "greedy", *QUICK, "--objective", "time", "--json", tmp_path / "a.json")
    code, out, _ = irgym("tune", PROGRAM, *arguments)
    assert code == 0 and "1 us" in out and "speedup" in out
    assert read(tmp_path / "a.json")["steps"] == []


def test_replay_for_another_objective(irgym: Command):
    code, out, _ = irgym("replay", PROGRAM, "fold0 fold1", "--objective", "time")
    assert code == 0 and "us" in out


def test_compare_runs_the_environments_own_methods(irgym: Command, tmp_path: Path):
    code, out, _ = irgym("compare", "passes", *QUICK, "--time", "--json", tmp_path / "c.json")
    data = read(tmp_path / "c.json")
    assert code == 0 and list(data["summary"]) == ["base", "core", "greedy"]
    assert data["settings"]["also"] == ["time"] and data["settings"]["validation_inputs"] == 1
    assert len(data["rows"]) == 12 and all(row["also"]["time"]["cost"] for row in data["rows"])
    for words in ("gain ratio", "time of the same schedules", "by family"):
        assert words in out


def test_compare_resumes(irgym: Command, tmp_path: Path):
    file = tmp_path / "c.json"
    some = ("compare", "passes", *QUICK, "--json", file)
    assert irgym(*some, "--programs", PROGRAM, "--resume")[0] == 0, "without a file it begins"
    data = read(file)
    data["rows"][2]["seconds"] = 1234.5
    file.write_text(json.dumps(data))
    assert irgym(*some, "--programs", PROGRAM, LATE, "--resume")[0] == 0
    rows = read(file)["rows"]
    assert len(rows) == 6 and rows[2]["seconds"] == 1234.5
    code, _, err = irgym(*some, "--programs", PROGRAM, "--resume", "--validation-inputs", "2")
    assert code == 2 and "validation_inputs = 1, not 2" in err


def test_compare_without_checks_says_so(irgym: Command):
    code, out, _ = irgym("compare", "passes", *QUICK, "--programs", PROGRAM, "--unvalidated")
    assert code == 0 and "not validated" in out


def test_train_and_evaluate_for_an_objective_and_a_reward(irgym: Command, tmp_path: Path):
    pytest.importorskip("torch")
    run = tmp_path / "run"
    options = ("--reward", "negative", "--objective", "ops", "--set", "episodes=4", "hidden=8")
    code, out, _ = irgym("train", "passes", "--run", run, "--iterations", "1", *options)
    assert code == 0 and "improvement" in out and "speedup" not in out
    config = read(run / "config.json")
    assert (config["reward"], config["objective"], config["peaks"]) == ("negative", "ops", [])
    assert irgym("train", "passes", "--run", run, "--iterations", "2", "--resume", *options)[0] == 0
    code, _, err = irgym("train", "passes", "--run", run, "--resume", "--reward", "log-speedup")
    assert code == 2 and "reward = negative, not log-speedup" in err
    code, out, _ = irgym("evaluate", run, "--limit", "2")
    assert code == 0 and "gain ratio" in out and "improvement" in out


def test_imitate_needs_no_peak(irgym: Command, tmp_path: Path):
    pytest.importorskip("torch")
    quick = ("--search", "greedy", "--searched", "2", "--programs", "3", "--seconds", "1")
    clone = ("--set", "epochs=2", "hidden=8", "--json", tmp_path / "i.json")
    code, out, _ = irgym("imitate", "passes", "--out", tmp_path / "start.pt", *quick, *clone)
    assert code == 0 and "of the peak" not in out and read(tmp_path / "i.json")["peak_share"] is None


BAD = {
    ("tune", PROGRAM, "--objective", "colour"): ("no objective 'colour'", "ops, time"),
    ("replay", PROGRAM, "fold0", "--objective", "colour"): ("ops, time",),
    ("compare", "passes", "--objective", "colour"): ("ops, time",),
    ("compare", "passes", "--also", "colour"): ("ops, time",),
    ("compare", "passes", "--validation-inputs", "0"): ("--unvalidated",),
    ("compare", "passes", "--validation-inputs", "2", "--unvalidated"): ("exclude",),
    ("compare", "passes", "--resume"): ("--json",),
    ("train", "passes", "--run", "x", "--objective", "colour"): ("ops, time",),
    ("train", "passes", "--run", "x", "--reward", "praise"): ("no reward 'praise'", "default, negative"),
    ("imitate", "passes", "--out", "x", "--objective", "colour"): ("ops, time",),
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_options(
    arguments: tuple[str, ...], irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    code, _, err = irgym(*arguments)
    assert code == 2 and err.startswith("irgym: ") and err.count("\n") == 1
    assert all(word in err for word in BAD[arguments]), err
    assert not list(tmp_path.iterdir())
