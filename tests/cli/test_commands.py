"""Every command from its arguments to its exit code, with tiny programs and budgets."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Result

from irgym.cli.commands import SUMMARIES, command_class
from irgym.cli.main import main
from irgym.cli.progress import Shown
from irgym.comparing.results import COLUMNS
from irgym.core.catalogue import ENVIRONMENTS
from irgym.measure.linking import LINKERS

pytest.importorskip("torch")

PROGRAM = "loops://mm/16x16x16"
SCHEDULE = "split_8 down swap_down"
DATASET = "mm_random:count=8,low=8,high=24,seed=1"
QUICK = ("--evaluations", "8")
TRAINING = ("--dataset", DATASET, "--set", "episodes=4", "hidden=8")

TUNE_KEYS = {
    "program",
    "schedule",
    "cost",
    "cost_as_written",
    "speedup",
    "gflops",
    "peak_share",
    "baseline_ratio",
    "validated",
    "evaluations",
    "seconds",
}
ROW_KEYS = {
    "program",
    "method",
    "cost",
    "speedup",
    "baseline_ratio",
    "seconds",
    "evaluations",
    "validated",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRGYM_CACHE_DIR", str(folder / "cache"))
        main(["train", "loops", "--run", str(folder / "run"), "--iterations", "2", *TRAINING])
    return folder / "run"


@pytest.fixture
def run_folder(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def rows_of(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as rows:
        return list(csv.DictReader(rows))


def in_csv(row: dict[str, Any]) -> dict[str, str]:
    """A row of the JSON as CSV has it."""
    return {name: "" if row[name] is None else str(row[name]) for name in COLUMNS}


def refused(result: Result, *words: str) -> None:
    """One sentence on stderr that has these words, and exit code 2."""
    assert result.code == 2, result
    assert result.err.startswith("irgym: ") and result.err.count("\n") == 1, result.err
    for word in words:
        assert word in result.err


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_envs_say_what_runs_here(irgym: Command, tmp_path: Path):
    result = irgym("envs", "--json", tmp_path / "envs.json")
    assert result.code == 0 and "loops" in result.out and "llvm" in result.out
    found = read(tmp_path / "envs.json")
    rows = found["environments"]
    assert {"avx512", "avx2", "llvm"} == {row["name"] for row in rows if row["environment"] == "loops"}
    assert all(isinstance(row["available"], bool) for row in rows)


def test_envs_say_what_is_installed_and_kept(irgym: Command, cache: Path, tmp_path: Path):
    cache.mkdir()
    (cache / "something").write_bytes(bytes(3_000_000))
    result = irgym("envs", "--json", tmp_path / "envs.json")
    assert str(cache) in result.out and "something 3 MB" in result.out
    found = read(tmp_path / "envs.json")
    assert found["caches"]["bytes"]["something"] == 3_000_000 and found["caches"]["free"] > 0
    extras = {extra["name"]: extra for extra in found["extras"]}
    assert extras["loops"]["installed"] and not extras["loops"]["missing"]
    assert not {"dev", "docs"} & set(extras) and "irgym 0" in found["installation"]


def test_programs_of_a_split(irgym: Command, tmp_path: Path):
    result = irgym("programs", "loops", "--dataset", "mm64_128_16_range", "--split", "test")
    uris = [line for line in result.out.splitlines() if not line.startswith("#")]
    everything = irgym("programs", "loops", "--dataset", "mm64_128_16_range", "--json", tmp_path / "all.json")
    assert result.code == everything.code == 0
    assert uris and set(uris) < set(read(tmp_path / "all.json")["programs"])
    assert len(read(tmp_path / "all.json")["programs"]) == 125


def test_tune_finds_checks_exports(irgym: Command, tmp_path: Path):
    result = irgym(
        "tune",
        *(PROGRAM, "--search", "random", *QUICK),
        *("--json", tmp_path / "tune.json", "--export", tmp_path / "mm.c"),
    )
    assert result.code == 0
    data = read(tmp_path / "tune.json")
    assert set(data) >= TUNE_KEYS
    assert data["program"] == PROGRAM and data["validated"] is True and data["evaluations"] == 8
    assert data["speedup"] == pytest.approx(data["cost_as_written"] / data["cost"])
    assert data["gflops"] == pytest.approx(2 * 16**3 / data["cost"])
    assert data["schedule"] in result.out and "numpy" in result.out
    assert "irgym_kernel" in (tmp_path / "mm.c").read_text()


@pytest.mark.timed
def test_tune_stops_at_the_time_limit(irgym: Command, tmp_path: Path):
    assert irgym("tune", PROGRAM, "--seconds", "0.2", "--json", tmp_path / "tune.json").code == 0
    assert read(tmp_path / "tune.json")["seconds"] < 2


def test_tuned_schedule_replays(irgym: Command, tmp_path: Path):
    assert irgym("tune", PROGRAM, *QUICK, "--backend", "llvm", "--json", tmp_path / "tune.json").code == 0
    schedule = read(tmp_path / "tune.json")["schedule"]
    replayed = irgym("replay", PROGRAM, schedule, "--json", tmp_path / "replay.json")
    assert replayed.code == 0
    assert read(tmp_path / "replay.json")["schedule"] == schedule
    assert read(tmp_path / "replay.json")["program_after"] == read(tmp_path / "tune.json")["program_after"]


def test_replay_shows_the_nest(irgym: Command):
    result = irgym("replay", PROGRAM, SCHEDULE)
    assert result.code == 0 and "for m (2 x 8)" in result.out and "validated" in result.out


def test_train_leaves_a_whole_run(trained: Path):
    rows = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [1, 2]
    assert {"reward_mean", "speedup", "entropy", "value_loss", "evaluations_per_s"} <= set(rows[0])
    assert all((trained / name).is_file() for name in ("config.json", "checkpoint.pt", "policy.pt"))
    assert read(trained / "config.json")["dataset"] == DATASET


def test_training_resumes(irgym: Command, run_folder: Path):
    result = irgym("train", "loops", "--run", run_folder, "--resume", "--iterations", "3", *TRAINING)
    assert result.code == 0 and "iteration    3" in result.out and "iteration    2" not in result.out


@pytest.mark.parametrize("agent", ["dqn", "apex"])
def test_q_learners_train(irgym: Command, tmp_path: Path, agent: str):
    settings = ("--set", "episodes=4", "hidden=8", "updates=1", "warmup=8", "minibatch=8")
    arguments = ("--agent", agent, "--iterations", "1", "--dataset", DATASET, *settings)
    assert irgym("train", "loops", "--run", tmp_path / agent, *arguments).code == 0
    assert (tmp_path / agent / "policy.pt").is_file()
    rows = [json.loads(line) for line in (tmp_path / agent / "metrics.jsonl").read_text().splitlines()]
    assert [row["failures"] for row in rows] == [0]


def test_imitation_gives_a_policy_to_start_from(irgym: Command, tmp_path: Path):
    quick = ("--searched", "2", "--programs", "3", "--seconds", "0.2", "--set", "epochs=2", "hidden=8")
    arguments = ("--rounds", "2", "--dataset", DATASET, *quick)
    result = irgym("imitate", "loops", "--out", tmp_path / "start.pt", *arguments)
    assert result.code == 0 and "round 2: the policy alone reaches" in result.out
    settings = ("--set", "episodes=4", "hidden=8", f"start={tmp_path / 'start.pt'}")
    arguments = ("--run", tmp_path / "run", "--iterations", "1", "--dataset", DATASET, *settings)
    assert irgym("train", "loops", *arguments).code == 0


def test_evaluate_shows_the_result_and_the_raw_policy(irgym: Command, run_folder: Path, tmp_path: Path):
    files = ("--json", tmp_path / "evaluation.json", "--csv", tmp_path / "rows.csv")
    result = irgym("evaluate", run_folder, "--split", "train", "--limit", "2", *files)
    assert result.code == 0 and "best state seen" in result.out and "geometric mean" in result.out
    assert "raw policy: speedup" in result.out
    assert re.search(r"standard deviation \d+\.\d\d, greatest \d+\.\d\dx\)", result.out)
    data = read(tmp_path / "evaluation.json")
    assert data == read(run_folder / "evaluation.json")
    assert rows_of(tmp_path / "rows.csv") == [in_csv(row) for row in data["rows"]]
    assert len(data["rows"]) == 4 and set(data["rows"][0]) >= ROW_KEYS
    mine, raw = ([row for row in data["rows"] if row["method"] == name] for name in data["summary"])
    assert all(row["validated"] and row["best_seen"] <= row["cost"] for row in mine)
    assert all(row["speedup"] >= 1 for row in mine) and all(row["validated"] for row in raw)
    steps = read(run_folder / "steps.json")
    best = max(mine, key=lambda row: row["speedup"])
    assert " ".join(step["action"] for step in steps[1:]) == best["schedule"] and steps[0]["action"] == ""


def test_a_row_as_csv_names_what_replays_it(irgym: Command, tmp_path: Path):
    file, again = tmp_path / "rows.csv", tmp_path / "again.json"
    methods = ("--methods", "base,random", *QUICK)
    assert irgym("compare", "loops", "--programs", PROGRAM, *methods, "--csv", file).code == 0
    base, random = rows_of(file)
    assert base["schedule"] == "" and random["schedule"] and random["validated"] == "True"
    assert irgym("replay", random["program"], random["schedule"], "--json", again).code == 0
    assert read(again)["schedule"] == random["schedule"] and read(again)["validated"]


@pytest.mark.parametrize("command", ["compare", "evaluate"])
def test_an_interrupt_leaves_what_there_is(
    irgym: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    seen: list[str] = []

    def interrupted_at_the_second(self: object, program: str, method: str) -> None:
        seen.append(program)
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Shown, "progress", interrupted_at_the_second)
    file, table = tmp_path / "so-far.json", tmp_path / "so-far.csv"
    where: tuple[object, ...] = ("loops", "--methods", "base,random", *QUICK, "--limit", 1)
    where = where if command == "compare" else (run_folder, "--split", "train", "--limit", 2)
    result = irgym(command, *where, "--json", file, "--csv", table)
    assert result.code == 130 and f"{seen[0]}" in result.out and "geometric mean" in result.out
    rows = read(file)["rows"]
    assert {row["program"] for row in rows} == {seen[0]} and rows[0]["cost"] > 0
    assert rows_of(table) == [in_csv(row) for row in rows]
    if command == "evaluate":
        assert read(run_folder / "evaluation.json")["rows"] == rows


def test_compare_then_report(irgym: Command, run_folder: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    methods = ["base", "random", f"policy:{run_folder}", f"guided:{run_folder}", "numpy"]
    result = irgym(
        "compare",
        *("loops", "--programs", PROGRAM, *QUICK, "--methods", ",".join(methods)),
        *("--json", tmp_path / "compare.json", "--csv", tmp_path / "rows.csv", "--run-folder", run_folder),
    )
    assert result.code == 0 and "geometric means" in result.out
    data = read(tmp_path / "compare.json")
    assert rows_of(tmp_path / "rows.csv") == [in_csv(row) for row in data["rows"]]
    methods.insert(3, f"raw:{run_folder}")
    assert [row["method"] for row in data["rows"]] == methods and set(data["summary"]) == set(methods)
    assert all(set(row) >= ROW_KEYS for row in data["rows"])
    base, random, *_ = data["rows"]
    assert base["speedup"] == 1.0 and random["evaluations"] == 8 and random["validated"]
    assert irgym("report", run_folder, "--out", tmp_path / "report.html").code == 0
    page = (tmp_path / "report.html").read_text()
    assert "mm/16x16x16" in page and "<svg" in page


def test_the_trees_of_searches_are_written(irgym: Command, tmp_path: Path):
    file, folder = tmp_path / "tree.json", tmp_path / "traces"
    result = irgym("tune", PROGRAM, "--search", "greedy", *QUICK, "--trace", file)
    assert result.code == 0 and f"written: {file}" in result.out
    tree = read(file)
    assert tree["title"] == f"{PROGRAM}, greedy search" and tree["nodes"][0]["tried"] == 1
    assert sum(node["cost"] is not None for node in tree["nodes"]) == tree["tried"] >= 8
    compared = ("--programs", PROGRAM, *QUICK, "--methods", "base", "beam:width=2", "--trace", folder)
    assert irgym("compare", "loops", *compared).code == 0
    assert [path.name for path in folder.iterdir()] == ["loops-mm-16x16x16 beam:width=2.svg"]


def test_check_says_what_was_checked(irgym: Command, tmp_path: Path):
    walks = ("--walks", "1", "--steps", "2", "--no-measure", "--skip", "splits=on purpose")
    result = irgym("check", "loops", "--programs", PROGRAM, *walks, "--json", tmp_path / "check.json")
    assert result.code == 0 and not result.err
    assert "not checked: on purpose" in result.out and "kept, in 3 checks" in result.out
    found = read(tmp_path / "check.json")
    assert f"loops keeps {len(found['rules'])} rules in 3 states of {PROGRAM}" in result.out
    assert found["rules"]["mask"] == 3 and found["left_out"]["splits"] == "on purpose"


def test_check_lists_actions_without_effect(irgym: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ENVIRONMENTS.builtin, "keeping", "keeping:KEEPING")
    result = irgym("check", "keeping", "--no-measure")
    assert result.code == 0 and re.search(r"without effect: (\d+) of \d+ tried \(set \1 of \d+\)", result.out)


def test_cache_counts_and_clears(irgym: Command, tmp_path: Path, cache: Path):
    irgym("tune", PROGRAM, "--search", "random", *QUICK)
    assert irgym("cache", "stats", "--json", tmp_path / "stats.json").code == 0
    assert read(tmp_path / "stats.json")["rows"] == 8
    assert irgym("cache", "clear").code == 0
    irgym("cache", "stats", "--json", tmp_path / "stats.json")
    assert read(tmp_path / "stats.json")["rows"] == 0


BAD_OPTIONS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("tune", "mm/4x4x4"): ("loops:",),
    ("tune", "nowhere://mm/4x4x4"): ("not a program",),
    ("tune", "loops://nothing/4x4x4"): ("no program family", "conv"),
    ("tune", "loops://mm/0x4x4"): ("at least 1",),
    ("tune", "loops://mm/4x4"): ("loops://mm/MxNxK",),
    ("tune", "loops://mm/99999x99999x9"): ("too large",),
    ("tune", PROGRAM, "--search", "oracle"): ("no search 'oracle'", "beam"),
    ("tune", PROGRAM, "--search", "beam:widht=2"): ("did you mean width?", "width, order"),
    ("tune", PROGRAM, "--search", "beam:width=0"): ("width of beam is '0'", "1 to 1000000"),
    ("tune", PROGRAM, "--search", "beam:"): ("ends in a colon",),
    ("tune", PROGRAM, "--policy", "nowhere"): ("no policy 'nowhere'", "run folder"),
    ("tune", PROGRAM, "--search", "random", "--policy", "x"): ("takes no policy",),
    ("tune", PROGRAM, "--backend", "gpu"): ("no back end 'gpu'", "llvm"),
    ("tune", PROGRAM, "--seconds", "-1"): ("more than 0",),
    ("tune", PROGRAM, "--seconds", "0"): ("more than 0",),
    ("tune", PROGRAM, "--seconds", "nan"): ("more than 0",),
    ("tune", PROGRAM, "--seconds", "inf"): ("finite",),
    ("tune", PROGRAM, "--evaluations", "0"): ("at least 1",),
    ("tune", PROGRAM, "--seed", "-1"): ("out of range",),
    ("tune", PROGRAM, "--json", "/nowhere/a.json"): ("/nowhere/a.json", "choose"),
    ("tune", PROGRAM, "--json", ""): ("--json is given",),
    ("tune", PROGRAM, "--export", "/nowhere/a.c"): ("/nowhere/a.c", "choose"),
    ("tune", PROGRAM, *QUICK, "--export", "a.txt"): (".so",),
    ("tune", PROGRAM, *QUICK, "--trace", "a.png"): (".svg", ".dot", ".json"),
    ("tune", PROGRAM, *QUICK, "--trace", "/nowhere/a.svg"): ("/nowhere/a.svg", "choose"),
    ("compare", "loops", "--json", "same", "--csv", "same"): ("--json and --csv both name",),
    ("compare", "loops", "--methods", "greedy", "--trace", "/dev/null"): ("name another folder by --trace",),
    ("tune", PROGRAM, "--quick", "--trace", "a.svg"): ("leave out trace",),
    ("replay", PROGRAM, "split_9"): ("no action 'split_9'", "split_8"),
    ("replay", PROGRAM, "down up merge"): ("action 3", "merge", "does not apply"),
    ("replay", PROGRAM, "stop up"): ("action 2", "stopped"),
    ("programs", "towers"): ("no environment 'towers'",),
    ("programs", "loops", "--dataset", "mine"): ("no data set 'mine'", "mm64_128_16_range"),
    ("programs", "loops", "--dataset", "mm_random:count=0"): ("count must be a whole number in 1 to 100000",),
    ("programs", "loops", "--json", "/nowhere/a.json"): ("choose",),
    ("envs", "--json", "/nowhere/a.json"): ("choose",),
    ("train", "towers", "--run", "x"): ("no environment",),
    ("train", "loops", "--run", "x", "--agent", "sarsa"): ("no agent 'sarsa'", "ppo, dqn"),
    ("train", "loops", "--run", "x", "--dataset", "mine"): ("no data set",),
    ("train", "hlo", "--run", "x", "--dataset", "full"): ("no training programs", "--holdout 0.2"),
    ("tune", PROGRAM, "--seconds", "1", "--add-seconds", "1"): ("leave one out",),
    ("train", "loops", "--run", "x", "--set", "speed=3"): ("'speed=3'", "epochs"),
    ("train", "loops", "--run", "x", "--set", "lr"): ("name=value",),
    ("train", "loops", "--run", "x", "--set", "lr=fast"): ("lr of ppo", "0.001"),
    ("train", "loops", "--run", "x", "--set", "reuse=all"): ("reuse of ppo",),
    ("train", "loops", "--run", "x", "--set", "episodes=0"): ("episodes of PPO is 0", "1 to 1000000"),
    ("train", "loops", "--run", "x", "--set", "gamma=nan"): ("gamma of PPO is nan", "0 to 1"),
    ("train", "loops", "--run", "x", "--set", "lr=inf"): ("lr of PPO is inf", "more than 0"),
    ("train", "loops", "--run", "x", "--set", "name=x"): ("no hyper-parameter",),
    ("imitate", "loops", "--out", "x", "--set", "lr=nan"): ("lr of imitation is nan", "more than 0"),
    ("train", "loops", "--run", "x", "--seconds", "-1"): ("more than 0",),
    ("train", "loops", "--run", "x", "--iterations", "0"): ("at least 1",),
    ("train", "loops", "--run", "x", "--validate", "-1"): ("0 or more",),
    ("train", "loops", "--run", "x", "--resume"): ("there is no run in x",),
    ("imitate", "loops", "--out", "/nowhere/a.pt"): ("/nowhere/a.pt", "choose"),
    ("imitate", "loops", "--out", "x", "--searched", "0"): ("at least 1",),
    ("imitate", "loops", "--out", "x", "--teachers", "nobody"): ("there is no policy 'nobody'",),
    ("imitate", "loops", "--out", "x", "--values", "--teachers", "default"): ("leave out one of the two",),
    ("imitate", "loops", "--out", "x", "--programs", "-1"): ("0 or more",),
    ("imitate", "loops", "--out", "x", "--rounds", "0"): ("at least 1",),
    ("imitate", "loops", "--out", "x", "--seconds", "-1"): ("more than 0",),
    ("imitate", "loops", "--out", "x", "--seed", "-1"): ("out of range",),
    ("imitate", "loops", "--out", "x", "--search", "oracle"): ("no search 'oracle'",),
    ("imitate", "loops", "--out", "x", "--search", "greedy:lookahead=no"): ("lookahead of greedy is 'no'",),
    ("imitate", "loops", "--out", "x", "--search", "guided:default"): ("start=default",),
    ("imitate", "loops", "--out", "x", "--set", "epochs=many"): ("epochs of imitation",),
    ("evaluate", "x"): ("no run folder x", "--environment"),
    ("evaluate", "x", "--limit", "0"): ("at least 1",),
    ("compare", "loops", "--methods", "magic"): ("no method 'magic'", "beam"),
    ("compare", "loops", "--methods", ""): ("--methods is given",),
    ("compare", "loops", "--methods", "guided"): ("needs a policy",),
    ("compare", "loops", "--methods", "base", "beam:2"): ("takes no policy", "beam:width=...", "guided:2"),
    ("compare", "loops", "--methods", "base,beam:width=2,depth"): ("no method 'depth'",),
    ("compare", "loops", "--methods", "tvm:trial=9"): ("did you mean trials?",),
    ("compare", "loops", "--methods", "numpy:trials=9"): ("numpy takes no options",),
    ("compare", "loops", "--methods", "policy:nowhere"): ("no policy 'nowhere'",),
    ("compare", "loops", "--programs", "loops://mm/1x1"): ("loops://mm/MxNxK",),
    ("compare", "loops", "--limit", "0"): ("at least 1",),
    ("compare", "loops", "--seconds", "0"): ("more than 0",),
    ("compare", "loops", "--run-folder", "nowhere"): ("choose",),
    ("report", "nowhere"): ("no folder nowhere",),
    ("report", "."): ("nothing to report",),
    ("cache", "stats", "--json", "/nowhere/a.json"): ("choose",),
    ("check", "towers"): ("no environment 'towers'",),
    ("check", "passes"): ("passes breaks the rule 'splits': the splits of the data set",),
    ("check", "loops", "--programs", "hlo://gpt2"): ("no loops program",),
    ("check", "loops", "--skip", "splits"): ("'splits'", "RULE=REASON"),
    ("check", "loops", "--skip", "split=x"): ("no rule 'split'", "splits"),
    ("check", "loops", "--skip", "splits=x", "splits=y"): ("'splits' is skipped twice",),
    ("check", "loops", "--walks", "0"): ("too few: give 1 to 1000000",),
    ("check", "loops", "--seed", "-1"): ("out of range",),
}


@pytest.mark.parametrize("arguments", BAD_OPTIONS, ids=" ".join)
def test_bad_options_get_one_sentence(
    arguments: tuple[str, ...], irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    refused(irgym(*arguments), *BAD_OPTIONS[arguments])
    assert not list(empty.iterdir()), "a refused command leaves nothing behind"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("fly",),
        ("tune",),
        ("tune", PROGRAM, "--seconds", "soon"),
        ("tune", PROGRAM, "--speed", "1"),
        ("programs", "loops", "--split", "both"),
        ("train", "loops"),
        ("cache", "shrink"),
    ],
)
def test_malformed_command_lines_exit_with_2(arguments: tuple[str, ...], irgym: Command):
    result = irgym(*arguments)
    assert result.code == 2 and result.err and not result.out


@pytest.mark.parametrize("command", SUMMARIES)
def test_help_of_every_command(irgym: Command, command: str):
    result = irgym(command, "--help")
    assert result.code == 0 and f"irgym {command}" in result.out
    first, *_ = (command_class(command).__doc__ or "").splitlines()
    assert first == SUMMARIES[command], "the list of commands says something else"


def test_list_of_commands_imports_none_of_them():
    code = (
        "import runpy, sys; sys.argv = ['irgym', '--help']\n"
        "try: runpy.run_module('irgym', run_name='__main__', alter_sys=False)\n"
        "except SystemExit: pass\n"
        "print([name for name in ('irgym.cli.tune', 'irgym.api.tuning', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]" and "tune" in done.stdout


def test_damaged_cache_is_named_and_can_be_cleared(irgym: Command, cache: Path):
    assert irgym("cache", "stats").code == 0
    costs = cache / "costs.sqlite"
    costs.write_bytes(costs.read_bytes()[:100] + b"\xa5" * 5000)
    refused(irgym("tune", PROGRAM, *QUICK), "costs.sqlite", "irgym cache clear")
    refused(irgym("cache", "stats"), "costs.sqlite", "irgym cache clear")
    assert irgym("cache", "clear").code == 0
    assert irgym("cache", "stats").code == 0


def test_a_file_that_is_no_cache_is_never_cleared(irgym: Command, cache: Path):
    cache.mkdir()
    (cache / "costs.sqlite").write_text("dear diary")
    for command in (("tune", PROGRAM, *QUICK), ("cache", "stats"), ("cache", "clear")):
        refused(irgym(*command), "costs.sqlite", "move it away")
    assert (cache / "costs.sqlite").read_text() == "dear diary"


def test_cache_folder_that_cannot_be(irgym: Command, cache: Path):
    cache.write_text("a file where the folder should be")
    refused(irgym("tune", PROGRAM, *QUICK), "IRGYM_CACHE_DIR")


def test_second_run_in_a_folder_is_refused(irgym: Command, run_folder: Path):
    refused(irgym("train", "loops", "--run", run_folder, *TRAINING), "already holds a run", "--resume")


def test_resuming_with_other_options_is_refused(irgym: Command, run_folder: Path):
    other = ("--dataset", DATASET, "--set", "episodes=5", "hidden=8")
    refused(irgym("train", "loops", "--run", run_folder, "--resume", *other), "episodes = 4, not 5")


def test_truncated_checkpoint_names_the_way_back(irgym: Command, run_folder: Path):
    checkpoint, previous = run_folder / "checkpoint.pt", run_folder / "checkpoint.previous.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:200])
    resume = ("train", "loops", "--run", run_folder, "--resume", "--iterations", "3", *TRAINING)
    refused(irgym(*resume), f"mv {previous} {checkpoint}")
    previous.replace(checkpoint)
    assert irgym(*resume).code == 0


def test_truncated_policy(irgym: Command, run_folder: Path):
    policy = run_folder / "policy.pt"
    policy.write_bytes(policy.read_bytes()[:200])
    refused(irgym("evaluate", run_folder, "--limit", "1"), "policy.pt", "train again")
    refused(irgym("tune", PROGRAM, *QUICK, "--policy", run_folder), "policy.pt", "train again")


def test_damaged_run_files(irgym: Command, run_folder: Path):
    (run_folder / "comparison.json").write_text('{"rows": [')
    refused(irgym("report", run_folder), "comparison.json")
    (run_folder / "config.json").write_text("[]")
    refused(irgym("evaluate", run_folder), "config.json")


def test_unwritable_results_lose_nothing(
    irgym: Command, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    refused(irgym("report", run_folder, "--out", tmp_path / "nowhere" / "a.html"), "choose")
    refused(irgym("train", "loops", "--run", "/proc/nowhere", *TRAINING), "choose")
    monkeypatch.setenv("PATH", "")
    late = irgym("tune", PROGRAM, *QUICK, "--export", tmp_path / "mm.so", "--json", tmp_path / "tune.json")
    refused(late, "linker")
    assert read(tmp_path / "tune.json")["schedule"] in late.out


def test_a_reader_that_stops_reading_is_no_error():
    command = [sys.executable, "-c", "from irgym.cli.main import main; main(['programs', 'loops'])"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_results_go_into_pipes_and_devices_and_through_links(irgym: Command, tmp_path: Path):
    fifo, link = tmp_path / "fifo", tmp_path / "link"
    os.mkfifo(fifo)
    link.symlink_to(tmp_path / "there.json")
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        assert irgym("envs", "--json", fifo).code == 0
        assert reader.stdout is not None
        rows = json.load(reader.stdout)
    assert irgym("envs", "--json", link).code == irgym("envs", "--json", "/dev/null").code == 0
    assert link.is_symlink() and read(tmp_path / "there.json")["environments"] == rows["environments"]
    assert Path("/dev/null").is_char_device() and fifo.is_fifo()


def test_a_policy_and_a_report_go_through_links_too(irgym: Command, run_folder: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    (tmp_path / "report").symlink_to(tmp_path / "there.html")
    assert irgym("report", run_folder, "--out", tmp_path / "report").code == 0
    assert irgym("report", run_folder, "--out", "/dev/null").code == 0
    assert (tmp_path / "report").is_symlink() and (tmp_path / "there.html").is_file()
    (run_folder / "policy.pt").rename(tmp_path / "there.pt")
    (run_folder / "policy.pt").symlink_to(tmp_path / "there.pt")
    resume = ("train", "loops", "--run", run_folder, "--resume", "--iterations", "3", *TRAINING)
    before = (tmp_path / "there.pt").read_bytes()
    assert irgym(*resume).code == 0
    assert (run_folder / "policy.pt").is_symlink() and (tmp_path / "there.pt").read_bytes() != before


@pytest.mark.parametrize("suffix", [".c", ".o", ".so"])
def test_suffixes_mean_the_same_in_upper_case(irgym: Command, tmp_path: Path, suffix: str):
    if suffix == ".so" and not any(map(shutil.which, LINKERS)):
        pytest.skip("needs a linker: none is installed")
    begins = {".c": b"/*", ".o": b"\x7fELF", ".so": b"\x7fELF"}
    for name in (f"low{suffix}", f"up{suffix.upper()}"):
        result = irgym("replay", PROGRAM, SCHEDULE, "--backend", "llvm", "--export", tmp_path / name)
        assert result.code == 0 and (tmp_path / name).read_bytes().startswith(begins[suffix])
    low, up = ((tmp_path / name).read_bytes() for name in (f"low{suffix}", f"up{suffix.upper()}"))
    assert low[16:18] == up[16:18], "both are objects to link, or both are linked"
    assert suffix != ".c" or low == up


@pytest.mark.parametrize(
    "arguments",
    [
        ("envs", "--json"),
        ("programs", "loops", "--json"),
        ("cache", "stats", "--json"),
        ("cache", "clear", "--json"),
        ("check", "loops", "--json"),
        ("tune", PROGRAM, *QUICK, "--json"),
        ("replay", PROGRAM, SCHEDULE, "--json"),
        ("compare", "loops", "--json"),
        ("compare", "loops", "--csv"),
        ("compare", "loops", "--run-folder"),
        ("imitate", "loops", "--out"),
        ("imitate", "loops", "--out", "x", "--json"),
        ("train", "loops", "--run", "x", "--json"),
        ("train", "loops", "--run"),
        ("report", ".", "--json"),
    ],
    ids=" ".join,
)
def test_impossible_places_for_results_are_one_sentence_before_any_work(
    arguments: tuple[str, ...], irgym: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Named too long, below a file, in a folder where not even root may write, a folder itself."""
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(empty)
    places = ["n" * 300, tmp_path / "file" / "a", Path("/proc/a")]
    if arguments[-1] not in ("--run", "--run-folder"):
        places.append(tmp_path)
    for place in places:
        refused(irgym(*arguments, place), "choose" if place != tmp_path else "name a file")
    assert not list(empty.iterdir())
